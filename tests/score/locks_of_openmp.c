// score: ranks=3 cause=thread guilty=2 calls=
#include <mpi.h>
#include <omp.h>

static omp_lock_t locks[2];

int main(int argc, char **argv) {
    int me, got;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    omp_init_lock(&locks[0]);
    omp_init_lock(&locks[1]);
    if (me == 2) {
#pragma omp parallel num_threads(2)
        {
            int own = omp_get_thread_num();
            omp_set_lock(&locks[own]);
#pragma omp barrier
            omp_set_lock(&locks[1 - own]);
            omp_unset_lock(&locks[1 - own]);
            omp_unset_lock(&locks[own]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
