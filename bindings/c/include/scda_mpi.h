/* scda_mpi.h: MPI communicators for scda_fopen. Header-only; include it in one or more files that
 * are compiled with mpicc.
 *
 *   scda_file_t *f = scda_fopen (scda_comm_mpi (MPI_COMM_WORLD), "state.scda", 'w', "", &err);
 */
#ifndef SCDA_MPI_H
#define SCDA_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include "scda.h"

/* Context of the functions below. The communicator table is the first member, so that a pointer to
 * one is a pointer to the other. */
typedef struct scda_mpi
{
  scda_comm_t         comm;
  MPI_Comm            mpicomm;
  MPI_Info            info;
} scda_mpi_t;

static int
scda_mpi_bcast (void *context, void *data, size_t bytes, int root)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  if (bytes > INT_MAX) {
    return MPI_ERR_COUNT;
  }
  return MPI_Bcast (data, (int) bytes, MPI_BYTE, root, self->mpicomm);
}

static int
scda_mpi_allgather (void *context, const void *mine, size_t bytes, void *all)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  if (bytes > INT_MAX) {
    return MPI_ERR_COUNT;
  }
  return MPI_Allgather (mine, (int) bytes, MPI_BYTE, all, (int) bytes, MPI_BYTE, self->mpicomm);
}

static int
scda_mpi_max (void *context, uint64_t *values, size_t number)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  return MPI_Allreduce (MPI_IN_PLACE, values, (int) number, MPI_UINT64_T, MPI_MAX, self->mpicomm);
}

static int
scda_mpi_xor (void *context, uint64_t *values, size_t number)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  return MPI_Allreduce (MPI_IN_PLACE, values, (int) number, MPI_UINT64_T, MPI_BXOR, self->mpicomm);
}

static int
scda_mpi_sum_before (void *context, uint64_t *values, size_t number)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  int                 code;
  code = MPI_Exscan (MPI_IN_PLACE, values, (int) number, MPI_UINT64_T, MPI_SUM, self->mpicomm);
  /* The call leaves the values of rank 0 undefined. */
  if (self->comm.rank == 0) {
    memset (values, 0, number * sizeof (uint64_t));
  }
  return code;
}

static int
scda_mpi_open (void *context, const char *path, int write, void **file)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  MPI_File           *opened = (MPI_File *) malloc (sizeof (MPI_File));
  int                 code;
  if (opened == NULL) {
    return MPI_ERR_NO_MEM;
  }
  code = MPI_File_open (self->mpicomm, path,
                        write ? MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL : MPI_MODE_RDONLY,
                        self->info, opened);
  if (code != MPI_SUCCESS) {
    free (opened);
    return code;
  }
  *file = opened;
  return 0;
}

static int
scda_mpi_count (int code, MPI_Status *status, size_t *done)
{
  int                 count = 0;
  if (code == MPI_SUCCESS) {
    code = MPI_Get_count (status, MPI_BYTE, &count);
    *done = (size_t) count;
  }
  return code;
}

static int
scda_mpi_write_at_all (void *context, void *file, uint64_t offset, const void *data,
                       size_t bytes, size_t *done)
{
  MPI_Status          status;
  int                 code;
  (void) context;
  code = MPI_File_write_at_all (*(MPI_File *) file, (MPI_Offset) offset, data, (int) bytes,
                                MPI_BYTE, &status);
  return scda_mpi_count (code, &status, done);
}

static int
scda_mpi_write_at (void *context, void *file, uint64_t offset, const void *data, size_t bytes,
                   size_t *done)
{
  MPI_Status          status;
  int                 code;
  (void) context;
  code = MPI_File_write_at (*(MPI_File *) file, (MPI_Offset) offset, data, (int) bytes, MPI_BYTE,
                            &status);
  return scda_mpi_count (code, &status, done);
}

static int
scda_mpi_read_at_all (void *context, void *file, uint64_t offset, void *data, size_t bytes,
                      size_t *done)
{
  MPI_Status          status;
  int                 code;
  (void) context;
  code = MPI_File_read_at_all (*(MPI_File *) file, (MPI_Offset) offset, data, (int) bytes,
                               MPI_BYTE, &status);
  return scda_mpi_count (code, &status, done);
}

static int
scda_mpi_close (void *context, void *file, int keep)
{
  MPI_File           *open = (MPI_File *) file;
  int                 synced = keep ? MPI_File_sync (*open) : MPI_SUCCESS;
  int                 closed = MPI_File_close (open);
  (void) context;
  free (open);
  return synced != MPI_SUCCESS ? synced : closed;
}

static void
scda_mpi_explain (void *context, int code, char *text, size_t capacity)
{
  char                message[MPI_MAX_ERROR_STRING + 1] = "unknown MPI error";
  int                 length = 0;
  (void) context;
  MPI_Error_string (code, message, &length);
  if (capacity > 0) {
    strncpy (text, message, capacity - 1);
    text[capacity - 1] = '\0';
  }
}

static void
scda_mpi_release (void *context)
{
  scda_mpi_t         *self = (scda_mpi_t *) context;
  if (self->info != MPI_INFO_NULL) {
    MPI_Info_free (&self->info);
  }
  MPI_Comm_free (&self->mpicomm);
  free (self);
}

/* Creates a communicator for one call of scda_fopen, which takes ownership. Collective. `info` has hints
 * for MPI_File_open, such as striping_factor, striping_unit, cb_nodes and romio_cb_write, or is
 * MPI_INFO_NULL; it is copied. If the communicator cannot be created, the result has no processes, and
 * scda_fopen fails. */
static inline scda_comm_t *
scda_comm_mpi_info (MPI_Comm mpicomm, MPI_Info info)
{
  static scda_comm_t  none;
  scda_mpi_t         *self = (scda_mpi_t *) calloc (1, sizeof (scda_mpi_t));
  /* A duplicate keeps messages of the library apart from those of the program. */
  if (self == NULL || MPI_Comm_dup (mpicomm, &self->mpicomm) != MPI_SUCCESS) {
    free (self);
    return &none;
  }
  self->info = MPI_INFO_NULL;
  if (info != MPI_INFO_NULL && MPI_Info_dup (info, &self->info) != MPI_SUCCESS) {
    MPI_Comm_free (&self->mpicomm);
    free (self);
    return &none;
  }
  /* Errors are returned as codes and do not abort the program. */
  MPI_Comm_set_errhandler (self->mpicomm, MPI_ERRORS_RETURN);
  MPI_Comm_rank (self->mpicomm, &self->comm.rank);
  MPI_Comm_size (self->mpicomm, &self->comm.size);
  self->comm.context = self;
  self->comm.bcast = scda_mpi_bcast;
  self->comm.allgather = scda_mpi_allgather;
  self->comm.max = scda_mpi_max;
  self->comm.xor_all = scda_mpi_xor;
  self->comm.sum_before = scda_mpi_sum_before;
  self->comm.open = scda_mpi_open;
  self->comm.write_at_all = scda_mpi_write_at_all;
  self->comm.write_at = scda_mpi_write_at;
  self->comm.read_at_all = scda_mpi_read_at_all;
  self->comm.close = scda_mpi_close;
  self->comm.explain = scda_mpi_explain;
  self->comm.release = scda_mpi_release;
  return &self->comm;
}

/* scda_comm_mpi_info without hints. */
static inline scda_comm_t *
scda_comm_mpi (MPI_Comm mpicomm)
{
  return scda_comm_mpi_info (mpicomm, MPI_INFO_NULL);
}

#endif /* SCDA_MPI_H */
