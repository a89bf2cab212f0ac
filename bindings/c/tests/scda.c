/* Tests all functions of scda.h, including invalid calls. `scda FOLDER` prints "ok" and exits with 0 if
 * all checks pass. With MPI every process makes all checks. */
#include <scda.h>
#ifdef WITH_MPI
#include <scda_mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int          rank = 0, size = 1;

#define CHECK(condition) check ((condition) != 0, #condition, __LINE__)

static void
check (int condition, const char *what, int line)
{
  char                text[512] = "";
  int                 length = sizeof (text);
  if (!condition) {
    scda_flast_message (text, &length);
    fprintf (stderr, "rank %d, line %d: %s; %s\n", rank, line, what, text);
#ifdef WITH_MPI
    MPI_Abort (MPI_COMM_WORLD, 1);
#endif
    exit (EXIT_FAILURE);
  }
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

static scda_file_t *
create (const char *path)
{
  int                 err = -1;
  scda_file_t        *f = scda_fopen (communicator (), path, 'w', "every", &err);
  CHECK (f != NULL && err == 0);
  return f;
}

/* Element k is k % 7 bytes of the letter 'a' + k % 26; 5 bytes in the array of equal sizes. */
#define ELEMENTS 40

static void
split (uint64_t *counts, uint64_t *first)
{
  int                 q;
  /* The last process has most elements, the first none if there are others. */
  for (q = 0; q < size; ++q) {
    counts[q] = 0;
  }
  counts[size - 1] = ELEMENTS;
  if (size > 2) {
    counts[1] = 2;
    counts[size - 1] -= 2;
  }
  *first = rank == size - 1 && size > 2 ? 2 : 0;
}

static void
write_all (const char *path, int indirect, int encode)
{
  uint64_t            counts[64], bytes[64], sizes[ELEMENTS], first, k;
  char                fixed[5 * ELEMENTS], varied[7 * ELEMENTS], user[3] = { 'a', 0, 'b' };
  const void         *fixed_at[ELEMENTS + 1], *varied_at[ELEMENTS + 1];
  int                 err = -1, q;
  char               *end = varied;
  scda_options_t      options = SCDA_OPTIONS_DEFAULT;
  scda_file_t        *f;

  split (counts, &first);
  for (k = 0; k < counts[rank]; ++k) {
    uint64_t            element = first + k;
    memset (fixed + 5 * k, 'a' + (int) (element % 26), 5);
    sizes[k] = element % 7;
    memset (end, 'a' + (int) (element % 26), sizes[k]);
    fixed_at[k] = fixed + 5 * k;
    varied_at[k] = end;
    end += sizes[k];
  }
  for (q = 0, k = 0; q < size; ++q) {
    uint64_t            until = k + counts[q];
    for (bytes[q] = 0; k < until; ++k) {
      bytes[q] += k % 7;
    }
  }
  options.vendor = "scda.c";
  f = scda_fopen_with (communicator (), path, 'w', "user", &options, &err);
  CHECK (f != NULL && err == 0);
  f = scda_fwrite_inline (f, rank == size - 1 ? "0123456789abcdef0123456789abcde\n" : NULL, "inline",
                          size - 1, &err);
  CHECK (f != NULL && err == 0);
  f = scda_fwrite_block (f, rank == 0 ? "block" : NULL, 5, "block", 0, encode, &err);
  CHECK (f != NULL && err == 0);
  f = scda_fwrite_array (f, indirect ? (const void *) fixed_at : fixed, counts, 5, indirect,
                         "array", encode, &err);
  CHECK (f != NULL && err == 0);
  f = scda_fwrite_varray (f, indirect ? (const void *) varied_at : varied, counts, sizes, bytes,
                          indirect, "varray", encode, &err);
  CHECK (f != NULL && err == 0);
  /* A user string with a NUL, and an empty block. */
  scda_fset_userstr_length (f, 3);
  f = scda_fwrite_block (f, NULL, 0, user, 0, 0, &err);
  CHECK (f != NULL && err == 0);
  CHECK (scda_fclose (f, &err) == 0 && err == 0);
}

static void
read_all (const char *path, int indirect, int encode)
{
  uint64_t            counts[64], bytes[64], sizes[ELEMENTS + 1], first, N, E, k, mine;
  char                fixed[5 * ELEMENTS + 1], varied[7 * ELEMENTS + 1], inlined[32], block[5];
  void               *fixed_at[ELEMENTS + 1], *varied_at[ELEMENTS + 1];
  char                type, user[SCDA_USERSTR_ROOM];
  int                 err = -1, q, decode;
  char               *end = varied;
  scda_file_t        *f = scda_fopen (communicator (), path, 'r', user, &err);

  CHECK (f != NULL && err == 0 && !strcmp (user, "user"));
  split (counts, &first);
  mine = counts[rank];
  decode = 1;
  f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
  CHECK (f && type == 'I' && N == 0 && E == 0 && !decode && !strcmp (user, "inline"));
  f = scda_fread_inline_data (f, rank == 0 ? inlined : NULL, 0, &err);
  CHECK (f && (rank || !memcmp (inlined, "0123456789abcdef0123456789abcde\n", 32)));
  decode = 1;
  f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
  CHECK (f && type == 'B' && N == 0 && E == 5 && decode == encode && !strcmp (user, "block"));
  f = scda_fread_block_data (f, block, 5, size - 1, &err);
  CHECK (f && (rank != size - 1 || !memcmp (block, "block", 5)));
  decode = 1;
  f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
  CHECK (f && type == 'A' && N == ELEMENTS && E == 5 && decode == encode);
  for (k = 0; k < mine; ++k) {
    fixed_at[k] = fixed + 5 * k;
  }
  f = scda_fread_array_data (f, indirect ? (void *) fixed_at : fixed, counts, 5, indirect, &err);
  CHECK (f != NULL);
  decode = 1;
  f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
  CHECK (f && type == 'V' && N == ELEMENTS && E == 0 && decode == encode);
  f = scda_fread_varray_sizes (f, sizes, counts, &err);
  CHECK (f != NULL);
  for (k = 0; k < mine; ++k) {
    varied_at[k] = end;
    end += sizes[k];
  }
  for (q = 0, k = 0; q < size; ++q) {
    uint64_t            until = k + counts[q];
    for (bytes[q] = 0; k < until; ++k) {
      bytes[q] += k % 7;
    }
  }
  f = scda_fread_varray_data (f, indirect ? (void *) varied_at : varied, counts, sizes, bytes,
                              indirect, &err);
  CHECK (f != NULL);
  for (k = 0; k < mine; ++k) {
    uint64_t            element = first + k, i;
    CHECK (sizes[k] == element % 7);
    for (i = 0; i < 5; ++i) {
      CHECK (fixed[5 * k + i] == 'a' + (int) (element % 26));
    }
    for (i = 0; i < sizes[k]; ++i) {
      CHECK (((char *) varied_at[k])[i] == 'a' + (int) (element % 26));
    }
  }
  decode = 0;
  f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
  CHECK (f && type == 'B' && E == 0 && scda_fuserstr_length (f) == 3 && !memcmp (user, "a\0b", 4));
  f = scda_fread_block_data (f, NULL, 0, 0, &err);
  f = scda_fread_section_header (f, &type, &N, &E, user, &decode, &err);
  CHECK (f && type == 0 && err == 0);
  CHECK (scda_fclose (f, &err) == 0 && err == 0);
}

/* Reads the headers and skips all data. */
static void
skip_all (const char *path, int decode_all)
{
  uint64_t            counts[64], N, E;
  char                type = 'x';
  int                 err = -1, sections = 0, decode, q;
  scda_file_t        *f = scda_fopen (communicator (), path, 'r', NULL, &err);
  while (type != 0) {
    decode = decode_all;
    f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
    CHECK (f != NULL && err == 0);
    for (q = 0; q < size; ++q) {
      counts[q] = q == 0 ? N : 0;
    }
    switch (type) {
    case 'I':
      f = scda_fread_inline_data (f, NULL, 0, &err);
      break;
    case 'B':
      f = scda_fread_block_data (f, NULL, E, 0, &err);
      break;
    case 'A':
      f = scda_fread_array_data (f, NULL, counts, E, 0, &err);
      break;
    case 'V':
      f = scda_fread_varray_sizes (f, NULL, counts, &err);
      f = scda_fread_varray_data (f, NULL, counts, NULL, NULL, 0, &err);
      break;
    }
    CHECK (f != NULL && err == 0);
    sections += type != 0;
  }
  CHECK (sections == (decode_all ? 5 : 8));
  CHECK (scda_fclose (f, &err) == 0);
}

/* An invalid argument of one process is an error on all; the file is closed and not created. */
static void
wrong (const char *path)
{
  uint64_t            counts[64], bytes[64], sizes[1] = { 3 }, N, E;
  char                type, long_user[80], text[8];
  int                 err, q, decode = 0, length = sizeof (text), last = rank == size - 1;
  FILE               *file;
  scda_file_t        *f;

  memset (long_user, 'x', sizeof (long_user));
  long_user[79] = '\0';
  for (q = 0; q < size; ++q) {
    counts[q] = 1;
    bytes[q] = 3;
  }
  err = 0;
  CHECK (!scda_fwrite_inline (create (path), text, last ? long_user : "", 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fwrite_block (create (path), "", 1, "", -1, 0, &err) && err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fwrite_block (create (path), NULL, 1, "", 0, 0, &err) && err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fwrite_array (create (path), last ? NULL : "abc", counts, 3, 0, "", 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fwrite_array (create (path), "abc", last ? NULL : counts, 3, 0, "", 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  err = 0;
  bytes[size - 1] = 4;
  CHECK (!scda_fwrite_varray (create (path), "abc", counts, sizes, bytes, 0, "", 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fread_section_header (create (path), &type, &N, &E, NULL, &decode, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fopen (communicator (), path, 'a', NULL, &err) && err == SCDA_ERR_ARGUMENT);
  err = 0;
  CHECK (!scda_fopen (communicator (), path, 'r', NULL, &err) && err == SCDA_ERR_IO);
  err = 0;
  CHECK (scda_fclose (NULL, &err) && err == SCDA_ERR_ARGUMENT);
  /* The first error is kept by the following calls. */
  err = 0;
  f = scda_fopen (communicator (), path, 'r', NULL, &err);
  f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
  CHECK (scda_fclose (f, &err) && err == SCDA_ERR_IO);
  file = fopen (path, "rb");
  CHECK (file == NULL);

  /* The description of a code, truncated to the buffer. */
  CHECK (scda_ferror_string (SCDA_ERR_IO, text, &length) == 0 && length == 7);
  CHECK (strlen (text) == 7 && scda_ferror_string (99, text, &length) < 0);

  /* The order of calls. */
  CHECK (scda_fclose (scda_fwrite_inline (create (path), "0123456789abcdef0123456789abcdef", "", 0,
                                          &err), &err) == 0);
  f = scda_fopen (communicator (), path, 'r', NULL, &err);
  CHECK (!scda_fread_inline_data (f, NULL, 0, &err) && err == SCDA_ERR_ARGUMENT);
  f = scda_fopen (communicator (), path, 'r', NULL, &err);
  f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
  CHECK (f && !scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  f = scda_fopen (communicator (), path, 'r', NULL, &err);
  f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
  CHECK (f && !scda_fread_block_data (f, NULL, 0, 0, &err) && err == SCDA_ERR_ARGUMENT);

  /* A length that exceeds the user string is an error, and its bytes are not read. */
  err = 0;
  f = create (path);
  scda_fset_userstr_length (f, UINT64_MAX);
  CHECK (!scda_fwrite_block (f, NULL, 0, long_user, 0, 0, &err) && err == SCDA_ERR_ARGUMENT);
}

/* Collective arguments that differ are an error on all processes. */
static void
different (const char *path)
{
  uint64_t            counts[64], bytes[64], sizes[1] = { 3 }, N, E;
  char                type, text[4];
  const void         *at[1] = { "abc" };
  int                 err, q, decode, last = rank == size - 1;
  scda_options_t      options = SCDA_OPTIONS_DEFAULT;
  scda_field_t        field = SCDA_FIELD_DEFAULT;
  scda_field_info_t   info;
  scda_file_t        *f;

  if (size == 1) {
    return;
  }
  for (q = 0; q < size; ++q) {
    counts[q] = 1;
    bytes[q] = 3;
  }
  options.checksums = last;
  CHECK (!scda_fopen_write (communicator (), path, "", &options, &err) && err == SCDA_ERR_ARGUMENT);
  CHECK (!scda_fopen_write (communicator (), path, last ? "a" : "b", NULL, &err));
  CHECK (!scda_fwrite_block (create (path), "ab", 1 + last, "", 0, 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  CHECK (!scda_fwrite_inline (create (path), "0123456789abcdef0123456789abcdef", "", last, &err));
  CHECK (!scda_fwrite_array (create (path), "abc", counts, 3, 0, "", last, &err));
  CHECK (!scda_fwrite_array (create (path), last ? (const void *) at : "abc", counts, 3, last, "", 0,
                             &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  /* (S_q) of another process. */
  bytes[0] = last ? 4 : 3;
  CHECK (!scda_fwrite_varray (create (path), "abc", counts, sizes, bytes, 0, "", 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  bytes[0] = 3;
  f = scda_fwrite_array (create (path), "abc", counts, 3, 0, "", 0, &err);
  f = scda_fwrite_varray (f, "abc", counts, sizes, bytes, 0, "", 0, &err);
  CHECK (scda_fclose (f, &err) == 0);
  decode = last;
  f = scda_fopen_read (communicator (), path, NULL, &err);
  CHECK (!scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  decode = 0;
  f = scda_fopen_read (communicator (), path, NULL, &err);
  f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
  CHECK (f && !scda_fread_array_data (f, NULL, counts, last ? 4 : 3, 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  f = scda_fopen_read (communicator (), path, NULL, &err);
  f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
  f = scda_fread_array_data (f, NULL, counts, 3, 0, &err);
  f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
  f = scda_fread_varray_sizes (f, sizes, counts, &err);
  CHECK (f && sizes[0] == 3);
  bytes[0] = last ? 4 : 3;
  CHECK (!scda_fread_varray_data (f, text, counts, sizes, bytes, 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  /* Names and descriptions. */
  f = scda_fopen_read (communicator (), path, NULL, &err);
  CHECK (!scda_find_field (f, last ? "a" : "b", &info, &err) && err == SCDA_ERR_ARGUMENT);
  f = scda_fopen_read (communicator (), path, NULL, &err);
  CHECK (!scda_find_attrs (f, last ? "a" : "b", NULL, NULL, &err) && err == SCDA_ERR_ARGUMENT);
  CHECK (!scda_fwrite_attrs (create (path), "", last ? "{}" : "{\"a\":1}", &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  field.name = "a";
  field.type = last ? "|i1" : "|u1";
  CHECK (!scda_fwrite_field (create (path), &field, "a", counts, 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
  field.type = last ? "none" : "|u1";
  CHECK (!scda_fwrite_field (create (path), &field, "a", counts, 0, &err));
  CHECK (err == SCDA_ERR_ARGUMENT);
}

/* Fields, attributes, index and checksums. */
static void
fields (const char *path, int indirect)
{
  uint64_t            counts[64], first, k, shape[1] = { 2 }, lengths[ELEMENTS + 1];
  uint32_t            pairs[2 * ELEMENTS + 2], items[3 * ELEMENTS + 1], *end = items;
  const void         *pair_at[ELEMENTS + 1], *item_at[ELEMENTS + 1];
  void               *pair_to[ELEMENTS + 1], *item_to[ELEMENTS + 1];
  char                text[64], name[59];
  size_t              length = sizeof (text);
  int                 err = -1;
  scda_options_t      options = SCDA_OPTIONS_DEFAULT;
  scda_field_t        pair = SCDA_FIELD_DEFAULT, list = SCDA_FIELD_DEFAULT, other;
  scda_field_info_t   info;
  scda_file_t        *f;

  split (counts, &first);
  for (k = 0; k < counts[rank]; ++k) {
    uint32_t            element = (uint32_t) (first + k), i;
    pair_at[k] = pair_to[k] = pairs + 2 * k;
    pairs[2 * k] = element;
    pairs[2 * k + 1] = 7 * element;
    lengths[k] = element % 4;
    item_at[k] = item_to[k] = end;
    for (i = 0; i < element % 4; ++i) {
      *end++ = 100 * element + i;
    }
  }
  pair.name = "mesh/pair";
  pair.type = "<u4";
  pair.rank = 1;
  pair.shape = shape;
  pair.version = 2;
  pair.attrs = "{\"units\":\"m\"}";
  list.name = "mesh/list";
  list.type = "<u4";
  list.encode = 1;
  options.vendor = "scda.c";
  options.index = options.checksums = 1;
  f = scda_fopen_write (communicator (), path, "fields", &options, &err);
  f = scda_fwrite_attrs (f, "", "{\"name\":\"fields\",\"version\":1}", &err);
  f = scda_fwrite_field (f, &pair, indirect ? (const void *) pair_at : pairs, counts, indirect, &err);
  f = scda_fwrite_ragged_field (f, &list, indirect ? (const void *) item_at : items, counts, lengths,
                                indirect, &err);
  CHECK (scda_fclose (f, &err) == 0 && err == 0);

  f = scda_fopen_read (communicator (), path, name, &err);
  CHECK (f && !strcmp (name, "fields"));
  f = scda_find_field (f, "mesh/pair", &info, &err);
  CHECK (f && info.section == 'A' && info.N == ELEMENTS && info.E == 8 && !strcmp (info.type, "<u4"));
  CHECK (info.rank == 1 && info.shape[0] == 2 && info.version == 2 && !info.encoded);
  f = scda_find_field (f, "mesh/list", &info, &err);
  CHECK (f && info.section == 'V' && info.N == ELEMENTS && info.E == 4 && info.encoded);
  CHECK (info.rank == 0 && info.version == 0);
  f = scda_find_field (f, "none", &info, &err);
  CHECK (f && info.section == 0 && err == 0);
  f = scda_find_attrs (f, "", text, &length, &err);
  CHECK (f && !strcmp (text, "{\"name\":\"fields\",\"version\":1}") && length == strlen (text));
  length = 4;
  f = scda_find_attrs (f, "mesh/pair", text, &length, &err);
  CHECK (f && length == strlen ("{\"version\":2,\"units\":\"m\"}") && !strcmp (text, "{\"v"));
  memset (pairs, 0, sizeof (pairs));
  memset (items, 0, sizeof (items));
  memset (lengths, 0, sizeof (lengths));
  /* In any order. */
  f = scda_fread_field_lengths (f, &list, lengths, counts, &err);
  f = scda_fread_ragged_field (f, &list, indirect ? (void *) item_to : items, counts, lengths,
                               indirect, &err);
  f = scda_fread_field (f, &pair, indirect ? (void *) pair_to : pairs, counts, indirect, &err);
  CHECK (f != NULL && err == 0);
  end = items;
  for (k = 0; k < counts[rank]; ++k) {
    uint32_t            element = (uint32_t) (first + k), i;
    CHECK (pairs[2 * k] == element && pairs[2 * k + 1] == 7 * element && lengths[k] == element % 4);
    for (i = 0; i < element % 4; ++i) {
      CHECK (*end++ == 100 * element + i);
    }
  }
  CHECK (scda_fclose (f, &err) == 0);

  /* Another type, shape or version, a missing field, a wrong partition, invalid descriptions. */
  for (k = 0; k < 9; ++k) {
    other = pair;
    shape[0] = 2;
    f = scda_fopen_read (communicator (), path, NULL, &err);
    switch (k) {
    case 0: other.type = "<i4"; break;
    case 1: other.version = 3; break;
    case 2: other.name = "mesh/none"; break;
    case 3: other.rank = 0; break;
    case 4: counts[0] += 1; break;
    case 5: other.type = "number"; break;
    case 6: other.name = NULL; break;
    case 7: shape[0] = UINT64_MAX; break;
    case 8: other.rank = 2000000000; other.shape = NULL; break;
    }
    CHECK (!scda_fread_field (f, &other, pairs, counts, 0, &err) && err != 0);
    counts[0] -= k == 4;
  }
  shape[0] = 2;
  err = 0;
  CHECK (!scda_fwrite_attrs (create (path), "", "no JSON", &err) && err == SCDA_ERR_ARGUMENT);
}

/* Counts that are too large are an error; `dbytes` is not read. */
static void
too_large (const char *path)
{
  uint64_t            counts[64], bytes[64], sizes[1] = { 3 }, N, E;
  const uint64_t      large[5] = { 4, 1000000, (uint64_t) 1 << 40, (uint64_t) 1 << 60, UINT64_MAX };
  const uint64_t      huge[3] = { (uint64_t) 1 << 60, (uint64_t) 1 << 61, UINT64_MAX };
  char                type, element[3] = "abc";
  const void         *in[1] = { element };
  void               *out[1] = { element };
  int                 err, k, q, indirect, decode = 0;
  scda_file_t        *f;

  for (q = 0; q < size; ++q) {
    counts[q] = 1;
    bytes[q] = 3;
  }
  f = scda_fwrite_array (create (path), in, counts, 3, 1, "", 0, &err);
  f = scda_fwrite_varray (f, in, counts, sizes, bytes, 1, "", 0, &err);
  CHECK (scda_fclose (f, &err) == 0);
  for (indirect = 0; indirect < 2; ++indirect) {
    void               *into = indirect ? (void *) out : (void *) element;
    for (k = 0; k < 5; ++k) {
      counts[rank] = large[k];
      f = scda_fopen (communicator (), path, 'r', NULL, &err);
      f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
      CHECK (f && type == 'A');
      CHECK (!scda_fread_array_data (f, into, counts, 3, indirect, &err));
      CHECK (err == SCDA_ERR_ARGUMENT);
      counts[rank] = 1;
      f = scda_fopen (communicator (), path, 'r', NULL, &err);
      f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
      CHECK (!scda_fread_array_data (f, into, counts, large[k], indirect, &err));
      CHECK (err == SCDA_ERR_ARGUMENT);
      f = scda_fopen (communicator (), path, 'r', NULL, &err);
      f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
      f = scda_fread_array_data (f, NULL, counts, 3, 0, &err);
      f = scda_fread_section_header (f, &type, &N, &E, NULL, &decode, &err);
      f = scda_fread_varray_sizes (f, sizes, counts, &err);
      CHECK (f && type == 'V' && sizes[0] == 3);
      counts[rank] = large[k];
      CHECK (!scda_fread_varray_data (f, into, counts, sizes, bytes, indirect, &err));
      CHECK (err == SCDA_ERR_ARGUMENT);
      counts[rank] = 1;
    }
    for (k = 0; k < 3; ++k) {
      const void         *from = indirect ? (const void *) in : (const void *) element;
      counts[rank] = huge[k];
      CHECK (!scda_fwrite_array (create (path), from, counts, 3, indirect, "", 0, &err));
      CHECK (err == SCDA_ERR_ARGUMENT || err == SCDA_ERR_LIMIT);
      CHECK (!scda_fwrite_varray (create (path), from, counts, sizes, bytes, indirect, "", 0, &err));
      CHECK (err == SCDA_ERR_ARGUMENT || err == SCDA_ERR_LIMIT);
      counts[rank] = 1;
    }
  }
}

int
main (int argc, char **argv)
{
  char                path[512];
  int                 indirect, encode;
#ifdef WITH_MPI
  MPI_Init (&argc, &argv);
  MPI_Comm_rank (MPI_COMM_WORLD, &rank);
  MPI_Comm_size (MPI_COMM_WORLD, &size);
#endif
  CHECK (argc == 2);
  snprintf (path, sizeof (path), "%s/wrong", argv[1]);
  wrong (path);
  snprintf (path, sizeof (path), "%s/large", argv[1]);
  too_large (path);
  CHECK (rank != 0 || remove (path) == 0);
  snprintf (path, sizeof (path), "%s/different", argv[1]);
  different (path);
  CHECK (size == 1 || rank != 0 || remove (path) == 0);
  for (indirect = 0; indirect < 2; ++indirect) {
    snprintf (path, sizeof (path), "%s/fields-%d", argv[1], indirect);
    fields (path, indirect);
  }
  for (indirect = 0; indirect < 2; ++indirect) {
    for (encode = 0; encode < 2; ++encode) {
      snprintf (path, sizeof (path), "%s/%d-%d", argv[1], indirect, encode);
      write_all (path, indirect, encode);
      read_all (path, indirect, encode);
      read_all (path, !indirect, encode);
      skip_all (path, 1);
      if (encode) {
        skip_all (path, 0);
      }
    }
  }
#ifdef WITH_MPI
  MPI_Finalize ();
#endif
  if (rank == 0) {
    printf ("ok\n");
  }
  return EXIT_SUCCESS;
}
