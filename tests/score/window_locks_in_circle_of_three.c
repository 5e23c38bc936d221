// score: ranks=3 cause=rma guilty=0-2 calls=
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
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
    MPI_Put(&x, 1, MPI_INT, me, 0, 1, MPI_INT, win);
    MPI_Win_flush(me, win);
    MPI_Barrier(MPI_COMM_WORLD);
    int right = (me + 1) % size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    MPI_Put(&x, 1, MPI_INT, right, 0, 1, MPI_INT, win);
    MPI_Win_unlock(right, win);
    MPI_Win_unlock(me, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
