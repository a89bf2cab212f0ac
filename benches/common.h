/* Shared by the benchmark programs in C.
 *
 * Protocol of every benchmark program, in any language: each line on standard input is a task; the reply is one
 * line with the seconds it took and a count, usually of bytes. The program measures the task only: its start
 * and its imports are not included.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "unexpected value");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void read_fully(int file, void *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(file, (char *)to + done, bytes - done);
        if (n <= 0) die("read");
        done += (size_t)n;
    }
}

static inline void write_fully(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n <= 0) die("write");
        done += (size_t)n;
    }
}

/* A buffer that is reused from task to task. Its pages are touched before they are measured, and it starts at a
 * page boundary: copies into memory from malloc, 16 bytes after one, are a third slower. */
struct buffer { uint8_t *bytes; size_t size; };

static inline void reserve(struct buffer *buffer, size_t size) {
    if (size <= buffer->size) return;
    if (buffer->bytes) munmap(buffer->bytes, buffer->size);
    buffer->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer->bytes == MAP_FAILED) die("mmap");
    buffer->size = size;
    for (size_t k = 0; k < size; k++) buffer->bytes[k] = (uint8_t)(k * 31 >> 3);
}
