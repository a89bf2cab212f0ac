/* scda.h: parallel files whose bytes do not depend on the number of processes.
 *
 * The functions of appendix A of "scda: A Minimal, Serial-Equivalent Format for Parallel I/O"
 * (Griesbach, Burstedde 2023). Link with -lspile, or use `pkg-config spile`.
 *
 * A program without MPI passes NULL as the communicator. A program with MPI includes scda_mpi.h,
 * is compiled with mpicc, and passes scda_comm_mpi (MPI_COMM_WORLD). The library does not link MPI.
 *
 * All functions that take a file are collective over its communicator. All arguments except
 * `dbytes` and the local sizes must be the same on every process. If they differ, or if one process
 * fails, every process gets the same error. Writes are atomic: the file gets its name when it is
 * closed.
 *
 * Functions return the file. On failure they close the file, return NULL and set `*err`. Called
 * with a NULL file they do nothing and keep an `*err` that is not 0, so that the result of several
 * calls can be checked once. `err` may be NULL.
 */
#ifndef SCDA_H
#define SCDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* Size of a buffer for a user string: up to 58 bytes and a NUL. */
#define SCDA_USERSTR_ROOM 59

/* Values of `*err`, in the three groups of the appendix. */
enum
{
  SCDA_SUCCESS = 0,
  /* (1) corrupt file contents */
  SCDA_ERR_FORMAT = 2,          /* not an scda file */
  SCDA_ERR_CORRUPT = 3,         /* violates the format */
  SCDA_ERR_TRUNCATED = 4,       /* file is truncated */
  SCDA_ERR_UNSUPPORTED = 5,     /* feature is not supported */
  /* (2) file system errors */
  SCDA_ERR_IO = 1,
  SCDA_ERR_EXISTS = 8,          /* only with keep_existing */
  /* (3) invalid arguments or order of calls */
  SCDA_ERR_LIMIT = 6,           /* exceeds the file or memory limit */
  SCDA_ERR_ARGUMENT = 7
};

/* An open file. */
typedef struct scda_file scda_file_t;

/* A communicator: rank, size and communication functions. Functions return 0 or an error code; all
 * but `write_at`, `explain` and `release` are collective. */
typedef struct scda_comm
{
  void               *context;
  int                 rank, size;
  /* Broadcasts `data` of `root` to all processes. */
  int                 (*bcast) (void *context, void *data, size_t bytes, int root);
  /* Gathers `bytes` bytes of every process, in rank order, into `all` on all processes. */
  int                 (*allgather) (void *context, const void *mine, size_t bytes, void *all);
  /* Replaces each of `number` values by its maximum over all processes. */
  int                 (*max) (void *context, uint64_t *values, size_t number);
  /* Replaces each of `number` values by the exclusive or of the values of all processes. */
  int                 (*xor_all) (void *context, uint64_t *values, size_t number);
  /* Replaces each of `number` values by its sum over the processes before this one; 0 on rank 0. */
  int                 (*sum_before) (void *context, uint64_t *values, size_t number);
  /* With `write`, creates a file that does not exist and opens it for writing; otherwise opens an
   * existing file for reading. */
  int                 (*open) (void *context, const char *path, int write, void **file);
  /* Each process transfers its own bytes, from 0 to 1 GiB; `done` is the number of bytes
   * transferred. */
  int                 (*write_at_all) (void *context, void *file, uint64_t offset,
                                       const void *data, size_t bytes, size_t *done);
  /* One process writes its bytes, at most 1 GiB. */
  int                 (*write_at) (void *context, void *file, uint64_t offset,
                                   const void *data, size_t bytes, size_t *done);
  int                 (*read_at_all) (void *context, void *file, uint64_t offset,
                                      void *data, size_t bytes, size_t *done);
  /* Closes a file; with `keep`, after the data were written to disk. */
  int                 (*close) (void *context, void *file, int keep);
  /* Writes the message of an error code, at most `capacity` bytes including the NUL. */
  void                (*explain) (void *context, int code, char *text, size_t capacity);
  /* Frees the context. */
  void                (*release) (void *context);
} scda_comm_t;

/* Options for writing. Initialise with SCDA_OPTIONS_DEFAULT. */
typedef struct scda_options
{
  const char         *vendor;           /* at most 20 bytes; NULL: spile and its version */
  int                 mime;             /* MIME line breaks instead of Unix */
  int                 level;            /* compression level, 0 to 12 */
  int                 keep_existing;    /* fail if the file exists */
  int                 index;            /* write an index at the end, for opening large files */
  int                 checksums;        /* write checksums of all sections to the index */
} scda_options_t;

#define SCDA_OPTIONS_DEFAULT { NULL, 0, 9, 0, 0, 0 }

/* A.3 Open and close. */

/* Creates a file, which is replaced if it exists. `userstr` is the user string of the file header.
 * `options` may be NULL. The function takes ownership of `comm`, even if it fails; NULL is one
 * process. */
scda_file_t        *scda_fopen_write (const scda_comm_t *comm, const char *filename,
                                      const char *userstr, const scda_options_t *options,
                                      int *err);

/* Opens a file for reading. `userstr` receives the user string: it has SCDA_USERSTR_ROOM bytes or is
 * NULL. The function takes ownership of `comm`, even if it fails; NULL is one process. */
scda_file_t        *scda_fopen_read (const scda_comm_t *comm, const char *filename, char *userstr,
                                     int *err);

/* Opens a file for writing (mode 'w') or reading ('r') as the functions above do; this is the function
 * of the appendix. With mode 'r', `userstr` is NULL or the address of SCDA_USERSTR_ROOM bytes, which
 * are written: it is only const so that literals can be passed with mode 'w'. */
scda_file_t        *scda_fopen (const scda_comm_t *comm, const char *filename, char mode,
                                const char *userstr, int *err);

/* Opens a file like scda_fopen, with options for writing; NULL for the defaults. */
scda_file_t        *scda_fopen_with (const scda_comm_t *comm, const char *filename, char mode,
                                     const char *userstr, const scda_options_t *options, int *err);

/* Closes a file. Returns 0 on success. The file is invalid afterwards. */
int                 scda_fclose (scda_file_t *f, int *err);

/* A.4 Writing. `counts` is the number of elements of every process, (N_q). With `encode`, the data
 * are compressed (section 3). With `indirect`, `dbytes` is an array of pointers to the elements
 * instead of the elements themselves. */

scda_file_t        *scda_fwrite_inline (scda_file_t *f, const void *dbytes,
                                        const char *userstr, int root, int *err);

scda_file_t        *scda_fwrite_block (scda_file_t *f, const void *dbytes, uint64_t E,
                                       const char *userstr, int root, int encode, int *err);

scda_file_t        *scda_fwrite_array (scda_file_t *f, const void *dbytes,
                                       const uint64_t *counts, uint64_t E, int indirect,
                                       const char *userstr, int encode, int *err);

/* `sizes` are the sizes of this process's elements in bytes, (E_i); `bytes` their sum on every
 * process, (S_q). */
scda_file_t        *scda_fwrite_varray (scda_file_t *f, const void *dbytes,
                                        const uint64_t *counts, const uint64_t *sizes,
                                        const uint64_t *bytes, int indirect,
                                        const char *userstr, int encode, int *err);

/* A.5 Reading. After each header the data must be read, or skipped with NULL. `counts` and `E` must
 * match the section; otherwise no memory of the caller is accessed and the call fails. */

/* Sets `*type` to 'I', 'B', 'A' or 'V', or to 0 at the end of the file, and `*N` and `*E` as in A.5.1.
 * `userstr` has SCDA_USERSTR_ROOM bytes or is NULL. `*decode` requests decoding of compressed data
 * and is set to whether they will be decoded (Table 2); NULL requests raw data. */
scda_file_t        *scda_fread_section_header (scda_file_t *f, char *type, uint64_t *N,
                                               uint64_t *E, char *userstr, int *decode,
                                               int *err);

scda_file_t        *scda_fread_inline_data (scda_file_t *f, void *dbytes, int root, int *err);

scda_file_t        *scda_fread_block_data (scda_file_t *f, void *dbytes, uint64_t N, int root,
                                           int *err);

scda_file_t        *scda_fread_array_data (scda_file_t *f, void *dbytes,
                                           const uint64_t *counts, uint64_t E, int indirect,
                                           int *err);

/* The sizes of a 'V' section must be read before its data, with the same partition. */
scda_file_t        *scda_fread_varray_sizes (scda_file_t *f, uint64_t *sizes,
                                             const uint64_t *counts, int *err);

scda_file_t        *scda_fread_varray_data (scda_file_t *f, void *dbytes,
                                            const uint64_t *counts, const uint64_t *sizes,
                                            const uint64_t *bytes, int indirect, int *err);

/* Named fields: a convention on top of scda, described in FORMAT.md of spile's format scda. A field is
 * two sections, a block with its description and the data. Other scda libraries read both as plain
 * sections. Reading functions find a field by its name and move to the section behind it. */

/* Description of a field. Initialise with SCDA_FIELD_DEFAULT. */
typedef struct scda_field
{
  const char         *name;             /* slashes separate groups */
  const char         *type;             /* in NumPy notation, such as "<f8" */
  int                 rank;             /* dimensions of an element; 0 for one value */
  const uint64_t     *shape;            /* shape of an element, the last index fastest */
  uint64_t            version;          /* 0: none; reading another version fails */
  const char         *attrs;            /* attributes as a JSON object; NULL: none */
  int                 encode;           /* compress each element when writing */
} scda_field_t;

#define SCDA_FIELD_DEFAULT { NULL, NULL, 0, NULL, 0, NULL, 0 }

#define SCDA_FIELD_RANK 8

/* A field in a file. */
typedef struct scda_field_info
{
  char                section;          /* 'A'; 'V': elements with different numbers of items; 'B': one
                                         * array that is not split; 0: no such field */
  int                 encoded;
  uint64_t            N;                /* number of elements */
  uint64_t            E;                /* bytes of an element, or of an item ('V') */
  char                type[16];
  int                 rank;             /* dimensions of an element, or of an item ('V') */
  uint64_t            shape[SCDA_FIELD_RANK];   /* the first ones, if there are more */
  uint64_t            version;          /* 0: none */
} scda_field_info_t;

/* Writes a field. `dbytes` are the elements of this process in the byte order of `type`. */
scda_file_t        *scda_fwrite_field (scda_file_t *f, const scda_field_t *field,
                                       const void *dbytes, const uint64_t *counts, int indirect,
                                       int *err);

/* Writes a field whose elements have different numbers of items. `type` and `shape` describe an item,
 * `lengths` are the numbers of items of this process's elements. */
scda_file_t        *scda_fwrite_ragged_field (scda_file_t *f, const scda_field_t *field,
                                              const void *dbytes, const uint64_t *counts,
                                              const uint64_t *lengths, int indirect, int *err);

/* Describes a field; `info->section` is 0 if there is none of this name. Does not move in the file. */
scda_file_t        *scda_find_field (scda_file_t *f, const char *name, scda_field_info_t *info,
                                     int *err);

/* Reads a field. Fails if type, shape or version of the file differ from `field`. `dbytes` receives the
 * elements in the byte order of the machine; a process that passes NULL reads nothing. */
scda_file_t        *scda_fread_field (scda_file_t *f, const scda_field_t *field, void *dbytes,
                                      const uint64_t *counts, int indirect, int *err);

/* Reads the numbers of items of this process's elements of a ragged field. */
scda_file_t        *scda_fread_field_lengths (scda_file_t *f, const scda_field_t *field,
                                              uint64_t *lengths, const uint64_t *counts, int *err);

/* Reads the items of a ragged field, after scda_fread_field_lengths. */
scda_file_t        *scda_fread_ragged_field (scda_file_t *f, const scda_field_t *field, void *dbytes,
                                             const uint64_t *counts, const uint64_t *lengths,
                                             int indirect, int *err);

/* Writes attributes of a group, or of the file if `group` is "": a JSON object such as
 * {"name":"heat","version":1}. A value of a checkpoint is an attribute. */
scda_file_t        *scda_fwrite_attrs (scda_file_t *f, const char *group, const char *attrs,
                                       int *err);

/* Writes the attributes of a group, a field, or of the file ("") to `text` as a JSON object with a NUL.
 * `*length` is the size of `text` and becomes the number of bytes before the NUL of the complete
 * object: if it is not less than the size, `text` is truncated. */
scda_file_t        *scda_find_attrs (scda_file_t *f, const char *path, char *text, size_t *length,
                                     int *err);

/* A.6 Errors. */

/* Writes the description of an error code to `errorstr`, which has `*strlen` bytes, and sets `*strlen`
 * to the number of bytes before the NUL. Returns 0, or a negative value for an unknown code. Not
 * collective. */
int                 scda_ferror_string (int err, char *errorstr, int *strlen);

/* Writes the message of the last error of this thread, with file and byte offset. Arguments as for
 * scda_ferror_string. */
int                 scda_flast_message (char *text, int *strlen);

/* User strings may contain any bytes. The following functions are for user strings with NUL bytes. */

/* Length of the last user string read. */
uint64_t            scda_fuserstr_length (const scda_file_t *f);

/* Sets the length of the next user string that is written. */
void                scda_fset_userstr_length (scda_file_t *f, uint64_t length);

#ifdef __cplusplus
}
#endif

#endif /* SCDA_H */
