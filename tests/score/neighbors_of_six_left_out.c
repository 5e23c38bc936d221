// score: ranks=6 cause=call_ordering guilty=1 calls=1:MPI_Barrier
#include <mpi.h>
static int me, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm ring;
    int sizes[1] = {size}, around[1] = {1}, in[16], out[16] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, around, 0, &ring);
    if (me != 1) MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
