/* Plain reading and writing of bytes with read() and write(). Protocol: common.h. Tasks:
 *
 *   write FILE BYTES [OFFSET]        new file: OFFSET bytes with a separate write(), then BYTES bytes
 *   read FILE BYTES OFFSET           BYTES bytes at OFFSET
 *   pieces FILE BYTES OFFSET PIECE   the same range, PIECE bytes at a time into the same buffer
 *   copy FILE NEW                    copies FILE to NEW, which is removed after the measurement
 *
 * Writing includes fsync().
 */
#include "common.h"

enum { COPY_PIECE = 256 << 10 };

static struct buffer memory;

static void read_pieces(const char *path, size_t offset, size_t bytes, size_t piece) {
    int file = open(path, O_RDONLY);
    if (file < 0 || lseek(file, (off_t)offset, SEEK_SET) < 0) die(path);
    for (size_t left = bytes; left;) {
        size_t most = left < piece ? left : piece;
        read_fully(file, memory.bytes, most);
        left -= most;
    }
    close(file);
}

static void write_file(const char *path, size_t before, size_t bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0) die(path);
    write_fully(file, memory.bytes, before);
    write_fully(file, memory.bytes, bytes);
    if (fsync(file) || close(file)) die("fsync");
}

/* Copies through a buffer that fits the cache. */
static size_t copy(const char *from, const char *to) {
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (in < 0 || out < 0) die(from);
    size_t bytes = 0;
    for (ssize_t n; (n = read(in, memory.bytes, COPY_PIECE)) != 0; bytes += (size_t)n) {
        if (n < 0) die("read");
        write_fully(out, memory.bytes, (size_t)n);
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
            reserve(&memory, COPY_PIECE);
            unlink(other);
            double start = now();
            bytes = copy(path, other);
            double seconds = now() - start;
            unlink(other);
            printf("%.9f %zu\n", seconds, bytes);
            fflush(stdout);
            continue;
        }
        int fields = sscanf(line, "%31s %4095s %zu %zu %zu", task, path, &bytes, &offset, &piece);
        if (fields < 3) die(line);
        if (fields < 5) piece = bytes;
        int writing = !strcmp(task, "write");
        reserve(&memory, piece);
        if (writing) unlink(path);
        double start = now();
        if (writing) write_file(path, offset, bytes);
        else read_pieces(path, offset, bytes, piece);
        printf("%.9f %zu\n", now() - start, bytes);
        fflush(stdout);
    }
    return 0;
}
