// score: ranks=3 cause=thread guilty=0 calls=
#include <condition_variable>
#include <mpi.h>
#include <mutex>
#include <thread>

static std::mutex mutex;
static std::condition_variable changed;
static bool ready = false;

int main(int argc, char **argv) {
    int me, got;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) {
        /* It notifies, and leaves out what it notifies of. */
        std::thread other([] { changed.notify_all(); });
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return ready; });
        lock.unlock();
        other.join();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
