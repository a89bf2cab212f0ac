! scda_comm_mpi for the handles of the module mpi_f08:
!
!   use mpi_f08
!   use scda
!   use scda_f08
!   f = scda_fopen_write(scda_comm_mpi(MPI_COMM_WORLD), 'state.scda', 'my run', err)
module scda_f08
  use, intrinsic :: iso_c_binding, only: c_ptr
  use mpi_f08, only: MPI_Comm, MPI_Info
  use scda, only: scda_comm_mpi
  implicit none
  private
  public :: scda_comm_mpi

  interface scda_comm_mpi
    module procedure comm_f08
  end interface

contains

  function comm_f08(mpicomm, info) result(comm)
    type(MPI_Comm), intent(in) :: mpicomm
    type(MPI_Info), intent(in), optional :: info
    type(c_ptr) :: comm
    if (present(info)) then
      comm = scda_comm_mpi(mpicomm%MPI_VAL, info%MPI_VAL)
    else
      comm = scda_comm_mpi(mpicomm%MPI_VAL)
    end if
  end function
end module scda_f08
