// score: ranks=4 cause=call_ordering guilty=2-3 calls=2:MPI_Waitall,3:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm row;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &row);
    int x = me, sum = 0;
    MPI_Request request;
    if (me != 3) {
        MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, row, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
