// score: ranks=2 cause=root guilty=0-1 calls=0:MPI_Bcast,1:MPI_Bcast
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = me;
    MPI_Bcast(&x, 1, MPI_INT, 1 - me, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
