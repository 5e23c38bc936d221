/* The collective calls of each communicator, in order. At the end all ranks hold them against each other: what differs and happened to
 * fit shows then. Nothing is sent before. A communicator has the same name on all ranks without any message: it is made of its
 * parent's name, of how many calls that had, and of its first rank. */
enum { SEQUENCES_MAX = 4096, STEPS_MAX = 16384, DIFFERENT_MAX = 16, RANKS_TEXT = 60 };

struct step { uint64_t site, bytes, hash; uint16_t function; uint8_t reduction, leaf; int32_t root; };
struct sequence { uint64_t name, count, hash; struct step *steps; uint32_t kept, room; };

static struct sequence *sequences[SEQUENCES_MAX];
static int sequence_count;
static MPI_Comm own_world = MPI_COMM_NULL;
static pthread_mutex_t sequences_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* The number that a communicator's calls have, from 1. */
static uint32_t new_sequence(uint64_t name)
{
    struct sequence *it = sequence_count < SEQUENCES_MAX ? calloc(1, sizeof *it) : NULL;
    if (!it)
        return 0;
    it->name = it->hash = name;
    sequences[sequence_count++] = it;
    return sequence_count;
}

static struct sequence *sequence_of(MPI_Comm comm)
{
    uint32_t number = comm == MPI_COMM_WORLD ? 1 : look_up(COMMUNICATOR, HANDLE(comm)).sequence;
    return number && own_world != MPI_COMM_NULL ? sequences[number - 1] : NULL;
}

static int reduction_of(MPI_Op op)
{
    const MPI_Op all[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    if (op == MPI_OP_NULL)
        return 0;
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        if (op == all[i])
            return i + 1;
    return 255;
}

static const char *const REDUCTIONS[] = {"none", "MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND", "MPI_BAND", "MPI_LOR", "MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC"};
static const char *const LEAVES[] = {"", " of MPI_CHAR", " of MPI_BYTE", " of MPI_SHORT", " of MPI_INT", " of MPI_LONG", " of MPI_LONG_LONG", " of MPI_UNSIGNED", " of MPI_UNSIGNED_LONG", " of MPI_FLOAT", " of MPI_DOUBLE", " of MPI_LONG_DOUBLE"};

/* What all elements are; 0 for other types, of which nothing is said. */
static int leaf_of(MPI_Datatype type)
{
    const MPI_Datatype all[] = {MPI_CHAR, MPI_BYTE, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        if (type == all[i])
            return i + 1;
    return 0;
}

/* The program makes a collective call. */
static void collective(struct call *call, int function, MPI_Comm comm, int root, MPI_Op op, long long count, MPI_Datatype type)
{
    struct sequence *it = sequence_of(comm);
    if (!it || is_inter(comm))
        return;
    int size = 0;
    if (type != MPI_DATATYPE_NULL && count > 0)
        PMPI_Type_size(type, &size);
    struct step step = {.site = (uint64_t)(uintptr_t)site(call), .bytes = (uint64_t)size * (count > 0 ? count : 0), .function = function,
                        .reduction = reduction_of(op), .root = root};
    step.leaf = step.bytes ? leaf_of(type) : 0;
    pthread_mutex_lock(&sequences_lock);
    it->hash = mix(mix(mix(it->hash, step.bytes), (uint64_t)function << 32 | (uint32_t)root), (uint64_t)step.reduction << 8 | step.leaf);
    step.hash = it->hash;
    it->count++;
    if (it->kept == it->room && it->room < STEPS_MAX) {
        uint32_t room = it->room ? 2 * it->room : 64;
        struct step *more = realloc(it->steps, room * sizeof *more);
        if (more) {
            it->steps = more;
            it->room = room;
        }
    }
    if (it->kept < it->room)
        it->steps[it->kept++] = step;
    pthread_mutex_unlock(&sequences_lock);
}

/* A collective call on a communicator has made another one. */
static void name_communicator(MPI_Comm parent, MPI_Comm made)
{
    struct sequence *it = sequence_of(parent);
    if (!it || made == MPI_COMM_NULL || is_inter(made))
        return;
    MPI_Group group, world;
    int first = 0, rank = 0;
    PMPI_Comm_group(made, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &first, world, &rank);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    pthread_mutex_lock(&sequences_lock);
    uint32_t number = new_sequence(mix(mix(it->name, it->count), (uint64_t)rank + 1));
    pthread_mutex_unlock(&sequences_lock);
    pthread_mutex_lock(&objects_lock);
    struct object *object = find(COMMUNICATOR, HANDLE(made));
    if (object->life == LIVE)
        object->sequence = number;
    pthread_mutex_unlock(&objects_lock);
}

static void begin_sequences(void)
{
    new_sequence(1);
    if (PMPI_Comm_dup(MPI_COMM_WORLD, &own_world) == MPI_SUCCESS)
        PMPI_Comm_set_errhandler(own_world, MPI_ERRORS_RETURN);
}

struct head { uint64_t name, count, hash; };

static int by_name(const void *a, const void *b)
{
    const struct head *one = a, *other = b;
    return one->name < other->name ? -1 : one->name > other->name;
}

/* The names of communicators whose ranks have not made the same calls, on all ranks; gives their number. */
static int different(uint64_t *names)
{
    int rank, size, mine = sequence_count * (int)sizeof(struct head), total = 0, found = 0;
    PMPI_Comm_rank(own_world, &rank);
    PMPI_Comm_size(own_world, &size);
    struct head *own = calloc(sequence_count, sizeof *own), *all = NULL;
    int *counts = calloc(size, sizeof *counts), *places = calloc(size, sizeof *places);
    for (int i = 0; own && i < sequence_count; i++)
        own[i] = (struct head){sequences[i]->name, sequences[i]->count, sequences[i]->hash};
    PMPI_Gather(&mine, 1, MPI_INT, counts, 1, MPI_INT, 0, own_world);
    if (rank == 0) {
        for (int i = 0; i < size; i++) {
            places[i] = total;
            total += counts[i];
        }
        all = malloc(total);
    }
    PMPI_Gatherv(own, mine, MPI_BYTE, all, counts, places, MPI_BYTE, 0, own_world);
    if (rank == 0) {
        int many = total / (int)sizeof *all;
        qsort(all, many, sizeof *all, by_name);
        for (int i = 1; i < many && found < DIFFERENT_MAX; i++)
            if (all[i].name == all[i - 1].name && (all[i].count != all[i - 1].count || all[i].hash != all[i - 1].hash) &&
                (!found || names[found - 1] != all[i].name))
                names[found++] = all[i].name;
    }
    PMPI_Bcast(&found, 1, MPI_INT, 0, own_world);
    PMPI_Bcast(names, found, MPI_UINT64_T, 0, own_world);
    free(own), free(all), free(counts), free(places);
    return found;
}

/* How many calls all ranks of a communicator have made alike from its first one on; only those that are kept. */
static uint64_t alike(const struct sequence *own)
{
    uint64_t low = 0, high = own ? own->kept : UINT64_MAX;
    PMPI_Allreduce(MPI_IN_PLACE, &high, 1, MPI_UINT64_T, MPI_MIN, own_world);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, hash = own ? own->steps[middle].hash : 0;
        uint64_t both[2] = {hash, own ? ~hash : 0};
        PMPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_UINT64_T, MPI_MAX, own_world);
        if (both[0] == ~both[1])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct said { struct step step; int32_t is_member, has; };
struct verdict { int32_t number; char text[300]; };

static void describe(const struct said *said, int number, char *text, size_t room)
{
    const char *name = FUNCTIONS[said->step.function];
    if (!said->has)
        snprintf(text, room, "no further call");
    else if (number == COLLECTIVES + 1)
        snprintf(text, room, "%s with root %d", name, said->step.root);
    else if (number == COLLECTIVES + 2)
        snprintf(text, room, "%s with %s", name, said->step.reduction < 255 ? REDUCTIONS[said->step.reduction] : "an operator of its own");
    else if (number == COLLECTIVES + 3)
        snprintf(text, room, "%s of %llu bytes%s", name, (unsigned long long)said->step.bytes, LEAVES[said->step.leaf]);
    else
        snprintf(text, room, "%s", name);
}

/* Ranks that say the same, as `0-3,7`. */
static void name_ranks(const struct said *all, int size, int first, int number, const char *what, char *text)
{
    size_t length = 0;
    int last = -2, begun = -2;
    for (int i = first; i <= size; i++) {
        char own[128] = "";
        if (i < size && all[i].is_member)
            describe(&all[i], number, own, sizeof own);
        int same = i < size && all[i].is_member && !strcmp(own, what);
        if (same && last == i - 1) {
            last = i;
            continue;
        }
        if (last > begun && begun >= 0)
            length += snprintf(text + length, RANKS_TEXT - length, "-%d", last);
        begun = last = -2;
        if (!same)
            continue;
        if (length > RANKS_TEXT - 24) {
            snprintf(text + length, RANKS_TEXT - length, ",...");
            return;
        }
        length += snprintf(text + length, RANKS_TEXT - length, "%s%d", length ? "," : "", i);
        begun = last = i;
    }
}

/* Which field differs among the ranks of a communicator, and who has which. */
static void judge(const struct said *all, int size, struct verdict *verdict)
{
    const struct said *one = NULL;
    int lacks = 0, function = 0, root = 0, reduction = 0, amount = 0;
    for (int i = 0; i < size; i++) {
        if (!all[i].is_member)
            continue;
        lacks |= !all[i].has;
        if (!all[i].has)
            continue;
        one = one ? one : &all[i];
        function |= one->step.function != all[i].step.function;
        root |= one->step.root != all[i].step.root;
        reduction |= one->step.reduction != all[i].step.reduction;
        amount |= one->step.bytes != all[i].step.bytes || (one->step.leaf && all[i].step.leaf && one->step.leaf != all[i].step.leaf);
    }
    verdict->number = !one ? 0 : lacks ? COLLECTIVES + 4 : function ? COLLECTIVES : root ? COLLECTIVES + 1 : reduction ? COLLECTIVES + 2 : amount ? COLLECTIVES + 3 : 0;
    size_t length = 0;
    for (int i = 0; verdict->number && i < size; i++) {
        char what[128], before[128], ranks[RANKS_TEXT] = "";
        int known = !all[i].is_member;
        describe(&all[i], verdict->number, what, sizeof what);
        for (int j = 0; j < i && !known; j++)
            if (all[j].is_member) {
                describe(&all[j], verdict->number, before, sizeof before);
                known = !strcmp(what, before);
            }
        if (known || length > sizeof verdict->text - 200)
            continue;
        name_ranks(all, size, i, verdict->number, what, ranks);
        length += snprintf(verdict->text + length, sizeof verdict->text - length, "%s%s at %s", length ? "; " : "", what, ranks);
    }
}

/* Holds the collective calls of all ranks against each other. */
static void compare_sequences(struct call *call)
{
    if (own_world == MPI_COMM_NULL)
        return;
    uint64_t names[DIFFERENT_MAX] = {0};
    int rank, size, count = different(names);
    PMPI_Comm_rank(own_world, &rank);
    PMPI_Comm_size(own_world, &size);
    for (int i = 0; i < count; i++) {
        struct sequence *own = NULL;
        for (int j = 0; j < sequence_count && !own; j++)
            own = sequences[j]->name == names[i] ? sequences[j] : NULL;
        uint64_t at = alike(own);
        struct said said = {.is_member = own != NULL, .has = own && at < own->kept};
        if (said.has)
            said.step = own->steps[at];
        struct said *all = rank == 0 ? calloc(size, sizeof *all) : NULL;
        struct verdict verdict = {0};
        PMPI_Gather(&said, sizeof said, MPI_BYTE, all, sizeof said, MPI_BYTE, 0, own_world);
        if (rank == 0 && all)
            judge(all, size, &verdict);
        free(all);
        PMPI_Bcast(&verdict, sizeof verdict, MPI_BYTE, 0, own_world);
        if (!own || !verdict.number)
            continue;
        void *place = (void *)(uintptr_t)said.step.site;
        if (said.has)
            report(call, verdict.number, place, "collective call %llu of a communicator at {%p}: ranks differ: %s", (unsigned long long)at + 1, place, verdict.text);
        else
            report(call, verdict.number, place, "collective call %llu of a communicator: ranks differ: %s", (unsigned long long)at + 1, verdict.text);
    }
    PMPI_Comm_free(&own_world);
    own_world = MPI_COMM_NULL;
}
