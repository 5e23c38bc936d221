# score: ranks=2 cause=call_ordering guilty=0-1 calls=0:MPI_Finalize,1:MPI_Recv
import array
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 1:
    world.Recv(array.array("i", [0]), source=0, tag=7)
