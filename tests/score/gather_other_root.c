// score: ranks=3 cause=root guilty=2 calls=2:MPI_Gather
#include <mpi.h>
int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double part[1 << 18], all[3 << 18];
    MPI_Gather(part, 1 << 18, MPI_DOUBLE, all, 1 << 18, MPI_DOUBLE, me == 2 ? 1 : 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
