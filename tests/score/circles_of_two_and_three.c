// score: ranks=5 cause=call_ordering guilty=0-4 calls=0:MPI_Recv,4:MPI_Recv
#include <mpi.h>
int main(int argc, char **argv) {
    int me, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    int from = me < 2 ? 1 - me : 2 + (me - 1) % 3;
    int to = me < 2 ? 1 - me : 2 + me % 3;
    MPI_Recv(&got, 1, MPI_INT, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&me, 1, MPI_INT, to, 4, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
