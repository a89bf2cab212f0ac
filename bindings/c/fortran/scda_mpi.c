/* Fortran MPI communicators for the module in scda.f90. Compile with mpicc. */
#include "scda_mpi.h"

scda_comm_t        *scda_comm_mpi_fortran (MPI_Fint mpicomm);

scda_comm_t        *
scda_comm_mpi_fortran (MPI_Fint mpicomm)
{
  return scda_comm_mpi (MPI_Comm_f2c (mpicomm));
}
