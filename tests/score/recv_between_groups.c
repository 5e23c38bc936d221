// score: ranks=4 cause=call_ordering guilty=1,2 calls=1:MPI_Recv,2:MPI_Recv
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < 2 ? 2 : 0, 7, &both);
    int x = me;
    /* Rank 1 of the first group and rank 0 of the second one. */
    if (me == 1 || me == 2) {
        int other = me == 1 ? 0 : 1;
        MPI_Recv(&x, 1, MPI_INT, other, 0, both, MPI_STATUS_IGNORE);
        MPI_Send(&x, 1, MPI_INT, other, 0, both);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
