// score: ranks=3 cause=communicator guilty=2 calls=2:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm one, two;
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &two);
    MPI_Barrier(me == 2 ? two : one);
    MPI_Barrier(me == 2 ? one : two);
    MPI_Finalize();
    return 0;
}
