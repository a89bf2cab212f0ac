/* gsd.h: trajectories of molecular simulations; committed frames survive a crash of the writer.
 *
 * The functions of the GSD specification, with additions of later versions. All versions of the
 * format can be read. New files have version 2.1 by default; appending keeps the version. Link with
 * -lspile, or use `pkg-config spile`.
 *
 * Functions that return an int return 0 or a negative GSD_ERROR_... code; gsd_last_message returns
 * the message. A handle must not be used by several threads at the same time.
 */
#ifndef GSD_H
#define GSD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

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

#endif /* GSD_H */
