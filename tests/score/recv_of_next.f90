! score: ranks=3 cause=call_ordering guilty=0-2 calls=0:MPI_Recv,1:MPI_Recv,2:MPI_Recv
program recv_of_next
  use mpi
  implicit none
  integer :: me, np, x, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call MPI_Recv(x, 1, MPI_INTEGER, mod(me + 1, np), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Send(me, 1, MPI_INTEGER, modulo(me - 1, np), 0, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
end program
