/* At the end both sides of each pair of ranks hold their lists of messages against each other. */

/* Data about a list that two ranks exchange. */
struct parcel { uint64_t comm, total, host; int32_t tag; uint8_t is_receive, is_broken, has_times; uint16_t kept; };

/* Ranks of one host have one clock. */
static uint64_t host_name(void)
{
    static uint64_t name;
    char text[64] = "";
    FILE *file = name ? NULL : fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && fgets(text, sizeof text, file))
        for (char *at = text; *at; at++)
            name = mix(name, (unsigned char)*at);
    if (file)
        fclose(file);
    return name;
}

/* Whether each rank knows its messages. */
static int *knows_messages;

static size_t pack_messages(int world, char *into)
{
    size_t used = 0;
    if (unmatched || !knows_messages[world])
        return 0;
    for (size_t slot = 0; slot < 4096; slot++)
        for (struct stream *it = streams[slot]; it; it = it->next) {
            if (it->world != world)
                continue;
            struct parcel head = {it->comm, it->total, host_name(), it->tag, it->is_receive, it->is_broken, it->times != NULL, it->kept};
            size_t length = it->kept * sizeof *it->runs, times = it->times ? TIMES_MAX * sizeof *it->times : 0;
            if (into) {
                memcpy(into + used, &head, sizeof head);
                memcpy(into + used + sizeof head, it->runs, length);
                if (times)
                    memcpy(into + used + sizeof head + length, it->times, times);
            }
            used += sizeof head + length + times;
        }
    return used;
}

/* The error of a message that was sent so and received so; 0 if none is known. */
static int wrong_message(const struct message *send, const struct message *receive, int is_pair)
{
    struct signature a = send->signature, b = receive->signature;
    if (is_pair)
        return are_unlike(a, send->bytes, b, receive->bytes) ? COLLECTIVES + 3 : 0;
    if (send->bytes > receive->bytes)
        return TRUNCATED;
    if (!a.is_known || !b.is_known || !a.elements || !b.elements)
        return 0;
    if (a.basic >= BASICS_MAX || b.basic >= BASICS_MAX || a.first >= BASICS_MAX || b.first >= BASICS_MAX)
        return 0;
    if (BASICS[a.first].same != BASICS[b.first].same)
        return MESSAGE_TYPES;
    if (a.basic && b.basic)
        return BASICS[a.basic].same != BASICS[b.basic].same ? MESSAGE_TYPES : 0;
    /* The beginning of equal elements has equal ones. */
    if (b.basic)
        return MESSAGE_TYPES;
    return a.elements == b.elements && a.hash != b.hash ? MESSAGE_TYPES : 0;
}

static void tell_message(struct call *call, const struct stream *own, const struct message *mine, const struct message *theirs, int number)
{
    char one[80], other[80], tag[24] = "";
    void *place = (void *)(uintptr_t)mine->site;
    name_signature(mine->signature, mine->bytes, one, sizeof one);
    name_signature(theirs->signature, theirs->bytes, other, sizeof other);
    if (own->tag != IS_PAIR)
        snprintf(tag, sizeof tag, " with tag %d", own->tag);
    if (own->is_receive)
        report(call, number, place, "%s of %s at {%p}, from %d%s, was sent as %s by %s", function_name(mine->function), one, place,
               own->peer, tag, other, function_name(theirs->function));
    else
        report(call, number, place, "%s of %s at {%p}, to %d%s, was received as %s by %s", function_name(mine->function), one, place,
               own->peer, tag, other, function_name(theirs->function));
}

/* A message that was sent before another receive was complete could have been that of this receive. */
static void tell_races(struct call *call, const struct stream *own, const struct parcel *head, const char *times)
{
    for (int i = 0; i < own->race_count && head->has_times && head->host && head->host == host_name(); i++) {
        struct race *it = &own->races[i];
        uint64_t sent_at;
        memcpy(&sent_at, times + it->number * sizeof sent_at, sizeof sent_at);
        void *place = (void *)(uintptr_t)it->site, *other = (void *)(uintptr_t)it->other_site;
        if (it->peer >= 0 && sent_at && (sent_at < it->time || (it->is_alone && !is_known_elsewhere)))
            report(call, RACE, place, "%s from MPI_ANY_SOURCE at {%p} has got a message of %d, and could have got that of %d with tag %d, for which %s at {%p} waits",
                   function_name(it->function), place, it->peer, own->peer, own->tag, function_name(it->other_function), other);
    }
}

/* A ready send was over before its receive began, on a host with one clock. */
static void tell_unready(struct call *call, const struct stream *own, const struct parcel *head, const char *times)
{
    uint64_t end = 0, posted_at;
    if (!own->times || own->is_broken || !head->has_times || !head->host || head->host != host_name())
        return;
    for (int i = 0, run = 0; run < own->kept && i < TIMES_MAX; i++) {
        const struct message *it = &own->runs[run];
        memcpy(&posted_at, times + i * sizeof posted_at, sizeof posted_at);
        if (it->is_ready && (uint64_t)i < head->total && own->times[i] < posted_at)
            report(call, UNREADY, (void *)(uintptr_t)it->site, "%s at {%p}, to %d with tag %d, was over before its receive began", function_name(it->function),
                   (void *)(uintptr_t)it->site, own->peer, own->tag);
        if (i + 1u >= end + it->count)
            end += own->runs[run++].count;
    }
}

/* How many edges a call has made, which is given by its number. */
static uint64_t edges_of(const struct message *runs, int count, uint64_t number)
{
    uint64_t found = 0;
    for (int i = 0; i < count; i++)
        found += runs[i].bytes == number ? runs[i].count : 0;
    return found;
}

/* Holds the edges of each call against those of the other side. Calls whose edges were not kept are left out, and ranks whose calls are
 * out of step: their numbers say nothing. */
static void compare_edges(struct call *call, const struct stream *own, const struct parcel *head, const struct message *theirs)
{
    const struct sequence *named = sequence_named(own->comm);
    int kept = head ? head->kept : 0;
    uint64_t last = !head || !head->is_broken ? UINT64_MAX : kept ? theirs[kept - 1].bytes : 0;
    for (int i = 0; named && !named->is_apart && i < own->kept && own->runs[i].bytes <= last; i++) {
        const struct message *it = &own->runs[i];
        const char *name = function_name(it->function);
        void *place = (void *)(uintptr_t)it->site;
        if (it->count <= edges_of(theirs, kept, it->bytes))
            continue;
        if (!strcmp(name, "MPI_Comm_create"))
            report(call, COLLECTIVES + 5, place, "%s at {%p} has a group with %d, whose group is without this rank", name, place, own->peer);
        else
            report(call, COLLECTIVES + 5, place, "%s at {%p} has an edge %s %d that %d does not have", name, place, own->is_receive ? "from" : "to", own->peer, own->peer);
    }
}

/* Holds a list against that of the other side; `theirs` is none where there is no list. */
static void compare_stream(struct call *call, const struct stream *own, const struct parcel *head, const struct message *theirs)
{
    uint64_t total = head ? head->total : 0, left = 0, right = 0;
    int is_broken = own->is_broken || (head && head->is_broken);
    for (int i = 0, j = 0; !is_broken && head && i < own->kept && j < head->kept;) {
        const struct message *mine = &own->runs[i], *other = &theirs[j];
        int number = own->is_receive ? wrong_message(other, mine, own->tag < 0) : wrong_message(mine, other, own->tag < 0);
        if (number) {
            tell_message(call, own, mine, other, number);
            /* Data of collective calls that are out of step say nothing. */
            if (own->tag < 0)
                break;
        }
        uint64_t end = left + mine->count, other_end = right + other->count;
        if (end <= other_end)
            i++, left = end;
        if (other_end <= end)
            j++, right = other_end;
    }
    if (own->total <= total || own->tag == IS_PAIR || own->is_receive)
        return;
    uint64_t before = 0;
    for (int i = 0; i < own->kept; i++) {
        void *place = (void *)(uintptr_t)own->runs[i].site;
        before += own->runs[i].count;
        if (before > total && !own->is_broken) {
            char elements[80];
            name_signature(own->runs[i].signature, own->runs[i].bytes, elements, sizeof elements);
            report(call, LOST, place, "%s of %s at {%p}, to %d with tag %d, was never received", function_name(own->runs[i].function), elements, place, own->peer, own->tag);
        }
    }
}

static void compare_with(struct call *call, int world, const char *got, size_t length)
{
    for (size_t slot = 0; slot < 4096; slot++)
        for (struct stream *own = streams[slot]; own; own = own->next) {
            struct parcel head;
            const struct message *theirs = NULL;
            struct message *copy = NULL;
            if (own->world != world)
                continue;
            for (size_t at = 0, whole; at + sizeof head <= length && !theirs; at += whole) {
                memcpy(&head, got + at, sizeof head);
                whole = sizeof head + head.kept * sizeof *theirs + (head.has_times ? TIMES_MAX * sizeof(uint64_t) : 0);
                if (whole > length - at)
                    break;
                if (head.comm == own->comm && head.tag == own->tag && head.is_receive != own->is_receive)
                    theirs = (const struct message *)(got + at + sizeof head);
            }
            if (theirs && own->is_receive)
                tell_races(call, own, &head, (const char *)theirs + head.kept * sizeof *theirs);
            else if (theirs && own->tag >= 0)
                tell_unready(call, own, &head, (const char *)theirs + head.kept * sizeof *theirs);
            if (theirs && (copy = malloc(head.kept * sizeof *copy + 1)))
                memcpy(copy, theirs, head.kept * sizeof *copy);
            if (!theirs || copy)
                (own->tag == IS_EDGE ? compare_edges : compare_stream)(call, own, theirs ? &head : NULL, copy);
            free(copy);
        }
}

/* Has each rank get what `pack` makes for it, and returns what comes for this one: `got[i]` bytes at `places[i]` from rank i. Null
 * where a rank has no room, on all of them. */
static char *exchange(size_t (*pack)(int world, char *into), int size, int *got, int *places)
{
    int *lengths = calloc(2 * (size_t)size, sizeof *lengths), *own_places = lengths + size, sum = 0, other = 0, is_off = !lengths;
    PMPI_Allreduce(MPI_IN_PLACE, &is_off, 1, MPI_INT, MPI_MAX, own_world);
    if (is_off) {
        free(lengths);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        size_t length = pack(i, NULL);
        is_off |= length > (size_t)(INT32_MAX - sum);
        lengths[i] = is_off ? 0 : length;
        own_places[i] = sum;
        sum += lengths[i];
    }
    PMPI_Alltoall(lengths, 1, MPI_INT, got, 1, MPI_INT, own_world);
    for (int i = 0; i < size; i++) {
        is_off |= got[i] > INT32_MAX - other;
        places[i] = other;
        other += is_off ? 0 : got[i];
    }
    char *out = malloc((size_t)sum + 1), *in = malloc((size_t)other + 1);
    is_off |= !out || !in;
    PMPI_Allreduce(MPI_IN_PLACE, &is_off, 1, MPI_INT, MPI_MAX, own_world);
    for (int i = 0; i < size && !is_off; i++)
        if (lengths[i])
            pack(i, out + own_places[i]);
    if (!is_off)
        PMPI_Alltoallv(out, lengths, own_places, MPI_BYTE, in, got, places, MPI_BYTE, own_world);
    free(out), free(lengths);
    if (is_off)
        free(in);
    return is_off ? NULL : in;
}

/* Holds the messages of all ranks against each other. Each pair of ranks tells each other of its lists; a rank that does not know its
 * messages tells and hears nothing. */
static void compare_messages(struct call *call)
{
    int size, mine = unmatched ? 0 : 1 + is_known_elsewhere, is_off;
    if (own_world == MPI_COMM_NULL)
        return;
    PMPI_Comm_size(own_world, &size);
    int *got = calloc(3 * (size_t)size, sizeof *got), *places = got + size;
    is_off = !got;
    PMPI_Allreduce(MPI_IN_PLACE, &is_off, 1, MPI_INT, MPI_MAX, own_world);
    if (!is_off) {
        knows_messages = got + 2 * size;
        PMPI_Allgather(&mine, 1, MPI_INT, knows_messages, 1, MPI_INT, own_world);
        for (int i = 0; i < size; i++)
            is_known_elsewhere |= knows_messages[i] > 1;
        char *in = exchange(pack_messages, size, got, places);
        for (int i = 0; i < size && in; i++)
            if (mine && knows_messages[i])
                compare_with(call, i, in + places[i], got[i]);
        free(in);
    }
    free(got);
}
