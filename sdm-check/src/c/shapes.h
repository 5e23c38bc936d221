/* Objects with parts: buffers of several ranks, datatypes, topologies, groups, and partitioned messages. */

/* One side of a collective call: a part for each rank, or one for all where there are no counts. */
struct buffer_side { const void *buffer; long long count; struct list counts, places; const MPI_Datatype *types; MPI_Datatype type; };

static struct extent part_of(const struct buffer_side *it, int at)
{
    MPI_Datatype type = it->types ? it->types[at] : it->type;
    MPI_Aint low, unit = 1;
    if (!it->counts.values)
        return memory_of(it->buffer, it->count, type);
    if (number_at(it->counts, at) <= 0 || type == MPI_DATATYPE_NULL || (!it->types && PMPI_Type_get_extent(type, &low, &unit)))
        return (struct extent){0};
    /* Derived types may say all of the place. */
    return memory_of(it->buffer ? (const char *)it->buffer + number_at(it->places, at) * unit : NULL, number_at(it->counts, at), type);
}

/* Parts that are received must not overlap each other, nor what is sent. Most have their places in order. */
static void check_parts(struct call *call, MPI_Comm comm, struct buffer_side send, struct buffer_side receive)
{
    struct extent parts[PAIRED_MAX], all = {0}, sent;
    int size = group_size(comm), count = receive.counts.values ? size : 1, in_order = 1;
    if (size > PAIRED_MAX || receive.buffer == MPI_IN_PLACE)
        return;
    for (int i = 0; i < count; i++) {
        parts[i] = part_of(&receive, i);
        if (!parts[i].start)
            continue;
        in_order &= parts[i].start >= all.end;
        all.start = all.start && all.start < parts[i].start ? all.start : parts[i].start;
        all.end = all.end > parts[i].end ? all.end : parts[i].end;
    }
    for (int i = 0; i < count && !in_order; i++)
        for (int j = 0; j < i && !in_order; j++)
            if (parts[i].start && parts[j].start && overlap(parts[i], parts[j])) {
                report(call, SELF_OVERLAP, NULL, "what is received from %d and what is received from %d overlap", j, i);
                in_order = 1;
            }
    if (send.buffer == MPI_IN_PLACE)
        return;
    for (int i = 0; i < (send.counts.values ? size : 1); i++) {
        sent = part_of(&send, i);
        for (int j = 0; sent.start && overlap(sent, all) && j < count; j++)
            if (parts[j].start && overlap(sent, parts[j])) {
                report(call, ALIASED, NULL, "the send buffer and the receive buffer overlap");
                return;
            }
    }
}

/* A datatype that has more bytes than room: MPI would receive some of them into one place. */
static void check_entries(struct call *call, const void *buffer, long long count, MPI_Datatype type, const char *name)
{
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    if (buffer == MPI_IN_PLACE || count <= 0 || type == MPI_DATATYPE_NULL || basic_of(type))
        return;
    if (PMPI_Type_size(type, &size) || PMPI_Type_get_extent(type, &low, &extent) || PMPI_Type_get_true_extent(type, &true_low, &true_extent))
        return;
    if (size > true_extent || size * count > true_extent + (count - 1) * llabs(extent))
        report(call, SELF_OVERLAP, NULL, "elements of %s overlap each other: %d bytes in a room of %lld", name, size, (long long)true_extent);
}

static void pre_Graph_create(struct call *call, MPI_Comm comm, int nodes, const int *index, const int *edges, int reorder, MPI_Comm *made)
{
    (void)comm, (void)reorder, (void)made;
    for (int i = 0, at = 0; i < nodes; i++) {
        if (index[i] < at)
            report(call, NO_SUCH_EDGE, NULL, "index[%d] is %d, less than the one before", i, index[i]);
        for (; at < index[i]; at++)
            if (edges[at] < 0 || edges[at] >= nodes)
                report(call, NO_SUCH_EDGE, NULL, "node %d has an edge to %d, in a graph of %d nodes", i, edges[at], nodes);
    }
}

/* Edges of a distributed graph, of this rank or others. */
static void check_edges(struct call *call, MPI_Comm comm, int count, const int *ranks, const char *name)
{
    int size = group_size(comm);
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= size) {
            report(call, NO_SUCH_EDGE, NULL, "%s[%d] is %d, in a communicator of %d ranks", name, i, ranks[i], size);
            return;
        }
}

static void pre_Dist_graph_create(struct call *call, MPI_Comm comm, int count, const int *sources, const int *degrees, const int *targets, const int *weights, MPI_Info info, int reorder, MPI_Comm *made)
{
    int edges = 0;
    (void)weights, (void)info, (void)reorder, (void)made;
    if (comm == MPI_COMM_NULL || !check_count(call, count, "n") || !check_lengths(call, count, LIST(degrees), "degrees"))
        return;
    for (int i = 0; i < count; i++)
        edges += degrees[i];
    check_edges(call, comm, count, sources, "sources");
    check_edges(call, comm, edges, targets, "destinations");
}

static void pre_Dist_graph_create_adjacent(struct call *call, MPI_Comm comm, int in, const int *sources, const int *in_weights, int out, const int *targets, const int *out_weights, MPI_Info info, int reorder, MPI_Comm *made)
{
    (void)in_weights, (void)out_weights, (void)info, (void)reorder, (void)made;
    if (comm == MPI_COMM_NULL || !check_count(call, in, "indegree") || !check_count(call, out, "outdegree"))
        return;
    check_edges(call, comm, in, sources, "sources");
    check_edges(call, comm, out, targets, "destinations");
}

/* An array over a grid of processes. */
static void check_grid(struct call *call, int size, int rank, int dimensions, struct list sizes, const int *grid)
{
    long long all = 1;
    if (rank < 0 || rank >= size)
        report(call, RANK_RANGE, NULL, "rank is %d, of %d processes", rank, size);
    for (int i = 0; i < dimensions; i++) {
        if (number_at(sizes, i) < 1 || grid[i] < 1) {
            report(call, BAD_PART, NULL, "dimension %d: %lld elements over %d processes", i, number_at(sizes, i), grid[i]);
            return;
        }
        all *= grid[i];
    }
    if (all != size)
        report(call, BAD_PART, NULL, "a grid of %lld processes, of %d", all, size);
}

#define pre_Type_create_darray(call, size, rank, dimensions, sizes, kinds, given, grid, order, old, type) check_grid(call, size, rank, dimensions, LIST(sizes), grid)

static int dimensions_of(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED, count = -1;
    if (comm != MPI_COMM_NULL && !PMPI_Topo_test(comm, &topology) && topology == MPI_CART)
        PMPI_Cartdim_get(comm, &count);
    return count;
}

static void pre_Cart_shift(struct call *call, MPI_Comm comm, int direction, int by, int *source, int *dest)
{
    int count = dimensions_of(comm);
    (void)by, (void)source, (void)dest;
    if (count >= 0 && (direction < 0 || direction >= count))
        report(call, NO_SUCH_EDGE, NULL, "direction is %d, in a topology of %d dimensions", direction, count);
}

/* A place beyond the end of a dimension that is no ring. */
static void pre_Cart_rank(struct call *call, MPI_Comm comm, const int *places, int *rank)
{
    enum { DIMENSIONS_MAX = 32 };
    int sizes[DIMENSIONS_MAX], rings[DIMENSIONS_MAX], own[DIMENSIONS_MAX], count = dimensions_of(comm);
    (void)rank;
    if (count <= 0 || count > DIMENSIONS_MAX || PMPI_Cart_get(comm, count, sizes, rings, own))
        return;
    for (int i = 0; i < count; i++)
        if (!rings[i] && (places[i] < 0 || places[i] >= sizes[i]))
            report(call, NO_SUCH_EDGE, NULL, "coordinate %d is %d, in a dimension of %d that is no ring", i, places[i], sizes[i]);
}

static void pre_Cart_coords(struct call *call, MPI_Comm comm, int rank, int room, int *places)
{
    (void)room, (void)places;
    if (dimensions_of(comm) >= 0 && (rank < 0 || rank >= group_size(comm)))
        report(call, RANK_RANGE, NULL, "rank is %d, in a communicator of %d ranks", rank, group_size(comm));
}

/* Ranks of a group: each is in it, and there once. */
static void check_ranks(struct call *call, MPI_Group group, int count, const int *ranks, int is_twice_fine)
{
    int size = 0;
    if (group == MPI_GROUP_NULL || PMPI_Group_size(group, &size))
        return;
    char *known = calloc(size + 1, 1);
    for (int i = 0; known && i < count; i++) {
        if (is_twice_fine && ranks[i] == MPI_PROC_NULL)
            continue;
        if (ranks[i] < 0 || ranks[i] >= size) {
            report(call, BAD_GROUP, NULL, "ranks[%d] is %d, in a group of %d", i, ranks[i], size);
            break;
        }
        if (known[ranks[i]] && !is_twice_fine) {
            report(call, BAD_GROUP, NULL, "rank %d stands twice", ranks[i]);
            break;
        }
        known[ranks[i]] = 1;
    }
    free(known);
}

#define pre_Group_incl(call, group, n, ranks, made) check_ranks(call, group, n, ranks, 0)
#define pre_Group_excl(call, group, n, ranks, made) check_ranks(call, group, n, ranks, 0)
#define pre_Group_translate_ranks(call, group, n, ranks, other, found) check_ranks(call, group, n, ranks, 1)

/* All ranks of a group are in that of a communicator. */
static void check_within(struct call *call, MPI_Comm comm, MPI_Group group)
{
    MPI_Group whole, both;
    int size = 0, common = 0;
    if (comm == MPI_COMM_NULL || group == MPI_GROUP_NULL || PMPI_Comm_group(comm, &whole))
        return;
    if (!PMPI_Group_intersection(group, whole, &both)) {
        PMPI_Group_size(group, &size);
        PMPI_Group_size(both, &common);
        if (both != MPI_GROUP_EMPTY)
            PMPI_Group_free(&both);
        if (common < size)
            report(call, BAD_GROUP, NULL, "%d of the group's %d ranks are not in the communicator", size - common, size);
    }
    PMPI_Group_free(&whole);
}

#define pre_Comm_create(call, comm, group, made) check_within(call, comm, group)
#define pre_Comm_create_group(call, comm, group, tag, made) check_within(call, comm, group)

/* The datatype of a view consists of its elementary ones. Bytes are the elements of all. */
static void pre_File_set_view(struct call *call, MPI_File file, MPI_Offset from, MPI_Datatype element, MPI_Datatype type, const char *representation, MPI_Info info)
{
    struct signature one = signature_of(1, element), all = signature_of(1, type);
    (void)file, (void)representation, (void)info;
    if (from < 0 && from != MPI_DISPLACEMENT_CURRENT)
        report(call, NEGATIVE_COUNT, NULL, "disp is %lld", (long long)from);
    if (!one.is_known || !all.is_known || !one.elements || !all.elements || (one.basic && BASICS[one.basic].class == OF_BYTES))
        return;
    struct signature same = repeated(one, all.elements / one.elements);
    if (same.elements != all.elements || same.hash != all.hash)
        report(call, WRONG_KIND, NULL, "the filetype does not consist of the etype");
}

static void check_seek(struct call *call, MPI_Offset offset, int whence)
{
    if (whence == MPI_SEEK_SET && offset < 0)
        report(call, NEGATIVE_COUNT, NULL, "offset is %lld", (long long)offset);
}

#define pre_File_seek(call, file, offset, whence) check_seek(call, offset, whence)
#define pre_File_seek_shared(call, file, offset, whence) check_seek(call, offset, whence)

/* Elements that can be compared and exchanged at once. */
static void pre_Compare_and_swap(struct call *call, const void *origin, const void *compare, void *result, MPI_Datatype type, int target, MPI_Aint place, MPI_Win window)
{
    int basic = basic_of(type);
    enum class class = basic ? BASICS[basic].class : NO_OPERAND;
    (void)origin, (void)compare, (void)result, (void)target, (void)place, (void)window;
    if (basic && (class == FLOATING || class == COMPLEX || class == PAIR))
        report(call, BAD_OPERAND, NULL, "it is not defined for %s", BASICS[basic].name);
}

/* Messages that a probe has matched: only their handle receives them. */
static void matched(struct call *call, MPI_Message message)
{
    if (message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC)
        made(call, MATCHED, HANDLE(message), 0);
}

static void unmatch(struct call *call, MPI_Message message, struct extent memory)
{
    if (message == MPI_MESSAGE_NULL)
        report(call, NULL_HANDLE, NULL, "message is MPI_MESSAGE_NULL");
    freed(MATCHED, HANDLE(message));
    check_open(call, "the receive buffer", memory, 1);
}

#define post_Mprobe(call, rc, source, tag, comm, message, status) ((rc) == MPI_SUCCESS ? matched(call, *(message)) : (void)0)
#define post_Improbe(call, rc, source, tag, comm, flag, message, status) ((rc) == MPI_SUCCESS && *(flag) ? matched(call, *(message)) : (void)0)
#define pre_Mrecv(call, buf, count, type, message, status) unmatch(call, *(message), memory_of(buf, count, type))
#define pre_Imrecv(call, buf, count, type, message, request) unmatch(call, *(message), memory_of(buf, count, type))

/* The partitions of a send that are ready: each is so once between two starts. The first one's memory, and the bytes from each to the next. */
enum { PARTED_MAX = 64, PARTITIONS_MAX = 1023 };
static struct parted { uint64_t request, ready[PARTITIONS_MAX / 64 + 1]; int count; struct extent first; MPI_Aint step; } parted[PARTED_MAX];
static int parted_count;

static struct parted *parted_of(uint64_t request)
{
    for (int i = 0; i < parted_count; i++)
        if (parted[i].request == request)
            return &parted[i];
    return NULL;
}

/* A partitioned send is made, or started. */
static void part(MPI_Request request, int count, struct extent first, MPI_Aint step)
{
    pthread_mutex_lock(&open_lock);
    struct parted *it = parted_of(HANDLE(request));
    if (it && count == 0)
        memset(it->ready, 0, sizeof it->ready);
    if (!it && count > 0 && count <= PARTITIONS_MAX && parted_count < PARTED_MAX)
        it = &parted[parted_count++];
    if (it && count > 0)
        *it = (struct parted){.request = HANDLE(request), .count = count, .first = first, .step = step};
    pthread_mutex_unlock(&open_lock);
}

static void part_send(MPI_Request request, const void *buffer, int partitions, MPI_Count count, MPI_Datatype type)
{
    MPI_Aint low, extent = 0;
    PMPI_Type_get_extent(type, &low, &extent);
    part(request, partitions, memory_of(buffer, count, type), count * extent);
}

static void ready(struct call *call, int partition, MPI_Request request)
{
    int count = 0, is_twice = 0;
    struct extent memory = {0};
    pthread_mutex_lock(&open_lock);
    struct parted *it = parted_of(HANDLE(request));
    count = it ? it->count : 0;
    if (it && partition >= 0 && partition < count) {
        is_twice = it->ready[partition / 64] >> partition % 64 & 1;
        it->ready[partition / 64] |= (uint64_t)1 << partition % 64;
        memory = it->first;
        memory.start += memory.start ? partition * it->step : 0;
        memory.end += memory.start ? partition * it->step : 0;
    }
    pthread_mutex_unlock(&open_lock);
    if (count && (partition < 0 || partition >= count))
        report(call, BAD_PARTITION, NULL, "partition %d, of a message of %d", partition, count);
    else if (is_twice)
        report(call, BAD_PARTITION, NULL, "partition %d is ready already", partition);
    else
        open_more(call, request, (uint64_t)(partition + 1) << PARTITION_BIT, memory);
}

#define post_Psend_init(call, rc, buf, partitions, count, type, ...) ((rc) == MPI_SUCCESS ? part_send(*request, buf, partitions, count, type) : (void)0)
#define pre_Pready(call, partition, request) ready(call, partition, request)

static void pre_Pready_range(struct call *call, int low, int high, MPI_Request request)
{
    for (int i = low; i <= high && i - low < PARTITIONS_MAX; i++)
        ready(call, i, request);
}

static void pre_Pready_list(struct call *call, int count, const int *partitions, MPI_Request request)
{
    for (int i = 0; i < count; i++)
        ready(call, partitions[i], request);
}
