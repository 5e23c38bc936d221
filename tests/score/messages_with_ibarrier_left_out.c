// score: ranks=4 cause=call_ordering guilty=1 calls=1:MPI_Allreduce
#include <mpi.h>

// One rank leaves out a step in which the others wait for messages and for a barrier at once.
int main(int argc, char **argv) {
    MPI_Request requests[3];
    int rank, size, in, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != 1) {
        MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 6, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 6, MPI_COMM_WORLD, &requests[1]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
}
