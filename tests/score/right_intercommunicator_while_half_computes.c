// score: ranks=4 cause=none guilty= calls=
#include <mpi.h>
static int me, size;
static volatile int never;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, inter;
    int low = me < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, me, &half);
    double y = 1;
    if (!low)
        for (long i = 0; !never; i++)
            y = y * 1.0000001 + 1e-9;
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 2 : 0, 5, &inter);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
