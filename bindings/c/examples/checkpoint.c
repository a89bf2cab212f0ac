/* Writes the state of a simulation and reads it back on any number of processes.
 *
 *   ./serial state.scda                          one process, no MPI
 *   mpirun -np 3 ./parallel state.scda           the same bytes
 *   mpirun -np 2 ./parallel state.scda restart   reads them back
 */
#include <scda.h>
#ifdef WITH_MPI
#include <scda_mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS 1000

/* The state of a cell: a field of fixed size and some particles, 0 to 4 of them. */
static double
field (uint64_t cell, int component)
{
  return (double) cell * 0.5 + component;
}

static uint64_t
particles (uint64_t cell)
{
  return cell * 7 % 5;
}

static void
fail (int err)
{
  char                text[512];
  int                 length = sizeof (text);
  scda_flast_message (text, &length);
  fprintf (stderr, "scda error %d: %s\n", err, text);
  exit (EXIT_FAILURE);
}

static const scda_comm_t *
communicator (void)
{
#ifdef WITH_MPI
  return scda_comm_mpi (MPI_COMM_WORLD);
#else
  return NULL;
#endif
}

/* Cells of this process, and number of cells and bytes of all processes. */
typedef struct
{
  int                 rank, size;
  uint64_t           *counts, *bytes;
  uint64_t            first, mine;
} part_t;

/* An uneven partition: the first process has the fewest cells. */
static part_t
partition (void)
{
  part_t              part = { 0, 1, NULL, NULL, 0, 0 };
  uint64_t            cell = 0;
  int                 q;
#ifdef WITH_MPI
  MPI_Comm_rank (MPI_COMM_WORLD, &part.rank);
  MPI_Comm_size (MPI_COMM_WORLD, &part.size);
#endif
  part.counts = calloc (part.size, sizeof (uint64_t));
  part.bytes = calloc (part.size, sizeof (uint64_t));
  for (q = 0; q < part.size; ++q) {
    uint64_t            end = CELLS * (uint64_t) (q + 1) * (q + 1) / part.size / part.size;
    part.counts[q] = end - cell;
    if (q == part.rank) {
      part.first = cell;
      part.mine = end - cell;
    }
    for (; cell < end; ++cell) {
      part.bytes[q] += particles (cell) * sizeof (double);
    }
  }
  return part;
}

static void
save (const char *path, const part_t *part)
{
  int                 err;
  uint64_t            k, i, n = 0;
  char                step[33];
  const char         *about = "{\"cells\": 1000, \"field\": \"2 x float64\"}";
  double             *fields = malloc ((2 * part->mine + 1) * sizeof (double));
  double             *positions = malloc (part->bytes[part->rank] + 1);
  uint64_t           *sizes = malloc ((part->mine + 1) * sizeof (uint64_t));
  scda_file_t        *f;

  for (k = 0; k < part->mine; ++k) {
    uint64_t            cell = part->first + k;
    fields[2 * k] = field (cell, 0);
    fields[2 * k + 1] = field (cell, 1);
    sizes[k] = particles (cell) * sizeof (double);
    for (i = 0; i < particles (cell); ++i) {
      positions[n++] = (double) cell + 0.125 * (double) i;
    }
  }
  snprintf (step, sizeof (step), "%31d\n", 42);

  /* After a failure the file is NULL; the following calls do nothing and keep err. */
  f = scda_fopen_write (communicator (), path, "checkpoint example", NULL, &err);
  f = scda_fwrite_inline (f, step, "step", 0, &err);
  f = scda_fwrite_block (f, about, strlen (about), "about", 0, 0, &err);
  f = scda_fwrite_array (f, fields, part->counts, 2 * sizeof (double), 0, "field", 0, &err);
  f = scda_fwrite_varray (f, positions, part->counts, sizes, part->bytes, 0, "particles", 1, &err);
  if (scda_fclose (f, &err)) {
    fail (err);
  }
  free (fields);
  free (positions);
  free (sizes);
}

static void
expect (int equal, const char *what)
{
  if (!equal) {
    fprintf (stderr, "%s differs from the data written\n", what);
    exit (EXIT_FAILURE);
  }
}

static void
load (const char *path, const part_t *part)
{
  int                 err, decode;
  uint64_t            N, E, k, n = 0;
  char                type, user[SCDA_USERSTR_ROOM], step[33] = "";
  double             *fields = malloc ((2 * part->mine + 1) * sizeof (double));
  double             *positions = malloc (part->bytes[part->rank] + 1);
  uint64_t           *sizes = malloc ((part->mine + 1) * sizeof (uint64_t));
  scda_file_t        *f = scda_fopen_read (communicator (), path, user, &err);

  while (f != NULL) {
    decode = 1;
    f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
    if (f == NULL || type == 0) {
      break;
    }
    if (type == 'I') {
      f = scda_fread_inline_data (f, step, 0, &err);
    }
    else if (type == 'B') {
      /* Skip it. */
      f = scda_fread_block_data (f, NULL, E, 0, &err);
    }
    else if (type == 'A') {
      f = scda_fread_array_data (f, fields, part->counts, E, 0, &err);
    }
    else {
      f = scda_fread_varray_sizes (f, sizes, part->counts, &err);
      f = scda_fread_varray_data (f, positions, part->counts, sizes, part->bytes, 0, &err);
    }
  }
  if (scda_fclose (f, &err)) {
    fail (err);
  }

  expect (part->rank != 0 || atoi (step) == 42, "the step");
  for (k = 0; k < part->mine; ++k) {
    uint64_t            cell = part->first + k, i;
    expect (fields[2 * k] == field (cell, 0) && fields[2 * k + 1] == field (cell, 1), "a field");
    expect (sizes[k] == particles (cell) * sizeof (double), "the number of particles");
    for (i = 0; i < particles (cell); ++i) {
      expect (positions[n++] == (double) cell + 0.125 * (double) i, "a particle");
    }
  }
  free (fields);
  free (positions);
  free (sizes);
  if (part->rank == 0) {
    printf ("restarted at step %d on %d process%s\n", atoi (step), part->size,
            part->size == 1 ? "" : "es");
  }
}

int
main (int argc, char **argv)
{
  part_t              part;
#ifdef WITH_MPI
  MPI_Init (&argc, &argv);
#endif
  part = partition ();
  if (argc < 2) {
    fprintf (stderr, "usage: %s FILE [restart]\n", argv[0]);
    return EXIT_FAILURE;
  }
  if (argc < 3) {
    save (argv[1], &part);
  }
  load (argv[1], &part);
  free (part.counts);
  free (part.bytes);
#ifdef WITH_MPI
  MPI_Finalize ();
#endif
  return EXIT_SUCCESS;
}
