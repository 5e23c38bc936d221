// score: ranks=3 cause=thread guilty=0 calls=0:pthread_join
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
static sem_t full, empty;
static void *takes(void *arg) {
    sem_wait(&full);
    sem_post(&empty);
    return arg;
}
static void *gives(void *arg) {
    sem_wait(&empty);
    sem_post(&full);
    return arg;
}
int main(int argc, char **argv) {
    int me, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) {
        pthread_t both[2];
        sem_init(&full, 0, 0);
        sem_init(&empty, 0, 0);
        pthread_create(&both[0], NULL, takes, NULL);
        pthread_create(&both[1], NULL, gives, NULL);
        pthread_join(both[0], NULL);
        pthread_join(both[1], NULL);
    }
    MPI_Bcast(&me, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
