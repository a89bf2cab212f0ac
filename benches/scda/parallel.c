/* The parallel tasks of `cargo xtask bench scda` with other libraries: `parallel hdf5` writes HDF5 datasets, `parallel
 * mpiio` the same data by MPI-IO without headers. Protocol: common.h, on standard input of rank 0. Tasks:
 *
 *   write-small FILE NUMBER         NUMBER arrays of 1000 doubles, one dataset each
 *   write-array FILE BYTES SIZE     one array of elements of SIZE bytes
 *   write-varray FILE NUMBER        NUMBER elements of 48 to 80 bytes: their sizes, and their bytes
 *   write-indirect FILE BYTES SIZE  elements at scattered addresses: by a derived type, or copied for HDF5
 *   write-one FILE BYTES            all bytes on rank 0
 *   read-array FILE BYTES SIZE      the array that was written last
 *
 * Transfers are collective except for write-one. Writing ends when the file is closed after MPI_File_sync.
 */
#include "../common.h"
#include <hdf5.h>
#include <mpi.h>

static int rank, ranks, with_hdf5;
static struct buffer memory, table;

/* One element of a small array is 8 bytes. */
enum { SMALL = 1000, LARGEST = 1 << 30 };

static void check(int64_t result, const char *what) {
    if (result < 0) die(what);
}

static void call(int code, const char *what) {
    if (code != MPI_SUCCESS) die(what);
}

/* First element of a rank, if `number` elements are split evenly. */
static uint64_t first_of(uint64_t number, int q) { return number * (uint64_t)q / (uint64_t)ranks; }

static uint64_t mixed(uint64_t k) {
    k = (k ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return k ^ k >> 29;
}

/* An open file. */
static hid_t file, collective, independent;
static MPI_File plain;

static void create(const char *path, int reading) {
    if (with_hdf5) {
        hid_t access = H5Pcreate(H5P_FILE_ACCESS);
        check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
        check(H5Pset_all_coll_metadata_ops(access, 1), "H5Pset_all_coll_metadata_ops");
        check(H5Pset_coll_metadata_write(access, 1), "H5Pset_coll_metadata_write");
        file = reading ? H5Fopen(path, H5F_ACC_RDONLY, access) : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        check(file, path);
        H5Pclose(access);
    } else {
        int mode = reading ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_WRONLY;
        call(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &plain), path);
    }
}

static void close_file(int reading) {
    if (with_hdf5) {
        if (!reading) check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
        check(H5Fclose(file), "H5Fclose");
    } else {
        if (!reading) call(MPI_File_sync(plain), "MPI_File_sync");
        call(MPI_File_close(&plain), "MPI_File_close");
    }
}

/* Transfers elements `first..first + count` of `number` elements of `size` bytes; returns the bytes of the array. With
 * HDF5 they are a dataset, otherwise at byte `at` of the file. */
static uint64_t transfer(const char *name, uint64_t at, uint64_t number, uint64_t first, uint64_t count, uint64_t size,
                         void *data, int alone, int reading) {
    if (with_hdf5) {
        hsize_t shape = number, start = first, length = count;
        hid_t type = size == 8 ? H5Tcopy(H5T_NATIVE_DOUBLE) : H5Tcreate(H5T_OPAQUE, size);
        hid_t space = H5Screate_simple(1, &shape, NULL), mine = H5Screate_simple(1, &length, NULL);
        hid_t set = reading ? H5Dopen(file, name, H5P_DEFAULT)
                            : H5Dcreate(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        check(set, "dataset");
        if (count) check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &length, NULL), "hyperslab");
        else H5Sselect_none(space), H5Sselect_none(mine);
        if (!alone || count) {
            hid_t how = alone ? independent : collective;
            check(reading ? H5Dread(set, type, mine, space, how, data) : H5Dwrite(set, type, mine, space, how, data), "transfer");
        }
        check(H5Dclose(set), "H5Dclose");
        H5Sclose(space);
        H5Sclose(mine);
        H5Tclose(type);
        return number * size;
    }
    uint64_t from = at + first * size, bytes = count * size, longest = 0;
    for (int q = 0; q < ranks; q++) {
        uint64_t one = (first_of(number, q + 1) - first_of(number, q)) * size;
        longest = one > longest ? one : longest;
    }
    if (alone) longest = bytes;
    for (uint64_t done = 0; done < longest; done += LARGEST) {
        uint64_t left = bytes > done ? bytes - done : 0;
        int part = left < LARGEST ? (int)left : LARGEST;
        char *where = (char *)data + (left ? done : 0);
        MPI_Offset offset = (MPI_Offset)(from + (left ? done : 0));
        if (reading) call(MPI_File_read_at_all(plain, offset, where, part, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        else if (alone) call(MPI_File_write_at(plain, offset, where, part, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        else call(MPI_File_write_at_all(plain, offset, where, part, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    }
    return number * size;
}

/* Elements at scattered addresses: every second one of the memory. */
static void scattered(uint64_t number, uint64_t size) {
    uint64_t first = first_of(number, rank), count = first_of(number, rank + 1) - first;
    if (with_hdf5) {
        reserve(&table, count * size);
        for (uint64_t k = 0; k < count; k++) memcpy(table.bytes + k * size, memory.bytes + 2 * k * size, size);
        transfer("data", 0, number, first, count, size, table.bytes, 0, 0);
        return;
    }
    MPI_Datatype type;
    int *lengths = malloc((count + 1) * sizeof(int));
    MPI_Aint *places = malloc((count + 1) * sizeof(MPI_Aint));
    for (uint64_t k = 0; k < count; k++) lengths[k] = (int)size, places[k] = (MPI_Aint)(2 * k * size);
    call(MPI_Type_create_hindexed((int)count, lengths, places, MPI_BYTE, &type), "type");
    call(MPI_Type_commit(&type), "type");
    call(MPI_File_write_at_all(plain, (MPI_Offset)(first * size), memory.bytes, 1, type, MPI_STATUS_IGNORE), "write");
    MPI_Type_free(&type);
    free(lengths);
    free(places);
}

int main(int argc, char **argv) {
    char line[16384], task[32], path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    with_hdf5 = argc > 1 && !strcmp(argv[1], "hdf5");
    if (with_hdf5) {
        collective = H5Pcreate(H5P_DATASET_XFER);
        independent = H5Pcreate(H5P_DATASET_XFER);
        check(H5Pset_dxpl_mpio(collective, H5FD_MPIO_COLLECTIVE), "H5Pset_dxpl_mpio");
        check(H5Pset_dxpl_mpio(independent, H5FD_MPIO_INDEPENDENT), "H5Pset_dxpl_mpio");
    }
    for (;;) {
        uint64_t a = 0, size = 1;
        if (rank == 0 && !fgets(line, sizeof line, stdin)) line[0] = 0;
        MPI_Bcast(line, sizeof line, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (!line[0]) break;
        errno = 0;
        if (sscanf(line, "%31s %4095s %zu %zu", task, path, &a, &size) < 3) die(line);
        int small = !strcmp(task, "write-small"), one = !strcmp(task, "write-one"), varray = !strcmp(task, "write-varray");
        int indirect = !strcmp(task, "write-indirect"), reading = !strcmp(task, "read-array");
        uint64_t number = small ? SMALL : varray ? a : a / size;
        uint64_t first = first_of(number, rank), count = first_of(number, rank + 1) - first, bytes = 0;
        if (one) first = 0, count = rank ? 0 : a;
        uint64_t mine = count * (small ? 8 : varray ? 80 : size), before = 0, total = 0;
        reserve(&memory, (indirect ? 2 : 1) * mine + 1);
        if (indirect && with_hdf5) reserve(&table, mine + 1);
        if (varray) {
            reserve(&table, 8 * count + 8);
            uint64_t *sizes = (uint64_t *)table.bytes;
            for (uint64_t k = 0; k < number; k++) {
                uint64_t length = 48 + mixed(k) % 33;
                if (k < first) before += length;
                if (k >= first && k < first + count) sizes[k - first] = length;
                total += length;
            }
        }
        if (rank == 0 && !reading) unlink(path);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        create(path, reading);
        if (small) {
            for (uint64_t k = 0; k < a; k++) {
                char name[32];
                snprintf(name, sizeof name, "%zu", (size_t)k);
                bytes += transfer(name, bytes, number, first, count, 8, memory.bytes, 0, 0);
            }
        } else if (varray) {
            bytes = transfer("sizes", 0, number, first, count, 8, table.bytes, 0, 0);
            /* The partition of the bytes differs from that of the elements. */
            if (with_hdf5) {
                uint64_t end = before;
                for (uint64_t k = 0; k < count; k++) end += ((uint64_t *)table.bytes)[k];
                transfer("data", 0, total, before, end - before, 1, memory.bytes, 0, 0);
            } else {
                uint64_t end = 0;
                for (uint64_t k = 0; k < count; k++) end += ((uint64_t *)table.bytes)[k];
                call(MPI_File_write_at_all(plain, (MPI_Offset)(bytes + before), memory.bytes, (int)end, MPI_BYTE,
                                           MPI_STATUS_IGNORE), "write");
            }
            bytes = total;
        } else if (indirect) {
            scattered(number, size);
            bytes = number * size;
        } else {
            bytes = transfer("data", 0, number, first, count, size, memory.bytes, one, reading);
        }
        close_file(reading);
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = now() - start;
        if (rank == 0) {
            printf("%.9f %zu\n", seconds, (size_t)bytes);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
