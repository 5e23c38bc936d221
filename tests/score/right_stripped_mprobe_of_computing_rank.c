// score: ranks=3 cause=none guilty= flags=-O2,-s
#include <mpi.h>
#include <time.h>
int main(int argc, char **argv) {
    int me, x = 0;
    MPI_Message message;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 1) {
        for (time_t end = time(NULL) + 60; time(NULL) < end;)
            x++;
        MPI_Send(&x, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    if (me == 0) {
        MPI_Mprobe(argc, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
