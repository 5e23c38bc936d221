// score: ranks=4 cause=root guilty=0,2-3 calls=0:MPI_Bcast,2:MPI_Bcast
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    static int data[100000];
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < 2 ? 2 : 0, 1, &both);
    int root = me >= 2 ? 1 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(data, 100000, MPI_INT, root, both);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
