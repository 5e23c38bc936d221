# score: ranks=4 cause=call_ordering guilty=0-3 calls=0:MPI_Ssend,3:MPI_Ssend
from mpi4py import MPI
world = MPI.COMM_WORLD
world.ssend({"from": world.rank}, dest=(world.rank + 1) % world.size, tag=3)
world.recv(source=(world.rank - 1) % world.size, tag=3)
