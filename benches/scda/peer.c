/* What plain C does with the same bytes: write() and read() of them all, and for compressed
 * elements the loop that the paper suggests, zlib's compress2 or uncompress and base64, element by
 * element.
 *
 * A line on standard input is a task, and is answered by a line with its seconds and its bytes:
 *
 *   write FILE BYTES          a new file, from memory that has been used before
 *   read FILE BYTES           into the same memory
 *   encode FILE FIELD SIZE    the elements of SIZE bytes in FIELD, compressed, into a new file
 *   decode FILE FIELD SIZE    the elements that were encoded last; they have to come back
 *
 * A file that is written is complete when the clock stops; memory is there before it starts.
 *
 * compress2 asks for its memory and gives it back with every element. The C library then hands it
 * to the system and gets fresh pages the next time, which takes longer than the work. `peer keep`
 * tells it not to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

/* A line of base64, the bytes in it, and what stands before the stream: its size and a 'z'. */
enum { LINE = 76, LINE_BYTES = 57, PREFIX = 9 };

static struct room { uint8_t *bytes; size_t size; } field, memory, encoded, stream, sizes;
static size_t field_bytes, element, elements;
static char loaded[4096];
static int8_t value_of[256];
static const char CODE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void die(const char *what) {
    fprintf(stderr, "peer: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that is there, not only promised. It is not from malloc, whose ways depend on what it was
 * asked for before. */
static void room(struct room *room, size_t size) {
    if (size <= room->size) return;
    if (room->bytes) munmap(room->bytes, room->size);
    room->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room->bytes == MAP_FAILED) die("mmap");
    room->size = size;
    for (size_t k = 0; k < size; k++) room->bytes[k] = (uint8_t)(k * 31 >> 3);
}

static void put(const char *path, const uint8_t *from, size_t bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0) die(path);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, from + done, bytes - done);
        if (n <= 0) die(path);
        done += (size_t)n;
    }
    if (fsync(file) != 0 || close(file) != 0) die(path);
}

static void get(const char *path, uint8_t *to, size_t bytes) {
    int file = open(path, O_RDONLY);
    if (file < 0) die(path);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(file, to + done, bytes - done);
        if (n <= 0) die(path);
        done += (size_t)n;
    }
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
        if (length < PREFIX || buffer[8] != 'z') die("an element");
        uint8_t *out = memory.bytes + k * element;
        if (uncompress(out, &found, buffer + PREFIX, length - PREFIX) != Z_OK) die("uncompress");
        if (found != element) die("an element's size");
        in += size[k];
    }
    return stored;
}

/* Loads the elements to compress and makes room for what comes of them. */
static void load(const char *path, size_t size) {
    struct stat info;
    if (!strcmp(path, loaded) && size == element) return;
    if (size == 0 || stat(path, &info) != 0) die(path);
    snprintf(loaded, sizeof loaded, "%s", path);
    element = size;
    elements = (size_t)info.st_size / element;
    field_bytes = elements * element;
    size_t most = PREFIX + compressBound(element);
    room(&field, field_bytes);
    get(path, field.bytes, field_bytes);
    room(&stream, most + 3);
    room(&encoded, elements * (most / LINE_BYTES + 1) * (LINE + 2));
    room(&sizes, elements * sizeof(size_t));
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
        room(&memory, decoding ? field_bytes : bytes);
        if (decoding) memset(memory.bytes, 0, field_bytes);
        if (writing || encoding) unlink(path);
        double start = now();
        if (writing) put(path, memory.bytes, bytes);
        else if (reading) get(path, memory.bytes, bytes);
        else if (encoding) bytes = encode(path);
        else if (decoding) bytes = decode(path);
        else die(task);
        double seconds = now() - start;
        if (decoding && memcmp(memory.bytes, field.bytes, field_bytes)) die("other elements came back");
        printf("%.9f %zu\n", seconds, bytes);
        fflush(stdout);
    }
    return 0;
}
