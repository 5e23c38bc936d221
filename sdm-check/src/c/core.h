/* Checks a program's use of MPI, from inside the program. sdm compiles this, with wrappers that it makes from the header of the
 * program's own MPI, and has it loaded before that MPI. Nothing is checked before MPI_Init.
 *
 * Each MPI_X and PMPI_X of the program comes here first. Fortran's come by way of MPI's own library for Fortran, which calls the C
 * functions. Calls that MPI makes for its own purposes are passed on unseen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum caller { UNKNOWN, USER, BINDING, INTERNAL };
enum kind { COMMUNICATOR, DATATYPE, GROUP, WINDOW, FILE_HANDLE, OPERATOR, INFO, REQUEST, ERROR_HANDLER, KEY, MATCHED };

/* What a call receives: from whom, and as what; the type is null where a request knows it. `status` is where MPI says whose message it was;
 * null for calls that receive nothing. */
struct taken { const MPI_Status *status; MPI_Datatype type; long long count; int source, tag; };

/* One call of the program's. */
struct call {
    const char *name;
    void *from;
    enum caller caller;
    /* An error of it was told. It is a ready send. And the program does not want its status. */
    int is_told, is_ready, is_ignored;
    /* It makes a collective operation that is started later. */
    int is_prepared;
    /* A receive: when it began. */
    uint64_t time;
    struct taken taken;
    /* The requests that it waits for. */
    const uint64_t *requests;
    int request_count;
    /* Their statuses, in their order, where each has one. */
    const MPI_Status *statuses;
};

/* Numbers of a call: they are wider in the functions for large counts. */
struct list { const void *values; size_t width; };
#define LIST(it) ((struct list){(it), sizeof *(it)})
#define NO_LIST ((struct list){0})

static inline long long number_at(struct list it, int at)
{
    return it.width == sizeof(int) ? ((const int *)it.values)[at] : ((const int64_t *)it.values)[at];
}

/* The errors. docs/check.md has a section for each. */
enum {
    NULL_HANDLE = 101, FREED_HANDLE = 102, NEGATIVE_COUNT = 103, UNCOMMITTED = 104, RANK_RANGE = 105, TAG_RANGE = 106,
    NULL_BUFFER = 107, ALIASED = 108, BAD_IN_PLACE = 109, WRONG_KIND = 110, BAD_OPERAND = 111, REFUSED = 112, BAD_COLOR = 113, BAD_PART = 114, UNBUFFERED = 115, BAD_SPLIT = 116,
    SELF_OVERLAP = 117, NO_SUCH_EDGE = 118, BAD_GROUP = 119,
    OVERLAP = 201, STARTED = 202, NOT_STARTED = 203, CHANGED = 204, BAD_PARTITION = 205,
    LEAKED = 301, /* and one more for each kind */
    AFTER_FINALIZE = 321, BEFORE_INIT = 322, WRONG_THREAD = 323, SEVERAL_THREADS = 324, INIT_TWICE = 325,
    COLLECTIVES = 401, /* and one more for each field that differs */
    TRUNCATED = 501, MESSAGE_TYPES = 502, LOST = 503, RACE = 504, UNREADY = 505,
    NO_EPOCH = 601, BAD_EPOCH = 602, CONFLICT = 603, BEYOND = 604,
};

static __thread int depth __attribute__((tls_model("initial-exec")));
static __thread struct call *current __attribute__((tls_model("initial-exec")));
/* A session of MPI 4 may be used without MPI_Init: nothing is checked in a program that only has such. */
static int initialized, finalized, has_sessions, level = MPI_THREAD_MULTIPLE, is_strict, tag_max = 32767;
static pthread_t main_thread, inside_thread;
static int inside;
/* The messages of this rank are not known all, or not in their order. */
static int unmatched;
/* Calls by which others can know what this rank has received. And: they can know it in ways that are not seen. */
static uint64_t activity;
static int is_known_elsewhere;

/* A debugger stops here; the argument is what is wrong, as a line. */
__attribute__((noinline, visibility("default"))) void sdm_check_error(const char *text)
{
    __asm__ volatile("" : : "r"(text) : "memory");
}

/* Progress of the program, for a debugger that was away: 1 from MPI_Init on, 2 from MPI_Finalize on. */
__attribute__((visibility("default"))) volatile int sdm_check_stage;

/* The process that traces this one; 0 for none. */
static int tracer(void)
{
    char line[256];
    int found = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "TracerPid: %d", &found) != 1)
        ;
    if (file)
        fclose(file);
    return found;
}

static int known_tracer;

/* While another process looks at this one, its tracer is away for some milliseconds, and an error would pass unseen. One that does not
 * come again is not waited for twice. */
static void await_tracer(void)
{
    enum { WAITS = 400, OTHERS = 20 };
    const struct timespec pause = {0, 5000000};
    int now = known_tracer ? tracer() : 0, waits = 0;
    while (now != known_tracer && waits < WAITS && (now == 0 || waits < OTHERS)) {
        nanosleep(&pause, NULL);
        now = tracer();
        waits++;
    }
    /* It has yet to say where it stops this process. */
    for (int i = 0; i < 4 && waits && now; i++)
        nanosleep(&pause, NULL);
    known_tracer = now;
}

/* The program, or some of it, is Python's. */
static int has_modules;

static enum caller caller_of(void *address)
{
    static struct { void *address; enum caller caller; } known[1024];
    size_t slot = ((uintptr_t)address >> 1) % 1024;
    if (__atomic_load_n(&known[slot].address, __ATOMIC_ACQUIRE) == address)
        return known[slot].caller;
    static const char *bindings[] = {"libmpi_mpifh", "libmpi_usempi", "libmpichf", "libmpifort", "libmpi_f", "libmpi_cxx", "libmpichcxx", "libmpicxx"};
    static const char *own[] = {"libmpi", "libpmpi", "libmpich", "mca_", "libopen-", "libuc", "libhcoll", "libfabric", "libpsm", "libpmix"};
    enum caller caller = USER;
    Dl_info found;
    if (dladdr(address, &found) && found.dli_fname) {
        const char *slash = strrchr(found.dli_fname, '/');
        const char *name = slash ? slash + 1 : found.dli_fname;
        /* The program itself may have any name. */
        if (strstr(name, ".so")) {
            has_modules |= strstr(name, ".cpython-") != NULL;
            for (size_t i = 0; i < sizeof own / sizeof *own; i++)
                if (!strncmp(name, own[i], strlen(own[i])))
                    caller = INTERNAL;
            for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++)
                if (!strncmp(name, bindings[i], strlen(bindings[i])))
                    caller = BINDING;
        }
    }
    /* Two threads may write here at once: one that finds the other's address finds no caller of its own. */
    static int lock;
    if (!__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&known[slot].address, NULL, __ATOMIC_SEQ_CST);
        known[slot].caller = caller;
        __atomic_store_n(&known[slot].address, address, __ATOMIC_SEQ_CST);
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
    return caller;
}

static void *python_site(void *from);
static void name_python_places(char *text, size_t room);

/* The place of the program's call: behind MPI's library for Fortran. */
static void *site(const struct call *call)
{
    void *line = has_modules ? python_site(call->from) : NULL;
    if (line)
        return line;
    if (call->caller == USER)
        return call->from;
    void *frames[24];
    int count = backtrace(frames, 24), below = 0;
    for (int i = 0; i < count; i++) {
        below |= caller_of(frames[i]) == BINDING;
        if (below && caller_of(frames[i]) == USER)
            return frames[i];
    }
    return call->from;
}

/* Says what is wrong, once for each place of the program, and place that made the object that it is about. */
static void report(struct call *call, int number, void *maker, const char *format, ...)
{
    enum { PLACES = 4096 };
    static struct { void *site, *maker; int number; } told[PLACES];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int count;
    void *place = site(call);
    int is_new = 1;
    call->is_told = 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count && is_new; i++)
        is_new = told[i].site != place || told[i].maker != maker || told[i].number != number;
    is_new = is_new && count < PLACES;
    if (is_new) {
        told[count].site = place;
        told[count].maker = maker;
        told[count++].number = number;
    }
    pthread_mutex_unlock(&lock);
    if (!is_new)
        return;
    char text[512];
    int length = snprintf(text, sizeof text, "M%d %s: ", number, call->name);
    va_list rest;
    va_start(rest, format);
    vsnprintf(text + length, sizeof text - length, format, rest);
    va_end(rest);
    name_python_places(text, sizeof text);
    await_tracer();
    sdm_check_error(text);
}

/* True for a call that is looked at; others are passed on. */
static inline int enter(struct call *call, const char *name, int is_profiling, void *from)
{
    call->name = name;
    call->from = from;
    call->is_told = call->is_ready = call->is_ignored = call->is_prepared = 0;
    call->time = 0;
    call->taken = (struct taken){.type = MPI_DATATYPE_NULL, .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    call->request_count = 0;
    call->statuses = NULL;
    call->caller = caller_of(from);
    if (call->caller == INTERNAL) {
        /* None of MPI's, that has such a name: what it sends and receives is not seen. */
        if (depth == 0)
            unmatched = 1;
        return 0;
    }
    /* A tool between the program and MPI, which calls what the program has called. */
    if (is_profiling && depth > 0 && call->caller == USER)
        return 0;
    return 1;
}

static void check_threads(struct call *call)
{
    pthread_t own = pthread_self();
    if (level < MPI_THREAD_SERIALIZED && !pthread_equal(own, main_thread))
        report(call, WRONG_THREAD, NULL, "called by another thread than the one that has called MPI_Init, which was granted %s",
               level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED");
    if (level == MPI_THREAD_SERIALIZED && __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST) > 0 && !pthread_equal(own, inside_thread))
        report(call, SEVERAL_THREADS, NULL, "called while another thread is in MPI, which was granted MPI_THREAD_SERIALIZED");
    inside_thread = own;
}

/* True where arguments can be looked at: MPI has begun, and the program itself calls. */
static inline int begin(struct call *call, int is_anytime)
{
    if (depth++ > 0)
        return 0;
    current = call;
    if (!is_anytime && !has_sessions) {
        if (finalized)
            report(call, AFTER_FINALIZE, NULL, "called after MPI_Finalize");
        else if (!initialized)
            report(call, BEFORE_INIT, NULL, "called before MPI_Init");
    }
    if (!initialized || finalized)
        return 0;
    if (level != MPI_THREAD_MULTIPLE && !is_anytime)
        check_threads(call);
    return 1;
}

static inline void end(int is_anytime)
{
    depth--;
    if (level == MPI_THREAD_SERIALIZED && depth == 0 && initialized && !finalized && !is_anytime)
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}
