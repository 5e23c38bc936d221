! score: ranks=3 cause=call_ordering guilty=2 calls=2:MPI_Barrier
program bcast_left_out
  use mpi
  implicit none
  integer :: me, x, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  x = me
  if (me /= 2) call MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
end program
