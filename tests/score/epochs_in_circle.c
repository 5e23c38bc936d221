// score: ranks=2 cause=rma guilty=0-1 calls=0:MPI_Win_wait,1:MPI_Win_wait
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
    int other = 1 - me;
    MPI_Group_incl(all, 1, &other, &others);
    MPI_Win_post(others, 0, win);
    MPI_Win_wait(win);
    MPI_Win_start(others, 0, win);
    MPI_Put(&x, 1, MPI_INT, other, 0, 1, MPI_INT, win);
    MPI_Win_complete(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
