// score: ranks=3 cause=communicator guilty=1 calls=1:MPI_Allreduce
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm copy, used;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    used = me == 1 ? MPI_COMM_WORLD : copy;
    int x = me, sum = 0;
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, used);
    MPI_Finalize();
    return 0;
}
