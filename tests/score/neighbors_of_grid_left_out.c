// score: ranks=8 cause=call_ordering guilty=5 calls=5:MPI_Barrier
#include <mpi.h>
static int me, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm grid;
    int sizes[2] = {2, 4}, around[2] = {0, 0}, in[16], out[16] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, around, 0, &grid);
    if (me != 5) MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, grid);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
