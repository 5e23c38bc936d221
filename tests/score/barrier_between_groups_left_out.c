// score: ranks=4 cause=call_ordering guilty=3 calls=3:MPI_Finalize
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < 2 ? 2 : 0, 7, &both);
    MPI_Barrier(both);
    if (me != 3) MPI_Barrier(both);
    MPI_Finalize();
    return 0;
}
