// score: ranks=4 mpi=openmpi cause=call_ordering guilty=3 calls=3:MPI_Bcast
#include <mpi.h>
int main(int argc, char **argv) {
    int me, x = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 3) MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
