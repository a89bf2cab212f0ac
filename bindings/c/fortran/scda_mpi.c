/* Fortran MPI communicators for the modules in scda.f90 and scda_f08.f90. Compile with mpicc. */
#include "scda_mpi.h"

scda_comm_t        *scda_comm_mpi_fortran (MPI_Fint mpicomm, const MPI_Fint *info);

/* `info` is NULL without hints. */
scda_comm_t        *
scda_comm_mpi_fortran (MPI_Fint mpicomm, const MPI_Fint *info)
{
  return scda_comm_mpi_info (MPI_Comm_f2c (mpicomm),
                             info == NULL ? MPI_INFO_NULL : MPI_Info_f2c (*info));
}
