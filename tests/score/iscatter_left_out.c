// score: ranks=5 cause=call_ordering|root guilty=0 calls=0:MPI_Finalize
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    static int all[50000], part[10000];
    MPI_Request request;
    if (me != 0) {
        MPI_Iscatter(all, 10000, MPI_INT, part, 10000, MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
