/* At the end all ranks hold their collective calls of each communicator against each other. */
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

/* Number of the first call, from `low` on, that the ranks of a communicator have not made alike; only those that are kept. MPICH 4.0 takes
 * unsigned numbers of 64 bits for signed ones: all are positive. */
static int64_t alike(const struct sequence *own, int64_t low)
{
    int64_t high = own ? own->kept : INT64_MAX;
    PMPI_Allreduce(MPI_IN_PLACE, &high, 1, MPI_INT64_T, MPI_MIN, own_world);
    while (low < high) {
        int64_t middle = low + (high - low) / 2, hash = own ? own->steps[middle].hash >> 1 : 0;
        int64_t both[2] = {hash, own ? INT64_MAX - hash : 0};
        PMPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_INT64_T, MPI_MAX, own_world);
        if (both[0] == INT64_MAX - both[1])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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

/* A call without the fields in which it is known to differ. */
static struct step without_known(struct step it, unsigned known)
{
    if (known & 1u << 1)
        it.root = 0;
    if (known & 1u << 2)
        it.reduction = it.operator = 0;
    if (known & 1u << 3) {
        it.bytes = 0;
        it.signature = (struct signature){0};
    }
    if (known & (1u << 3 | 1u << 5))
        it.parts.hash = 0;
    return it;
}

/* Which field differs among the ranks of a communicator, and who has which. What one rank knows of its place is compared on none. */
static void judge(struct said *all, int size, struct verdict *verdict)
{
    const struct said *one = NULL;
    int lacks = 0, least = 0;
    unsigned known = 0;
    for (int i = 0; i < size; i++)
        known |= all[i].has ? all[i].step.known : 0;
    for (int i = 0; i < size; i++) {
        all[i].step = without_known(all[i].step, known);
        if (!all[i].is_member)
            continue;
        lacks |= !all[i].has;
        if (!all[i].has)
            continue;
        one = one ? one : &all[i];
        int number = differ(&one->step, &all[i].step);
        least = number && (!least || number < least) ? number : least;
    }
    verdict->number = !one ? 0 : lacks ? COLLECTIVES + 4 : least;
    verdict->is_last = !one || lacks || least == COLLECTIVES;
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

/* Later calls are compared without those before them, and without what is known of their places: a loop repeats its error. */
static void forget_before(struct sequence *own, int64_t from)
{
    uint64_t hash = 0;
    for (int64_t i = from; own && i < own->kept; i++) {
        struct step step = without_known(own->steps[i], own->steps[i].known);
        own->steps[i].hash = hash = hash_step(hash, &step);
    }
}

/* All ranks of the call know its error; other calls at its place, also on other communicators, may have the same one. */
static void know_place(uint64_t site, int number)
{
    for (int i = 0; i < sequence_count; i++)
        for (uint32_t j = 0; j < sequences[i]->kept; j++)
            if (sequences[i]->steps[j].site == site)
                sequences[i]->steps[j].known |= 1u << (number - COLLECTIVES);
}

/* This rank has told an error of this call before, or the same error of another call at its place, maybe on another communicator. */
static int was_told(const struct step *step, int number)
{
    int found = step->told;
    for (int i = 0; i < sequence_count && !found; i++)
        for (uint32_t j = 0; j < sequences[i]->kept && !found; j++)
            found = sequences[i]->steps[j].told == number - COLLECTIVES + 1 && sequences[i]->steps[j].site == step->site;
    return found;
}

/* Tells the first call from a given one on in which the ranks of a communicator differ. Ranks without the communicator take part. */
static struct verdict compare_sequence(struct call *call, struct sequence *own, int64_t *from)
{
    int rank, size;
    int64_t at = alike(own, *from);
    struct said said = {.is_member = own != NULL, .has = own && at < own->kept};
    struct verdict verdict = {.is_last = 1};
    PMPI_Comm_rank(own_world, &rank);
    PMPI_Comm_size(own_world, &size);
    if (said.has)
        said.step = own->steps[at];
    struct said *all = rank == 0 ? calloc(size, sizeof *all) : NULL;
    PMPI_Gather(&said, sizeof said, MPI_BYTE, all, sizeof said, MPI_BYTE, 0, own_world);
    if (rank == 0 && all)
        judge(all, size, &verdict);
    free(all);
    PMPI_Bcast(&verdict, sizeof verdict, MPI_BYTE, 0, own_world);
    *from = at + 1;
    if (said.has && verdict.number)
        know_place(said.step.site, verdict.number);
    if (!own || !verdict.number || (said.has && was_told(&said.step, verdict.number)))
        return verdict;
    void *place = (void *)(uintptr_t)said.step.site;
    if (said.has)
        report(call, verdict.number, place, "collective call %llu of %s%s at {%p}: ranks differ: %s", (unsigned long long)at + 1, own->article, own->is_of, place, verdict.text);
    else
        report(call, verdict.number, place, "collective call %llu of %s%s: ranks differ: %s", (unsigned long long)at + 1, own->article, own->is_of, verdict.text);
    return verdict;
}

/* Holds the collective calls of all ranks against each other. What follows another argument is compared, too; what follows another
 * operation is not: the numbers of later calls say nothing. All ranks take the same number of rounds, as the verdicts are the same. */
static void compare_sequences(struct call *call)
{
    enum { ROUNDS_MAX = 1024 };
    int rounds = 0;
    if (own_world == MPI_COMM_NULL)
        return;
    uint64_t names[DIFFERENT_MAX] = {0};
    int count = different(names);
    for (int i = 0; i < count; i++) {
        struct sequence *own = sequence_named(names[i]);
        struct verdict verdict = {0};
        int64_t from = 0;
        for (; rounds < ROUNDS_MAX && !verdict.is_last; rounds++) {
            forget_before(own, from);
            verdict = compare_sequence(call, own, &from);
        }
        if (own && (!verdict.is_last || verdict.number))
            own->is_apart = 1;
    }
}

static void end_sequences(void)
{
    end_live();
    if (own_world != MPI_COMM_NULL)
        PMPI_Comm_free(&own_world);
    own_world = MPI_COMM_NULL;
}
