// score: ranks=3 cause=polling|rma guilty=2 calls=
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int me, *own, seen = 0;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    *own = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    while (me == 2 && seen != 1) {
        MPI_Fetch_and_op(&me, &seen, MPI_INT, 0, 0, MPI_NO_OP, window);
        MPI_Win_flush(0, window);
        usleep(100);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
