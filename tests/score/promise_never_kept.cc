// score: ranks=3 cause=thread guilty=1 calls=
#include <future>
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    std::promise<int> promise;
    auto future = promise.get_future();
    if (me != 1) promise.set_value(me);
    int value = future.get();
    MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
