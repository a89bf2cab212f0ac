/* scda.h: one file for a parallel program, the same bytes on any number of processes.
 *
 * The functions of appendix A of "scda: A Minimal, Serial-Equivalent Format for Parallel I/O"
 * (Griesbach, Burstedde 2023), under its names. Link with -lspile, or see `pkg-config spile`.
 *
 * A program without MPI passes NULL for the communicator. A program with MPI includes scda_mpi.h,
 * compiles it with its own mpicc, and passes scda_comm_mpi (MPI_COMM_WORLD); the library itself
 * links no MPI.
 *
 * All functions that take a file are collective over its communicator. All arguments have to be
 * the same on every process, but for `dbytes` and the local sizes; where they are not, or where
 * one process fails, every process gets the same error. A file that is written appears under its
 * name when it is closed, whole, or not at all.
 *
 * Functions give the file back, or NULL on failure: then the file is closed and gone, and `*err`
 * says why. With NULL for the file they do nothing and leave an `*err` that is not 0 as it is, so
 * that calls can be chained and checked once. `err` may be NULL.
 */
#ifndef SCDA_H
#define SCDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* Room for a user string: up to 58 bytes and a NUL. */
#define SCDA_USERSTR_ROOM 59

/* Values of `*err`. Three groups, as the appendix has them: */
enum
{
  SCDA_SUCCESS = 0,
  /* (1) corrupt file contents */
  SCDA_ERR_FORMAT = 2,          /* not an scda file */
  SCDA_ERR_CORRUPT = 3,         /* breaks a rule of the format */
  SCDA_ERR_TRUNCATED = 4,       /* ends too early */
  SCDA_ERR_UNSUPPORTED = 5,     /* legal, but not known to this version */
  /* (2) file system errors */
  SCDA_ERR_IO = 1,
  SCDA_ERR_EXISTS = 8,          /* with keep_existing only */
  /* (3) invalid arguments or order of calls */
  SCDA_ERR_LIMIT = 6,           /* more than any file or memory holds */
  SCDA_ERR_ARGUMENT = 7
};

/* An open file. */
typedef struct scda_file scda_file_t;

/* A job: who we are, and how its processes talk. Functions return 0 or a code that `explain` can
 * put into words; all but `explain` and `release` are collective. */
typedef struct scda_comm
{
  void               *context;
  int                 rank, size;
  /* Fills everybody's `data` with that of `root`. */
  int                 (*bcast) (void *context, void *data, size_t bytes, int root);
  /* Fills `all` with the `bytes` bytes of every process in turn. */
  int                 (*allgather) (void *context, const void *mine, size_t bytes, void *all);
  /* Opens an existing file for writing or reading. */
  int                 (*open) (void *context, const char *path, int write, void **file);
  /* Everybody moves its own bytes, possibly none and never more than 1 GiB; `done` is how many
   * were moved. */
  int                 (*write_at_all) (void *context, void *file, uint64_t offset,
                                       const void *data, size_t bytes, size_t *done);
  int                 (*read_at_all) (void *context, void *file, uint64_t offset,
                                      void *data, size_t bytes, size_t *done);
  /* Closes a file; with `keep`, what was written is on the disk by then. */
  int                 (*close) (void *context, void *file, int keep);
  /* Puts a code into words, at most `room` bytes with the NUL. */
  void                (*explain) (void *context, int code, char *text, size_t room);
  /* Nobody uses the context any more. */
  void                (*release) (void *context);
} scda_comm_t;

/* How a file is written. Start from SCDA_OPTIONS_DEFAULT. */
typedef struct scda_options
{
  const char         *vendor;           /* at most 20 bytes; NULL: spile and its version */
  int                 mime;             /* line breaks of MIME instead of Unix */
  int                 level;            /* of compression, 0 to 12 */
  int                 keep_existing;    /* fail rather than replace a file */
} scda_options_t;

#define SCDA_OPTIONS_DEFAULT { NULL, 0, 9, 0 }

/* A.3 Open and close. */

/* Opens a file for writing (mode 'w') or reading ('r'). `userstr` is written into the file header
 * or, when reading, filled from it: it has SCDA_USERSTR_ROOM bytes then, or is NULL. The function
 * takes `comm` over, also when it fails; NULL is a job of one process. */
scda_file_t        *scda_fopen (const scda_comm_t *comm, const char *filename, char mode,
                                char *userstr, int *err);

/* The same with options for writing; NULL for the default ones. */
scda_file_t        *scda_fopen_with (const scda_comm_t *comm, const char *filename, char mode,
                                     char *userstr, const scda_options_t *options, int *err);

/* Closes a file. 0 if and only if all is well; the file is gone in any case. */
int                 scda_fclose (scda_file_t *f, int *err);

/* A.4 Writing. `counts` has the number of elements of every process, (N_q). With `encode`, the
 * data are compressed (section 3). With `indirect`, `dbytes` is an array of pointers to the
 * elements instead of the elements themselves. */

scda_file_t        *scda_fwrite_inline (scda_file_t *f, const void *dbytes,
                                        const char *userstr, int root, int *err);

scda_file_t        *scda_fwrite_block (scda_file_t *f, const void *dbytes, uint64_t E,
                                       const char *userstr, int root, int encode, int *err);

scda_file_t        *scda_fwrite_array (scda_file_t *f, const void *dbytes,
                                       const uint64_t *counts, uint64_t E, int indirect,
                                       const char *userstr, int encode, int *err);

/* `sizes` are the bytes of this process's elements, (E_i); `bytes` their sum on every process,
 * (S_q). */
scda_file_t        *scda_fwrite_varray (scda_file_t *f, const void *dbytes,
                                        const uint64_t *counts, const uint64_t *sizes,
                                        const uint64_t *bytes, int indirect,
                                        const char *userstr, int encode, int *err);

/* A.5 Reading. Each header is followed by the call that reads, or with NULL skips, its data. */

/* `*type` becomes 'I', 'B', 'A' or 'V', or 0 at the end of the file; `*N` and `*E` as in A.5.1.
 * `userstr` has SCDA_USERSTR_ROOM bytes or is NULL. `*decode` asks for compressed data to be
 * decoded and becomes whether they will be (Table 2); NULL asks for raw data. */
scda_file_t        *scda_fread_section_header (scda_file_t *f, char *type, uint64_t *N,
                                               uint64_t *E, char *userstr, int *decode,
                                               int *err);

scda_file_t        *scda_fread_inline_data (scda_file_t *f, void *dbytes, int root, int *err);

scda_file_t        *scda_fread_block_data (scda_file_t *f, void *dbytes, uint64_t N, int root,
                                           int *err);

scda_file_t        *scda_fread_array_data (scda_file_t *f, void *dbytes,
                                           const uint64_t *counts, uint64_t E, int indirect,
                                           int *err);

/* Before the data of a 'V' section come its sizes, for the same partition. */
scda_file_t        *scda_fread_varray_sizes (scda_file_t *f, uint64_t *sizes,
                                             const uint64_t *counts, int *err);

scda_file_t        *scda_fread_varray_data (scda_file_t *f, void *dbytes,
                                            const uint64_t *counts, const uint64_t *sizes,
                                            const uint64_t *bytes, int indirect, int *err);

/* A.6 Errors. */

/* Fills `errorstr`, which has `*strlen` bytes, with what a code means; `*strlen` becomes the number
 * of bytes before the NUL. 0, or negative for a code that is none. Not collective. */
int                 scda_ferror_string (int err, char *errorstr, int *strlen);

/* The same for the last failure of this thread, in full: file, byte, and what was expected. */
int                 scda_flast_message (char *text, int *strlen);

/* User strings may contain any bytes. These two are for those with zeros in them. */

/* Bytes of the user string that was read last. */
uint64_t            scda_fuserstr_length (const scda_file_t *f);

/* The next user string that is written has this many bytes. */
void                scda_fset_userstr_length (scda_file_t *f, uint64_t length);

#ifdef __cplusplus
}
#endif

#endif /* SCDA_H */
