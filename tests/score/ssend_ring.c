// score: ranks=3 cause=call_ordering guilty=0-2 calls=0:MPI_Ssend,1:MPI_Ssend,2:MPI_Ssend
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int in = 0, out = me;
    MPI_Ssend(&out, 1, MPI_INT, (me + 1) % size, 0, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, (me + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
