// score: ranks=4 cause=call_ordering guilty=2-3|0-3|0-2 calls=2:MPI_Barrier
#include <mpi.h>
static int me, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, inter;
    int low = me < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, me, &half);
    if (low) MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 2, 5, &inter);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
