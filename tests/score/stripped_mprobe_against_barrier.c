// score: ranks=4 cause=call_ordering guilty=0,2 calls=0:MPI_Barrier,2:MPI_Mprobe flags=-O2,-s
#include <mpi.h>
int main(int argc, char **argv) {
    int me, count;
    MPI_Message message;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 2) {
        /* Rank 0 has sent nothing. */
        int source = argc - 1;
        MPI_Mprobe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&count, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
