// score: ranks=3 cause=tag guilty=0,2 calls=0:MPI_Recv,2:MPI_Ssend flags=-O3,-s
#include <mpi.h>
int main(int argc, char **argv) {
    int me, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 2)
        MPI_Ssend(&x, 1, MPI_INT, 0, 30 + argc, MPI_COMM_WORLD);
    if (me == 0)
        MPI_Recv(&x, 1, MPI_INT, 2, 40 + argc, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
