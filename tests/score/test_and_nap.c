// score: ranks=3 cause=polling guilty=2 calls=2:MPI_Test
#include <mpi.h>
#include <time.h>
int main(int argc, char **argv) {
    int me, got = 0, done = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 2) {
        MPI_Request request;
        struct timespec nap = {0, 3000000};
        MPI_Irecv(&got, 1, MPI_INT, 1, 12, MPI_COMM_WORLD, &request);
        do {
            nanosleep(&nap, NULL);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        } while (!done);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
