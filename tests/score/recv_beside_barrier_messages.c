// score: ranks=4 cause=call_ordering guilty=0-1 calls=0:MPI_Barrier,1:MPI_Recv
#include <mpi.h>
int main(int argc, char **argv) {
    int me, x;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    /* Of the barrier that all others are in, the library has sent messages of its own to rank 1. */
    if (me == 1) MPI_Recv(&x, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
