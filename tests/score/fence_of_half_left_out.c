// score: ranks=4 cause=rma guilty=2-3 calls=2:MPI_Win_fence,3:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &half);
    MPI_Win win;
    static int box[4];
    /* One half only: two windows that are made at once are a race of Open MPI 4.1 for a file. */
    if (me >= 2) {
        MPI_Win_create(box, sizeof box, sizeof(int), MPI_INFO_NULL, half, &win);
        MPI_Win_fence(0, win);
        if (me != 3) MPI_Win_fence(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me >= 2) MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
