// score: ranks=3 cause=resource guilty=2|1-2 calls=2:MPI_Barrier
#include <mpi.h>
#include <pthread.h>
int main(int argc, char **argv) {
    int me, unit;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    pthread_mutex_t *lock;
    MPI_Aint bytes;
    MPI_Win window;
    MPI_Win_allocate_shared(me ? 0 : sizeof *lock, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &lock, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &lock);
    if (me == 0) {
        pthread_mutexattr_t shared;
        pthread_mutexattr_init(&shared);
        pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(lock, &shared);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 2)
        pthread_mutex_lock(lock);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1)
        pthread_mutex_lock(lock);
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_mutex_unlock(lock);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
