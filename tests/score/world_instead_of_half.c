// score: ranks=4 cause=communicator guilty=3 calls=3:MPI_Allreduce
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &half);
    int x = me, sum = 0;
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, me == 3 ? MPI_COMM_WORLD : half);
    MPI_Finalize();
    return 0;
}
