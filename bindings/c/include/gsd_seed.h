/* gsd_seed.h: the functions of the GSD specification of 2014, with additions. gsd.h has those of current
 * libraries; a source file includes one of the two. Committed frames survive a crash of the writer.
 * All versions of the format can be read. New files have version 2.1 by default; appending keeps the version. Link with
 * -lspile, or use `pkg-config spile`.
 *
 * Functions that return an int return 0 or a negative GSD_ERROR_... code; gsd_last_message returns
 * the message. A handle must not be used by several threads at the same time.
 */
#ifndef GSD_SEED_H
#define GSD_SEED_H

#ifdef GSD_H
#error "gsd.h and gsd_seed.h have functions of the same names"
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* The library exports the functions with the prefix gsd_seed_. */
#define gsd_create gsd_seed_create
#define gsd_make_version gsd_seed_make_version
#define gsd_create_version gsd_seed_create_version
#define gsd_open gsd_seed_open
#define gsd_close gsd_seed_close
#define gsd_write_chunk gsd_seed_write_chunk
#define gsd_end_frame gsd_seed_end_frame
#define gsd_flush gsd_seed_flush
#define gsd_set_commit gsd_seed_set_commit
#define gsd_get_maximum_write_buffer_size gsd_seed_get_maximum_write_buffer_size
#define gsd_set_maximum_write_buffer_size gsd_seed_set_maximum_write_buffer_size
#define gsd_get_index_entries_to_buffer gsd_seed_get_index_entries_to_buffer
#define gsd_set_index_entries_to_buffer gsd_seed_set_index_entries_to_buffer
#define gsd_truncate gsd_seed_truncate
#define gsd_upgrade gsd_seed_upgrade
#define gsd_get_nframes gsd_seed_get_nframes
#define gsd_get_last_step gsd_seed_get_last_step
#define gsd_refresh gsd_seed_refresh
#define gsd_find_chunk gsd_seed_find_chunk
#define gsd_read_chunk gsd_seed_read_chunk
#define gsd_find_matching_chunk_name gsd_seed_find_matching_chunk_name
#define gsd_sizeof_type gsd_seed_sizeof_type
#define gsd_last_message gsd_seed_last_message

enum gsd_error
{
  GSD_SUCCESS = 0,
  GSD_ERROR_IO = -1,                    /* input or output failed */
  GSD_ERROR_NOT_A_GSD_FILE = -2,
  GSD_ERROR_FILE_CORRUPT = -3,          /* violates the format */
  GSD_ERROR_FILE_TRUNCATED = -4,        /* file is truncated */
  GSD_ERROR_UNSUPPORTED = -5,           /* feature is not supported */
  GSD_ERROR_LIMIT = -6,                 /* exceeds the memory limit */
  GSD_ERROR_INVALID_ARGUMENT = -7,
  GSD_ERROR_EXISTS = -8
};

enum gsd_open_flag
{
  GSD_OPEN_READWRITE = 1,
  GSD_OPEN_READONLY = 2,
  GSD_OPEN_APPEND = 3                   /* the same as READWRITE */
};

/* Element types; the codes are the same for all versions of the format. */
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

/* An open file. */
typedef struct gsd_handle gsd_handle_t;

/* A chunk: N rows of M elements. */
typedef struct gsd_index_entry
{
  uint64_t            frame;
  uint64_t            N, M;
  uint64_t            step;             /* in files of version 0.0.1 */
  int64_t             location;         /* offset of the data in the file */
  uint64_t            bytes;            /* size of the data */
  uint8_t             type;
} gsd_index_entry_t;

/* Creates an empty file; an existing file is replaced. `schema_version` is a result of
 * gsd_make_version. */
int                 gsd_create (const char *fname, const char *application, const char *schema,
                                uint32_t schema_version);

/* Creates an empty file in a given version of the format: gsd_make_version (2, 1), (2, 0), (1, 0), or
 * 1 for 0.0.1. */
int                 gsd_create_version (const char *fname, const char *application,
                                        const char *schema, uint32_t schema_version,
                                        uint32_t version);

/* Opens a file. Returns NULL on failure. One writer and any number of readers are allowed at a time. */
gsd_handle_t       *gsd_open (const char *fname, uint8_t flags);

/* Commits the ended frames and closes the file. The handle is invalid afterwards. */
int                 gsd_close (gsd_handle_t *handle);

/* Writing: the chunks of a frame, then gsd_end_frame. `step` is stored in files of version 0.0.1; later
 * versions have a chunk "configuration/step". */
int                 gsd_write_chunk (gsd_handle_t *handle, const char *name, uint8_t type,
                                     uint64_t N, uint64_t M, uint64_t step, const void *data);
int                 gsd_end_frame (gsd_handle_t *handle);

/* Commits all ended frames and waits for the disk. Other processes see committed frames only. */
int                 gsd_flush (gsd_handle_t *handle);

/* Commits automatically after every `frames` frames; 0 (default) never. With `durable` each commit
 * waits for the disk; without it, frames survive a crash of the process, but not of the machine. */
int                 gsd_set_commit (gsd_handle_t *handle, uint64_t frames, int durable);

/* Buffer sizes: bytes of data before they are written (default 1 MiB), and index entries of ended
 * frames before they are committed automatically (default 16384). The setters reject 0; the getters
 * return 0 for a file that is not open for writing. */
uint64_t            gsd_get_maximum_write_buffer_size (gsd_handle_t *handle);
int                 gsd_set_maximum_write_buffer_size (gsd_handle_t *handle, uint64_t size);
uint64_t            gsd_get_index_entries_to_buffer (gsd_handle_t *handle);
int                 gsd_set_index_entries_to_buffer (gsd_handle_t *handle, uint64_t number);

/* Removes all frames. */
int                 gsd_truncate (gsd_handle_t *handle);

/* Converts a file to version 2.1, atomically. */
int                 gsd_upgrade (gsd_handle_t *handle);

/* Reading. */

/* Number of ended frames. */
uint64_t            gsd_get_nframes (gsd_handle_t *handle);

/* Step of the last frame, or 0. */
uint64_t            gsd_get_last_step (gsd_handle_t *handle);

/* Reads frames that another process has committed since the file was opened. */
int                 gsd_refresh (gsd_handle_t *handle);

/* Finds a chunk by frame and name; NULL if it does not exist. The entry is valid for the next 255
 * lookups. */
const gsd_index_entry_t *gsd_find_chunk (gsd_handle_t *handle, uint64_t frame,
                                         const char *name);

/* Reads the data of a chunk, chunk->bytes bytes. */
int                 gsd_read_chunk (gsd_handle_t *handle, void *data,
                                    const gsd_index_entry_t *chunk);

/* Returns the first chunk name with the prefix `match` (if prev is NULL), or the one after `prev`; NULL
 * at the end. Names are valid until the next search begins. */
const char         *gsd_find_matching_chunk_name (gsd_handle_t *handle, const char *match,
                                                  const char *prev);

/* Bytes of an element; 0 for an unknown type. */
size_t              gsd_sizeof_type (uint8_t type);

uint32_t            gsd_make_version (uint32_t major, uint32_t minor);

/* Writes the message of the last error of this thread to `text`, which has `*strlen` bytes, and sets
 * `*strlen` to the number of bytes before the NUL. */
int                 gsd_last_message (char *text, int *strlen);

#ifdef __cplusplus
}
#endif

#endif /* GSD_SEED_H */
