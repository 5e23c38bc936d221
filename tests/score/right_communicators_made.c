// score: ranks=4 cause=none guilty= calls=
#include <mpi.h>
static int me, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (;;) {
        MPI_Comm half, inter, all;
        int low = me < size / 2;
        MPI_Comm_split(MPI_COMM_WORLD, low, me, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 2 : 0, 5, &inter);
        MPI_Intercomm_merge(inter, low, &all);
        MPI_Comm_free(&all);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    MPI_Finalize();
    return 0;
}
