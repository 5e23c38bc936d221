// score: ranks=4 cause=none guilty= calls=
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm row, column;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &row);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &column);
    int x = me, sum = 0;
    for (;;) {
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, row);
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, column);
    }
    MPI_Finalize();
    return 0;
}
