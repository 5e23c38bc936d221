/* Messages between two ranks. Each rank keeps what it has sent to and received from each other one, by communicator and tag, where equal
 * neighbours are one entry. MPI delivers them in order: the n-th that was sent is the n-th that was received. At the end both sides hold
 * their lists against each other. Nothing is sent before.
 *
 * Where the order is not known for certain nothing is said: `unmatched` for all of this rank, `is_broken` for one list. */
enum { STREAMS_MAX = 16384, RUNS_MAX = 256, PENDING_MAX = 1024, PAIRED_MAX = 128, IS_PAIR = -2, IS_EDGE = -3, TIMES_MAX = 64, RACES_MAX = 8, WILDCARDS_MAX = 64, NOBODY = -1 };

struct message {
    struct signature signature;
    /* When its receive began; 0 where that is not known. */
    uint64_t bytes, site, count, time;
    uint16_t function;
    /* Of receives: that alone, in a call that waits for it. */
    uint8_t is_any, is_ready, is_alone;
};

/* A receive from MPI_ANY_SOURCE, and the number of a message that another receive, which names its source, has got later. While the first
 * one is not complete, `order` is its own, and nobody knows whose message it gets. */
struct race { uint64_t time, site, other_site, number, order; int32_t peer; uint16_t function, other_function; uint8_t is_alone; };

struct stream {
    uint64_t comm, total, last;
    int32_t peer, tag, world;
    uint8_t is_receive, is_broken, race_count;
    uint16_t kept, room;
    struct message *runs;
    /* Of the first messages: when the send was over, or the receive began. Of receives: what could have gone another way. */
    uint64_t *times;
    struct race *races;
    struct stream *next;
};

/* The content of a message: its first bytes, and which ranks below 64 may be named in it. Both are of the last one that was received. */
static struct content { uint64_t hash, named; } content;
/* The last receives from MPI_ANY_SOURCE. */
static struct wildcard { uint64_t comm, order, time, site, activity; int32_t peer, tag; uint16_t function; struct content content; } wildcards[WILDCARDS_MAX];
static int wildcard_count;

/* A receive whose sender is not known before it is complete, or a request that can be started. */
struct pending {
    uint64_t request, order, name, activity;
    MPI_Comm comm;
    struct message message;
    struct extent memory;
    const char *maker;
    int peer, tag;
    uint8_t is_receive, is_persistent, is_started;
};

static struct stream *streams[4096];
static int stream_count, pending_count, open_race_count;
static struct pending pending[PENDING_MAX];
static uint64_t order;
static pthread_mutex_t messages_lock = PTHREAD_MUTEX_INITIALIZER;

static struct stream *stream_of(MPI_Comm comm, uint64_t name, int is_receive, int peer, int tag)
{
    size_t slot = mix(mix(name, (uint64_t)(uint32_t)peer << 32 | (uint32_t)tag), is_receive) % 4096;
    for (struct stream *it = streams[slot]; it; it = it->next)
        if (it->comm == name && it->peer == peer && it->tag == tag && it->is_receive == is_receive)
            return it;
    struct stream *it = stream_count < STREAMS_MAX ? calloc(1, sizeof *it) : NULL;
    int world = it ? world_rank(comm, is_inter(comm), peer) : MPI_UNDEFINED;
    if (!it || world < 0) {
        free(it);
        unmatched = 1;
        return NULL;
    }
    *it = (struct stream){.comm = name, .peer = peer, .tag = tag, .world = world, .is_receive = is_receive, .next = streams[slot]};
    streams[slot] = it;
    stream_count++;
    return it;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static void keep_time(struct stream *it, uint64_t time)
{
    if (!it->times && it->total == 0)
        it->times = calloc(TIMES_MAX, sizeof *it->times);
    if (it->times && it->total < TIMES_MAX)
        it->times[it->total] = time;
}

static struct content content_of(struct extent memory, const MPI_Status *status)
{
    enum { LENGTH_MAX = 256 };
    struct content it = {1, 0};
    int length = 0;
    PMPI_Get_count(status, MPI_BYTE, &length);
    /* A length that no int holds. */
    if (length < 0)
        return (struct content){0, UINT64_MAX};
    length = length < LENGTH_MAX ? length : LENGTH_MAX;
    if (memory.layout || (length > 0 && (!memory.start || memory.end - memory.start < length)))
        return (struct content){0, UINT64_MAX};
    for (int i = 0; i < length; i++) {
        unsigned char one = memory.start[i];
        it.hash = mix(it.hash, one);
        it.named |= (one < 64 ? (uint64_t)1 << one : 0) | (one >= '0' && one <= '9' ? (uint64_t)1 << (one - '0') : 0);
        float single;
        double number;
        memcpy(&single, memory.start + i, i % 4 || length - i < 4 ? 0 : sizeof single);
        memcpy(&number, memory.start + i, i % 8 || length - i < 8 ? 0 : sizeof number);
        for (int rank = 1; rank < 64; rank++)
            it.named |= (uint64_t)((i % 4 == 0 && length - i >= 4 && single == rank) || (i % 8 == 0 && length - i >= 8 && number == rank)) << rank;
    }
    return it;
}

/* True where the machine code in front of a call gives it this rank as a constant. */
static int is_constant(uint64_t site, int rank)
{
#ifdef __x86_64__
    enum { NEAR = 64, LENGTH = 5 };
    const unsigned char move[LENGTH] = {0xb9, rank, rank >> 8, rank >> 16, rank >> 24}, *end = (const unsigned char *)(uintptr_t)site;
    for (const unsigned char *it = end - NEAR; it <= end - LENGTH; it++)
        if ((uintptr_t)it / PAGE == (uintptr_t)end / PAGE && (!memcmp(it, move, LENGTH) || (rank == 0 && it[0] == 0x31 && it[1] == 0xc9)))
            return 1;
#endif
    (void)site, (void)rank;
    return 0;
}

/* A message may say who is to be received from next: then it is no race. */
static int may_say(const struct wildcard *one, const struct stream *it, uint64_t site)
{
    int is_far = one->peer >= 64 || it->peer >= 64 || it->comm != sequences[0]->name;
    if (one->content.hash && one->content.hash == content.hash)
        return 0;
    return (is_far || (one->content.named >> one->peer | one->content.named >> it->peer) & 1) && !is_constant(site, it->peer);
}

/* The next message of this list is received by its source: it could have been that of a receive from any before, after which no other of
 * the list was received. */
static void keep_races(struct stream *it, const struct message *message)
{
    if (!it->races && (wildcard_count || pending_count))
        it->races = calloc(RACES_MAX, sizeof *it->races);
    for (int i = 0; i < wildcard_count && i < WILDCARDS_MAX && it->races; i++) {
        struct wildcard *one = &wildcards[i];
        int fits = one->comm == it->comm && (one->tag == it->tag || one->tag == MPI_ANY_TAG) && one->peer != it->peer;
        /* Nothing of what this rank has done since could have had the message sent. */
        int is_alone = message->is_alone && one->activity == activity;
        if (fits && !may_say(one, it, message->site) && it->last < one->order && it->race_count < RACES_MAX && it->total < TIMES_MAX)
            it->races[it->race_count++] = (struct race){one->time, one->site, message->site, it->total, 0, one->peer, one->function, message->function, is_alone};
    }
    /* Which source this one names cannot depend on a receive that is not complete. */
    for (int i = 0; i < pending_count && it->races; i++) {
        const struct pending *one = &pending[i];
        int fits = one->is_started && one->is_receive && one->peer == MPI_ANY_SOURCE && one->name == it->comm && (one->tag == it->tag || one->tag == MPI_ANY_TAG);
        if (fits && it->last < one->order && it->race_count < RACES_MAX && it->total < TIMES_MAX) {
            it->races[it->race_count++] = (struct race){one->message.time, one->message.site, message->site, it->total, one->order, NOBODY, one->message.function, message->function, message->is_alone};
            open_race_count++;
        }
    }
}

/* A receive from any source has got the message of this one. */
static void settle_races(const struct pending *one, int source)
{
    for (size_t slot = 0; slot < 4096 && open_race_count; slot++)
        for (struct stream *it = streams[slot]; it; it = it->next)
            for (int i = 0; i < it->race_count; i++)
                if (it->races[i].order == one->order) {
                    it->races[i].order = 0;
                    it->races[i].peer = source == it->peer ? NOBODY : source;
                    it->races[i].is_alone &= one->activity == activity;
                    open_race_count--;
                }
}

static int is_same(const struct message *a, const struct message *b)
{
    return a->bytes == b->bytes && a->signature.hash == b->signature.hash && a->signature.elements == b->signature.elements &&
           a->signature.basic == b->signature.basic && a->signature.is_known == b->signature.is_known && a->is_ready == b->is_ready;
}

/* Adds a message; `at` is its place among the receives of this rank, 0 where it is not known. Under the lock. */
static void add_message(MPI_Comm comm, int is_receive, int peer, int tag, struct message message, uint64_t at)
{
    struct sequence *named = sequence_of(COMMUNICATOR, HANDLE(comm));
    struct stream *it = named && !unmatched ? stream_of(comm, named->name, is_receive, peer, tag) : NULL;
    if (!it)
        return;
    struct message *last = it->kept ? &it->runs[it->kept - 1] : NULL;
    if (tag >= 0 && it->total < TIMES_MAX)
        keep_time(it, is_receive ? message.time : now());
    if (is_receive && tag >= 0 && !message.is_any)
        keep_races(it, &message);
    /* A receive that names the source could have got this message in place of the one that it has got. */
    for (int i = 0; message.is_any && i < it->race_count; i++)
        open_race_count -= it->races[i].order != 0;
    it->race_count = message.is_any ? 0 : it->race_count;
    it->total++;
    /* Of many lines one is told in place of the others. */
    if (last && is_same(last, &message) && (last->site == message.site || it->kept >= RUNS_MAX / 2) && (it->kept == 1 || at > it->last)) {
        last->count++;
    } else if (it->total > 1 && at < it->last) {
        it->is_broken = 1;
    } else if (it->kept < RUNS_MAX) {
        if (it->kept == it->room) {
            struct message *more = realloc(it->runs, (it->room ? 4 * it->room : 4) * sizeof *more);
            it->room = more ? it->room ? 4 * it->room : 4 : it->room;
            it->runs = more ? more : it->runs;
        }
        message.count = 1;
        if (it->kept < it->room)
            it->runs[it->kept++] = message;
        else
            it->is_broken = 1;
    } else {
        /* The elements that follow are counted, not compared. */
        it->is_broken = 1;
    }
    it->last = at > it->last ? at : it->last;
}

static int is_matched(void)
{
    /* Of several threads nobody knows whose message is the first; what functions of the program do that MPI calls is not seen. */
    if (depth != 1 || !pthread_equal(pthread_self(), main_thread))
        unmatched = 1;
    return !unmatched;
}

static struct message message_of(struct call *call, int function, long long count, MPI_Datatype type)
{
    void *place = site(call);
    return (struct message){.signature = signature_of(count, type), .bytes = bytes_of(count, type), .site = (uintptr_t)place, .count = 1, .time = call->time, .function = function, .is_ready = call->is_ready};
}

static void sent(struct call *call, int function, MPI_Comm comm, int dest, int tag, long long count, MPI_Datatype type)
{
    if (dest < 0 || !is_matched())
        return;
    struct message message = message_of(call, function, count, type);
    pthread_mutex_lock(&messages_lock);
    add_message(comm, 0, dest, tag, message, ++order);
    pthread_mutex_unlock(&messages_lock);
}

/* A receive that is complete. A message that was matched before, by a probe, has no place. */
static void received(struct call *call, int function, MPI_Comm comm, int source, int tag, const MPI_Status *status, int is_ignored, const void *buffer, long long count, MPI_Datatype type)
{
    if (status->MPI_SOURCE < 0 || status->MPI_TAG < 0 || !is_matched())
        return;
    struct message message = message_of(call, function, count, type);
    /* Whom the program asks next may depend on the status. */
    struct sequence *named = source == MPI_ANY_SOURCE && is_ignored ? sequence_of(COMMUNICATOR, HANDLE(comm)) : NULL;
    message.is_any = source == MPI_ANY_SOURCE;
    message.is_alone = !strcmp(call->name, "MPI_Recv") || !strcmp(call->name, "MPI_Recv_c");
    struct content own = {0};
    if (named || (wildcard_count && source != MPI_ANY_SOURCE))
        own = content_of(memory_of(buffer, count, type), status);
    pthread_mutex_lock(&messages_lock);
    content = own;
    add_message(comm, 1, status->MPI_SOURCE, status->MPI_TAG, message, ++order);
    if (source == MPI_ANY_SOURCE && !is_ignored)
        wildcard_count = 0;
    if (named)
        wildcards[wildcard_count++ % WILDCARDS_MAX] = (struct wildcard){named->name, order, now(), message.site, activity, status->MPI_SOURCE, tag, function, own};
    pthread_mutex_unlock(&messages_lock);
}

/* The program knows who has sent: so whom it names next is no error. */
static void forget_wildcards(int source)
{
    pthread_mutex_lock(&messages_lock);
    if (source == MPI_ANY_SOURCE)
        wildcard_count = 0;
    pthread_mutex_unlock(&messages_lock);
}

#define pre_Probe(call, source, tag, comm, status) forget_wildcards(source)
#define pre_Iprobe(call, source, tag, comm, flag, status) forget_wildcards(source)

static uint64_t name_of(MPI_Comm comm)
{
    struct sequence *it = sequence_of(COMMUNICATOR, HANDLE(comm));
    return it ? it->name : 0;
}

/* The message of a request, whose communicator may be gone by now. */
static void add_pending(const struct pending *it, int peer, int tag)
{
    int is_there = it->comm == MPI_COMM_WORLD || look_up(COMMUNICATOR, HANDLE(it->comm)).life == LIVE;
    if (!it->name)
        return;
    if (is_there && name_of(it->comm) == it->name)
        add_message(it->comm, it->is_receive, peer, tag, it->message, it->order);
    else
        unmatched = 1;
}

/* The part that a collective operation sends to one rank or receives from it: each must be as long as the other side says. Under the tag IS_PAIR. */
static void pair_as(struct call *call, int tag, int function, MPI_Comm comm, int is_receive, int peer, long long count, MPI_Datatype type)
{
    if (peer < 0 || !is_matched())
        return;
    struct message message = message_of(call, function, count, type);
    pthread_mutex_lock(&messages_lock);
    add_message(comm, is_receive, peer, tag, message, ++order);
    pthread_mutex_unlock(&messages_lock);
}

static void pair_with(struct call *call, int function, MPI_Comm comm, int is_receive, int peer, long long count, MPI_Datatype type)
{
    pair_as(call, IS_PAIR, function, comm, is_receive, peer, count, type);
}

/* The edges of a rank in a distributed graph: each is one of the rank at its other end, in the same call. The number of the call stands in
 * place of the number of bytes. */
static void edges(struct call *call, int function, MPI_Comm comm, int sources, const int *source, int targets, const int *target)
{
    const struct sequence *named = sequence_of(COMMUNICATOR, HANDLE(comm));
    long long number = named ? (long long)named->count : 0;
    for (int i = 0; i < sources; i++)
        pair_as(call, IS_EDGE, function, comm, 1, source[i], number, MPI_BYTE);
    for (int i = 0; i < targets; i++)
        pair_as(call, IS_EDGE, function, comm, 0, target[i], number, MPI_BYTE);
}

/* All members of a group that makes a communicator name the same group. */
static void members(struct call *call, int function, MPI_Comm comm, MPI_Group group)
{
    int count = 0, own = MPI_UNDEFINED, numbers[PAIRED_MAX], ranks[PAIRED_MAX];
    MPI_Group whole;
    PMPI_Group_size(group, &count);
    PMPI_Group_rank(group, &own);
    if (own == MPI_UNDEFINED || count > PAIRED_MAX || is_inter(comm) || PMPI_Comm_group(comm, &whole))
        return;
    for (int i = 0; i < count; i++)
        numbers[i] = i;
    PMPI_Group_translate_ranks(group, count, numbers, whole, ranks);
    PMPI_Group_free(&whole);
    edges(call, function, comm, count, ranks, count, ranks);
}

static void pair(struct call *call, int function, MPI_Comm comm, int is_receive, int peer, long long count, MPI_Datatype type)
{
    if (!is_inter(comm) && group_size(comm) <= PAIRED_MAX)
        pair_with(call, function, comm, is_receive, peer, count, type);
}

/* The same for all ranks; each has a type of its own where there are `types`. */
static void pairs(struct call *call, int function, MPI_Comm comm, int is_receive, struct list counts, const MPI_Datatype *types, MPI_Datatype type)
{
    int size = group_size(comm);
    for (int i = 0; i < size && size <= PAIRED_MAX; i++)
        pair(call, function, comm, is_receive, i, number_at(counts, i), types ? types[i] : type);
}

static void keep_pending(struct pending it)
{
    for (int i = 0; i < pending_count; i++)
        unmatched |= pending[i].request == it.request;
    if (pending_count < PENDING_MAX)
        pending[pending_count++] = it;
    else
        unmatched = 1;
}

/* A receive is posted, by a request. */
static void posted(struct call *call, int function, MPI_Request request, MPI_Comm comm, int source, int tag, const void *buffer, long long count, MPI_Datatype type)
{
    if (source == MPI_PROC_NULL || !is_matched())
        return;
    struct message message = message_of(call, function, count, type);
    pthread_mutex_lock(&messages_lock);
    message.is_any = source == MPI_ANY_SOURCE;
    message.is_alone = 1;
    /* What it will receive is not known. */
    content = (struct content){0, UINT64_MAX};
    if (source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG)
        add_message(comm, 1, source, tag, message, ++order);
    else
        keep_pending((struct pending){HANDLE(request), ++order, name_of(comm), activity, comm, message, memory_of(buffer, count, type), NULL, source, tag, 1, 0, 1});
    pthread_mutex_unlock(&messages_lock);
}

/* A request is made that can be started. */
static void prepared(struct call *call, int function, MPI_Request request, MPI_Comm comm, int is_receive, int peer, int tag, const void *buffer, long long count, MPI_Datatype type)
{
    if (peer == MPI_PROC_NULL || !is_matched())
        return;
    struct message message = message_of(call, function, count, type);
    pthread_mutex_lock(&messages_lock);
    keep_pending((struct pending){HANDLE(request), 0, name_of(comm), 0, comm, message, memory_of(buffer, count, type), call->name, peer, tag, is_receive, 1, 0});
    pthread_mutex_unlock(&messages_lock);
}

static struct pending *pending_of(uint64_t request);

/* A probe has matched a message: what receives it says later of what type it is. Its handle is none of a request. */
static void probed(MPI_Comm comm, MPI_Message message, const MPI_Status *status)
{
    if (message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC || status->MPI_SOURCE < 0 || !is_matched())
        return;
    pthread_mutex_lock(&messages_lock);
    keep_pending((struct pending){.request = ~HANDLE(message), .order = ++order, .name = name_of(comm), .comm = comm, .peer = status->MPI_SOURCE, .tag = status->MPI_TAG, .is_receive = 1});
    pthread_mutex_unlock(&messages_lock);
}

static void received_match(struct call *call, int function, uint64_t message, long long count, MPI_Datatype type)
{
    if (!is_matched())
        return;
    struct message made = message_of(call, function, count, type);
    pthread_mutex_lock(&messages_lock);
    struct pending *it = pending_of(~message);
    if (it) {
        it->message = made;
        add_pending(it, it->peer, it->tag);
        *it = pending[--pending_count];
    }
    pthread_mutex_unlock(&messages_lock);
}

static struct pending *pending_of(uint64_t request)
{
    for (int i = 0; i < pending_count; i++)
        if (pending[i].request == request)
            return &pending[i];
    return NULL;
}

static void start_pending(struct call *call, uint64_t request)
{
    if (!pending_count || !is_matched())
        return;
    pthread_mutex_lock(&messages_lock);
    struct pending *it = pending_of(request), copy = {0};
    if (it && it->is_persistent) {
        copy = *it;
        it->order = ++order;
        it->activity = activity;
        it->is_started = 1;
        it->message.site = (uintptr_t)site(call);
        it->message.time = now();
        if (!it->is_receive || (it->peer != MPI_ANY_SOURCE && it->tag != MPI_ANY_TAG))
            add_pending(it, it->peer, it->tag);
    }
    pthread_mutex_unlock(&messages_lock);
    if (!copy.memory.start)
        return;
    check_open(call, copy.is_receive ? "the receive buffer" : "the send buffer", copy.memory, copy.is_receive);
    open_memory(call, request, copy.memory, copy.is_receive);
}

/* A request is complete. Without a status nobody knows whose message it was. */
static void complete_pending(uint64_t request, const MPI_Status *status)
{
    if (!pending_count)
        return;
    pthread_mutex_lock(&messages_lock);
    struct pending *it = pending_of(request);
    if (it && it->is_started) {
        it->is_started = 0;
        if (it->is_receive && (it->peer == MPI_ANY_SOURCE || it->tag == MPI_ANY_TAG)) {
            int is_ignored = current && current->is_ignored && it->peer == MPI_ANY_SOURCE && it->name;
            wildcard_count = is_ignored ? wildcard_count : 0;
            settle_races(it, status && status->MPI_SOURCE >= 0 ? status->MPI_SOURCE : NOBODY);
            if (!status)
                unmatched = 1;
            else if (status->MPI_SOURCE >= 0) {
                add_pending(it, status->MPI_SOURCE, status->MPI_TAG);
                /* When it has got its message is not known: not before it began. */
                if (is_ignored && it->message.time)
                    wildcards[wildcard_count++ % WILDCARDS_MAX] = (struct wildcard){it->name, it->order, it->message.time, it->message.site, it->activity, status->MPI_SOURCE, it->tag,
                                                                                    it->message.function, content_of(it->memory, status)};
            }
        }
        if (!it->is_persistent)
            *it = pending[--pending_count];
    }
    pthread_mutex_unlock(&messages_lock);
}

static void free_pending(uint64_t request)
{
    pthread_mutex_lock(&messages_lock);
    struct pending *it = pending_count ? pending_of(request) : NULL;
    if (it) {
        unmatched |= it->is_started && it->is_receive;
        *it = pending[--pending_count];
    }
    pthread_mutex_unlock(&messages_lock);
}
