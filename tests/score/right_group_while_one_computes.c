// score: ranks=4 cause=none guilty= calls=
#include <mpi.h>
static int me, size;
static volatile int never;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Group all, some;
    MPI_Comm part;
    int ranks[2] = {0, 2};
    double y = 1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, ranks, &some);
    if (me == 2)
        for (long i = 0; !never; i++)
            y = y * 1.0000001 + 1e-9;
    if (me % 2 == 0) MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &part);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
