/* The collective calls of each communicator, in order. At the end all ranks hold them against each other: what differs and happened to
 * fit shows then. Nothing is sent before; ranks of one host see it at once. A communicator has the same name on all ranks without any message: it is made of its
 * parent's name, of how many calls that had, and of its first rank. */
enum { SEQUENCES_MAX = 4096, GROUPS_MAX = 1024, STEPS_MAX = 16384, DIFFERENT_MAX = 256, RANKS_TEXT = 60, OTHER_REDUCTION = 255 };

/* Arguments that all ranks give to a call alike: the first numbers of all. */
enum alike { NOTHING_ALIKE, RECVCOUNTS, DIMENSIONS, EDGES, ACCESS, BYTES, OFFSET, ATOMICITY, ASSERTION, VIEW, HIGH, AMOUNTS, KEPT, FIRST_MAX = 6 };
struct parts { uint64_t hash; int64_t first[FIRST_MAX]; int32_t count; uint8_t what; };
/* `operator` is where the function of an operator of the program's own is: its file in the upper half. `told` is the error that this rank
 * has told at the call, `known` are those that all ranks know of its place, a bit for each. A rank is `is_apart` once it has made another operation than others: its later calls are not theirs. */
struct step { struct signature signature; struct parts parts; uint64_t site, bytes, hash, operator; uint16_t function; uint8_t reduction, told, known; int32_t root; };
struct sequence { uint64_t name, count, hash; struct step *steps; uint32_t kept, room; const char *article, *is_of; int is_apart; };

static struct sequence *sequences[SEQUENCES_MAX];
static int sequence_count;
static MPI_Comm own_world = MPI_COMM_NULL;
static pthread_mutex_t sequences_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* The number that the calls of a communicator, a window or a file have, from 1. */
static uint32_t new_sequence(enum kind kind, uint64_t name)
{
    struct sequence *it = sequence_count < SEQUENCES_MAX ? calloc(1, sizeof *it) : NULL;
    if (!it) {
        /* Others may know the messages on it. */
        unmatched = 1;
        return 0;
    }
    it->name = it->hash = name;
    it->article = "a ";
    it->is_of = KINDS[kind];
    sequences[sequence_count++] = it;
    return sequence_count;
}

static struct sequence *sequence_of(enum kind kind, uint64_t handle)
{
    uint32_t number = kind == COMMUNICATOR && handle == HANDLE(MPI_COMM_WORLD) ? 1 : look_up(kind, handle).sequence;
    return number && own_world != MPI_COMM_NULL ? sequences[number - 1] : NULL;
}

static struct sequence *sequence_named(uint64_t name)
{
    for (int i = 0; i < sequence_count; i++)
        if (sequences[i]->name == name)
            return sequences[i];
    return NULL;
}

static int reduction_of(MPI_Op op)
{
    const MPI_Op all[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    if (op == MPI_OP_NULL)
        return 0;
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        if (op == all[i])
            return i + 1;
    return OTHER_REDUCTION;
}

static const char *const REDUCTIONS[] = {"none", "MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND", "MPI_BAND", "MPI_LOR", "MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC"};
/* Ranks of one host hold their calls against each other at once, by memory that they share: the first one that makes a call says in the
 * place of that call what it is. A place that another call takes in the meantime only means that nothing is said. */
enum { LIVE_MAX = 4096, WRITING = 2, TRIES_MAX = 1000 };
/* Other data of a call are compared under its number plus a small multiple of this. */
#define BETWEEN ((uint64_t)1 << 60)
struct live { uint64_t key, name, number; int32_t rank; struct step step; };

static struct live *live;
static MPI_Win live_window = MPI_WIN_NULL;
static int own_rank;

static void begin_live(void)
{
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Aint size;
    int rank = 0, unit;
    void *memory = NULL;
    PMPI_Comm_rank(own_world, &own_rank);
    if (PMPI_Comm_split_type(own_world, MPI_COMM_TYPE_SHARED, own_rank, MPI_INFO_NULL, &host) != MPI_SUCCESS || host == MPI_COMM_NULL)
        return;
    PMPI_Comm_rank(host, &rank);
    if (PMPI_Win_allocate_shared(rank ? 0 : LIVE_MAX * sizeof *live, 1, MPI_INFO_NULL, host, &memory, &live_window) != MPI_SUCCESS) {
        live_window = MPI_WIN_NULL;
    } else if (PMPI_Win_shared_query(live_window, 0, &size, &unit, &memory) == MPI_SUCCESS && memory) {
        if (rank == 0)
            memset(memory, 0, LIVE_MAX * sizeof *live);
        PMPI_Barrier(host);
        live = memory;
    }
    PMPI_Comm_free(&host);
}

static void end_live(void)
{
    live = NULL;
    if (live_window != MPI_WIN_NULL)
        PMPI_Win_free(&live_window);
}

struct said { struct step step; int32_t is_member, has; };
/* `is_last`: calls behind it cannot be compared. */
struct verdict { int32_t number, is_last; char text[300]; };

static const char *function_name(unsigned number)
{
    return number < sizeof FUNCTIONS / sizeof *FUNCTIONS ? FUNCTIONS[number] : "another function";
}

static void describe_parts(const struct parts *it, const char *begin, char *text, size_t room)
{
    static const char *const names[] = {"", "recvcounts", "dimensions and periods", "index and edges", "mode", "size", "offset", "flag", "assertion", "extent of the etype and representation", "high", "bytes of each rank", "remain_dims"};
    size_t length = snprintf(text, room, "%s%s ", begin, it->what < sizeof names / sizeof *names ? names[it->what] : "");
    for (int i = 0; i < it->count && i < FIRST_MAX && length < room; i++)
        length += snprintf(text + length, room - length, "%s%lld", i ? ", " : "", (long long)it->first[i]);
    if (it->count > FIRST_MAX && length < room)
        snprintf(text + length, room - length, ", ... (hash %04x)", (unsigned)(it->hash & 0xffff));
}

static void describe_step(const struct step *step, int number, char *text, size_t room)
{
    const char *name = function_name(step->function);
    char elements[80];
    if (number == COLLECTIVES + 1)
        snprintf(text, room, "%s with root %d", name, step->root);
    else if (number == COLLECTIVES + 2 && step->operator)
        snprintf(text, room, "%s with an operator of its own (%sfunction at 0x%x of the program)", name, step->operator & 1 ? "" : "not commutative, ", (unsigned)step->operator >> 1);
    else if (number == COLLECTIVES + 2)
        snprintf(text, room, "%s with %s", name, step->reduction < sizeof REDUCTIONS / sizeof *REDUCTIONS ? REDUCTIONS[step->reduction] : "an operator of its own");
    else if (number == COLLECTIVES + 3) {
        name_signature(step->signature, step->bytes, elements, sizeof elements);
        int length = snprintf(text, room, "%s of %s", name, elements);
        if (step->parts.count)
            describe_parts(&step->parts, ", ", text + length, length < (int)room ? room - length : 0);
    } else if (number == COLLECTIVES + 5) {
        int length = snprintf(text, room, "%s", name);
        describe_parts(&step->parts, " with ", text + length, length < (int)room ? room - length : 0);
    } else
        snprintf(text, room, "%s", name);
}

static void describe(const struct said *said, int number, char *text, size_t room)
{
    if (said->has)
        describe_step(&said->step, number, text, room);
    else
        snprintf(text, room, "no further call");
}

static int differ(const struct step *a, const struct step *b);

/* Holds a call against that of the rank of this host that was the first to make one of this number. */
static void compare_live(struct call *call, struct sequence *own, const struct step *step, uint64_t number)
{
    if (!live)
        return;
    uint64_t key = mix(own->name, number) | 1;
    struct live *it = &live[(key >> 28) % LIVE_MAX], copy;
    uint64_t old = __atomic_load_n(&it->key, __ATOMIC_ACQUIRE);
    int is_own = 0;
    for (int i = 0; old != key && !is_own && i < TRIES_MAX; i++) {
        /* Only one of several that come at once writes; it may have to wait for a processor. */
        if (old == WRITING) {
            sched_yield();
            old = __atomic_load_n(&it->key, __ATOMIC_ACQUIRE);
        } else
            is_own = __atomic_compare_exchange_n(&it->key, &old, WRITING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    if (is_own) {
        it->name = own->name;
        it->number = number;
        it->rank = own_rank;
        it->step = *step;
        __atomic_store_n(&it->key, key, __ATOMIC_RELEASE);
    }
    if (is_own || old != key)
        return;
    copy = *it;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&it->key, __ATOMIC_ACQUIRE) != key || copy.name != own->name || copy.number != number)
        return;
    int wrong = differ(&copy.step, step);
    if (!wrong)
        return;
    char one[128], other[128];
    describe_step(step, wrong, one, sizeof one);
    describe_step(&copy.step, wrong, other, sizeof other);
    own->is_apart |= wrong == COLLECTIVES;
    pthread_mutex_lock(&sequences_lock);
    /* Without a call that was counted this is more than any. */
    if (number % BETWEEN - 1 < own->kept)
        own->steps[number % BETWEEN - 1].told = wrong - COLLECTIVES + 1;
    pthread_mutex_unlock(&sequences_lock);
    int is_first = own_rank < copy.rank;
    report(call, wrong, NULL, "collective call %llu of %s%s: ranks differ: %s at %d; %s at %d", (unsigned long long)number % BETWEEN, own->article, own->is_of,
           is_first ? one : other, is_first ? own_rank : copy.rank, is_first ? other : one, is_first ? copy.rank : own_rank);
}

/* An operator of MPI's own and the elements that it is to reduce. */
static void check_operator(struct call *call, MPI_Op op, MPI_Datatype type)
{
    int number = reduction_of(op), basic = basic_of(type);
    if (number == 0 || number == OTHER_REDUCTION || type == MPI_DATATYPE_NULL)
        return;
    struct object it = look_up(DATATYPE, HANDLE(type));
    if (!basic && it.life == LIVE && it.is_known && it.elements == 1)
        /* Another name of one basic type. */
        basic = it.basic;
    if (basic && !can_reduce(op, BASICS[basic].class))
        report(call, BAD_OPERAND, NULL, "%s is not defined for %s", REDUCTIONS[number], BASICS[basic].name);
    else if (!basic && it.life == LIVE && it.is_known)
        report(call, BAD_OPERAND, it.site, "%s is not defined for derived datatypes, as that of %s at {%p}", REDUCTIONS[number], it.maker, it.site);
}

/* The elements of an accumulation may be derived from one basic type; its operator is one of MPI's own. */
static void check_accumulation(struct call *call, MPI_Op op, MPI_Datatype type)
{
    int number = reduction_of(op), basic = type == MPI_DATATYPE_NULL ? 0 : signature_of(1, type).basic;
    if (look_up(OPERATOR, HANDLE(op)).life == LIVE)
        report(call, BAD_OPERAND, NULL, "an accumulation cannot use an operator of MPI_Op_create");
    else if (number && number != OTHER_REDUCTION && basic && !can_reduce(op, BASICS[basic].class))
        report(call, BAD_OPERAND, NULL, "%s is not defined for %s", REDUCTIONS[number], BASICS[basic].name);
}

static void check_own_operator(struct call *call, MPI_Op op)
{
    int number = reduction_of(op);
    if (number && number != OTHER_REDUCTION)
        report(call, WRONG_KIND, NULL, "MPI's own operators cannot be freed");
}

static void check_named(struct call *call, MPI_Datatype type, const char *what)
{
    if (basic_of(type))
        report(call, WRONG_KIND, NULL, "MPI's own datatypes %s", what);
}

#define pre_Op_free(call, op) check_own_operator(call, *(op))
#define pre_Type_free(call, type) check_named(call, *(type), "cannot be freed")
#define pre_Type_get_contents(call, type, ...) check_named(call, type, "have no contents")

/* Which field of two calls differs: the number of the error, or 0. */
static int differ(const struct step *a, const struct step *b)
{
    if (a->function != b->function)
        return COLLECTIVES;
    if (a->root != b->root)
        return COLLECTIVES + 1;
    if (a->reduction != b->reduction || (a->operator && b->operator && a->operator >> 32 == b->operator >> 32 && a->operator != b->operator))
        return COLLECTIVES + 2;
    if (a->parts.hash != b->parts.hash && a->parts.what != RECVCOUNTS && a->parts.what != AMOUNTS)
        return COLLECTIVES + 5;
    if (a->parts.hash != b->parts.hash || are_unlike(a->signature, a->bytes, b->signature, b->bytes))
        return COLLECTIVES + 3;
    return 0;
}

static struct parts more_value(struct parts it, int64_t value)
{
    it.hash = mix(it.hash, value);
    if (it.count < FIRST_MAX)
        it.first[it.count] = value;
    it.count++;
    return it;
}

static struct parts more_values(struct parts it, struct list values, int count)
{
    for (int i = 0; values.values && i < count; i++)
        it = more_value(it, number_at(values, i));
    return it;
}

/* Number of bytes that each rank gives. */
static struct parts more_amounts(struct parts it, struct list counts, MPI_Datatype type, int count)
{
    uint64_t size = bytes_of(1, type);
    for (int i = 0; counts.values && i < count; i++)
        it = more_value(it, number_at(counts, i) * (int64_t)size);
    return it;
}

static int64_t extent_of(MPI_Datatype type)
{
    MPI_Aint low, extent = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_get_extent(type, &low, &extent);
    return extent;
}

/* A representation of data in files, from 1; 0 for the program's own. */
static int number_of(const char *representation)
{
    static const char *const all[] = {"native", "internal", "external32"};
    for (int i = 0; representation && i < 3; i++)
        if (!strcmp(representation, all[i]))
            return i + 1;
    return 0;
}

static struct parts more_edges(struct parts it, int nodes, const int *index, const int *edges)
{
    return more_values(more_values(it, LIST(index), nodes), LIST(edges), nodes > 0 ? index[nodes - 1] : 0);
}

static struct parts more_flags(struct parts it, const int *values, int count)
{
    for (int i = 0; values && i < count; i++)
        it = more_value(it, values[i] != 0);
    return it;
}

/* Two sides of one call must be of the same basic types, and as many. */
static void check_sides(struct call *call, int number, const char *format, long long sent, MPI_Datatype send, long long received, MPI_Datatype receive)
{
    struct signature out = signature_of(sent, send), in = signature_of(received, receive);
    uint64_t out_bytes = bytes_of(sent, send), in_bytes = bytes_of(received, receive);
    if (!are_unlike(out, out_bytes, in, in_bytes))
        return;
    char one[80], other[80];
    name_signature(out, out_bytes, one, sizeof one);
    name_signature(in, in_bytes, other, sizeof other);
    report(call, number, NULL, format, one, other);
}

/* What a rank has called so far, and then this. */
static uint64_t hash_step(uint64_t hash, const struct step *it)
{
    hash = mix(mix(mix(hash, it->bytes), (uint64_t)it->function << 32 | (uint32_t)it->root), it->reduction);
    return mix(mix(mix(hash, it->signature.is_known ? it->signature.hash : 0), it->parts.hash), (uint32_t)it->operator);
}

/* The program makes a collective call. */
static void collective(struct call *call, int function, struct sequence *it, int root, MPI_Op op, long long count, MPI_Datatype type,
                       struct parts parts)
{
    if (!it)
        return;
    struct step step = {.site = (uint64_t)(uintptr_t)site(call), .bytes = bytes_of(count, type), .function = function,
                        .reduction = reduction_of(op), .root = root, .signature = signature_of(count, type), .parts = parts};
    if (step.reduction == OTHER_REDUCTION)
        step.operator = look_up(OPERATOR, HANDLE(op)).hash;
    pthread_mutex_lock(&sequences_lock);
    step.hash = it->hash = hash_step(it->hash, &step);
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
    uint64_t number = it->count;
    pthread_mutex_unlock(&sequences_lock);
    if (!it->is_apart)
        compare_live(call, it, &step, number);
}

/* A collective call on a communicator has made something else on which all its ranks call together. */
static void name_object(struct sequence *parent, enum kind kind, uint64_t handle, int first)
{
    if (!parent)
        return;
    pthread_mutex_lock(&sequences_lock);
    uint32_t number = new_sequence(kind, mix(mix(parent->name, parent->count), (uint64_t)kind << 32 | (uint32_t)(first + 1)));
    pthread_mutex_unlock(&sequences_lock);
    pthread_mutex_lock(&objects_lock);
    struct object *object = find(kind, handle);
    if (object->life == LIVE)
        object->sequence = number;
    pthread_mutex_unlock(&objects_lock);
}

/* A rank of a communicator's own group, or of the other one, in MPI_COMM_WORLD. */
static int world_rank(MPI_Comm comm, int is_remote, int rank)
{
    int found = MPI_UNDEFINED;
    MPI_Group group, world;
    if (comm == MPI_COMM_WORLD)
        return rank;
    (is_remote ? PMPI_Comm_remote_group : PMPI_Comm_group)(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &rank, world, &found);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return found;
}

/* The ranks of a communicator's own group or the other one, in MPI_COMM_WORLD; null without memory. */
static int *members_of(MPI_Comm comm, int is_remote, int *count)
{
    MPI_Group group, world;
    (is_remote ? PMPI_Comm_remote_group : PMPI_Comm_group)(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, count);
    int *own = malloc(2 * (*count + 1) * sizeof *own), *found = own + *count + 1;
    for (int i = 0; own && i < *count; i++)
        own[i] = i;
    if (own)
        PMPI_Group_translate_ranks(group, *count, own, world, found);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    if (own)
        memmove(own, found, *count * sizeof *own);
    return own;
}

/* Which of its ranks is the first tells it from others that the same call has made. Those of another job have no name. */
static void name_communicator(MPI_Comm parent, MPI_Comm made)
{
    if (made == MPI_COMM_NULL || own_world == MPI_COMM_NULL)
        return;
    int first = world_rank(made, 0, 0), other = is_inter(made) ? world_rank(made, 1, 0) : first;
    if (first >= 0 && other >= 0)
        name_object(sequence_of(COMMUNICATOR, HANDLE(parent)), COMMUNICATOR, HANDLE(made), first < other ? first : other);
}

/* The same without a parent that all ranks have: its groups and the tag are its name, and how many such there were before. */
static void name_by_groups(MPI_Comm made, int tag)
{
    static struct { uint64_t hash, count; } before[GROUPS_MAX];
    static int groups;
    uint64_t hashes[2] = {0, 0};
    if (made == MPI_COMM_NULL || own_world == MPI_COMM_NULL)
        return;
    for (int side = 0; side <= is_inter(made); side++) {
        int count = 0, *members = members_of(made, side, &count), is_known = members && count;
        for (int i = 0; is_known && i < count; i++) {
            is_known = members[i] >= 0;
            hashes[side] = mix(hashes[side], members[i] + 1);
        }
        free(members);
        if (!is_known)
            return;
    }
    uint64_t hash = mix(mix(mix(1, hashes[0] ^ hashes[1]), hashes[0] + hashes[1]), tag);
    struct sequence parent = {.name = hash};
    pthread_mutex_lock(&sequences_lock);
    int at = 0;
    while (at < groups && before[at].hash != hash)
        at++;
    if (at == groups && groups < GROUPS_MAX)
        before[groups++].hash = hash;
    if (at < GROUPS_MAX)
        parent.count = ++before[at].count;
    pthread_mutex_unlock(&sequences_lock);
    if (parent.count)
        name_object(&parent, COMMUNICATOR, HANDLE(made), 0);
    else
        unmatched = 1;
}

/* True at one of the two groups of a communicator. */
static int is_first_group(MPI_Comm comm)
{
    return world_rank(comm, 0, 0) < world_rank(comm, 1, 0);
}

/* A collective call between two groups, that was counted: the root is a rank of one of them, and the one group gives what the other one gets.
 * Ranks that only belong to the root's group give nothing. */
static void between(struct call *call, int function, MPI_Comm comm, int root, long long count, MPI_Datatype type)
{
    struct sequence *it = sequence_of(COMMUNICATOR, HANDLE(comm));
    int world = root == MPI_ROOT ? own_rank : root >= 0 && root < group_size(comm) ? world_rank(comm, 1, root) : -1;
    if (!it || it->is_apart || root == MPI_PROC_NULL)
        return;
    struct step step = {.bytes = bytes_of(count, type), .function = function, .root = world, .signature = signature_of(count, type)};
    compare_live(call, it, &step, it->count + BETWEEN);
}

/* All ranks of one group are the higher ones, or none. */
static void pre_Intercomm_merge(struct call *call, MPI_Comm comm, int high, MPI_Comm *made)
{
    struct sequence *it = comm != MPI_COMM_NULL && is_inter(comm) ? sequence_of(COMMUNICATOR, HANDLE(comm)) : NULL;
    (void)made;
    if (!it || it->is_apart)
        return;
    struct step step = {.parts = more_value((struct parts){.what = HIGH}, high != 0)};
    while (step.function < sizeof FUNCTIONS / sizeof *FUNCTIONS && strcmp(FUNCTIONS[step.function], call->name))
        step.function++;
    compare_live(call, it, &step, it->count + BETWEEN * (is_first_group(comm) ? 2 : 3));
}

static void begin_sequences(void)
{
    if (new_sequence(COMMUNICATOR, 1)) {
        sequences[0]->article = "";
        sequences[0]->is_of = "MPI_COMM_WORLD";
    }
    if (PMPI_Comm_dup(MPI_COMM_WORLD, &own_world) != MPI_SUCCESS)
        return;
    PMPI_Comm_set_errhandler(own_world, MPI_ERRORS_RETURN);
    begin_live();
}
