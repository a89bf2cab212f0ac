/* What one thread of plain C does with the same bytes: the mark to measure spile against.
 *
 * The file is read with read() through one small buffer that is used again and again, because
 * fresh memory costs more than the work. Each task prints its seconds and then its answer, so
 * that a contestant that computes something else is noticed.
 *
 *   limit stat      FILE OFFSET COUNT u8|i16
 *   limit envelope  FILE OFFSET COUNT u8|i16 PIXELS
 *   limit widen     FILE OFFSET COUNT u8|i16 INTERCEPT SLOPE
 *   limit copy      FILE OFFSET BYTES OUT
 *   limit export    FILE OFFSET COUNT i16 INTERCEPT SLOPE START STEP OUT
 *   limit transpose FILE OFFSET ROWS COLUMNS OUT      (32-bit elements, 256 MiB of memory)
 *   limit run       COMMAND...                        (seconds, peak KiB, exit code of a program)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, PART = 16 << 10, TILE = 16, STRIP = 64 };
static const size_t MEMORY = (size_t)256 << 20;

extern char **environ;
static union { uint8_t u8[BUFFER]; int16_t i16[BUFFER / 2]; } buffer;
static double wide[BUFFER];

static void die(const char *what) {
    fprintf(stderr, "limit: %s: %s\n", what, errno ? strerror(errno) : "wrong arguments");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int open_at(const char *path, const char *offset) {
    int file = open(path, O_RDONLY);
    if (file < 0 || lseek(file, strtoll(offset, NULL, 10), SEEK_SET) < 0) die(path);
    return file;
}

static int create(const char *path) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) die(path);
    return file;
}

static void fill(int file, void *to, size_t bytes) {
    for (size_t got = 0; got < bytes;) {
        ssize_t n = read(file, (char *)to + got, bytes - got);
        if (n <= 0) die("read");
        got += (size_t)n;
    }
}

static void put(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n <= 0) die("write");
        done += (size_t)n;
    }
}

/* Output counts when it is on the disk, as it does for spile. A device has nothing to sync. */
static void finish(int file) {
    if (fsync(file) != 0 && errno != EINVAL) die("fsync");
    close(file);
}

static size_t at_most(uint64_t left, size_t most) { return left < most ? (size_t)left : most; }

/* Exact sums; parts are short enough for 32-bit sums of squares of bytes. */
static void stat_u8(int file, uint64_t count) {
    uint8_t low = 255, high = 0;
    uint64_t sum = 0, squares = 0;
    for (uint64_t left = count; left > 0;) {
        size_t n = at_most(left, BUFFER);
        fill(file, buffer.u8, n);
        for (size_t from = 0; from < n; from += PART) {
            size_t end = n - from < PART ? n : from + PART;
            uint32_t s = 0, q = 0;
            for (size_t k = from; k < end; k++) {
                uint8_t x = buffer.u8[k];
                low = x < low ? x : low;
                high = x > high ? x : high;
                s += x;
                q += (uint32_t)x * x;
            }
            sum += s;
            squares += q;
        }
        left -= n;
    }
    printf(" %u %u %" PRIu64 " %" PRIu64, low, high, sum, squares);
}

static void stat_i16(int file, uint64_t count) {
    int16_t low = INT16_MAX, high = INT16_MIN;
    int64_t sum = 0, squares = 0;
    for (uint64_t left = count; left > 0;) {
        size_t n = at_most(left, BUFFER / 2);
        fill(file, buffer.i16, n * 2);
        for (size_t from = 0; from < n; from += PART) {
            size_t end = n - from < PART ? n : from + PART;
            int32_t s = 0;
            int64_t q = 0;
            for (size_t k = from; k < end; k++) {
                int16_t x = buffer.i16[k];
                low = x < low ? x : low;
                high = x > high ? x : high;
                s += x;
                q += (int32_t)x * x;
            }
            sum += s;
            squares += q;
        }
        left -= n;
    }
    printf(" %d %d %" PRId64 " %" PRId64, low, high, sum, squares);
}

/* Smallest and largest of each of PIXELS runs. The answer is a sum over both. */
#define ENVELOPE(name, type, field, least, most)                                                   \
    static void name(int file, uint64_t count, uint64_t pixels) {                                  \
        int64_t answer = 0;                                                                        \
        for (uint64_t pixel = 0; pixel < pixels; pixel++) {                                        \
            type low = most, high = least;                                                         \
            uint64_t left = count / pixels * (pixel + 1) - count / pixels * pixel;                 \
            while (left > 0) {                                                                     \
                size_t n = at_most(left, BUFFER / sizeof(type));                                   \
                fill(file, buffer.field, n * sizeof(type));                                        \
                for (size_t k = 0; k < n; k++) {                                                   \
                    type x = buffer.field[k];                                                      \
                    low = x < low ? x : low;                                                       \
                    high = x > high ? x : high;                                                    \
                }                                                                                  \
                left -= n;                                                                         \
            }                                                                                      \
            answer += low + high;                                                                  \
        }                                                                                          \
        printf(" %" PRId64, answer);                                                               \
    }
ENVELOPE(envelope_u8, uint8_t, u8, 0, 255)
ENVELOPE(envelope_i16, int16_t, i16, INT16_MIN, INT16_MAX)

/* Two roundings, as the format says: no fused multiply and add. */
#pragma GCC optimize("fp-contract=off")
#define WIDEN(name, type, field)                                                                   \
    static void name(int file, uint64_t count, double a, double b) {                               \
        for (uint64_t left = count; left > 0;) {                                                   \
            size_t n = at_most(left, BUFFER / sizeof(type));                                       \
            fill(file, buffer.field, n * sizeof(type));                                            \
            for (size_t k = 0; k < n; k++) wide[k] = a + b * (double)buffer.field[k];              \
            __asm__ volatile("" : : "r"(wide) : "memory"); /* the values are wanted */             \
            left -= n;                                                                             \
            if (left == 0) printf(" %.17g", wide[n - 1]);                                          \
        }                                                                                          \
    }
WIDEN(widen_u8, uint8_t, u8)
WIDEN(widen_i16, int16_t, i16)

static void copy(int file, uint64_t bytes, const char *path) {
    int out = create(path);
    for (uint64_t left = bytes; left > 0;) {
        size_t n = at_most(left, BUFFER);
        fill(file, buffer.u8, n);
        put(out, buffer.u8, n);
        left -= n;
    }
    finish(out);
}

static void export(int file, uint64_t count, double a, double b, double start, double step,
                   const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) die(path);
    for (uint64_t done = 0; done < count;) {
        size_t n = at_most(count - done, BUFFER / 2);
        fill(file, buffer.i16, n * 2);
        for (size_t k = 0; k < n; k++, done++)
            fprintf(out, "%.17g %.17g\n", start + (double)done * step, a + b * buffer.i16[k]);
    }
    fflush(out);
    finish(dup(fileno(out)));
    fclose(out);
}

/* Bands of rows of the output, as tall as the memory allows. A strip of the input that fits the
 * cache is read and turned at a time, by tiles. */
static void transpose(int file, size_t offset, size_t rows, size_t columns, const char *path) {
    size_t band = MEMORY / 2 / (rows * 4) / TILE * TILE;
    if (band == 0) band = TILE;
    if (band > columns) band = columns;
    uint32_t *in = malloc(STRIP * band * 4), *turned = malloc(rows * band * 4);
    if (!in || !turned) die("malloc");
    int out = create(path);
    for (size_t first = 0; first < columns; first += band) {
        size_t width = columns - first < band ? columns - first : band;
        for (size_t row = 0; row < rows; row += STRIP) {
            size_t height = rows - row < STRIP ? rows - row : STRIP;
            for (size_t r = 0; r < height; r++) {
                ssize_t want = (ssize_t)(width * 4);
                off_t at = (off_t)(offset + ((row + r) * columns + first) * 4);
                if (pread(file, in + r * width, (size_t)want, at) != want) die("pread");
            }
            for (size_t c0 = 0; c0 < width; c0 += TILE)
                for (size_t c = c0; c < c0 + TILE && c < width; c++)
                    for (size_t r = 0; r < height; r++)
                        turned[c * rows + row + r] = in[r * width + c];
        }
        put(out, turned, rows * width * 4);
    }
    finish(out);
}

/* Runs a program and says what it cost. Standard output goes to nowhere. */
static int run(char **command) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    struct rusage used;
    int status;
    pid_t child;
    double start = now();
    errno = posix_spawnp(&child, command[0], &actions, NULL, command, environ);
    if (errno) die(command[0]);
    if (wait4(child, &status, 0, &used) < 0) die("wait4");
    double seconds = now() - start;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf("%.6f %ld %d\n", seconds, used.ru_maxrss, code);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 3 && !strcmp(argv[1], "run")) return run(argv + 2);
    if (argc < 6) die("see the head of limit.c");
    const char *task = argv[1];
    uint64_t count = strtoull(argv[4], NULL, 10);
    int small = !strcmp(argv[5], "u8");
    char answer[1 << 12];
    setvbuf(stdout, answer, _IOFBF, sizeof answer);
    double start = now();
    int file = open_at(argv[2], argv[3]);
    if (!strcmp(task, "stat")) {
        (small ? stat_u8 : stat_i16)(file, count);
    } else if (!strcmp(task, "envelope") && argc == 7) {
        (small ? envelope_u8 : envelope_i16)(file, count, strtoull(argv[6], NULL, 10));
    } else if (!strcmp(task, "widen") && argc == 8) {
        (small ? widen_u8 : widen_i16)(file, count, atof(argv[6]), atof(argv[7]));
    } else if (!strcmp(task, "copy")) {
        copy(file, count, argv[5]);
    } else if (!strcmp(task, "export") && argc == 11) {
        export(file, count, atof(argv[6]), atof(argv[7]), atof(argv[8]), atof(argv[9]), argv[10]);
    } else if (!strcmp(task, "transpose") && argc == 7) {
        transpose(file, strtoull(argv[3], NULL, 10), count, strtoull(argv[5], NULL, 10), argv[6]);
    } else {
        die(task);
    }
    double seconds = now() - start;
    printf("\n%.6f\n", seconds);
    return 0;
}
