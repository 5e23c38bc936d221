// score: ranks=6 cause=none guilty= calls=
#include <mpi.h>
static int me, size;
static volatile int never;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm ring;
    int sizes[1] = {size}, around[1] = {1}, in[16], out[16] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, around, 0, &ring);
    double y = 1;
    if (me == 1)
        for (long i = 0; !never; i++)
            y = y * 1.0000001 + 1e-9;
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
