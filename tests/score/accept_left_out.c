// score: ranks=4 cause=call_ordering guilty=2 calls=2:MPI_Allreduce mpi=openmpi,openmpi5
#include <mpi.h>
int main(int argc, char **argv) {
    int me, one = 1, sum;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm part, clients;
    MPI_Comm_split(MPI_COMM_WORLD, me == 0, me, &part);
    if (me == 1) MPI_Open_port(MPI_INFO_NULL, port);
    if (me == 1 || me == 3) MPI_Comm_accept(port, MPI_INFO_NULL, 0, part, &clients);
    if (me != 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
    MPI_Finalize();
    return 0;
}
