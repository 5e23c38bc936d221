// score: ranks=5 cause=call_ordering guilty=0,4|4 calls=4:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int x = me, next = (me + 1) % n, before = (me + n - 1) % n;
    if (me != 4) MPI_Sendrecv_replace(&x, 1, MPI_INT, next, 1, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
