/* gsd.h: trajectories of molecular simulations; committed frames survive a crash of the writer.
 *
 * Types, functions and error codes of the GSD library 5: programs for it are compiled without changes.
 * Link with -lspile, or use `pkg-config spile`. gsd_seed.h has the functions of the specification of 2014.
 *
 * Functions that return an int return 0 or a negative error code. A handle must not be used by several
 * threads at the same time. A file has one writer at a time; opening it again fails with GSD_ERROR_IO.
 */
#ifndef GSD_H
#define GSD_H

#ifdef GSD_SEED_H
#error "gsd.h and gsd_seed.h have functions of the same names"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C"
{
#endif

enum gsd_type
{
  GSD_TYPE_UINT8 = 1,
  GSD_TYPE_UINT16,
  GSD_TYPE_UINT32,
  GSD_TYPE_UINT64,
  GSD_TYPE_INT8,
  GSD_TYPE_INT16,
  GSD_TYPE_INT32,
  GSD_TYPE_INT64,
  GSD_TYPE_FLOAT,
  GSD_TYPE_DOUBLE,
  GSD_TYPE_CHARACTER
};

enum gsd_open_flag
{
  GSD_OPEN_READWRITE = 1,
  GSD_OPEN_READONLY,
  GSD_OPEN_APPEND                       /* writing only */
};

enum gsd_error
{
  GSD_SUCCESS = 0,
  GSD_ERROR_IO = -1,                    /* errno has the reason */
  GSD_ERROR_INVALID_ARGUMENT = -2,
  GSD_ERROR_NOT_A_GSD_FILE = -3,
  GSD_ERROR_INVALID_GSD_FILE_VERSION = -4,
  GSD_ERROR_FILE_CORRUPT = -5,
  GSD_ERROR_MEMORY_ALLOCATION_FAILED = -6,
  GSD_ERROR_NAMELIST_FULL = -7,
  GSD_ERROR_FILE_MUST_BE_WRITABLE = -8,
  GSD_ERROR_FILE_MUST_BE_READABLE = -9
};

enum
{
  GSD_NAME_SIZE = 64
};

enum
{
  GSD_RESERVED_BYTES = 80
};

struct gsd_header
{
  uint64_t            magic;
  uint64_t            index_location;
  uint64_t            index_allocated_entries;
  uint64_t            namelist_location;
  uint64_t            namelist_allocated_entries;
  uint32_t            schema_version;
  uint32_t            gsd_version;
  char                application[GSD_NAME_SIZE];
  char                schema[GSD_NAME_SIZE];
  char                reserved[GSD_RESERVED_BYTES];
};

/* A chunk: N rows of M elements. */
struct gsd_index_entry
{
  uint64_t            frame;
  uint64_t            N;
  int64_t             location;         /* offset of the data in the file */
  uint32_t            M;
  uint16_t            id;
  uint8_t             type;
  uint8_t             flags;
};

struct gsd_name_id_pair
{
  char               *name;
  struct gsd_name_id_pair *next;
  uint16_t            id;
};

struct gsd_name_id_map
{
  struct gsd_name_id_pair *v;
  size_t              size;
};

struct gsd_index_buffer
{
  struct gsd_index_entry *data;
  size_t              size;
  size_t              reserved;
  void               *mapped_data;      /* of file_index: the state of the library */
  size_t              mapped_len;
};

struct gsd_byte_buffer
{
  char               *data;
  size_t              size;
  size_t              reserved;
};

struct gsd_name_buffer
{
  struct gsd_byte_buffer data;
  size_t              n_names;
};

/* An open file, in memory of the caller. The members are read-only. fd, header, the frames, file_size (when the
 * file was opened), open_flags and the buffer size are valid; index, names and buffers of the library are not
 * accessible, and their members are NULL or 0. A handle that could not be opened may be closed, which fails with
 * GSD_ERROR_INVALID_ARGUMENT. */
struct gsd_handle
{
  int                 fd;               /* open for reading */
  struct gsd_header   header;
  struct gsd_index_buffer file_index;
  struct gsd_index_buffer buffer_index;
  struct gsd_byte_buffer write_buffer;
  struct gsd_name_buffer file_names;
  struct gsd_name_buffer frame_names;
  uint64_t            buffer_frame;     /* completed frames */
  uint64_t            file_frame;       /* committed frames */
  int64_t             file_size;
  enum gsd_open_flag  open_flags;
  struct gsd_name_id_map name_map;
  uint64_t            pending_index_entries;
  uint64_t            maximum_write_buffer_size;
};

uint32_t            gsd_make_version (unsigned int major, unsigned int minor);

/* Creates an empty file of version 2.1; an existing file is replaced. Names of more than 63 bytes are truncated. */
int                 gsd_create (const char *fname, const char *application, const char *schema,
                                uint32_t schema_version);

/* Creates a file and opens it with GSD_OPEN_READWRITE or GSD_OPEN_APPEND; with `exclusive_create` fails if
 * it exists. */
int                 gsd_create_and_open (struct gsd_handle *handle, const char *fname,
                                         const char *application, const char *schema,
                                         uint32_t schema_version, enum gsd_open_flag flags,
                                         int exclusive_create);

/* Opens a file of any version. */
int                 gsd_open (struct gsd_handle *handle, const char *fname,
                              enum gsd_open_flag flags);

/* Removes all frames. The empty file replaces the old one, which other processes can still read. */
int                 gsd_truncate (struct gsd_handle *handle);

/* Commits the completed frames and closes the file. */
int                 gsd_close (struct gsd_handle *handle);

/* Completes the current frame. */
int                 gsd_end_frame (struct gsd_handle *handle);

/* Commits the completed frames and waits for the disk. Reading sees committed frames only. */
int                 gsd_flush (struct gsd_handle *handle);

/* Adds a chunk to the current frame. `flags` is 0. In files of version 1 the name is truncated to 63 bytes. */
int                 gsd_write_chunk (struct gsd_handle *handle, const char *name,
                                     enum gsd_type type, uint64_t N, uint32_t M, uint8_t flags,
                                     const void *data);

/* Finds a chunk in a committed frame; NULL if it does not exist. The result is valid until the file is closed,
 * truncated or upgraded. */
const struct gsd_index_entry *gsd_find_chunk (struct gsd_handle *handle, uint64_t frame,
                                              const char *name);

/* Reads the data of a chunk: N * M * gsd_sizeof_type (type) bytes. */
int                 gsd_read_chunk (struct gsd_handle *handle, void *data,
                                    const struct gsd_index_entry *chunk);

/* Number of committed frames; 0 on failure. */
uint64_t            gsd_get_nframes (struct gsd_handle *handle);

/* Bytes of an element; 0 for an unknown type. */
size_t              gsd_sizeof_type (enum gsd_type type);

/* Returns the first chunk name that starts with `match` (if `prev` is NULL), or the next one after `prev`, a
 * result of this function; NULL at the end. */
const char         *gsd_find_matching_chunk_name (struct gsd_handle *handle, const char *match,
                                                  const char *prev);

/* Converts the file to version 2.1 in place, atomically. Fails with GSD_ERROR_INVALID_ARGUMENT before the chunks
 * of complete and incomplete frames are flushed. */
int                 gsd_upgrade (struct gsd_handle *handle);

/* Bytes of data, and index entries of completed frames, that are kept in memory before they are written. The
 * setters reject 0; the getters return 0 on failure. */
uint64_t            gsd_get_maximum_write_buffer_size (struct gsd_handle *handle);
int                 gsd_set_maximum_write_buffer_size (struct gsd_handle *handle, uint64_t size);
uint64_t            gsd_get_index_entries_to_buffer (struct gsd_handle *handle);
int                 gsd_set_index_entries_to_buffer (struct gsd_handle *handle, uint64_t number);

/* Additions of this library. */

/* Commits automatically after every `frames` frames, or at the end of the first frame after `seconds` seconds;
 * one of them is 0. */
int                 gsd_set_commit (struct gsd_handle *handle, uint64_t frames, double seconds);

/* Shows frames that another process has committed since the file was opened. */
int                 gsd_refresh (struct gsd_handle *handle);

/* Writes the message of the last error of this thread to `text`, which has `*strlen` bytes, and sets `*strlen`
 * to the number of bytes before the NUL. */
int                 gsd_last_message (char *text, int *strlen);

#ifdef __cplusplus
}
#endif

#endif /* GSD_H */
