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

/* Number of calls that all ranks of a communicator have made alike from its first one on; only those that are kept. MPICH 4.0 takes unsigned
 * numbers of 64 bits for signed ones: all are positive. */
static int64_t alike(const struct sequence *own)
{
    int64_t low = 0, high = own ? own->kept : INT64_MAX;
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

/* Which field differs among the ranks of a communicator, and who has which. */
static void judge(const struct said *all, int size, struct verdict *verdict)
{
    const struct said *one = NULL;
    int lacks = 0, least = 0;
    for (int i = 0; i < size; i++) {
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
        int64_t at = alike(own);
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
        if (!own || !verdict.number || own->is_told)
            continue;
        void *place = (void *)(uintptr_t)said.step.site;
        if (said.has)
            report(call, verdict.number, place, "collective call %llu of a %s at {%p}: ranks differ: %s", (unsigned long long)at + 1, own->is_of, place, verdict.text);
        else
            report(call, verdict.number, place, "collective call %llu of a %s: ranks differ: %s", (unsigned long long)at + 1, own->is_of, verdict.text);
    }
}

static void end_sequences(void)
{
    end_live();
    if (own_world != MPI_COMM_NULL)
        PMPI_Comm_free(&own_world);
    own_world = MPI_COMM_NULL;
}
