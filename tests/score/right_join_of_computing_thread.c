// score: ranks=3 cause=none guilty= calls=
#include <mpi.h>
#include <pthread.h>
#include <time.h>
static void *computes(void *arg) {
    double *sum = arg;
    time_t end = time(NULL) + 120;
    for (long i = 1; time(NULL) < end; i++)
        *sum += 1.0 / i;
    return arg;
}
int main(int argc, char **argv) {
    int me, provided;
    double sum = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, computes, &sum);
        pthread_join(thread, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
