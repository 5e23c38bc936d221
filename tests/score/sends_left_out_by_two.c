// score: ranks=6 cause=call_ordering guilty=3-4|0-1,3-4 calls=3:MPI_Barrier,4:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    int x = me;
    if (me < 3)
        MPI_Recv(&x, 1, MPI_INT, me + 3, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (me == 5)
        MPI_Send(&x, 1, MPI_INT, me - 3, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
