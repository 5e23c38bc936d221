# score: ranks=3 cause=call_ordering guilty=0 calls=0:MPI_Barrier
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 0:
    world.Barrier()
world.allreduce(world.rank)
if world.rank != 0:
    world.Barrier()
