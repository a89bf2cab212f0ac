/* What the system does with plain bytes: read() and write(), and nothing else.
 *
 * A line on standard input is a task, and is answered by a line with its seconds and its bytes:
 *
 *   write FILE BYTES [OFFSET]        a new file, from memory that has been used before: OFFSET bytes of
 *                                    it by a write() of their own, then BYTES
 *   read FILE BYTES OFFSET           the BYTES at OFFSET, into memory that has been used before
 *   pieces FILE BYTES OFFSET PIECE   the same, PIECE at a time, into the same PIECE of memory
 *   copy FILE NEW                    a file as a new one, which is removed when the clock has stopped
 *
 * The clock of a file being written stops when fsync has returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COPY_PIECE = 256 << 10 };

static unsigned char *memory;
static size_t room;

static void die(const char *what) {
    fprintf(stderr, "plain: %s: %s\n", what, errno ? strerror(errno) : "too few bytes");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that is there, not only promised. */
static void need(size_t size) {
    if (size <= room) return;
    if (memory) munmap(memory, room);
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    for (size_t k = 0; k < size; k++) memory[k] = (unsigned char)(k * 7 >> 2);
    room = size;
}

static void read_pieces(const char *path, size_t offset, size_t bytes, size_t piece) {
    int file = open(path, O_RDONLY);
    if (file < 0 || lseek(file, (off_t)offset, SEEK_SET) < 0) die(path);
    for (size_t left = bytes; left;) {
        size_t most = left < piece ? left : piece;
        for (size_t done = 0; done < most;) {
            ssize_t n = read(file, memory + done, most - done);
            if (n <= 0) die("read");
            done += (size_t)n;
        }
        left -= most;
    }
    close(file);
}

static void write_some(int file, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, memory + done, bytes - done);
        if (n <= 0) die("write");
        done += (size_t)n;
    }
}

static void write_all(const char *path, size_t before, size_t bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0) die(path);
    write_some(file, before);
    write_some(file, bytes);
    if (fsync(file) || close(file)) die("fsync");
}

/* One file to another, through a buffer that stays in the cache. */
static size_t copy(const char *from, const char *to) {
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (in < 0 || out < 0) die(from);
    size_t bytes = 0;
    for (ssize_t n; (n = read(in, memory, COPY_PIECE)) != 0; bytes += (size_t)n) {
        if (n < 0) die("read");
        write_some(out, (size_t)n);
    }
    if (fsync(out) || close(out)) die("fsync");
    close(in);
    return bytes;
}

int main(void) {
    char line[16384], task[32], path[4096], other[4096];
    while (fgets(line, sizeof line, stdin)) {
        size_t bytes, offset = 0, piece = 0;
        if (sscanf(line, "%31s %4095s %4095s", task, path, other) == 3 && !strcmp(task, "copy")) {
            need(COPY_PIECE);
            unlink(other);
            double start = now();
            bytes = copy(path, other);
            double seconds = now() - start;
            unlink(other);
            printf("%.9f %zu\n", seconds, bytes);
            fflush(stdout);
            continue;
        }
        int words = sscanf(line, "%31s %4095s %zu %zu %zu", task, path, &bytes, &offset, &piece);
        if (words < 3) die("a task");
        if (words < 5) piece = bytes;
        int writing = !strcmp(task, "write");
        need(piece);
        if (writing) unlink(path);
        double start = now();
        if (writing) write_all(path, offset, bytes);
        else read_pieces(path, offset, bytes, piece);
        printf("%.9f %zu\n", now() - start, bytes);
        fflush(stdout);
    }
    return 0;
}
