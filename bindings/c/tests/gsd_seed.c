/* Tests all functions of gsd_seed.h, including invalid calls. `gsd FOLDER` prints "ok" and exits with 0 if all
 * checks pass. */
#include <gsd_seed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void
one_version (const char *path, uint32_t version)
{
  const int           first = version == 1;
  double              values[6] = { 1.5, 2.5, 3.5, 4.5, 5.5, 6.5 }, got[6];
  uint64_t            frame, step = 0;
  const gsd_index_entry_t *chunk;
  gsd_index_entry_t   kept;
  gsd_handle_t       *writer, *reader;
  const char         *name;

  CHECK (gsd_create_version (path, "test", "none", gsd_make_version (1, 2), version) == 0);
  writer = gsd_open (path, GSD_OPEN_READWRITE);
  reader = gsd_open (path, GSD_OPEN_READONLY);
  CHECK (writer && reader && gsd_get_nframes (reader) == 0 && gsd_get_last_step (reader) == 0);
  /* One writer at a time. */
  CHECK (gsd_open (path, GSD_OPEN_READWRITE) == NULL);
  for (frame = 0; frame < 300; ++frame) {
    step = 10 * frame;
    values[0] = (double) frame;
    CHECK (gsd_write_chunk (writer, "values", GSD_TYPE_DOUBLE, 3, 2, step, values) == 0);
    if (!first) {
      CHECK (gsd_write_chunk (writer, "configuration/step", GSD_TYPE_UINT64, 1, 1, step, &step) == 0);
    }
    CHECK (gsd_write_chunk (writer, "vector", GSD_TYPE_UINT8, 4, 1, step, "abc") == 0);
    CHECK (gsd_end_frame (writer) == 0);
  }
  CHECK (gsd_get_nframes (writer) == 300);
  CHECK (gsd_flush (writer) == 0);
  CHECK (gsd_get_nframes (reader) == 0 && gsd_refresh (reader) == 0);
  CHECK (gsd_get_nframes (reader) == 300 && gsd_get_last_step (reader) == 2990);
  /* A writer can read; its last 256 results stay valid. */
  chunk = gsd_find_chunk (writer, 123, "values");
  CHECK (chunk && chunk->N == 3 && chunk->M == 2 && chunk->type == GSD_TYPE_DOUBLE);
  kept = *chunk;
  CHECK (kept.frame == 123 && kept.bytes == 48 && (!first || kept.step == 1230));
  for (frame = 0; frame < 255; ++frame) {
    CHECK (gsd_find_chunk (writer, frame, "vector") != NULL);
  }
  CHECK (chunk->frame == 123);
  CHECK (gsd_read_chunk (writer, got, chunk) == 0 && got[0] == 123 && got[5] == 6.5);
  memset (got, 0, sizeof (got));
  CHECK (gsd_read_chunk (reader, got, &kept) == 0 && got[0] == 123 && got[5] == 6.5);
  CHECK (gsd_find_chunk (reader, 300, "values") == NULL);
  CHECK (gsd_find_chunk (reader, 0, "nothing") == NULL);
  name = gsd_find_matching_chunk_name (reader, "v", NULL);
  CHECK (name && !strcmp (name, "values"));
  name = gsd_find_matching_chunk_name (reader, "v", name);
  CHECK (name && !strcmp (name, "vector"));
  CHECK (gsd_find_matching_chunk_name (reader, "v", name) == NULL);
  CHECK (gsd_truncate (writer) == 0 && gsd_get_nframes (writer) == 0);
  CHECK (gsd_set_commit (writer, 1, 0) == 0);
  CHECK (gsd_write_chunk (writer, "values", GSD_TYPE_DOUBLE, 3, 2, 7, values) == 0);
  CHECK (gsd_end_frame (writer) == 0);
  /* Committed without a flush. */
  CHECK (gsd_close (reader) == 0);
  reader = gsd_open (path, GSD_OPEN_READONLY);
  CHECK (gsd_get_nframes (reader) == 1);
  CHECK (gsd_upgrade (reader) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_close (reader) == 0 && gsd_upgrade (writer) == 0);
  CHECK (gsd_get_nframes (writer) == 1 && gsd_find_chunk (writer, 0, "values") != NULL);
  CHECK (gsd_write_chunk (writer, "text", GSD_TYPE_CHARACTER, 5, 1, 0, "hello") == 0);
  CHECK (gsd_end_frame (writer) == 0 && gsd_get_nframes (writer) == 2);
  CHECK (gsd_close (writer) == 0);
}

static void
buffers (const char *path)
{
  uint64_t            frame;
  gsd_handle_t       *writer, *reader;

  CHECK (gsd_create (path, "test", "none", 0) == 0);
  writer = gsd_open (path, GSD_OPEN_READWRITE);
  CHECK (gsd_get_maximum_write_buffer_size (writer) == 1048576);
  CHECK (gsd_set_maximum_write_buffer_size (writer, 100) == 0);
  CHECK (gsd_set_maximum_write_buffer_size (writer, 0) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_get_maximum_write_buffer_size (writer) == 100);
  CHECK (gsd_get_index_entries_to_buffer (writer) == 16384);
  CHECK (gsd_set_index_entries_to_buffer (writer, 0) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_set_index_entries_to_buffer (writer, 7) == 0);
  CHECK (gsd_get_index_entries_to_buffer (writer) == 7);
  for (frame = 0; frame < 20; ++frame) {
    CHECK (gsd_write_chunk (writer, "x", GSD_TYPE_UINT64, 1, 1, 0, &frame) == 0);
    CHECK (gsd_end_frame (writer) == 0);
  }
  /* Every seven entries are committed automatically. */
  reader = gsd_open (path, GSD_OPEN_READONLY);
  CHECK (gsd_get_nframes (reader) == 14);
  CHECK (gsd_get_maximum_write_buffer_size (reader) == 0);
  CHECK (gsd_set_index_entries_to_buffer (reader, 7) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_close (reader) == 0 && gsd_close (writer) == 0);
  reader = gsd_open (path, GSD_OPEN_READONLY);
  CHECK (gsd_get_nframes (reader) == 20);
  for (frame = 0; frame < 20; ++frame) {
    uint64_t            got = 99;
    CHECK (gsd_read_chunk (reader, &got, gsd_find_chunk (reader, frame, "x")) == 0);
    CHECK (got == frame);
  }
  CHECK (gsd_close (reader) == 0);
}

static void
wrong (const char *path, const char *other)
{
  gsd_handle_t       *handle;
  char                text[8];
  int                 length = sizeof (text);
  gsd_index_entry_t   invalid = { 0, 1, 1, 0, 1000000, 8, GSD_TYPE_DOUBLE };
  double              value = 0;
  FILE               *file = fopen (other, "w");

  fputs ("this is not a trajectory", file);
  fclose (file);
  CHECK (gsd_open (other, GSD_OPEN_READONLY) == NULL);
  CHECK (gsd_last_message (text, &length) == 0 && length == 7 && strlen (text) == 7);
  CHECK (gsd_open ("/no/such/file", GSD_OPEN_READONLY) == NULL);
  CHECK (gsd_open (path, 17) == NULL);
  CHECK (gsd_close (NULL) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_create ("/no/such/folder/file", "", "", 0) == GSD_ERROR_IO);
  CHECK (gsd_create_version (other, "", "", 0, 99) == GSD_ERROR_INVALID_ARGUMENT);
  handle = gsd_open (path, GSD_OPEN_READONLY);
  CHECK (gsd_end_frame (handle) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_write_chunk (handle, "x", GSD_TYPE_UINT8, 1, 1, 0, "") == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_read_chunk (handle, &value, &invalid) == GSD_ERROR_FILE_TRUNCATED);
  CHECK (gsd_read_chunk (handle, &value, NULL) == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_close (handle) == 0);
  handle = gsd_open (path, GSD_OPEN_APPEND);
  CHECK (gsd_write_chunk (handle, "x", 99, 1, 1, 0, "") == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_write_chunk (handle, "x", GSD_TYPE_UINT8, UINT64_MAX, 9, 0, "")
         == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_write_chunk (handle, "x", GSD_TYPE_UINT8, 4, 1, 0, NULL)
         == GSD_ERROR_INVALID_ARGUMENT);
  CHECK (gsd_close (handle) == 0);
  CHECK (gsd_sizeof_type (GSD_TYPE_DOUBLE) == 8 && gsd_sizeof_type (0) == 0);
}

int
main (int argc, char **argv)
{
  const uint32_t      versions[4] = { 1, 0x10000, 0x20000, 0x20001 };
  char                path[512], other[512];
  int                 k;
  CHECK (argc == 2);
  for (k = 0; k < 4; ++k) {
    snprintf (path, sizeof (path), "%s/%d.gsd", argv[1], k);
    one_version (path, versions[k]);
  }
  snprintf (other, sizeof (other), "%s/buffers.gsd", argv[1]);
  buffers (other);
  snprintf (other, sizeof (other), "%s/other", argv[1]);
  wrong (path, other);
  printf ("ok\n");
  return EXIT_SUCCESS;
}
