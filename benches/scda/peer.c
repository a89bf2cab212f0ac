/* The tasks of `cargo xtask bench scda` in C. Protocol: common.h. Tasks:
 *
 *   write FILE BYTES          new file
 *   read FILE BYTES           entire file
 *   encode FILE FIELD SIZE    the elements of SIZE bytes in FIELD, compressed, to a new file
 *   decode FILE FIELD SIZE    the elements encoded last, compared with FIELD after the measurement
 *
 * Elements are compressed one by one with zlib's compress2 and base64, as proposed in the scda paper. Writing
 * includes fsync(). compress2 allocates and frees memory for every element; by default the C library returns it
 * to the system each time, which takes longer than the compression. `peer keep` makes it keep the memory.
 */
#define _GNU_SOURCE
#include "../common.h"
#include <malloc.h>
#include <sys/stat.h>
#include <zlib.h>

/* Length of a base64 line, bytes encoded in it, length of the prefix of a stream (its size and 'z'). */
enum { LINE = 76, LINE_BYTES = 57, PREFIX = 9 };

static struct buffer field, memory, encoded, stream, sizes;
static size_t field_bytes, element, elements;
static char loaded[4096];
static int8_t value_of[256];
static const char CODE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put(const char *path, const uint8_t *from, size_t bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0) die(path);
    write_fully(file, from, bytes);
    if (fsync(file) != 0 || close(file) != 0) die(path);
}

static void get(const char *path, uint8_t *to, size_t bytes) {
    int file = open(path, O_RDONLY);
    if (file < 0) die(path);
    read_fully(file, to, bytes);
    close(file);
}

static size_t base64(const uint8_t *from, size_t bytes, uint8_t *to) {
    uint8_t *out = to;
    size_t k = 0, column = 0;
    for (; k < bytes; k += 3) {
        size_t left = bytes - k;
        uint32_t v = (uint32_t)from[k] << 16;
        if (left > 1) v |= (uint32_t)from[k + 1] << 8;
        if (left > 2) v |= from[k + 2];
        out[0] = (uint8_t)CODE[v >> 18];
        out[1] = (uint8_t)CODE[v >> 12 & 63];
        out[2] = left > 1 ? (uint8_t)CODE[v >> 6 & 63] : '=';
        out[3] = left > 2 ? (uint8_t)CODE[v & 63] : '=';
        out += 4;
        column += 4;
        if (column == LINE || left <= 3) {
            *out++ = '=';
            *out++ = '\n';
            column = 0;
        }
    }
    return (size_t)(out - to);
}

static size_t unbase64(const uint8_t *from, size_t bytes, uint8_t *to) {
    uint8_t *out = to;
    for (size_t line = 0; line < bytes; line += LINE + 2) {
        size_t end = line + LINE + 2 < bytes ? line + LINE : bytes - 2;
        for (size_t k = line; k < end; k += 4) {
            int pad = (from[k + 2] == '=') + (from[k + 3] == '=');
            int a = value_of[from[k]], b = value_of[from[k + 1]];
            int c = pad > 1 ? 0 : value_of[from[k + 2]], d = pad ? 0 : value_of[from[k + 3]];
            if ((a | b | c | d) < 0) die("base64");
            uint32_t v = (uint32_t)(a << 18 | b << 12 | c << 6 | d);
            out[0] = (uint8_t)(v >> 16);
            out[1] = (uint8_t)(v >> 8);
            out[2] = (uint8_t)v;
            out += 3 - pad;
        }
    }
    return (size_t)(out - to);
}

static size_t encode(const char *path) {
    uint8_t *out = encoded.bytes, *buffer = stream.bytes;
    size_t *size = (size_t *)sizes.bytes;
    for (size_t k = 0; k < elements; k++) {
        for (int b = 0; b < 8; b++) buffer[b] = (uint8_t)((uint64_t)element >> (56 - 8 * b));
        buffer[8] = 'z';
        uLongf length = compressBound(element);
        if (compress2(buffer + PREFIX, &length, field.bytes + k * element, element, 9) != Z_OK)
            die("compress2");
        size[k] = base64(buffer, PREFIX + length, out);
        out += size[k];
    }
    put(path, encoded.bytes, (size_t)(out - encoded.bytes));
    return (size_t)(out - encoded.bytes);
}

static size_t decode(const char *path) {
    const size_t *size = (const size_t *)sizes.bytes;
    uint8_t *buffer = stream.bytes;
    size_t stored = 0;
    for (size_t k = 0; k < elements; k++) stored += size[k];
    get(path, encoded.bytes, stored);
    const uint8_t *in = encoded.bytes;
    for (size_t k = 0; k < elements; k++) {
        size_t length = unbase64(in, size[k], buffer);
        uLongf found = element;
        if (length < PREFIX || buffer[8] != 'z') die("element");
        uint8_t *out = memory.bytes + k * element;
        if (uncompress(out, &found, buffer + PREFIX, length - PREFIX) != Z_OK) die("uncompress");
        if (found != element) die("element size");
        in += size[k];
    }
    return stored;
}

/* Loads the elements to compress and reserves memory for the results. */
static void load(const char *path, size_t size) {
    struct stat info;
    if (!strcmp(path, loaded) && size == element) return;
    if (size == 0 || stat(path, &info) != 0) die(path);
    snprintf(loaded, sizeof loaded, "%s", path);
    element = size;
    elements = (size_t)info.st_size / element;
    field_bytes = elements * element;
    size_t most = PREFIX + compressBound(element);
    reserve(&field, field_bytes);
    get(path, field.bytes, field_bytes);
    reserve(&stream, most + 3);
    reserve(&encoded, elements * (most / LINE_BYTES + 1) * (LINE + 2));
    reserve(&sizes, elements * sizeof(size_t));
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "keep")) mallopt(M_TRIM_THRESHOLD, 1 << 30);
    char line[16384], task[16], path[4096], field_path[4096];
    memset(value_of, -1, sizeof value_of);
    for (int k = 0; k < 64; k++) value_of[(uint8_t)CODE[k]] = (int8_t)k;
    while (fgets(line, sizeof line, stdin)) {
        size_t bytes = 0, size = 0;
        errno = 0;
        if (sscanf(line, "%15s %4095s %4095s %zu", task, path, field_path, &size) < 3) die(line);
        int writing = !strcmp(task, "write"), reading = !strcmp(task, "read");
        int encoding = !strcmp(task, "encode"), decoding = !strcmp(task, "decode");
        if (writing || reading) bytes = strtoull(field_path, NULL, 10);
        if (encoding || decoding) load(field_path, size);
        reserve(&memory, decoding ? field_bytes : bytes);
        if (decoding) memset(memory.bytes, 0, field_bytes);
        if (writing || encoding) unlink(path);
        double start = now();
        if (writing) put(path, memory.bytes, bytes);
        else if (reading) get(path, memory.bytes, bytes);
        else if (encoding) bytes = encode(path);
        else if (decoding) bytes = decode(path);
        else die(task);
        double seconds = now() - start;
        if (decoding && memcmp(memory.bytes, field.bytes, field_bytes)) die("decoded elements differ");
        printf("%.9f %zu\n", seconds, bytes);
        fflush(stdout);
    }
    return 0;
}
