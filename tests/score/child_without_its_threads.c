// score: ranks=3 cause=resource|thread guilty=1 calls=1:waitpid
#include <mpi.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;

static void *keep(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&taken);
    for (;;) pause();
    return unused;
}

int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 1) {
        pthread_t thread;
        pthread_barrier_init(&taken, NULL, 2);
        pthread_create(&thread, NULL, keep, NULL);
        pthread_barrier_wait(&taken);
        pid_t child = fork();
        if (child == 0) {
            /* The thread that has it is not in the child. */
            pthread_mutex_lock(&lock);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
