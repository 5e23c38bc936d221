// score: ranks=2 cause=rma guilty=0-1 calls=0:MPI_Barrier,1:MPI_Win_wait
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win win;
    static int box[4];
    MPI_Win_create(box, sizeof box, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Group all, other;
    int rank = 1 - me;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &rank, &other);
    if (me == 0) {
        MPI_Win_start(other, 0, win);
    } else {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
