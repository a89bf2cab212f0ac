/* The tasks of `cargo xtask bench taf` in C, on one thread. Protocol: common.h; after the count come the
 * numbers of the result, which are compared between implementations. Tasks:
 *
 *   stat      FILE OFFSET COUNT u8|i16 INTERCEPT SLOPE
 *   envelope  FILE OFFSET COUNT u8|i16 PIXELS
 *   widen     FILE OFFSET COUNT u8|i16 INTERCEPT SLOPE
 *   copy      FILE OFFSET BYTES OUT
 *   export    FILE OFFSET COUNT i16 INTERCEPT SLOPE START STEP OUT
 *   transpose FILE OFFSET ROWS COLUMNS OUT      (32-bit elements, 256 MiB of memory)
 *   run       COMMAND...                        (runs a program; the count is its peak memory in bytes)
 *
 * Files are read with read() through one small buffer that is reused: new memory costs more than the work.
 */
#define _GNU_SOURCE
#include "../common.h"
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BUFFER = 256 << 10, PART = 16 << 10, TILE = 16, STRIP = 64, MAX_ARGS = 64 };
static const size_t MEMORY = (size_t)256 << 20;

extern char **environ;
static union { uint8_t u8[BUFFER]; int16_t i16[BUFFER / 2]; } buffer;
static double wide[BUFFER];

static char result[256];

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

/* Writing includes fsync(), as for spile. Devices do not support it. */
static void finish(int file) {
    if (fsync(file) != 0 && errno != EINVAL) die("fsync");
    close(file);
}

static size_t at_most(uint64_t left, size_t most) { return left < most ? (size_t)left : most; }

/* The result of a stat task: minimum, maximum, mean and standard deviation of the scaled values. */
static void scale(double low, double high, double sum, double squares, uint64_t count, double a, double b) {
    double mean = sum / (double)count;
    double deviation = fabs(b) * sqrt(squares / (double)count - mean * mean);
    snprintf(result, sizeof result, " %.17g %.17g %.17g %.17g", a + b * low, a + b * high, a + b * mean, deviation);
}

/* Exact sums; parts are short enough for 32-bit sums of squares of bytes. */
static void stat_u8(int file, uint64_t count, double a, double b) {
    uint8_t low = 255, high = 0;
    uint64_t sum = 0, squares = 0;
    for (uint64_t left = count; left > 0;) {
        size_t n = at_most(left, BUFFER);
        read_fully(file, buffer.u8, n);
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
    scale(low, high, (double)sum, (double)squares, count, a, b);
}

static void stat_i16(int file, uint64_t count, double a, double b) {
    int16_t low = INT16_MAX, high = INT16_MIN;
    int64_t sum = 0, squares = 0;
    for (uint64_t left = count; left > 0;) {
        size_t n = at_most(left, BUFFER / 2);
        read_fully(file, buffer.i16, n * 2);
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
    scale(low, high, (double)sum, (double)squares, count, a, b);
}

/* Minimum and maximum of each of PIXELS intervals. The result is the sum of all. */
#define ENVELOPE(name, type, field, least, most)                                                   \
    static void name(int file, uint64_t count, uint64_t pixels) {                                  \
        int64_t answer = 0;                                                                        \
        for (uint64_t pixel = 0; pixel < pixels; pixel++) {                                        \
            type low = most, high = least;                                                         \
            uint64_t left = count / pixels * (pixel + 1) - count / pixels * pixel;                 \
            while (left > 0) {                                                                     \
                size_t n = at_most(left, BUFFER / sizeof(type));                                   \
                read_fully(file, buffer.field, n * sizeof(type));                                        \
                for (size_t k = 0; k < n; k++) {                                                   \
                    type x = buffer.field[k];                                                      \
                    low = x < low ? x : low;                                                       \
                    high = x > high ? x : high;                                                    \
                }                                                                                  \
                left -= n;                                                                         \
            }                                                                                      \
            answer += low + high;                                                                  \
        }                                                                                          \
        snprintf(result, sizeof result, " %" PRId64, answer);                                      \
    }
ENVELOPE(envelope_u8, uint8_t, u8, 0, 255)
ENVELOPE(envelope_i16, int16_t, i16, INT16_MIN, INT16_MAX)

/* Two roundings, as specified by the format: no fused multiply-add. */
#pragma GCC optimize("fp-contract=off")
#define WIDEN(name, type, field)                                                                   \
    static void name(int file, uint64_t count, double a, double b) {                               \
        for (uint64_t left = count; left > 0;) {                                                   \
            size_t n = at_most(left, BUFFER / sizeof(type));                                       \
            read_fully(file, buffer.field, n * sizeof(type));                                            \
            for (size_t k = 0; k < n; k++) wide[k] = a + b * (double)buffer.field[k];              \
            __asm__ volatile("" : : "r"(wide) : "memory"); /* keep the values */                 \
            left -= n;                                                                             \
            if (left == 0) snprintf(result, sizeof result, " %.17g", wide[n - 1]);                 \
        }                                                                                          \
    }
WIDEN(widen_u8, uint8_t, u8)
WIDEN(widen_i16, int16_t, i16)

static void copy(int file, uint64_t bytes, const char *path) {
    int out = create(path);
    for (uint64_t left = bytes; left > 0;) {
        size_t n = at_most(left, BUFFER);
        read_fully(file, buffer.u8, n);
        write_fully(out, buffer.u8, n);
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
        read_fully(file, buffer.i16, n * 2);
        for (size_t k = 0; k < n; k++, done++)
            fprintf(out, "%.17g %.17g\n", start + (double)done * step, a + b * buffer.i16[k]);
    }
    fflush(out);
    finish(dup(fileno(out)));
    fclose(out);
}

/* Bands of output rows, as high as the memory allows. Strips of the input that fit the cache are read and
 * transposed in tiles. */
static void transpose(int file, size_t offset, size_t rows, size_t columns, const char *path) {
    size_t band = MEMORY / 2 / (rows * 4) / TILE * TILE;
    if (band == 0) band = TILE;
    if (band > columns) band = columns;
    uint32_t *in = malloc(STRIP * band * 4), *transposed = malloc(rows * band * 4);
    if (!in || !transposed) die("malloc");
    int out = create(path);
    for (size_t first = 0; first < columns; first += band) {
        size_t width = columns - first < band ? columns - first : band;
        for (size_t row = 0; row < rows; row += STRIP) {
            size_t height = rows - row < STRIP ? rows - row : STRIP;
            for (size_t r = 0; r < height; r++) {
                ssize_t length = (ssize_t)(width * 4);
                off_t at = (off_t)(offset + ((row + r) * columns + first) * 4);
                if (pread(file, in + r * width, (size_t)length, at) != length) die("pread");
            }
            for (size_t c0 = 0; c0 < width; c0 += TILE)
                for (size_t c = c0; c < c0 + TILE && c < width; c++)
                    for (size_t r = 0; r < height; r++)
                        transposed[c * rows + row + r] = in[r * width + c];
        }
        write_fully(out, transposed, rows * width * 4);
    }
    finish(out);
    free(in);
    free(transposed);
}

/* Runs a program without its output and returns the seconds; `peak` is its peak memory in bytes. */
static double run(char **command, uint64_t *peak) {
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
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) die("exit status");
    *peak = (uint64_t)used.ru_maxrss * 1024;
    return seconds;
}

/* The seconds of a task. */
static double measure(int argc, char **argv, uint64_t *bytes) {
    if (argc >= 2 && !strcmp(argv[0], "run")) return run(argv + 1, bytes);
    if (argc < 5) die("arguments");
    const char *task = argv[0];
    uint64_t count = strtoull(argv[3], NULL, 10);
    int small = !strcmp(argv[4], "u8");
    *bytes = count;
    double start = now();
    int file = open_at(argv[1], argv[2]);
    if (!strcmp(task, "stat") && argc == 7) {
        (small ? stat_u8 : stat_i16)(file, count, atof(argv[5]), atof(argv[6]));
    } else if (!strcmp(task, "envelope") && argc == 6) {
        (small ? envelope_u8 : envelope_i16)(file, count, strtoull(argv[5], NULL, 10));
    } else if (!strcmp(task, "widen") && argc == 7) {
        (small ? widen_u8 : widen_i16)(file, count, atof(argv[5]), atof(argv[6]));
    } else if (!strcmp(task, "copy")) {
        copy(file, count, argv[4]);
    } else if (!strcmp(task, "export") && argc == 10) {
        export(file, count, atof(argv[5]), atof(argv[6]), atof(argv[7]), atof(argv[8]), argv[9]);
    } else if (!strcmp(task, "transpose") && argc == 6) {
        transpose(file, strtoull(argv[2], NULL, 10), count, strtoull(argv[4], NULL, 10), argv[5]);
    } else {
        die(task);
    }
    double seconds = now() - start;
    close(file);
    return seconds;
}

int main(void) {
    char line[16384], *argv[MAX_ARGS + 1];
    while (fgets(line, sizeof line, stdin)) {
        int argc = 0;
        for (char *arg = strtok(line, " \n"); arg && argc < MAX_ARGS; arg = strtok(NULL, " \n")) argv[argc++] = arg;
        argv[argc] = NULL;
        errno = 0;
        result[0] = 0;
        uint64_t bytes = 0;
        double seconds = measure(argc, argv, &bytes);
        printf("%.9f %" PRIu64 "%s\n", seconds, bytes, result);
        fflush(stdout);
    }
    return 0;
}
