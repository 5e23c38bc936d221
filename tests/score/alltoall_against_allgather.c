// score: ranks=3 cause=call_ordering guilty=1 calls=1:MPI_Alltoall
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x[3] = {me, me, me}, y[9];
    if (me == 1) MPI_Alltoall(x, 1, MPI_INT, y, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
