// score: ranks=3 cause=thread guilty=2 calls=
#include <mpi.h>
#include <pthread.h>
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *second(void *unused) {
    pthread_mutex_lock(&two);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&one);
    return unused;
}
int main(int argc, char **argv) {
    int me, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 2) {
        pthread_t thread;
        pthread_barrier_init(&both, 0, 2);
        pthread_create(&thread, 0, second, 0);
        pthread_mutex_lock(&one);
        pthread_barrier_wait(&both);
        pthread_mutex_lock(&two);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
