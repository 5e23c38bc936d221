// score: ranks=3 cause=count guilty=1-2 calls=1:MPI_Barrier,2:MPI_Alltoallv mpi=mpich
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    int to[3] = {2, 2, 2}, from[3] = {2, 2, 2}, places[3] = {0, 2, 4}, in[6] = {0}, out[6];
    if (me == 1) to[2] = 0;
    MPI_Alltoallv(in, to, places, MPI_INT, out, from, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
