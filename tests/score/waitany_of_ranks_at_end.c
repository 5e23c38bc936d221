// score: ranks=3 cause=call_ordering guilty=0-2 calls=0:MPI_Waitany,1:MPI_Finalize,2:MPI_Finalize
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int x[2], at;
    MPI_Request requests[2];
    if (me == 0) {
        for (int i = 0; i < 2; i++) MPI_Irecv(&x[i], 1, MPI_INT, i + 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitany(2, requests, &at, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
