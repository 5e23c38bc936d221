// score: ranks=3 cause=rma guilty=0-1 calls=1:MPI_Win_wait
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    int memory = 0, peer = me == 0 ? 1 : 2;
    MPI_Win window;
    MPI_Group all, group;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &peer, &group);
    if (me == 0) {
        MPI_Win_start(group, 0, window);
        MPI_Put(&me, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
    }
    if (me == 1) {
        MPI_Win_post(group, 0, window);
        MPI_Win_wait(window);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
