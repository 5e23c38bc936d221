// score: ranks=3 cause=call_ordering guilty=0-2|0,2|1-2|2 calls=2:MPI_Sendrecv
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double in[1 << 18], out[1 << 18];
    int next = (me + 1) % size, before = (me + size - 1) % size;
    if (me == 2) before = next;
    MPI_Sendrecv(out, 1 << 18, MPI_DOUBLE, next, 0, in, 1 << 18, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
