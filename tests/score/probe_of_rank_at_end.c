// score: ranks=3 cause=call_ordering guilty=0-1 calls=0:MPI_Finalize,1:MPI_Probe
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Status status;
    if (me == 1) MPI_Probe(0, 4, MPI_COMM_WORLD, &status);
    MPI_Finalize();
    return 0;
}
