/* The tasks of `cargo xtask bench gsd` in C: with the C library (-DLIBRARY and the gsd.c of the Python package), or
 * with pread and pwrite of the same bytes. Protocol: common.h; tasks: formats/gsd/examples/bench_gsd.rs.
 * Without the library there is no index: chunks are contiguous from byte 8192 on.
 */
#define _GNU_SOURCE
#include "../common.h"
#ifdef LIBRARY
#include "gsd.h"
#endif

enum { START = 8192, FIRST = 5376 };

/* The same random numbers for every implementation. */
static uint64_t state;
static uint64_t draw(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static uint8_t *memory(size_t bytes) {
    /* Huge pages if available, as NumPy requests them. */
    size_t large = 2u << 20, all = (bytes + large) / large * large;
    uint8_t *m = bytes < large ? malloc(bytes + 1) : aligned_alloc(large, all);
    if (!m) die("memory");
    if (bytes >= large) madvise(m, all, MADV_HUGEPAGE);
    for (size_t k = 0; k < bytes; k++) m[k] = (uint8_t)(k * 31 >> 3);
    return m;
}

/* Removes a file from the page cache. */
static void evict(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0 || fsync(file) != 0) die(path);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
}

#ifdef LIBRARY

static struct gsd_handle handle;
#define TRY(call) do { if ((call) != 0) die(#call); } while (0)

static void create(const char *path) {
    TRY(gsd_create_and_open(&handle, path, "bench", "bench", gsd_make_version(1, 0), GSD_OPEN_READWRITE, 0));
}

static void open_file(const char *path) { TRY(gsd_open(&handle, path, GSD_OPEN_READONLY)); }

static uint64_t put_frames(const char *path, uint64_t n, uint64_t frames, const uint8_t *data) {
    create(path);
    for (uint64_t f = 0; f < frames; f++) {
        TRY(gsd_write_chunk(&handle, "particles/position", GSD_TYPE_FLOAT, n, 3, 0, data));
        TRY(gsd_write_chunk(&handle, "particles/orientation", GSD_TYPE_FLOAT, n, 4, 0, data));
        TRY(gsd_end_frame(&handle));
    }
    TRY(gsd_close(&handle));
    return frames * n * 28;
}

static void get(uint64_t frame, const char *name, uint8_t *data) {
    const struct gsd_index_entry *chunk = gsd_find_chunk(&handle, frame, name);
    if (!chunk) die(name);
    TRY(gsd_read_chunk(&handle, data, chunk));
}

static void get_frame(uint64_t frame, uint64_t n, uint8_t *data) {
    (void)n;
    get(frame, "particles/position", data);
    get(frame, "particles/orientation", data);
}

static void close_file(void) { TRY(gsd_close(&handle)); }

#else

static int file;

static void create(const char *path) {
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0) die(path);
}

static void open_file(const char *path) {
    file = open(path, O_RDONLY);
    if (file < 0) die(path);
}

static void put(const uint8_t *data, uint64_t bytes, uint64_t at) {
    while (bytes > 0) {
        ssize_t n = pwrite(file, data, bytes, (off_t)at);
        if (n <= 0) die("pwrite");
        data += n, bytes -= (uint64_t)n, at += (uint64_t)n;
    }
}

static uint64_t put_frames(const char *path, uint64_t n, uint64_t frames, const uint8_t *data) {
    create(path);
    for (uint64_t f = 0; f < frames; f++) {
        put(data, 12 * n, START + f * 28 * n);
        put(data, 16 * n, START + f * 28 * n + 12 * n);
    }
    if (fsync(file) != 0 || close(file) != 0) die(path);
    return frames * n * 28;
}

static void get(uint8_t *data, uint64_t bytes, uint64_t at) {
    while (bytes > 0) {
        ssize_t n = pread(file, data, bytes, (off_t)at);
        if (n <= 0) die("pread");
        data += n, bytes -= (uint64_t)n, at += (uint64_t)n;
    }
}

/* Positions of the chunks in a GSD file whose index has not been moved. */
static void get_frame(uint64_t frame, uint64_t n, uint8_t *data) {
    uint64_t at = FIRST + frame * 28 * n;
    get(data, 12 * n, at);
    get(data, 16 * n, at + 12 * n);
}

static void close_file(void) { close(file); }

#endif

static double read_frames(const char *path, uint64_t n, uint64_t frames, int random_order, int cold) {
    uint8_t *data = memory(16 * n);
    double start = now();
    open_file(path);
    state = 1;
    if (!cold) start = now();
    for (uint64_t f = 0; f < frames; f++) get_frame(random_order ? draw(frames) : f, n, data);
    double seconds = now() - start;
    close_file();
    free(data);
    return seconds;
}

int main(void) {
    char line[8192], task[32], path[4096];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long long a = 0, b = 0;
        if (sscanf(line, "%31s %4095s %llu %llu", task, path, &a, &b) < 2) die(line);
        uint64_t bytes = 0, frames = a;
        double seconds = 0, start = 0;
        if (!strcmp(task, "write")) {
            uint8_t *data = memory(16 * a);
            unlink(path);
            start = now();
            bytes = put_frames(path, a, b, data);
            seconds = now() - start;
            free(data);
        } else if (!strcmp(task, "read") || !strcmp(task, "random") || !strcmp(task, "cold")) {
            int cold = !strcmp(task, "cold");
            if (cold) evict(path);
            seconds = read_frames(path, a, b, !strcmp(task, "random"), cold);
            bytes = a * b * 28;
#ifdef LIBRARY
        } else if (!strcmp(task, "open")) {
            start = now();
            for (uint64_t k = 0; k < a; k++) {
                open_file(path);
                bytes = gsd_get_nframes(&handle);
                close_file();
            }
            seconds = (now() - start) / (double)a;
        } else if (!strcmp(task, "find")) {
            open_file(path);
            state = 1;
            start = now();
            for (uint64_t k = 0; k < b; k++) {
                const struct gsd_index_entry *chunk = gsd_find_chunk(&handle, draw(a), "x");
                if (!chunk) die("x");
                bytes += chunk->N * 8;
            }
            seconds = (now() - start) / (double)b;
            close_file();
        } else if (!strcmp(task, "tiny") || !strcmp(task, "close") || !strcmp(task, "durable")) {
            int each = !strcmp(task, "durable");
            unlink(path);
            start = now();
            create(path);
            if (each) start = now();
            for (uint64_t f = 0; f < frames; f++) {
                TRY(gsd_write_chunk(&handle, "x", GSD_TYPE_UINT64, 1, 1, 0, &f));
                TRY(gsd_end_frame(&handle));
                if (each) TRY(gsd_flush(&handle));
            }
            if (each) seconds = now() - start;
            if (!strcmp(task, "close")) start = now();
            close_file();
            if (!each) seconds = now() - start;
            bytes = frames;
#else
        } else if (!strcmp(task, "durable")) {
            /* One write and one sync per frame. */
            unlink(path);
            create(path);
            start = now();
            for (uint64_t f = 0; f < frames; f++) {
                put((uint8_t *)&f, 8, START + 8 * f);
                if (fdatasync(file) != 0) die(path);
            }
            seconds = now() - start;
            close_file();
            bytes = frames;
        } else if (!strcmp(task, "commit")) {
            /* Three writes: data, header, index entries. */
            uint8_t *data = memory(256);
            unlink(path);
            create(path);
            put(data, 256, 0);
            start = now();
            for (uint64_t f = 0; f < frames; f++) {
                put(data, 24, 64 * 1048576 + 24 * f);
                put(data, 256, 0);
                put(data, 96, START + 96 * f);
            }
            seconds = now() - start;
            close_file();
            free(data);
            bytes = frames;
        } else if (!strcmp(task, "close")) {
            /* The most that spile has left to write: one buffer of data and one of index entries. */
            uint8_t *data = memory(1048576 + 16384 * 32);
            unlink(path);
            create(path);
            start = now();
            put(data, 1048576, 0);
            put(data, 16384 * 32, 1048576);
            if (fsync(file) != 0) die(path);
            close_file();
            seconds = now() - start;
            free(data);
            bytes = frames;
#endif
        } else die(task);
        printf("%.9f %llu\n", seconds, (unsigned long long)bytes);
        fflush(stdout);
    }
    return 0;
}
