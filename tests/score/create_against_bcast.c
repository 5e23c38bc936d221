// score: ranks=6 cause=call_ordering guilty=4-5 calls=4:MPI_Bcast,5:MPI_Bcast mpi=mpich
#include <mpi.h>
int main(int argc, char **argv) {
    int me, seed = 1, four[] = {0, 1, 2, 3};
    MPI_Group all, some;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 4, four, &some);
    if (me < 4) MPI_Comm_create(MPI_COMM_WORLD, some, &made);
    MPI_Bcast(&seed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    MPI_Finalize();
    return 0;
}
