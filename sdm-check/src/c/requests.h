/* Requests: which are under way, what memory they read or write, and who has completed them. */
struct extent { char *start, *end; };

enum { OPEN_MAX = 1024 };
static struct open { uint64_t request; struct extent memory; int is_receive; void *site; const char *maker; } open_requests[OPEN_MAX];
static int open_count;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* The bytes of a buffer where all between its ends are its own; empty where there are gaps, of which another operation may make use. */
static struct extent memory_of(const void *buffer, int count, MPI_Datatype type)
{
    struct extent none = {0};
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    if (!buffer || count <= 0)
        return none;
    if (PMPI_Type_size(type, &size) || PMPI_Type_get_extent(type, &low, &extent) || PMPI_Type_get_true_extent(type, &true_low, &true_extent))
        return none;
    if (size <= 0 || size != true_extent || (count > 1 && extent != true_extent))
        return none;
    char *start = (char *)buffer + true_low;
    return (struct extent){start, start + (MPI_Aint)count * size};
}

static int overlap(struct extent a, struct extent b)
{
    return a.start < b.end && b.start < a.end;
}

/* An operation is about to read or write memory: holds it against those under way. */
static void check_open(struct call *call, const char *what, struct extent memory, int is_receive)
{
    struct open other = {0};
    pthread_mutex_lock(&open_lock);
    for (int i = open_count - 1; i >= 0; i--)
        if (overlap(open_requests[i].memory, memory) && (is_receive || open_requests[i].is_receive)) {
            other = open_requests[i];
            break;
        }
    pthread_mutex_unlock(&open_lock);
    if (other.maker)
        report(call, OVERLAP, other.site, "%s overlaps the %s buffer of %s at {%p}, which is not complete", what,
               other.is_receive ? "receive" : "send", other.maker, other.site);
}

static void open_request(struct call *call, MPI_Request request, struct extent memory, int is_receive)
{
    pthread_mutex_lock(&open_lock);
    for (int i = 0; i < open_count; i++)
        if (open_requests[i].request == HANDLE(request)) {
            /* MPI's one request for all that is complete at once: nobody can tell which of them is waited for. */
            open_requests[i].memory = (struct extent){0};
            memory.start = NULL;
        }
    if (memory.start && open_count < OPEN_MAX)
        open_requests[open_count++] = (struct open){HANDLE(request), memory, is_receive, site(call), call->name};
    pthread_mutex_unlock(&open_lock);
}

static void close_request(uint64_t request)
{
    pthread_mutex_lock(&open_lock);
    for (int i = 0; i < open_count; i++)
        if (open_requests[i].request == request) {
            memmove(&open_requests[i], &open_requests[i + 1], (--open_count - i) * sizeof *open_requests);
            break;
        }
    pthread_mutex_unlock(&open_lock);
}

/* A request is complete: one that can be started again is there still. */
static void completed(uint64_t before, MPI_Request after)
{
    if (before == HANDLE(MPI_REQUEST_NULL))
        return;
    if (HANDLE(after) == before) {
        pthread_mutex_lock(&objects_lock);
        struct object *it = find(REQUEST, before);
        if (it->life == LIVE && it->is_persistent)
            it->is_active = 0;
        pthread_mutex_unlock(&objects_lock);
        return;
    }
    close_request(before);
    freed(REQUEST, before);
}

static void check_wait(struct call *call, MPI_Request request)
{
    if (request == MPI_REQUEST_NULL)
        return;
    struct object it = look_up(REQUEST, HANDLE(request));
    if (it.life == LIVE && it.is_persistent && !it.is_active)
        report(call, NOT_STARTED, it.site, "the request of %s at {%p} was not started", it.maker, it.site);
}

static void started(struct call *call, MPI_Request request)
{
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(REQUEST, HANDLE(request));
    struct object before = *it;
    if (it->life == LIVE)
        it->is_active = 1;
    pthread_mutex_unlock(&objects_lock);
    if (before.life == LIVE && before.is_active)
        report(call, STARTED, before.site, "the request of %s at {%p} is %s", before.maker, before.site,
               before.is_persistent ? "under way already" : "none that can be started");
}
