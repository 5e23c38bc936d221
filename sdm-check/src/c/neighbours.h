/* Messages between neighbours in a topology: each must get as much as the other gives. */
struct neighbours { int count; int *ranks; };

static struct neighbours room_for(int count)
{
    struct neighbours it = {count, calloc(count + 1, sizeof(int))};
    if (!it.ranks) {
        /* Others know of messages that are not known here. */
        unmatched = 1;
        it.count = 0;
    }
    return it;
}

static struct neighbours cartesian_neighbours(MPI_Comm comm)
{
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    struct neighbours it = room_for(2 * dimensions);
    for (int i = 0; 2 * i < it.count; i++)
        PMPI_Cart_shift(comm, i, 1, &it.ranks[2 * i], &it.ranks[2 * i + 1]);
    return it;
}

static struct neighbours graph_neighbours(MPI_Comm comm)
{
    int rank, count = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    struct neighbours it = room_for(count);
    PMPI_Graph_neighbors(comm, rank, it.count, it.ranks);
    return it;
}

static struct neighbours distributed_neighbours(MPI_Comm comm, int is_receive)
{
    int in = 0, out = 0, weighted;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    struct neighbours sources = room_for(in), targets = room_for(out), weights = room_for(in + out);
    if (sources.ranks && targets.ranks && weights.ranks)
        PMPI_Dist_graph_neighbors(comm, in, sources.ranks, weights.ranks, out, targets.ranks, weights.ranks + in);
    free(weights.ranks);
    free(is_receive ? targets.ranks : sources.ranks);
    return is_receive ? sources : targets;
}

/* Parts that this rank sends to or receives from its neighbours: each has a count and a type of its own where there are `counts` and `types`.
 * Which of these is that of which message is not certain between two ranks that are neighbours twice. */
static void pair_neighbours(struct call *call, int function, MPI_Comm comm, int is_receive, struct list counts, long long count, const MPI_Datatype *types, MPI_Datatype type)
{
    int topology = MPI_UNDEFINED;
    if (own_world == MPI_COMM_NULL || !is_matched())
        return;
    PMPI_Topo_test(comm, &topology);
    struct neighbours all = topology == MPI_CART ? cartesian_neighbours(comm) : topology == MPI_GRAPH ? graph_neighbours(comm) : topology == MPI_DIST_GRAPH ? distributed_neighbours(comm, is_receive) : room_for(0);
    for (int i = 0; i < all.count; i++) {
        int is_twice = 0;
        for (int j = 0; j < all.count && counts.values; j++)
            is_twice |= j != i && all.ranks[j] == all.ranks[i];
        if (!is_twice)
            pair_with(call, function, comm, is_receive, all.ranks[i], counts.values ? number_at(counts, i) : count, types ? types[i] : type);
    }
    free(all.ranks);
}
