// score: ranks=2 cause=tag guilty=0-1 calls=0:MPI_Ssend,1:MPI_Recv
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = 0;
    if (me == 0) MPI_Ssend(&x, 1, MPI_INT, 1, 81, MPI_COMM_WORLD);
    else MPI_Recv(&x, 1, MPI_INT, 0, 80, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
