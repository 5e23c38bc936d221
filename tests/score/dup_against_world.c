// score: ranks=2 cause=communicator guilty=0-1 calls=0:MPI_Barrier,1:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (me == 0) MPI_Barrier(MPI_COMM_WORLD);
    else MPI_Barrier(copy);
    MPI_Finalize();
    return 0;
}
