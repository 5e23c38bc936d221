// score: ranks=3 cause=call_ordering|resource guilty=1 calls=1:MPI_File_close
#include <mpi.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "/tmp/sdm-score-close", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    if (me != 1) MPI_File_write_at_all(file, me * 4, &me, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
