// score: ranks=2 cause=tag guilty=0-1 calls=0:MPI_Wait,1:MPI_Wait
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = 0;
    MPI_Request request;
    if (me == 0) MPI_Issend(&x, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &request);
    else MPI_Irecv(&x, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
