// score: ranks=2 cause=none guilty= calls=
#include <mpi.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int me, done = 0;
    double answer = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) {
        time_t end = time(NULL) + 120;
        for (long i = 1; time(NULL) < end; i++)
            answer += 1.0 / i;
        MPI_Send(&answer, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
    } else {
        MPI_Request request;
        MPI_Irecv(&answer, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, &request);
        while (!done) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            usleep(5000);
        }
    }
    MPI_Finalize();
    return 0;
}
