// score: ranks=4 cause=root guilty=2|1-2 calls=2:MPI_Waitall mpi=openmpi
#include <mpi.h>

// One rank takes itself for the root of the second of two operations.
int main(int argc, char **argv) {
    MPI_Request requests[2];
    static double part[1000], all[4000];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2; i++)
        MPI_Igather(part, 1000, MPI_DOUBLE, all, 1000, MPI_DOUBLE, i == 1 && rank == 2 ? 2 : i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
