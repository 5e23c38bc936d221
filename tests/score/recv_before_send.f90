! score: ranks=2 cause=call_ordering guilty=0-1 calls=0:MPI_Recv,1:MPI_Recv
program recv_before_send
  use mpi
  implicit none
  integer :: me, x, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Recv(x, 1, MPI_INTEGER, 1 - me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Send(me, 1, MPI_INTEGER, 1 - me, 0, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
end program
