/* Tests the functions of gsd.h, including invalid calls. `gsd FOLDER` prints "ok" and exits with 0 if all checks
 * pass. */
#include <gsd.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define CHECK(condition) check ((condition) != 0, #condition, __LINE__)

static void
check (int condition, const char *what, int line)
{
  char                text[512] = "";
  int                 length = sizeof (text);
  if (!condition) {
    gsd_last_message (text, &length);
    fprintf (stderr, "line %d: %s; %s\n", line, what, text);
    exit (EXIT_FAILURE);
  }
}

enum
{
  MANY = 10000
};

int
main (int argc, char **argv)
{
  char                path[512];
  struct gsd_handle   writer, reader;
  const struct gsd_index_entry *chunk;
  static const struct gsd_index_entry *all[MANY];
  const char         *name;
  double              values[6] = { 1.5, 2.5, 3.5, 4.5, 5.5, 6.5 }, got[6];
  uint64_t            frame;
  struct stat         now, other;

  CHECK (argc == 2);
  snprintf (path, sizeof (path), "%s/current.gsd", argv[1]);
  memset (&writer, 0xff, sizeof (writer));
  CHECK (gsd_create_and_open (&writer, path, "test", "none", gsd_make_version (1, 2),
                              GSD_OPEN_READWRITE, 1) == GSD_SUCCESS);
  CHECK (!strcmp (writer.header.schema, "none") && !strcmp (writer.header.application, "test"));
  CHECK (writer.header.gsd_version == gsd_make_version (2, 1) && writer.fd >= 0);
  CHECK (writer.header.schema_version == gsd_make_version (1, 2));
  errno = 0;
  CHECK (gsd_create_and_open (&reader, path, "test", "none", 0, GSD_OPEN_READWRITE, 1)
         == GSD_ERROR_IO && errno == EEXIST);
  for (frame = 0; frame < 10; ++frame) {
    values[0] = (double) frame;
    CHECK (gsd_write_chunk (&writer, "values", GSD_TYPE_DOUBLE, 3, 2, 0, values) == 0);
    CHECK (gsd_end_frame (&writer) == 0);
  }
  /* Reading sees committed frames only. */
  CHECK (gsd_get_nframes (&writer) == 0 && writer.file_frame == 0 && writer.buffer_frame == 10);
  CHECK (gsd_find_chunk (&writer, 0, "values") == NULL);
  CHECK (gsd_flush (&writer) == 0 && gsd_get_nframes (&writer) == 10 && writer.file_frame == 10);
  CHECK (gsd_open (&reader, path, GSD_OPEN_READONLY) == 0 && reader.file_frame == 10);
  chunk = gsd_find_chunk (&reader, 7, "values");
  CHECK (chunk && chunk->N == 3 && chunk->M == 2 && chunk->type == GSD_TYPE_DOUBLE);
  CHECK (gsd_read_chunk (&reader, got, chunk) == 0 && got[0] == 7 && got[5] == 6.5);
  CHECK (gsd_read_chunk (&reader, NULL, chunk) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_end_frame (&reader) == GSD_ERROR_FILE_MUST_BE_WRITABLE);
  CHECK (gsd_end_frame (NULL) == GSD_ERROR_INVALID_ARGUMENT);
  name = gsd_find_matching_chunk_name (&reader, "v", NULL);
  CHECK (name && !strcmp (name, "values"));
  CHECK (gsd_find_matching_chunk_name (&reader, "v", name) == NULL);
  CHECK (gsd_write_chunk (&writer, "x", GSD_TYPE_DOUBLE, 1, 0, 0, values)
         == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_write_chunk (&writer, "x", GSD_TYPE_DOUBLE, 1, 1, 1, values)
         == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_set_maximum_write_buffer_size (&writer, 0) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_set_maximum_write_buffer_size (&writer, 100) == 0);
  CHECK (gsd_get_maximum_write_buffer_size (&writer) == 100);
  CHECK (gsd_set_index_entries_to_buffer (&writer, 7) == 0);
  CHECK (gsd_get_index_entries_to_buffer (&writer) == 7);
  /* Automatic commits. */
  CHECK (gsd_set_commit (&writer, 1, 0) == 0);
  CHECK (gsd_write_chunk (&writer, "values", GSD_TYPE_DOUBLE, 3, 2, 0, values) == 0);
  CHECK (gsd_end_frame (&writer) == 0 && gsd_refresh (&reader) == 0);
  CHECK (gsd_get_nframes (&reader) == 11);
  CHECK (gsd_truncate (&writer) == 0 && gsd_get_nframes (&writer) == 0);
  CHECK (gsd_upgrade (&writer) == 0);
  CHECK (gsd_upgrade (&reader) == GSD_ERROR_INVALID_ARGUMENT);
  /* The descriptor is that of the file after truncation, which replaces it. */
  CHECK (fstat (writer.fd, &now) == 0 && stat (path, &other) == 0 && now.st_ino == other.st_ino);
  /* Chunks that are not flushed are not lost by an upgrade. */
  CHECK (gsd_set_commit (&writer, 0, 0) == 0);
  CHECK (gsd_write_chunk (&writer, "kept", GSD_TYPE_DOUBLE, 6, 1, 0, values) == 0);
  CHECK (gsd_upgrade (&writer) == GSD_ERROR_INVALID_ARGUMENT && gsd_end_frame (&writer) == 0);
  CHECK (gsd_upgrade (&writer) == GSD_ERROR_INVALID_ARGUMENT && gsd_flush (&writer) == 0);
  CHECK (gsd_find_chunk (&writer, 0, "kept") && gsd_upgrade (&writer) == 0);
  CHECK (gsd_get_maximum_write_buffer_size (&reader) == 1 << 20);
  CHECK (gsd_set_maximum_write_buffer_size (&reader, 100) == 0);
  CHECK (reader.maximum_write_buffer_size == 100);
  CHECK (gsd_close (&writer) == 0 && gsd_close (&reader) == 0);
  CHECK (gsd_close (&writer) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_open (&writer, path, GSD_OPEN_APPEND) == 0);
  CHECK (gsd_find_chunk (&writer, 0, "values") == NULL);
  CHECK (gsd_close (&writer) == 0);
  /* Results of searches stay valid while the file is open. */
  CHECK (gsd_create_and_open (&writer, path, "test", "none", 0, GSD_OPEN_READWRITE, 0) == 0);
  for (frame = 0; frame < MANY; ++frame) {
    CHECK (gsd_write_chunk (&writer, "n", GSD_TYPE_UINT64, 1, 1, 0, &frame) == 0);
    CHECK (gsd_end_frame (&writer) == 0);
  }
  CHECK (gsd_flush (&writer) == 0);
  for (frame = 0; frame < MANY; ++frame) {
    CHECK ((all[frame] = gsd_find_chunk (&writer, frame, "n")) != NULL);
  }
  for (frame = 0; frame < MANY; ++frame) {
    uint64_t            number;
    CHECK (all[frame]->frame == frame && gsd_find_chunk (&writer, frame, "n") == all[frame]);
    CHECK (gsd_read_chunk (&writer, &number, all[frame]) == 0 && number == frame);
  }
  CHECK (gsd_close (&writer) == 0);
  CHECK (gsd_open (&writer, "/no/such/file", GSD_OPEN_READONLY) == GSD_ERROR_IO && errno == ENOENT);
  /* A handle in uninitialised memory can be closed after a failure. */
  memset (&writer, 0xff, sizeof (writer));
  CHECK (gsd_open (&writer, "/no/such/file", GSD_OPEN_READONLY) == GSD_ERROR_IO && writer.fd < 0);
  CHECK (gsd_close (&writer) == GSD_ERROR_INVALID_ARGUMENT);
  memset (&writer, 0xff, sizeof (writer));
  CHECK (gsd_create_and_open (&writer, "/no/such/file", "test", "none", 0, GSD_OPEN_READWRITE, 0)
         == GSD_ERROR_IO);
  CHECK (gsd_close (&writer) == GSD_ERROR_INVALID_ARGUMENT && gsd_get_nframes (&writer) == 0);
  /* The sizes of the GSD library: programs that were compiled with its header keep their stack. */
  CHECK (sizeof (void *) != 8 || sizeof (struct gsd_handle) == 496);
  CHECK (gsd_open (&writer, "/", GSD_OPEN_READONLY) == GSD_ERROR_IO && errno == EISDIR);
  CHECK (gsd_create_and_open (&writer, path, "test", "none", 0, GSD_OPEN_READONLY, 0)
         == GSD_ERROR_FILE_MUST_BE_WRITABLE);
  CHECK (gsd_sizeof_type (GSD_TYPE_FLOAT) == 4 && gsd_sizeof_type (99) == 0);
  puts ("ok");
  return EXIT_SUCCESS;
}
