// score: ranks=3 cause=resource guilty=1 calls=
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 1) {
        int input[2];
        if (pipe(input))
            return 1;
        pid_t child = fork();
        if (child == 0) {
            dup2(input[0], 0);
            execlp("sort", "sort", (char *)NULL);
            _exit(1);
        }
        waitpid(child, NULL, 0);
        close(input[1]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
