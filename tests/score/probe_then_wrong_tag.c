// score: ranks=2 cause=tag guilty=0-1 calls=0:MPI_Barrier,1:MPI_Probe
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = me;
    if (me == 0) MPI_Send(&x, 1, MPI_INT, 1, 11, MPI_COMM_WORLD);
    if (me == 1) {
        MPI_Status status;
        MPI_Probe(0, 12, MPI_COMM_WORLD, &status);
        MPI_Recv(&x, 1, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
