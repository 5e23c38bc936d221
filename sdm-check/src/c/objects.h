/* Objects that the program has made and not yet freed. Handles of MPI's own, and those made before this was loaded, are in no table. */
enum life { NOTHING, LIVE, FREED, OVER };

struct object {
    uint64_t handle;
    /* A handle can be handed out several times: groups, and requests of what is complete at once. Which of them is freed nobody can tell:
     * the first one is kept, too. */
    uint32_t count;
    /* Of a communicator: the number of its collective calls' list, from 1. */
    uint32_t sequence;
    uint8_t kind, life, is_committed, is_persistent, is_active, was_started, is_known;
    /* Of a datatype: its signature. */
    uint16_t basic, first;
    uint64_t hash, elements;
    const struct layout *layout;
    void *site, *first_site;
    const char *maker, *first_maker;
    /* Of a file: the split collective call that has begun. */
    const char *split;
};

#define HANDLE(it) ((uint64_t)(uintptr_t)(it))

static struct object *objects;
static size_t objects_used, objects_size;
static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const KINDS[] = {"communicator", "datatype", "group", "window", "file", "operator", "info", "request", "error handler", "key", "message"};

static size_t slot_of(enum kind kind, uint64_t handle)
{
    uint64_t mixed = (handle ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15u;
    return (mixed >> 20) & (objects_size - 1);
}

static struct object *slot(enum kind kind, uint64_t handle)
{
    size_t at = slot_of(kind, handle);
    while (objects[at].life != NOTHING && (objects[at].handle != handle || objects[at].kind != kind))
        at = (at + 1) & (objects_size - 1);
    return &objects[at];
}

static int grow(void)
{
    struct object *old = objects;
    size_t old_size = objects_size, size = old_size ? 2 * old_size : 1024;
    struct object *more = calloc(size, sizeof *more);
    if (!more)
        return 0;
    objects = more;
    objects_size = size;
    objects_used = 0;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].life == LIVE || old[i].life == FREED) {
            *slot(old[i].kind, old[i].handle) = old[i];
            objects_used++;
        }
    free(old);
    return 1;
}

/* The object of a handle; its life is NOTHING where none is known. Only under the lock. */
static struct object *find(enum kind kind, uint64_t handle)
{
    static struct object none;
    if (!objects_size)
        return &none;
    return slot(kind, handle);
}

static void made(struct call *call, enum kind kind, uint64_t handle, int is_persistent)
{
    void *place = site(call);
    pthread_mutex_lock(&objects_lock);
    /* Without memory there are no more checks of new objects. */
    if (2 * (objects_used + 1) <= objects_size || grow()) {
        struct object *it = slot(kind, handle);
        if (it->life == NOTHING)
            objects_used++;
        /* Only this function makes an object live, so that a live one has a first maker. */
        int is_again = it->life == LIVE;
        *it = (struct object){.handle = handle, .count = is_again ? it->count + 1 : 1, .kind = kind, .life = LIVE, .is_persistent = is_persistent,
                              .is_active = kind == REQUEST && !is_persistent, .site = place, .maker = call->name,
                              .first_site = is_again ? it->first_site : place, .first_maker = is_again ? it->first_maker : call->name};
    }
    pthread_mutex_unlock(&objects_lock);
}

static void freed(enum kind kind, uint64_t handle)
{
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(kind, handle);
    if (it->life == LIVE && --it->count == 0)
        /* Requests' handles are used again and again by MPI itself. */
        it->life = kind == REQUEST ? OVER : FREED;
    pthread_mutex_unlock(&objects_lock);
}

static struct object look_up(enum kind kind, uint64_t handle)
{
    pthread_mutex_lock(&objects_lock);
    struct object found = *find(kind, handle);
    pthread_mutex_unlock(&objects_lock);
    return found;
}

/* Tells what is left, of these kinds and those between them. */
static void report_leaks(struct call *call, enum kind first, enum kind last)
{
    for (size_t i = 0; i < objects_size; i++) {
        struct object *it = &objects[i];
        if (it->life != LIVE || it->kind < first || it->kind > last)
            continue;
        int number = LEAKED + it->kind;
        unsigned long count = 0;
        char times[40] = "";
        /* One place in a loop may have made many. */
        for (size_t j = i; j < objects_size; j++)
            if (objects[j].life == LIVE && objects[j].kind == it->kind && objects[j].site == it->site && objects[j].is_persistent == it->is_persistent) {
                count += objects[j].count;
                objects[j].life = j == i ? LIVE : OVER;
            }
        if (count > 1)
            snprintf(times, sizeof times, " (%lu of them)", count);
        if (it->first_site != it->site && (it->kind == REQUEST || it->kind == GROUP || it->kind == ERROR_HANDLER))
            report(call, number, it->site, "the %s of %s at {%p} was never %s, or that of %s at {%p}, which has the same handle%s", KINDS[it->kind], it->first_maker, it->first_site,
                   it->kind == REQUEST ? "completed: no MPI_Wait or MPI_Test" : "freed", it->maker, it->site, times);
        else if (it->kind == REQUEST && !it->is_persistent)
            report(call, number, it->site, "the request of %s at {%p} was never completed: no MPI_Wait or MPI_Test%s", it->maker, it->site, times);
        else if (it->kind == MATCHED)
            report(call, number, it->site, "the message of %s at {%p} was never received%s", it->maker, it->site, times);
        else
            report(call, number, it->site, "the %s of %s at {%p} was never freed%s", KINDS[it->kind], it->maker, it->site, times);
    }
}

static inline int is_null(enum kind kind, uint64_t handle)
{
    switch (kind) {
    case COMMUNICATOR: return handle == HANDLE(MPI_COMM_NULL);
    case DATATYPE: return handle == HANDLE(MPI_DATATYPE_NULL);
    case GROUP: return handle == HANDLE(MPI_GROUP_NULL);
    case WINDOW: return handle == HANDLE(MPI_WIN_NULL);
    case FILE_HANDLE: return handle == HANDLE(MPI_FILE_NULL);
    case OPERATOR: return handle == HANDLE(MPI_OP_NULL);
    case INFO: return handle == HANDLE(MPI_INFO_NULL);
    default: return handle == HANDLE(MPI_REQUEST_NULL);
    }
}

/* A call has given the program a new object. */
static void new_object(struct call *call, enum kind kind, uint64_t handle)
{
    if (is_null(kind, handle) || (kind == GROUP && handle == HANDLE(MPI_GROUP_EMPTY)))
        return;
    made(call, kind, handle, 0);
}
