// score: ranks=3 cause=tag guilty=0-2|0-1 calls=0:MPI_Probe
#include <mpi.h>
#define TAG_RESULT 7
#define TAG_FAILED 8

// One worker reports a failure with a tag that its master does not ask for. All workers wait for more work.
int main(int argc, char **argv) {
    MPI_Status from;
    int rank, size, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; rank == 0 && i < size; i++) {
        MPI_Probe(MPI_ANY_SOURCE, TAG_RESULT, MPI_COMM_WORLD, &from);
        MPI_Recv(&x, 1, MPI_INT, from.MPI_SOURCE, TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank > 0) {
        MPI_Send(&x, 1, MPI_INT, 0, rank == 1 ? TAG_FAILED : TAG_RESULT, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
}
