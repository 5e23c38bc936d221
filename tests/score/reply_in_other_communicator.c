// score: ranks=3 cause=communicator guilty=0,2 calls=2:MPI_Recv
#include <mpi.h>

// A server answers one of its clients in the communicator of the job, which the client does not use.
int main(int argc, char **argv) {
    MPI_Comm service;
    MPI_Status from;
    int rank, size, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &service);
    MPI_Comm_rank(service, &rank);
    MPI_Comm_size(service, &size);
    for (int i = 1; rank == 0 && i < size; i++) {
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 1, service, &from);
        MPI_Comm reply = from.MPI_SOURCE == 2 ? MPI_COMM_WORLD : service;
        MPI_Send(&x, 1, MPI_INT, from.MPI_SOURCE, 2, reply);
    }
    if (rank > 0) {
        MPI_Send(&x, 1, MPI_INT, 0, 1, service);
        MPI_Recv(&x, 1, MPI_INT, 0, 2, service, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(service);
    MPI_Finalize();
}
