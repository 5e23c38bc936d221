// score: ranks=2 cause=call_ordering guilty=0-1 calls=0:MPI_Recv,1:MPI_Finalize
#include <mpi.h>
#include <pthread.h>
static void *receive(void *unused) {
    int x;
    (void)unused;
    MPI_Recv(&x, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
int main(int argc, char **argv) {
    int me, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) {
        pthread_t thread;
        pthread_create(&thread, 0, receive, 0);
        pthread_join(thread, 0);
    }
    MPI_Finalize();
    return 0;
}
