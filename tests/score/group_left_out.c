// score: ranks=5 cause=call_ordering guilty=2 calls=2:MPI_Barrier
#include <mpi.h>
static int me, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Group all, some;
    MPI_Comm part;
    int ranks[3] = {0, 2, 4};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 3, ranks, &some);
    if (me == 0 || me == 4) MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &part);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
