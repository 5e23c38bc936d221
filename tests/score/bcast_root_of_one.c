// score: ranks=4 cause=root guilty=2|1-2|0,2 calls=2:MPI_Bcast mpi=openmpi
#include <mpi.h>
int main(int argc, char **argv) {
    int me, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    /* Rank 2 names another root than the others, which have gone on. */
    MPI_Bcast(&x, 1, MPI_INT, me == 2 ? 1 : 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
