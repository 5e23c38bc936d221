// score: ranks=4 cause=call_ordering guilty=3 calls=3:MPI_Finalize
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm row;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &row);
    int x = me, sum = 0;
    if (me != 3) MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, row);
    MPI_Finalize();
    return 0;
}
