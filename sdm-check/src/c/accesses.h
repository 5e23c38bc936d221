/* Accesses to windows. Each rank keeps those that it makes. In MPI_Finalize each rank gets those to its own memory, finds the ones that
 * conflict, and tells both ranks. Two accesses of one rank conflict where nothing completes the first one before the second; those of two
 * ranks where they are between the same two fences, or in one epoch of MPI_Win_post, or under shared locks and neither rank has communicated
 * since the same call in which all ranks have waited for all. Reads do not conflict with each other, nor accumulations of one operator and
 * one type. */
enum { ACCESSES_MAX = 16384, ORIGINS_MAX = 256, UNITS_MAX = 1024, VERDICTS_MAX = 256, PAIRS_MAX = 1 << 22, PLACES_MAX = 64, TURNS_MAX = 4096 };
enum access_kind { READS, WRITES, ACCUMULATES };
enum access_mode { ALONE, FENCED, SHARED, POSTED };

struct window_access {
    uint64_t window, epoch, segment, site;
    int64_t disp, low, length;
    int32_t world, origin, index;
    uint16_t function;
    /* Of an accumulation; 0 where it goes with all. */
    uint16_t basic;
    uint8_t kind, mode, reduction;
};

/* The epochs of MPI_Win_start to a target, and of MPI_Win_post for an origin: the n-th of the one side is the n-th of the other. */
static struct turn { uint64_t window, count, number; int32_t world; } starts[TURNS_MAX], posts[TURNS_MAX];
static int start_count, post_count;

/* The report of a pair by the rank of the memory. */
struct verdict_of_pair { int64_t from, to; int32_t world, index, other_rank, other_index; uint16_t other_function; uint8_t is_unlike; };

static struct window_access accesses[ACCESSES_MAX];
static struct verdict_of_pair pair_verdicts[VERDICTS_MAX];
static struct { uint64_t name; MPI_Win window; struct extent memory; int unit, is_dynamic; } units[UNITS_MAX];
/* Memory of dynamic windows: what was attached, and how many collective calls the window had, and one, when it was detached. */
static struct region { uint64_t name; int64_t start, end; uint64_t over; } regions[UNITS_MAX];
static int region_count;
static int access_count, verdict_count, origin_count, has_read;
static uint64_t segment, phase, communications, origins;
static pthread_mutex_t accesses_lock = PTHREAD_MUTEX_INITIALIZER;

/* A window has its name: keeps its unit, in which displacements count. */
static void keep_unit(MPI_Win window)
{
    struct sequence *named = sequence_of(WINDOW, HANDLE(window));
    int *unit, *flavor, has_unit = 0, has_flavor = 0, has_base = 0, has_size = 0;
    void *base;
    MPI_Aint *size;
    PMPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &unit, &has_unit);
    PMPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &has_flavor);
    PMPI_Win_get_attr(window, MPI_WIN_BASE, &base, &has_base);
    PMPI_Win_get_attr(window, MPI_WIN_SIZE, &size, &has_size);
    is_known_elsewhere = 1;
    /* Ranks of shared memory exchange data by it. */
    if (!named || !has_unit || !has_flavor || *flavor == MPI_WIN_FLAVOR_SHARED || unit_count == UNITS_MAX)
        return;
    units[unit_count].name = named->name;
    units[unit_count].window = window;
    units[unit_count].is_dynamic = *flavor == MPI_WIN_FLAVOR_DYNAMIC;
    if (has_base && has_size && base && *flavor != MPI_WIN_FLAVOR_DYNAMIC)
        units[unit_count].memory = (struct extent){.start = base, .end = (char *)base + *size};
    units[unit_count++].unit = *flavor == MPI_WIN_FLAVOR_DYNAMIC ? 1 : *unit;
}

static void keep_region(MPI_Win window, const void *base, MPI_Aint size)
{
    struct sequence *named = sequence_of(WINDOW, HANDLE(window));
    struct region made = {named ? named->name : 0, (intptr_t)base, (intptr_t)base + size, 0};
    pthread_mutex_lock(&accesses_lock);
    int at = 0;
    while (at < region_count && at < UNITS_MAX && memcmp(&regions[at], &made, offsetof(struct region, over)))
        at++;
    if (at < UNITS_MAX)
        regions[at] = made;
    region_count = at < region_count ? region_count : at + 1;
    pthread_mutex_unlock(&accesses_lock);
}

static void end_region(struct call *call, MPI_Win window, const void *base)
{
    struct sequence *named = sequence_of(WINDOW, HANDLE(window));
    int is_known = !named || region_count > UNITS_MAX || depth != 1;
    pthread_mutex_lock(&accesses_lock);
    for (int i = 0; i < region_count && i < UNITS_MAX && !is_known; i++)
        if (regions[i].name == named->name && regions[i].start == (intptr_t)base && !regions[i].over) {
            regions[i].over = named->count + 1;
            is_known = 1;
        }
    pthread_mutex_unlock(&accesses_lock);
    if (!is_known)
        report(call, BEYOND, NULL, "the memory is not attached to the window");
}

#define pre_Win_detach(call, win, base) end_region(call, win, base)
#define post_Win_attach(call, rc, win, base, size) ((rc) == MPI_SUCCESS && depth == 1 ? keep_region(win, base, size) : (void)0)

/* True where all of an access was attached at some time, or that is not known. Between fences what was detached before the first one is not. */
static int was_attached(const struct window_access *it)
{
    int64_t from = it->disp, end = it->disp + it->length;
    for (int i = 0; i < region_count && i < UNITS_MAX && from < end; i++)
        if (regions[i].name == it->window && regions[i].start <= from && regions[i].end > from && !(regions[i].over && it->mode == FENCED && it->epoch >= regions[i].over)) {
            from = regions[i].end;
            i = -1;
        }
    return from >= end || region_count > UNITS_MAX;
}

/* All ranks have waited for all, if the communicator has all. */
static void synchronised(MPI_Comm comm)
{
    /* The call that makes the first window is one of these. */
    struct sequence *named = unit_count ? sequence_of(COMMUNICATOR, HANDLE(comm)) : NULL;
    communications++;
    activity++;
    if (!named || is_inter(comm) || group_size(comm) != group_size(MPI_COMM_WORLD))
        return;
    uint64_t before = phase;
    phase = mix(named->name, named->count);
    communications = 0;
    /* Nothing has completed these: they go on. */
    pthread_mutex_lock(&accesses_lock);
    for (int i = access_count - 1; i >= 0 && accesses[i].segment >= segment; i--)
        if (accesses[i].mode == SHARED && accesses[i].kind == WRITES && accesses[i].epoch == before && accesses[i].segment == segment && access_count < ACCESSES_MAX) {
            accesses[access_count] = accesses[i];
            accesses[access_count++].epoch = phase;
        }
    pthread_mutex_unlock(&accesses_lock);
}

/* The accesses to a window before are complete, at least at this rank. */
static void end_segment(struct call *call, MPI_Win window, int is_remote)
{
    if (depth != 1)
        return;
    origin_count -= close_origins(call, HANDLE(window));
    if (!is_remote)
        return;
    pthread_mutex_lock(&accesses_lock);
    segment++;
    communications += has_read;
    has_read = 0;
    pthread_mutex_unlock(&accesses_lock);
}

static enum access_mode mode_of(const struct epochs *it, int rank)
{
    for (int i = 0; i < it->lock_count; i++)
        if (it->locks[i] == rank)
            return it->lock_types[i] == MPI_LOCK_SHARED && !communications ? SHARED : ALONE;
    if (it->is_all)
        return communications ? ALONE : SHARED;
    return it->is_started ? POSTED : it->is_fenced ? FENCED : ALONE;
}

/* The members of a group in MPI_COMM_WORLD; null without memory. */
static int *worlds_of(MPI_Group group, int *count)
{
    MPI_Group world;
    PMPI_Group_size(group, count);
    int *own = malloc(2 * (*count + 1) * sizeof *own), *found = own + *count + 1;
    for (int i = 0; own && i < *count; i++)
        own[i] = i;
    if (!own || PMPI_Comm_group(MPI_COMM_WORLD, &world))
        return own;
    PMPI_Group_translate_ranks(group, *count, own, world, found);
    PMPI_Group_free(&world);
    return memcpy(own, found, *count * sizeof *own);
}

/* Number of epochs of MPI_Win_start that a target has had. */
static uint64_t starts_of(uint64_t window, int world)
{
    for (int i = start_count - 1; i >= 0; i--)
        if (starts[i].window == window && starts[i].world == world)
            return starts[i].count;
    return 0;
}

static void begin_turns(MPI_Win window, MPI_Group group, int is_post)
{
    static uint64_t number;
    struct sequence *named = sequence_of(WINDOW, HANDLE(window));
    int count = 0, *members = named && group != MPI_GROUP_NULL && depth == 1 ? worlds_of(group, &count) : NULL;
    pthread_mutex_lock(&accesses_lock);
    number++;
    for (int i = 0; members && i < count; i++) {
        struct turn *all = is_post ? posts : starts, turn = {named->name, 1, number, members[i]};
        int *used = is_post ? &post_count : &start_count, at = *used - 1;
        while (at >= 0 && (all[at].window != turn.window || all[at].world != turn.world))
            at--;
        if (at >= 0)
            turn.count = all[at].count + 1;
        /* Of posts all are kept, of starts the last one. */
        if (at < 0 || is_post)
            at = *used < TURNS_MAX ? (*used)++ : -1;
        if (at >= 0)
            all[at] = turn;
    }
    pthread_mutex_unlock(&accesses_lock);
    free(members);
}

#define post_Win_start(call, rc, group, assertion, win) ((rc) == MPI_SUCCESS ? begin_turns(win, group, 0) : (void)0)
#define post_Win_post(call, rc, group, assertion, win) ((rc) == MPI_SUCCESS ? begin_turns(win, group, 1) : (void)0)

/* The buffer of an access is MPI's until the access is complete. */
static void use_origin(struct call *call, MPI_Win window, const void *buffer, long long count, MPI_Datatype type, int is_written, int has_request)
{
    struct extent memory = buffer != MPI_BOTTOM ? memory_of(buffer, count, type) : (struct extent){0};
    if (depth != 1 || !memory.start)
        return;
    check_open(call, is_written ? "the result" : "the origin buffer", memory, is_written);
    if (!has_request && origin_count < ORIGINS_MAX) {
        open_memory(call, ORIGIN_BITS | ++origins, memory, is_written);
        origin_count += set_window(ORIGIN_BITS | origins, HANDLE(window));
    }
}

/* That of an access with a request of its own is complete with the request, too. */
static void open_origin(struct call *call, MPI_Request request, uint64_t more, MPI_Win window, const void *buffer, long long count, MPI_Datatype type, int is_written)
{
    struct extent memory = buffer != MPI_BOTTOM ? memory_of(buffer, count, type) : (struct extent){0};
    if (depth != 1 || !memory.start)
        return;
    sent_count += more != 0;
    open_memory(call, HANDLE(request) ^ more, memory, is_written);
    set_window(HANDLE(request) ^ more, HANDLE(window));
}

static void access_window(struct call *call, int function, MPI_Win window, int rank, MPI_Aint disp, long long count, MPI_Datatype type, enum access_kind kind, int reduction)
{
    struct epochs it = known_epochs(window);
    struct sequence *named = sequence_of(WINDOW, HANDLE(window));
    /* The target of the last access, since asking MPI takes longer than the access. */
    static struct { uint64_t window; int rank, world; } last_target;
    /* Not null, and far from both ends. */
    char *base = (char *)((uintptr_t)1 << 40);
    if (rank == MPI_PROC_NULL || it.is_unknown || !named || count <= 0 || count > INT32_MAX || depth != 1 || !pthread_equal(pthread_self(), main_thread))
        return;
    struct extent memory = memory_of(base, count, type);
    if (!memory.start)
        return;
    enum access_mode mode = mode_of(&it, rank);
    struct window_access made = {.window = named->name, .epoch = mode == FENCED ? named->count : mode == SHARED ? phase : 0, .segment = segment,
                                 .site = (uintptr_t)site(call), .disp = disp, .low = memory.start - base, .length = memory.end - memory.start,
                                 .origin = own_rank, .function = function, .kind = kind, .mode = mode};
    if (reduction && reduction != OTHER_REDUCTION) {
        int basic = signature_of(1, type).basic;
        made.reduction = reduction;
        made.basic = basic ? BASICS[basic].same : 0;
    }
    if (last_target.window != named->name || last_target.rank != rank) {
        MPI_Group group, world;
        PMPI_Win_get_group(window, &group);
        PMPI_Comm_group(MPI_COMM_WORLD, &world);
        last_target.window = named->name;
        last_target.rank = rank;
        PMPI_Group_translate_ranks(group, 1, &rank, world, &last_target.world);
        PMPI_Group_free(&group);
        PMPI_Group_free(&world);
    }
    made.world = last_target.world;
    pthread_mutex_lock(&accesses_lock);
    if (mode == POSTED)
        made.epoch = starts_of(named->name, made.world);
    has_read |= kind != WRITES;
    struct window_access *last = access_count ? &accesses[access_count - 1] : NULL;
    int is_again = last && kind != WRITES && last->window == made.window && last->epoch == made.epoch && last->segment == made.segment && last->site == made.site &&
                   last->disp == disp && last->length == made.length && last->world == made.world && last->mode == mode && last->kind == kind && last->reduction == made.reduction && last->basic == made.basic;
    /* One of each part, where there are gaps between them. */
    int parts = memory.layout ? memory.layout->count : 1, all = parts * (memory.layout ? memory.count : 1);
    for (int i = 0; i < all && made.world >= 0 && !is_again && all <= PLACES_MAX && access_count < ACCESSES_MAX; i++) {
        if (memory.layout) {
            struct block block = memory.layout->blocks[i % parts];
            made.low = i / parts * memory.step + block.low;
            made.length = block.high - block.low;
        }
        made.index = access_count;
        accesses[access_count++] = made;
    }
    pthread_mutex_unlock(&accesses_lock);
}

/* A call, that is none of windows, uses memory that others reach by a window: between fences it is an access to it, too. */
static void use_memory(struct call *call, struct extent memory, int is_written)
{
    static uint64_t others;
    for (int i = 0; i < unit_count && !memory.layout && depth == 1; i++) {
        struct extent all = units[i].memory, part = memory;
        if (!all.start || !overlap(all, memory))
            continue;
        struct sequence *named = sequence_of(WINDOW, HANDLE(units[i].window));
        struct epochs it = known_epochs(units[i].window);
        unsigned function = 0;
        if (!named || named->name != units[i].name || it.is_unknown || !it.is_fenced || it.is_started || !pthread_equal(pthread_self(), main_thread))
            continue;
        while (function < sizeof FUNCTIONS / sizeof *FUNCTIONS && strcmp(FUNCTIONS[function], call->name))
            function++;
        part.start = part.start > all.start ? part.start : all.start;
        part.end = part.end < all.end ? part.end : all.end;
        pthread_mutex_lock(&accesses_lock);
        /* It is complete by itself, beside other ones of this rank. */
        if (access_count < ACCESSES_MAX) {
            accesses[access_count] = (struct window_access){.window = named->name, .epoch = named->count, .segment = UINT64_MAX - ++others, .site = (uintptr_t)site(call),
                                                            .low = part.start - all.start, .length = part.end - part.start, .world = own_rank, .origin = own_rank,
                                                            .index = access_count, .function = function, .kind = is_written ? WRITES : READS, .mode = FENCED};
            access_count++;
        }
        pthread_mutex_unlock(&accesses_lock);
    }
}

/* Those of an array of structures whose `int32_t world`, so many bytes behind their beginning, is this rank. */
static size_t pack_of(int world, char *into, const void *all, int count, size_t size, size_t behind)
{
    size_t used = 0;
    for (const char *it = all, *end = it + count * size; it < end; it += size) {
        int32_t of;
        memcpy(&of, it + behind, sizeof of);
        if (of != world)
            continue;
        if (into)
            memcpy(into + used, it, size);
        used += size;
    }
    return used;
}

static size_t pack_accesses(int world, char *into)
{
    return pack_of(world, into, accesses, access_count, sizeof *accesses, offsetof(struct window_access, world));
}

static size_t pack_verdicts(int world, char *into)
{
    return pack_of(world, into, pair_verdicts, verdict_count, sizeof *pair_verdicts, offsetof(struct verdict_of_pair, world));
}

/* Those of one epoch follow each other, by their beginning, which is in `disp` now. */
static int by_place(const void *a, const void *b)
{
    const struct window_access *one = a, *other = b;
    if (one->window != other->window)
        return one->window < other->window ? -1 : 1;
    if (one->mode != other->mode)
        return one->mode - other->mode;
    if (one->epoch != other->epoch)
        return one->epoch < other->epoch ? -1 : 1;
    return one->disp != other->disp ? one->disp < other->disp ? -1 : 1 : 0;
}

/* Accumulations of two ranks with other operators or types. What only replaces or reads goes with all, as locks are made of it. */
static int is_unlike_sum(const struct window_access *a, const struct window_access *b)
{
    if (a->origin == b->origin || a->mode == ALONE || b->kind != ACCUMULATES || !a->reduction || !b->reduction)
        return 0;
    return a->reduction != b->reduction || (a->basic && b->basic && a->basic != b->basic);
}

static int is_conflict(const struct window_access *a, const struct window_access *b)
{
    if (a->kind == ACCUMULATES && is_unlike_sum(a, b))
        return 1;
    if (a->kind == b->kind && a->kind != WRITES)
        return 0;
    return a->origin == b->origin ? a->segment == b->segment : a->mode != ALONE;
}

/* Keeps the error of an access: it conflicts with another one, or its memory is not attached. */
static void keep_verdict(const struct window_access *one, const struct window_access *other)
{
    struct verdict_of_pair made = {.from = one->disp, .to = one->disp + one->length, .world = one->origin, .index = one->index, .other_rank = NOBODY};
    if (other) {
        int64_t end = other->disp + other->length;
        made.from = made.from > other->disp ? made.from : other->disp;
        made.to = made.to < end ? made.to : end;
        made.other_rank = other->origin;
        made.other_index = other->index;
        made.other_function = other->function;
        made.is_unlike = one->kind == ACCUMULATES && other->kind == ACCUMULATES;
    }
    for (int i = 0; i < verdict_count; i++)
        if (pair_verdicts[i].world == made.world && pair_verdicts[i].index == made.index)
            return;
    if (verdict_count < VERDICTS_MAX)
        pair_verdicts[verdict_count++] = made;
}

/* The epoch of MPI_Win_post in which an access was made; 0 where it is not known. */
static uint64_t post_of(const struct window_access *it)
{
    for (int i = 0; i < post_count; i++)
        if (posts[i].window == it->window && posts[i].world == it->origin && posts[i].count == it->epoch)
            return posts[i].number;
    return 0;
}

/* Finds the pairs that conflict among the accesses to this rank's memory. */
static void judge_accesses(struct window_access *all, int count)
{
    long pairs = 0;
    int used = 0;
    for (int i = 0; i < count; i++)
        for (int at = 0; at < unit_count; at++)
            if (units[at].name == all[i].window) {
                all[used] = all[i];
                all[used].disp = all[i].disp * units[at].unit + all[i].low;
                if (units[at].is_dynamic && !was_attached(&all[used]))
                    keep_verdict(&all[used], NULL);
                used += all[i].mode != POSTED || (all[used].epoch = post_of(&all[i])) != 0;
                break;
            }
    qsort(all, used, sizeof *all, by_place);
    for (int i = 0; i < used; i++)
        for (int j = i + 1; j < used && pairs++ < PAIRS_MAX; j++) {
            struct window_access *one = &all[i], *other = &all[j];
            if (one->window != other->window || one->mode != other->mode || one->epoch != other->epoch || other->disp >= one->disp + one->length)
                break;
            if (!is_conflict(one, other))
                continue;
            keep_verdict(one, other);
            if (one->origin != other->origin)
                keep_verdict(other, one);
        }
}

static void tell_pair(struct call *call, const struct verdict_of_pair *it)
{
    const struct window_access *own = &accesses[it->index];
    void *place = (void *)(uintptr_t)own->site, *other = (void *)(uintptr_t)accesses[it->other_index].site;
    if (it->other_rank == NOBODY) {
        report(call, BEYOND, place, "%s at {%p} uses bytes from 0x%llx on at rank %d, which has not attached them to the window, or has detached them", function_name(own->function), place,
               (long long)it->from, own->world);
        return;
    }
    const char *how = own->mode == FENCED ? "between the same fences" : own->mode == POSTED ? "in the same epoch of MPI_Win_post" : "under shared locks, and nothing completes one before the other";
    if (it->other_rank == own_rank)
        report(call, CONFLICT, place, "%s at {%p} uses bytes %lld-%lld of rank %d's window, and so does %s at {%p}, before either is complete", function_name(own->function),
               place, (long long)it->from, (long long)it->to - 1, own->world, function_name(it->other_function), other);
    else
        report(call, CONFLICT, place, "%s at {%p} uses bytes %lld-%lld of rank %d's window, and so does %s of rank %d, %s%s", function_name(own->function), place,
               (long long)it->from, (long long)it->to - 1, own->world, function_name(it->other_function), it->other_rank, it->is_unlike ? "with another operator or type, " : "", how);
}

static void compare_accesses(struct call *call)
{
    int size, some = access_count, is_off, count = 0;
    if (own_world == MPI_COMM_NULL)
        return;
    PMPI_Allreduce(MPI_IN_PLACE, &some, 1, MPI_INT, MPI_MAX, own_world);
    PMPI_Comm_size(own_world, &size);
    int *got = some ? calloc(2 * (size_t)size, sizeof *got) : NULL, *places = got + size;
    is_off = !got;
    PMPI_Allreduce(MPI_IN_PLACE, &is_off, 1, MPI_INT, MPI_MAX, own_world);
    if (is_off) {
        free(got);
        return;
    }
    char *in = exchange(pack_accesses, size, got, places);
    for (int i = 0; i < size && in; i++)
        count += got[i] / (int)sizeof *accesses;
    if (in)
        judge_accesses((struct window_access *)in, count);
    free(in);
    in = exchange(pack_verdicts, size, got, places);
    for (int i = 0; i < size && in; i++)
        for (int at = 0; at + (int)sizeof *pair_verdicts <= got[i]; at += sizeof *pair_verdicts) {
            struct verdict_of_pair it;
            memcpy(&it, in + places[i] + at, sizeof it);
            tell_pair(call, &it);
        }
    free(in), free(got);
}
