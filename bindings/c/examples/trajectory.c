/* Writes a trajectory in the HOOMD-blue schema and reads it back.
 *
 *   ./trajectory run.gsd
 */
#include <gsd_seed.h>
#include <stdio.h>
#include <stdlib.h>

#define PARTICLES 100
#define FRAMES 10

static void
check (int code)
{
  char                text[512];
  int                 length = sizeof (text);
  if (code != GSD_SUCCESS) {
    gsd_last_message (text, &length);
    fprintf (stderr, "gsd error %d: %s\n", code, text);
    exit (EXIT_FAILURE);
  }
}

static void
write_trajectory (const char *path)
{
  float               position[PARTICLES][3], box[6] = { 20, 20, 20, 0, 0, 0 };
  uint32_t            particles = PARTICLES;
  uint64_t            frame, step;
  int                 i;
  gsd_handle_t       *file;

  check (gsd_create (path, "trajectory.c", "hoomd", gsd_make_version (1, 4)));
  file = gsd_open (path, GSD_OPEN_READWRITE);
  /* A crash loses at most the frame that is being written. */
  check (gsd_set_commit (file, 1, 0));
  for (frame = 0; frame < FRAMES; ++frame) {
    step = 1000 * frame;
    for (i = 0; i < PARTICLES; ++i) {
      position[i][0] = (float) i / 10;
      position[i][1] = (float) frame / 10;
      position[i][2] = 0;
    }
    check (gsd_write_chunk (file, "configuration/step", GSD_TYPE_UINT64, 1, 1, step, &step));
    if (frame == 0) {
      /* Constant quantities are written once. */
      check (gsd_write_chunk (file, "configuration/box", GSD_TYPE_FLOAT, 6, 1, step, box));
      check (gsd_write_chunk (file, "particles/N", GSD_TYPE_UINT32, 1, 1, step, &particles));
    }
    check (gsd_write_chunk (file, "particles/position", GSD_TYPE_FLOAT, PARTICLES, 3, step,
                            position));
    check (gsd_end_frame (file));
  }
  check (gsd_close (file));
}

static void
read_trajectory (const char *path)
{
  float               position[PARTICLES][3];
  const gsd_index_entry_t *chunk;
  gsd_handle_t       *file = gsd_open (path, GSD_OPEN_READONLY);
  const char         *name = NULL;
  uint64_t            frame;

  if (file == NULL) {
    check (GSD_ERROR_IO);
  }
  for (frame = 0; frame < gsd_get_nframes (file); ++frame) {
    chunk = gsd_find_chunk (file, frame, "particles/position");
    if (chunk == NULL || chunk->N != PARTICLES || chunk->M != 3) {
      check (GSD_ERROR_FILE_CORRUPT);
    }
    check (gsd_read_chunk (file, position, chunk));
    if (position[7][0] != 0.7f || position[7][1] != (float) frame / 10) {
      fprintf (stderr, "frame %d differs from the data written\n", (int) frame);
      exit (EXIT_FAILURE);
    }
  }
  printf ("%d frames, the last at step %d\n", (int) gsd_get_nframes (file),
          (int) gsd_get_last_step (file));
  while ((name = gsd_find_matching_chunk_name (file, "particles/", name)) != NULL) {
    printf ("%s\n", name);
  }
  check (gsd_close (file));
}

int
main (int argc, char **argv)
{
  if (argc != 2) {
    fprintf (stderr, "usage: %s FILE\n", argv[0]);
    return EXIT_FAILURE;
  }
  write_trajectory (argv[1]);
  read_trajectory (argv[1]);
  return EXIT_SUCCESS;
}
