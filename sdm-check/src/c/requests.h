/* Requests: which are under way, what memory they read or write, and who has completed them. */
/* Of a buffer with gaps so many parts are looked at, within the first 64 KiB. */
enum { OPEN_MAX = 1024, SUM_MAX = 4096, PARTS_MAX = 128, SPAN_MAX = 1 << 16, PAGE = 4096 };
static struct open {
    /* The window, of the buffer of an access; 0 of a request's. */
    uint64_t request, sum, window;
    struct extent memory;
    int is_receive;
    void *site;
    const char *maker;
} open_requests[OPEN_MAX], prepared_buffers[OPEN_MAX];
static int open_count, prepared_count;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* An operation is about to read or write memory: holds it against those under way. */
static void complete_pending(uint64_t request, const MPI_Status *status);
static void start_pending(struct call *call, uint64_t request);

static void use_memory(struct call *call, struct extent memory, int is_written);
static int unit_count;

/* True where the memory of a call must be looked at. */
static int are_open(void)
{
    return open_count || unit_count;
}

static void check_open(struct call *call, const char *what, struct extent memory, int is_receive)
{
    struct open other = {0};
    if (unit_count && memory.start)
        use_memory(call, memory, is_receive);
    if (!open_count || !memory.start)
        return;
    pthread_mutex_lock(&open_lock);
    for (int i = open_count - 1; i >= 0; i--)
        if (overlap(open_requests[i].memory, memory) && (is_receive || open_requests[i].is_receive)) {
            other = open_requests[i];
            /* It is told once. */
            open_requests[i].sum = 0;
            break;
        }
    pthread_mutex_unlock(&open_lock);
    if (other.maker)
        report(call, OVERLAP, other.site, "%s overlaps the %s buffer of %s at {%p}, which is not complete", what,
               other.is_receive ? "receive" : "send", other.maker, other.site);
}

static void add_bytes(uint64_t sums[4], const char *from, size_t length)
{
    uint64_t words[4];
    size_t at = 0;
    for (; at + sizeof words <= length; at += sizeof words) {
        memcpy(words, from + at, sizeof words);
        for (int i = 0; i < 4; i++)
            sums[i] = (sums[i] ^ words[i]) * 0x9e3779b97f4a7c15u, sums[i] ^= sums[i] >> 29;
    }
    for (; at < length; at++)
        sums[0] = (sums[0] ^ (unsigned char)from[at]) * 0x100000001b3u;
}

/* Of the beginning of a buffer; never 0. */
static uint64_t sum_of(struct extent memory)
{
    uint64_t sums[4] = {1, 2, 3, 4};
    size_t length = memory.end - memory.start, left = SUM_MAX, parts = 0;
    if (!memory.layout)
        add_bytes(sums, memory.start, length < left ? length : left);
    for (int i = 0; memory.layout && i < memory.count; i++)
        for (int j = 0; j < memory.layout->count && left && parts++ < PARTS_MAX; j++) {
            const char *from = base_of(&memory) + i * memory.step + memory.layout->blocks[j].low;
            length = memory.layout->blocks[j].high - memory.layout->blocks[j].low;
            length = length < left ? length : left;
            if (from + length - memory.start > SPAN_MAX)
                break;
            add_bytes(sums, from, length);
            left -= length;
        }
    return (sums[0] + 3 * sums[1] + 5 * sums[2] + 7 * sums[3]) | 1;
}

/* A program may wrongly have given a buffer away before its request is complete. */
static int is_there(struct extent memory)
{
    unsigned char pages[SPAN_MAX / PAGE + 2];
    int room = memory.layout ? SPAN_MAX : SUM_MAX;
    char *first = (char *)((uintptr_t)memory.start & ~(uintptr_t)(PAGE - 1)), *end = memory.end;
    end = end - memory.start < room ? end : memory.start + room;
    return mincore(first, end - first, pages) == 0;
}

/* The one request that MPI gives for all operations that are complete at once; null where there is none. */
static uint64_t shared_request;
/* One of them was waited for while others were not. */
static int is_shared_used;

static void begin_requests(void)
{
    MPI_Request both[2];
    for (int i = 0; i < 2; i++)
        if (PMPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &both[i]) != MPI_SUCCESS)
            return;
    if (both[0] == both[1])
        shared_request = HANDLE(both[0]);
    PMPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

/* Nobody can tell which operation of the shared request is waited for: all are checked until the first wait, and none later. */
static int is_kept(uint64_t request)
{
    enum { SHARED_MAX = 64 };
    int same = 0;
    if (request != shared_request)
        return 1;
    /* This one is counted. */
    is_shared_used &= look_up(REQUEST, request).count > 1;
    for (int i = 0; i < open_count; i++)
        same += open_requests[i].request == request;
    return !is_shared_used && same < SHARED_MAX;
}

static void open_memory(struct call *call, uint64_t request, struct extent memory, int is_receive)
{
    uint64_t sum = memory.start && !is_receive && !call->is_prepared ? sum_of(memory) : 0;
    pthread_mutex_lock(&open_lock);
    if (call->is_prepared) {
        if (memory.start && prepared_count < OPEN_MAX)
            prepared_buffers[prepared_count++] = (struct open){.request = request, .memory = memory, .is_receive = is_receive};
        pthread_mutex_unlock(&open_lock);
        return;
    }
    for (int i = 0; i < open_count && request != shared_request; i++)
        if (open_requests[i].request == request) {
            /* Some way to complete it was not seen. */
            open_requests[i].memory = (struct extent){0};
            open_requests[i].sum = 0;
            memory.start = NULL;
        }
    if (memory.start && open_count < OPEN_MAX && is_kept(request))
        open_requests[open_count++] = (struct open){.request = request, .sum = sum, .memory = memory, .is_receive = is_receive, .site = site(call), .maker = call->name};
    pthread_mutex_unlock(&open_lock);
}

static void open_request(struct call *call, MPI_Request request, struct extent memory, int is_receive)
{
    if (depth == 1)
        open_memory(call, HANDLE(request), memory, is_receive);
}

/* A collective operation has a second buffer, which it sends, and arrays of counts and displacements, whose extents have LIST in place of a
 * count. A partitioned send has its partitions. Accesses without a request have a number with bits that no handle has. */
enum { PARTITION_BIT = 47, LISTS_BIT = 57, SENT_BIT = 61, LIST = -1 };
#define MORE_BITS ((uint64_t)0x7fff << PARTITION_BIT)
#define ORIGIN_BITS ((uint64_t)0x5d << 56)
static int sent_count;

static void open_more(struct call *call, MPI_Request request, uint64_t bits, struct extent memory)
{
    if (depth != 1 || !memory.start)
        return;
    sent_count++;
    open_memory(call, HANDLE(request) ^ bits, memory, 0);
}

static void open_sent(struct call *call, MPI_Request request, const void *buffer, long long count, MPI_Datatype type)
{
    if (buffer != MPI_IN_PLACE)
        open_more(call, request, (uint64_t)1 << SENT_BIT, memory_of(buffer, count, type));
}

static void open_list(struct call *call, MPI_Request request, int number, struct list values, int count)
{
    if (values.values)
        open_more(call, request, (uint64_t)1 << (LISTS_BIT + number), (struct extent){.start = (char *)values.values, .end = (char *)values.values + count * values.width, .count = LIST});
}

/* MPI's library for Fortran gives copies of an array of datatypes, and frees them at once. */
static void open_types(struct call *call, MPI_Request request, const void *buffer, int is_receive, const MPI_Datatype *types, int count)
{
    if (types && buffer != MPI_IN_PLACE && call->caller == USER)
        open_more(call, request, (uint64_t)(is_receive ? 12 : 3) << LISTS_BIT, (struct extent){.start = (char *)types, .end = (char *)(types + count), .count = LIST});
}

/* Of those whose numbers differ from that of the request only in the bits of `more`. */
static struct open close_first(uint64_t request, uint64_t more)
{
    struct open it = {0};
    pthread_mutex_lock(&open_lock);
    for (int i = 0; i < open_count; i++)
        if (!((open_requests[i].request ^ request) & ~more)) {
            it = open_requests[i];
            memmove(&open_requests[i], &open_requests[i + 1], (--open_count - i) * sizeof *open_requests);
            break;
        }
    pthread_mutex_unlock(&open_lock);
    return it;
}

/* A collective operation that was made by an earlier call begins to use its buffers; or none begins, and it is freed. */
static void start_prepared(struct call *call, uint64_t request)
{
    struct open found[8];
    int count = 0;
    pthread_mutex_lock(&open_lock);
    for (int i = 0; i < prepared_count; i++)
        if (!((prepared_buffers[i].request ^ request) & ~MORE_BITS) && count < (int)(sizeof found / sizeof *found)) {
            found[count++] = prepared_buffers[i];
            if (!call)
                prepared_buffers[i--] = prepared_buffers[--prepared_count];
        }
    pthread_mutex_unlock(&open_lock);
    for (int i = 0; call && i < count; i++)
        check_open(call, found[i].is_receive ? "the receive buffer" : "the send buffer", found[i].memory, found[i].is_receive);
    for (int i = 0; call && i < count; i++)
        open_memory(call, found[i].request, found[i].memory, found[i].is_receive);
}

static struct open close_request(uint64_t request)
{
    return close_first(request, 0);
}

/* An open buffer is that of an access to a window. False where it is not kept. */
static int set_window(uint64_t request, uint64_t window)
{
    int found = 0;
    pthread_mutex_lock(&open_lock);
    for (int i = open_count - 1; i >= 0 && !found; i--)
        if (open_requests[i].request == request) {
            open_requests[i].window = window;
            found = 1;
        }
    pthread_mutex_unlock(&open_lock);
    return found;
}

/* The operation of an open buffer is complete. */
static void check_unchanged(struct call *call, struct open open, const char *until)
{
    if (open.sum && depth == 1 && is_there(open.memory) && sum_of(open.memory) != open.sum)
        report(call, CHANGED, open.site, "%s of %s at {%p} was changed before this: it is MPI's until %s", open.memory.count == LIST ? "an array of counts, displacements or datatypes" : "the send buffer", open.maker, open.site, until);
}

/* What the program has changed shows before a call that completes a request, or the accesses to a window: in the call MPI may write there
 * itself, as the root of some broadcasts does. Another thread may change it later. */
static void check_early(struct call *call, uint64_t request, uint64_t window)
{
    if (!window && request == HANDLE(MPI_REQUEST_NULL))
        return;
    for (int i = 0; i < open_count; i++) {
        struct open found = {0};
        pthread_mutex_lock(&open_lock);
        for (; i < open_count; i++) {
            struct open *it = &open_requests[i];
            if (window ? it->window == window : !((it->request ^ request) & ~(sent_count ? MORE_BITS : 0))) {
                found = *it;
                /* Of a window MPI's own writes would be told, whatever threads there are. */
                it->sum = window || level == MPI_THREAD_SINGLE || request == shared_request ? 0 : it->sum;
                break;
            }
        }
        pthread_mutex_unlock(&open_lock);
        check_unchanged(call, found, window ? "the epoch ends" : "the request is complete");
        if (!window && !sent_count && request != shared_request && found.maker)
            return;
    }
}

/* Closes all of a request; without a call nothing is checked. */
static void close_all(struct call *call, uint64_t request)
{
    struct open it;
    int is_shared = request == shared_request;
    is_shared_used |= is_shared;
    do {
        it = close_first(request, sent_count ? MORE_BITS : 0);
        if (call)
            check_unchanged(call, it, "the request is complete");
    } while (it.maker && (sent_count || is_shared));
}

/* The accesses to a window are complete at this rank; gives how many of them have no request. */
static int close_origins(struct call *call, uint64_t window)
{
    int closed = 0;
    for (int i = open_count - 1; i >= 0; i--)
        if (open_requests[i].window == window) {
            closed += (open_requests[i].request & ORIGIN_BITS) == ORIGIN_BITS;
            check_unchanged(call, close_request(open_requests[i].request), "the epoch ends");
        }
    return closed;
}

/* A request is complete: one that can be started again is there still. */
static void completed(struct call *call, uint64_t before, MPI_Request after, const MPI_Status *status)
{
    if (before == HANDLE(MPI_REQUEST_NULL))
        return;
    complete_pending(before, status);
    close_all(call, before);
    if (HANDLE(after) == before) {
        pthread_mutex_lock(&objects_lock);
        struct object *it = find(REQUEST, before);
        if (it->life == LIVE && it->is_persistent)
            it->is_active = 0;
        pthread_mutex_unlock(&objects_lock);
        return;
    }
    freed(REQUEST, before);
}

/* A request that another thread completes or makes meanwhile can have the same handle. */
static int are_known(void)
{
    return level != MPI_THREAD_MULTIPLE || (!unmatched && pthread_equal(pthread_self(), main_thread));
}

/* Requests are waited for that nobody has started, alone: beside others a request without a start may be meant. */
static void check_wait(struct call *call, int count, const MPI_Request *requests)
{
    struct object first = {0};
    int is_alone = are_known();
    for (int i = 0; i < count; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        struct object it = look_up(REQUEST, HANDLE(requests[i]));
        if (it.life == OVER && is_alone) {
            report(call, FREED_HANDLE, it.site, "the request of %s at {%p} is complete, or was freed", it.maker, it.site);
            return;
        }
        if (it.life != LIVE || !it.is_persistent || it.was_started)
            return;
        first = first.maker ? first : it;
    }
    if (first.maker)
        report(call, NOT_STARTED, first.site, "the request of %s at {%p} was not started", first.maker, first.site);
}

static void part(MPI_Request request, int count, struct extent first, MPI_Aint step);

static void started(struct call *call, MPI_Request request)
{
    if (request == MPI_REQUEST_NULL) {
        report(call, NULL_HANDLE, NULL, "a null request is started");
        return;
    }
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(REQUEST, HANDLE(request));
    struct object before = *it;
    if (it->life == LIVE)
        it->is_active = it->was_started = 1;
    pthread_mutex_unlock(&objects_lock);
    if (before.life == OVER && before.is_persistent && are_known())
        report(call, FREED_HANDLE, before.site, "the request of %s at {%p} was freed", before.maker, before.site);
    else if (before.life == LIVE && before.is_active)
        report(call, STARTED, before.site, "the request of %s at {%p} is %s", before.maker, before.site,
               before.is_persistent ? "under way already" : "none that can be started");
    else {
        start_pending(call, HANDLE(request));
        if (prepared_count)
            start_prepared(call, HANDLE(request));
        part(request, 0, (struct extent){0}, 0);
    }
}

/* Only MPI_Wait and its like end a nonblocking collective operation, or an access to a window. */
static void check_given_up(struct call *call, MPI_Request request)
{
    struct object it = look_up(REQUEST, HANDLE(request));
    int is_alone = it.life == LIVE && it.count == 1 && !it.is_persistent && !strstr(it.maker, "send") && !strstr(it.maker, "recv");
    if (is_alone && (!strncmp(it.maker, "MPI_I", 5) || !strncmp(it.maker, "MPI_R", 5)))
        report(call, WRONG_KIND, it.site, "the request of %s at {%p} cannot be freed or cancelled", it.maker, it.site);
}
