// score: ranks=2 cause=resource|call_ordering guilty=1 calls=
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* The child answers all that it reads; nobody reads the answers. */
int main(int argc, char **argv) {
    int me, to[2], from[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 1) {
        if (pipe(to) || pipe(from)) return 1;
        if (fork() == 0) {
            dup2(to[0], 0);
            dup2(from[1], 1);
            for (int i = 3; i < 64; i++) close(i);
            execlp("cat", "cat", (char *)0);
            _exit(127);
        }
        close(to[0]);
        close(from[1]);
        char *text = calloc(1, 1 << 20);
        for (size_t sent = 0; sent < 1 << 20;) {
            ssize_t count = write(to[1], text + sent, (1 << 20) - sent);
            if (count < 0) return 1;
            sent += count;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
