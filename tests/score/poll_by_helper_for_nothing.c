// score: ranks=2 cause=polling guilty=0 calls=0:MPI_Request_get_status
#include <mpi.h>
#include <unistd.h>

static int is_there(MPI_Request *answer)
{
    int flag;
    MPI_Request_get_status(*answer, &flag, MPI_STATUS_IGNORE);
    return flag;
}

int main(int argc, char **argv)
{
    int rank, value = 0;
    MPI_Request answer;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &answer);
        while (!is_there(&answer))
            usleep(100);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
