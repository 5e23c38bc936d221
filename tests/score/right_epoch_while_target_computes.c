// score: ranks=4 cause=none guilty= calls=
#include <mpi.h>
static int me, size;
static volatile int never;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win win;
    int *box, x = 5;
    MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &box, &win);
    MPI_Group all, others;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int targets[2] = {1, 2}, origin = 0;
    if (me == 0) {
        MPI_Group_incl(all, 2, targets, &others);
        MPI_Win_start(others, 0, win);
        MPI_Put(&x, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Put(&x, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
        MPI_Win_complete(win);
    } else if (me < 3) {
        double y = 1;
        if (me == 2)
            for (long i = 0; !never; i++)
                y = y * 1.0000001 + 1e-9;
        MPI_Group_incl(all, 1, &origin, &others);
        MPI_Win_post(others, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
