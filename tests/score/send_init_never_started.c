// score: ranks=3 cause=call_ordering|request guilty=0-1 calls=0:MPI_Wait,1:MPI_Finalize
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x = 0;
    MPI_Request request;
    if (me == 0) {
        MPI_Recv_init(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    } else if (me == 1) {
        MPI_Send_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Finalize();
    return 0;
}
