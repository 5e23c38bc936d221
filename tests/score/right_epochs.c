// score: ranks=3 cause=none guilty= calls=
#include <mpi.h>
static int me, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win win;
    static int box[64];
    int x = 5;
    MPI_Win_create(box, sizeof box, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Group all, others;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int targets[2] = {1, 2}, origin = 0;
    if (me == 0)
        MPI_Group_incl(all, 2, targets, &others);
    else
        MPI_Group_incl(all, 1, &origin, &others);
    for (;;) {
        if (me == 0) {
            MPI_Win_start(others, 0, win);
            MPI_Put(&x, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
            MPI_Put(&x, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
            MPI_Win_complete(win);
        } else {
            MPI_Win_post(others, 0, win);
            MPI_Win_wait(win);
        }
    }
    MPI_Finalize();
    return 0;
}
