/* gsd.h: trajectories of molecular simulations, frame by frame, in a file that survives a kill.
 *
 * The functions of the GSD specification under its names, and what later libraries added. All
 * versions of the format are read; new files are 2.1 unless asked otherwise, and appending keeps a
 * file's version. Link with -lspile, or see `pkg-config spile`.
 *
 * Functions that return an int give 0, or a negative GSD_ERROR_...; gsd_last_message has the words.
 * A handle is for one thread at a time.
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
  GSD_ERROR_IO = -1,                    /* the operating system refused */
  GSD_ERROR_NOT_A_GSD_FILE = -2,
  GSD_ERROR_FILE_CORRUPT = -3,          /* breaks a rule of the format */
  GSD_ERROR_FILE_TRUNCATED = -4,        /* ends too early */
  GSD_ERROR_UNSUPPORTED = -5,           /* legal, but not known to this version */
  GSD_ERROR_LIMIT = -6,                 /* larger than the machine can take */
  GSD_ERROR_INVALID_ARGUMENT = -7,
  GSD_ERROR_EXISTS = -8
};

enum gsd_open_flag
{
  GSD_OPEN_READWRITE = 1,
  GSD_OPEN_READONLY = 2,
  GSD_OPEN_APPEND = 3                   /* the same as READWRITE here: both read and write */
};

/* Element types; the same numbers for every version of the format. */
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
  int64_t             location;         /* its first byte in the file */
  uint64_t            bytes;            /* how many there are */
  uint8_t             type;
} gsd_index_entry_t;

/* Makes an empty file, in place of any other. The version of the schema is a number of
 * gsd_make_version. */
int                 gsd_create (const char *fname, const char *application, const char *schema,
                                uint32_t schema_version);

/* The same in another version of the format: gsd_make_version (2, 1), (2, 0), (1, 0), or 1 for
 * 0.0.1. */
int                 gsd_create_version (const char *fname, const char *application,
                                        const char *schema, uint32_t schema_version,
                                        uint32_t version);

/* Opens a file; NULL on failure. There is one writer at a time, and any number of readers. */
gsd_handle_t       *gsd_open (const char *fname, uint8_t flags);

/* Commits the frames that have ended and closes the file. The handle is gone in any case. */
int                 gsd_close (gsd_handle_t *handle);

/* Writing: chunks, then the end of their frame. `step` goes into files of version 0.0.1; later
 * ones have a chunk "configuration/step" for it. */
int                 gsd_write_chunk (gsd_handle_t *handle, const char *name, uint8_t type,
                                     uint64_t N, uint64_t M, uint64_t step, const void *data);
int                 gsd_end_frame (gsd_handle_t *handle);

/* Makes all frames that have ended visible to others, whole, and safe from a power failure. */
int                 gsd_flush (gsd_handle_t *handle);

/* Does so by itself whenever so many frames have ended; 0 is never, which is how a file is opened.
 * With `durable` each time waits for the disk; without it frames survive a kill of the process,
 * not of the machine. */
int                 gsd_set_commit (gsd_handle_t *handle, uint64_t frames, int durable);

/* How much waits in memory: bytes of data before they are written (1 MiB at first), and index entries
 * of frames that have ended before they are committed without being asked (16384 at first). The
 * setters refuse 0; the getters give it for a file that is not open for writing. */
uint64_t            gsd_get_maximum_write_buffer_size (gsd_handle_t *handle);
int                 gsd_set_maximum_write_buffer_size (gsd_handle_t *handle, uint64_t size);
uint64_t            gsd_get_index_entries_to_buffer (gsd_handle_t *handle);
int                 gsd_set_index_entries_to_buffer (gsd_handle_t *handle, uint64_t number);

/* Takes all frames out of the file. */
int                 gsd_truncate (gsd_handle_t *handle);

/* Turns an old file into one of version 2.1 with the same frames, in one step: at every moment it is
 * the old one or the new one. */
int                 gsd_upgrade (gsd_handle_t *handle);

/* Reading. */

/* Frames that have ended. */
uint64_t            gsd_get_nframes (gsd_handle_t *handle);

/* The step of the last frame, or 0. */
uint64_t            gsd_get_last_step (gsd_handle_t *handle);

/* Sees what another process has committed since the file was opened. */
int                 gsd_refresh (gsd_handle_t *handle);

/* The chunk of that name in that frame, or NULL. The entry is there for the next 255 lookups;
 * copy it to keep it. */
const gsd_index_entry_t *gsd_find_chunk (gsd_handle_t *handle, uint64_t frame,
                                         const char *name);

/* The data of a chunk, chunk->bytes of them. */
int                 gsd_read_chunk (gsd_handle_t *handle, void *data,
                                    const gsd_index_entry_t *chunk);

/* The first name that begins with `match` (prev is NULL), then the one after `prev`; NULL at the
 * end. Names are there until the next search begins. */
const char         *gsd_find_matching_chunk_name (gsd_handle_t *handle, const char *match,
                                                  const char *prev);

/* Bytes of an element; 0 if there is no such type. */
size_t              gsd_sizeof_type (uint8_t type);

uint32_t            gsd_make_version (uint32_t major, uint32_t minor);

/* Fills `text`, which has `*strlen` bytes, with the last failure of this thread: file, chunk, byte
 * and what was expected; `*strlen` becomes the number of bytes before the NUL. */
int                 gsd_last_message (char *text, int *strlen);

#ifdef __cplusplus
}
#endif

#endif /* GSD_H */
