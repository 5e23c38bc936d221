// score: ranks=2 cause=call_ordering guilty=0-1 calls=0:MPI_Barrier,1:MPI_Allreduce
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = me, sum = 0;
    if (me == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 1) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
