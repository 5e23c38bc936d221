// score: ranks=3 cause=none guilty= calls=
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = 0;
    MPI_Status status;
    volatile double sum = 0;
    for (;;) {
        if (me == 0) {
            MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
            MPI_Send(&x, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
        } else {
            for (int i = 0; i < 100000000; i++) sum += i;
            MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
