! score: ranks=2 cause=tag guilty=0-1 calls=0:MPI_Ssend,1:MPI_Recv
program tag_of_ssend
  use mpi
  implicit none
  integer :: me, x, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  x = me
  if (me == 0) then
    call MPI_Ssend(x, 1, MPI_INTEGER, 1, 11, MPI_COMM_WORLD, ierr)
  else
    call MPI_Recv(x, 1, MPI_INTEGER, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end if
  call MPI_Finalize(ierr)
end program
