/* What plain C does with the same bytes: one write() or read() of them all.
 *
 * A line on standard input is a task, and is answered by a line with its seconds and its bytes:
 *
 *   write FILE BYTES          a new file, from memory that has been used before
 *   read FILE BYTES           into the same memory
 *
 * A file that is written is complete when the clock stops; memory is there before it starts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint8_t *memory;
static size_t size;

static void die(const char *what) {
    fprintf(stderr, "peer: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that is there, not only promised. */
static void room(size_t bytes) {
    if (bytes <= size) return;
    if (memory) munmap(memory, size);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    size = bytes;
    for (size_t k = 0; k < bytes; k++) memory[k] = (uint8_t)(k * 31 >> 3);
}

int main(void) {
    char line[8192], task[16], path[4096];
    size_t bytes;
    while (fgets(line, sizeof line, stdin)) {
        errno = 0;
        if (sscanf(line, "%15s %4095s %zu", task, path, &bytes) != 3) die(line);
        int writing = !strcmp(task, "write");
        if (!writing && strcmp(task, "read")) die(task);
        room(bytes);
        if (writing) unlink(path);
        double start = now();
        int file = writing ? open(path, O_WRONLY | O_CREAT | O_EXCL, 0644) : open(path, O_RDONLY);
        if (file < 0) die(path);
        for (size_t done = 0; done < bytes;) {
            size_t left = bytes - done;
            ssize_t n = writing ? write(file, memory + done, left) : read(file, memory + done, left);
            if (n <= 0) die(path);
            done += (size_t)n;
        }
        if ((writing && fsync(file) != 0) || close(file) != 0) die(path);
        printf("%.9f %zu\n", now() - start, bytes);
        fflush(stdout);
    }
    return 0;
}
