// score: ranks=5 cause=call_ordering guilty=0,3 calls=0:MPI_Ssend,3:MPI_Recv
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    double part[3] = {me, me, me}, all[3];
    if (me == 0)
        MPI_Ssend(part, 3, MPI_DOUBLE, 3, 7, MPI_COMM_WORLD);
    if (me == 3)
        MPI_Recv(part, 3, MPI_DOUBLE, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(part, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
