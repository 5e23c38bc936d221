// score: ranks=4 cause=call_ordering|communicator guilty=2 calls=2:MPI_Barrier
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    int all[4], counts[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
    MPI_Comm where = me == 2 ? MPI_COMM_SELF : MPI_COMM_WORLD;
    MPI_Gatherv(&me, 1, MPI_INT, all, counts, places, MPI_INT, 0, where);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
