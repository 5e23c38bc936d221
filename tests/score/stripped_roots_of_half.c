// score: ranks=5 cause=root guilty=1,3 calls=1:MPI_Scatter,3:MPI_Scatter flags=-O2,-s
#include <mpi.h>
int main(int argc, char **argv) {
    int me, mine, in_half, parts[2] = {1, 2};
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Comm_rank(half, &in_half);
    if (me % 2)
        /* Each of the two takes the other one for the root. */
        MPI_Scatter(parts, 1, MPI_INT, &mine, 1, MPI_INT, 1 - in_half, half);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
