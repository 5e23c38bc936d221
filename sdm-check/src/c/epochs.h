/* Epochs: which accesses to a window the calls before allow. */
enum { WINDOWS_MAX = 256, LOCKS_MAX = 64, MEMBERS_MAX = 4096 };

/* The memory that a rank gives to a window. */
struct share { int64_t bytes, unit; };

struct epochs {
    uint64_t window;
    /* Of a fence's epoch: something was accessed in it. */
    int is_fenced, is_used, is_started, is_exposed, is_all, lock_count, is_unknown;
    int locks[LOCKS_MAX], lock_types[LOCKS_MAX];
    /* Of each rank, `members` in all; null where they are not known. */
    struct share *shares;
    int members;
    /* Of MPI_Win_start: the ranks of its group. */
    int *started, started_count;
};

static struct epochs epochs[WINDOWS_MAX];
static int window_count;
static pthread_mutex_t epochs_lock = PTHREAD_MUTEX_INITIALIZER;

enum access { NO_ACCESS, PASSIVE, ANY_ACCESS };

static struct epochs *epochs_of(MPI_Win window)
{
    for (int i = 0; i < window_count; i++)
        if (epochs[i].window == HANDLE(window))
            return &epochs[i];
    return NULL;
}

static void begin_epochs(MPI_Win window)
{
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window);
    if (!it && window_count < WINDOWS_MAX)
        it = &epochs[window_count++];
    if (it)
        *it = (struct epochs){.window = HANDLE(window)};
    pthread_mutex_unlock(&epochs_lock);
}

static void end_epochs(uint64_t window)
{
    pthread_mutex_lock(&epochs_lock);
    for (int i = 0; i < window_count; i++)
        if (epochs[i].window == window) {
            free(epochs[i].shares);
            free(epochs[i].started);
            epochs[i] = epochs[--window_count];
            break;
        }
    pthread_mutex_unlock(&epochs_lock);
}

static struct epochs known_epochs(MPI_Win window)
{
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window), copy = {.is_unknown = 1};
    if (it)
        copy = *it;
    pthread_mutex_unlock(&epochs_lock);
    return copy;
}

/* All ranks of a window make it: each tells the others what it gives to it. */
static void keep_shares(MPI_Comm comm, MPI_Win window)
{
    int *unit, *flavor, has_unit = 0, has_flavor = 0, has_size = 0, count = group_size(comm);
    MPI_Aint *size;
    struct share all[count <= MEMBERS_MAX ? count : 1], own = {0}, *shares;
    if (count > MEMBERS_MAX || is_inter(comm))
        return;
    PMPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &unit, &has_unit);
    PMPI_Win_get_attr(window, MPI_WIN_SIZE, &size, &has_size);
    PMPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &has_flavor);
    if (has_flavor && *flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return;
    own.bytes = has_size && has_unit ? *size : -1;
    own.unit = has_unit ? *unit : 1;
    if (PMPI_Allgather(&own, 2, MPI_INT64_T, all, 2, MPI_INT64_T, comm) != MPI_SUCCESS || !(shares = malloc(sizeof all)))
        return;
    memcpy(shares, all, sizeof all);
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window);
    if (it) {
        it->shares = shares;
        it->members = count;
    } else
        free(shares);
    pthread_mutex_unlock(&epochs_lock);
}

/* An access must be within what its target has given to the window. */
static void check_bounds(struct call *call, MPI_Win window, int rank, MPI_Aint disp, long long count, MPI_Datatype type)
{
    struct epochs it = known_epochs(window);
    MPI_Aint low, extent, true_low, true_extent;
    if (!it.shares || rank < 0 || rank >= it.members || count <= 0 || it.shares[rank].bytes < 0)
        return;
    if (PMPI_Type_get_extent(type, &low, &extent) || PMPI_Type_get_true_extent(type, &true_low, &true_extent) || true_extent <= 0)
        return;
    __int128 first = (__int128)disp * it.shares[rank].unit + true_low, last = first + true_extent, more = (__int128)(count - 1) * extent;
    first += more < 0 ? more : 0;
    last += more > 0 ? more : 0;
    if (first < 0 || last > it.shares[rank].bytes)
        report(call, BEYOND, NULL, "bytes %lld to %lld of the window of rank %d, which has %lld", (long long)first, (long long)last - 1, rank,
               (long long)it.shares[rank].bytes);
}

static int is_locked(const struct epochs *it, int rank)
{
    int found = it->is_all;
    for (int i = 0; i < it->lock_count; i++)
        found |= it->locks[i] == rank;
    return found;
}

static void set_epoch(MPI_Win window, int field, int value)
{
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window);
    if (it)
        *(field == 'f' ? &it->is_fenced : field == 's' ? &it->is_started : field == 'u' ? &it->is_used : field == 'e' ? &it->is_exposed : &it->is_all) = value;
    pthread_mutex_unlock(&epochs_lock);
}

static void keep_started(MPI_Win window, MPI_Group group)
{
    MPI_Group whole;
    int count = 0, *ranks = NULL;
    if (group != MPI_GROUP_NULL && look_up(GROUP, HANDLE(group)).life != FREED && !PMPI_Group_size(group, &count) && !PMPI_Win_get_group(window, &whole)) {
        ranks = malloc(2 * (count + 1) * sizeof *ranks);
        for (int i = 0; ranks && i < count; i++)
            ranks[count + 1 + i] = i;
        if (ranks)
            PMPI_Group_translate_ranks(group, count, ranks + count + 1, whole, ranks);
        PMPI_Group_free(&whole);
    }
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window);
    if (it) {
        free(it->started);
        it->started = ranks;
        it->started_count = count;
    } else
        free(ranks);
    pthread_mutex_unlock(&epochs_lock);
}

/* True where the group of MPI_Win_start has no such rank. */
static int is_outside(MPI_Win window, int rank)
{
    int is_found = 0;
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window);
    for (int i = 0; it && it->started && i < it->started_count; i++)
        is_found |= it->started[i] == rank;
    is_found |= !it || !it->started;
    pthread_mutex_unlock(&epochs_lock);
    return !is_found;
}

/* An access to a window, which an epoch must allow. */
static void check_access(struct call *call, MPI_Win window, int rank, enum access access)
{
    struct epochs it = known_epochs(window);
    if (it.is_unknown || rank == MPI_PROC_NULL || is_locked(&it, rank))
        return;
    if (access == PASSIVE)
        report(call, NO_EPOCH, NULL, "rank %d of the window is not locked: no MPI_Win_lock or MPI_Win_lock_all before", rank);
    else if (!it.is_fenced && !it.is_started)
        report(call, NO_EPOCH, NULL, "no epoch for rank %d of the window: no MPI_Win_fence, MPI_Win_start or MPI_Win_lock before", rank);
    else if (it.is_started && is_outside(window, rank))
        report(call, NO_EPOCH, NULL, "rank %d of the window is not in the group of MPI_Win_start", rank);
    else if (!it.is_started && !it.is_used)
        set_epoch(window, 'u', 1);
}

/* A fence or a lock is within an epoch of another kind. */
static void check_mixed(struct call *call, const struct epochs *it, int is_fence)
{
    if (it->is_unknown)
        return;
    if (is_fence && (it->is_all || it->lock_count))
        report(call, BAD_EPOCH, NULL, "the window is locked");
    else if (it->is_started)
        report(call, BAD_EPOCH, NULL, "the epoch of MPI_Win_start before has no MPI_Win_complete");
    else if (!is_fence && it->is_fenced && it->is_used)
        report(call, BAD_EPOCH, NULL, "the accesses since MPI_Win_fence have no MPI_Win_fence that ends them");
}

static void pre_Win_fence(struct call *call, int assertion, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    (void)assertion;
    check_mixed(call, &it, 1);
    if (it.is_used)
        set_epoch(window, 'u', 0);
}

static void post_Win_fence(struct call *call, int rc, int assertion, MPI_Win window)
{
    (void)call, (void)rc;
    set_epoch(window, 'f', !(assertion & MPI_MODE_NOSUCCEED));
}

static void pre_Win_lock(struct call *call, int type, int rank, int assertion, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    (void)type, (void)assertion;
    if (!it.is_unknown && is_locked(&it, rank))
        report(call, BAD_EPOCH, NULL, "rank %d of the window is locked already", rank);
    else
        check_mixed(call, &it, 0);
}

static void post_Win_lock(struct call *call, int rc, int type, int rank, int assertion, MPI_Win window)
{
    (void)call, (void)assertion;
    pthread_mutex_lock(&epochs_lock);
    struct epochs *it = epochs_of(window);
    if (!it || is_locked(it, rank))
        ;
    else if (rc == MPI_SUCCESS && it->lock_count < LOCKS_MAX) {
        it->lock_types[it->lock_count] = type;
        it->locks[it->lock_count++] = rank;
    } else
        it->is_unknown = 1;
    pthread_mutex_unlock(&epochs_lock);
}

static void pre_Win_unlock(struct call *call, int rank, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    if (!it.is_unknown && (it.is_all || !is_locked(&it, rank)))
        report(call, BAD_EPOCH, NULL, "rank %d of the window is not locked by MPI_Win_lock", rank);
    pthread_mutex_lock(&epochs_lock);
    struct epochs *own = epochs_of(window);
    for (int i = 0; own && i < own->lock_count; i++)
        if (own->locks[i] == rank) {
            own->locks[i] = own->locks[--own->lock_count];
            own->lock_types[i] = own->lock_types[own->lock_count];
            break;
        }
    pthread_mutex_unlock(&epochs_lock);
}

static void pre_Win_lock_all(struct call *call, int assertion, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    (void)assertion;
    if (!it.is_unknown && (it.is_all || it.lock_count))
        report(call, BAD_EPOCH, NULL, "the window is locked already");
    else
        check_mixed(call, &it, 0);
}

static void post_Win_lock_all(struct call *call, int rc, int assertion, MPI_Win window)
{
    (void)call, (void)assertion;
    set_epoch(window, 'a', rc == MPI_SUCCESS);
}

static void pre_Win_unlock_all(struct call *call, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    if (!it.is_unknown && !it.is_all)
        report(call, BAD_EPOCH, NULL, "the window is not locked by MPI_Win_lock_all");
    set_epoch(window, 'a', 0);
}

static void pre_Win_start(struct call *call, MPI_Group group, int assertion, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    (void)assertion;
    if (it.is_started)
        report(call, BAD_EPOCH, NULL, "the epoch of MPI_Win_start before has no MPI_Win_complete");
    else if (!it.is_unknown && (it.is_all || it.lock_count))
        report(call, BAD_EPOCH, NULL, "the window is locked");
    else
        check_mixed(call, &it, 0);
    keep_started(window, group);
    set_epoch(window, 's', 1);
}

static void pre_Win_complete(struct call *call, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    if (!it.is_unknown && !it.is_started)
        report(call, BAD_EPOCH, NULL, "no MPI_Win_start before");
    set_epoch(window, 's', 0);
}

static void pre_Win_post(struct call *call, MPI_Group group, int assertion, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    (void)group, (void)assertion;
    if (it.is_exposed)
        report(call, BAD_EPOCH, NULL, "the epoch of MPI_Win_post before has no MPI_Win_wait");
    set_epoch(window, 'e', 1);
}

static void check_exposed(struct call *call, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    if (!it.is_unknown && !it.is_exposed)
        report(call, BAD_EPOCH, NULL, "no MPI_Win_post before");
}

static void pre_Win_wait(struct call *call, MPI_Win window)
{
    check_exposed(call, window);
    set_epoch(window, 'e', 0);
}

static void pre_Win_test(struct call *call, MPI_Win window, int *flag)
{
    (void)flag;
    check_exposed(call, window);
}

static void post_Win_test(struct call *call, int rc, MPI_Win window, int *flag)
{
    (void)call;
    if (rc == MPI_SUCCESS && *flag)
        set_epoch(window, 'e', 0);
}

/* The epochs of a window that is about to go must have ended; that of a last fence has no end. */
static void pre_Win_free(struct call *call, MPI_Win *window)
{
    struct epochs it = known_epochs(*window);
    if (it.is_unknown)
        return;
    if (it.lock_count || it.is_all)
        report(call, BAD_EPOCH, NULL, "the window is still locked%s", it.is_all ? " by MPI_Win_lock_all" : "");
    else if (it.is_started || it.is_exposed)
        report(call, BAD_EPOCH, NULL, "the epoch of %s has no %s", it.is_started ? "MPI_Win_start" : "MPI_Win_post", it.is_started ? "MPI_Win_complete" : "MPI_Win_wait");
    else
        check_mixed(call, &it, 0);
}

static void check_any_lock(struct call *call, MPI_Win window)
{
    struct epochs it = known_epochs(window);
    if (!it.is_unknown && !it.is_all && !it.lock_count)
        report(call, NO_EPOCH, NULL, "no rank of the window is locked: no MPI_Win_lock or MPI_Win_lock_all before");
}

#define pre_Win_flush_all(call, win) check_any_lock(call, win)
#define pre_Win_flush_local_all(call, win) check_any_lock(call, win)
#define pre_Win_flush(call, rank, win) check_access(call, win, rank, PASSIVE)
#define pre_Win_flush_local(call, rank, win) check_access(call, win, rank, PASSIVE)
