// score: ranks=4 cause=none guilty= calls= mpi=openmpi,openmpi5
#include <mpi.h>
static volatile int never;
int main(int argc, char **argv) {
    int me;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm half, others;
    MPI_Comm_split(MPI_COMM_WORLD, me < 2, me, &half);
    if (me == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    double y = 1;
    if (me >= 2)
        for (long i = 0; !never; i++)
            y = y * 1.0000001 + 1e-9;
    if (me < 2) MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &others);
    if (me >= 2) MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &others);
    MPI_Finalize();
    return y < 0;
}
