// score: ranks=3 cause=none guilty= calls=
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = 0;
    for (;;) {
        if (me == 0) MPI_Ssend(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, (me + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me != 0) MPI_Ssend(&x, 1, MPI_INT, (me + 1) % size, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
