// score: ranks=4 cause=tag guilty=0-3 calls=0:MPI_Waitsome,3:MPI_Waitsome
#include <mpi.h>
enum { TO_LEFT = 1, TO_RIGHT = 2 };

// Each rank expects from its left the tag of messages to the left.
int main(int argc, char **argv) {
    MPI_Request requests[4];
    int rank, size, in[2], out[2] = {0, 1}, at[4], count = 0, left = 4;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int down = (rank + size - 1) % size, up = (rank + 1) % size;
    MPI_Irecv(&in[0], 1, MPI_INT, down, TO_LEFT, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, up, TO_RIGHT, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&out[0], 1, MPI_INT, down, TO_LEFT, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&out[1], 1, MPI_INT, up, TO_RIGHT, MPI_COMM_WORLD, &requests[3]);
    for (; left > 0; left -= count)
        MPI_Waitsome(4, requests, &count, at, MPI_STATUSES_IGNORE);
    MPI_Finalize();
}
