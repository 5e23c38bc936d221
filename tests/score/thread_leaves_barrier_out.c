// score: ranks=4 cause=call_ordering guilty=2 calls=2:MPI_Allreduce
#include <mpi.h>
#include <omp.h>
int main(int argc, char **argv) {
    int me, level, sum = 0;
    MPI_Comm own[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
#pragma omp parallel num_threads(2)
    {
        int thread = omp_get_thread_num();
        if (!(me == 2 && thread == 1)) MPI_Barrier(own[thread]);
    }
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
