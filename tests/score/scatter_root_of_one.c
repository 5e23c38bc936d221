// score: ranks=5 cause=root guilty=4|2,4|0,4 calls=4:MPI_Scatter mpi=openmpi
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size, mine, parts[5] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* The last rank takes the middle one for the root. */
    int root = me == size - 1 ? size / 2 : 0;
    MPI_Scatter(parts, 1, MPI_INT, &mine, 1, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
