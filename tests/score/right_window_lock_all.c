// score: ranks=3 cause=none guilty= calls=
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win win;
    static int box[4];
    MPI_Win_create(box, sizeof box, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    int x = me;
    for (;;) {
        MPI_Win_lock_all(0, win);
        MPI_Put(&x, 1, MPI_INT, (me + 1) % size, me, 1, MPI_INT, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Finalize();
    return 0;
}
