// score: ranks=3 cause=thread guilty=1 calls=
#include <mpi.h>
#include <mutex>

static std::once_flag flag;
static int made = 0;

static void make() {
    made++;
    if (made < 3) std::call_once(flag, make);
}

int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 1) std::call_once(flag, make);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
