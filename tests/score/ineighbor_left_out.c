// score: ranks=5 cause=call_ordering guilty=1 calls=1:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int round = 1, both[2];
    MPI_Comm ring;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &round, 0, &ring);
    if (me != 1) MPI_Ineighbor_allgather(&me, 1, MPI_INT, both, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
