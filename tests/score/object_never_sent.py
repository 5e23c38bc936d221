# score: ranks=3 cause=call_ordering guilty=0-1 calls=0:MPI_Barrier,1:MPI_Mprobe
from mpi4py import MPI


class Worker:
    def __init__(self, comm, master):
        self.comm, self.master = comm, master

    def work(self):
        # Rank 0 leaves its last task out.
        return self.comm.recv(source=self.master, tag=11)


world = MPI.COMM_WORLD
if world.rank == 1:
    Worker(world, 0).work()
world.Barrier()
