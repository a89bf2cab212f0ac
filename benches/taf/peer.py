"""The same tasks as a person with NumPy or h5py does them.

    peers.py numpy stat|envelope|widen|load|copy|export|transpose FILE [OUT] [OPTIONS]
    peers.py h5py  stat|envelope|widen FILE.h5 [OPTIONS]
    peers.py pack FILE OUT.h5

Prints the answer on one line and the seconds on the next. Starting Python and importing the
packages is not in the seconds. What is written is on the disk when the clock stops.
"""

import os
import struct
import sys
import time

import numpy as np

PART = 1 << 20
TILE = 128
TYPES = {"uint8": "u1", "int16": "<i2", "flt32": "<f4"}


class Taf:
    """What the header says, in the words of the specification."""

    def __init__(self, path):
        with open(path, "rb") as file:
            head = file.read(1056)
            name = head[1024:1032].rstrip(b"\0").decode()
            self.intercept, self.slope, rank = struct.unpack("<ddQ", head[1032:1056])
            grid = [struct.unpack("<Qdd", file.read(24)) for _ in range(rank)]
        self.shape = tuple(length for length, _, _ in grid)
        self.start, self.step = grid[0][1:]
        self.offset = 1056 + 24 * rank
        self.dtype = np.dtype(TYPES[name])
        self.path = path

    def array(self):
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order="F")

    def column(self):
        return self.array().reshape(-1, order="F")


class Hdf:
    """The same signal in chunks under deflate."""

    def __init__(self, path):
        import h5py

        self.data = h5py.File(path, "r", rdcc_nbytes=4 * PART)["data"]
        self.intercept, self.slope = self.data.attrs["mapping"]

    def column(self):
        return self.data


def stat(file, _):
    """Values are mapped first, a part at a time, as their user wants them."""
    data = file.column()
    count, low, high, total, squares = len(data), np.inf, -np.inf, 0.0, 0.0
    for k in range(0, count, PART):
        part = file.intercept + file.slope * data[k : k + PART].astype("f8")
        low, high = min(low, part.min()), max(high, part.max())
        total += part.sum()
        squares += np.dot(part, part)
    mean = total / count
    return low, high, mean, max(squares / count - mean**2, 0.0) ** 0.5


def envelope(file, options):
    """Only the few numbers of the result are mapped."""
    pixels = int(options["pixels"])
    data = file.column()
    run = len(data) // pixels
    if isinstance(file, Hdf):
        parts = (data[k * run : (k + 1) * run] for k in range(pixels))
        ends = np.array([(part.min(), part.max()) for part in parts], "i8")
    else:
        runs = data[: run * pixels].reshape(pixels, run)
        ends = np.array([runs.min(axis=1), runs.max(axis=1)], "i8")
    assert np.isfinite(file.intercept + file.slope * ends).all()
    return (int(ends.sum()),)


def widen(file, _):
    """The whole array as doubles, with one temporary less than the obvious expression has."""
    out = file.column()[:].astype("f8")
    out *= file.slope
    out += file.intercept
    return (out[-1],)


def load(file, options):
    """Elements as they are stored. They are copied: a map alone would not have read a byte."""
    first, count = int(options["first"]), int(options["count"])
    return (np.array(file.column()[first : first + count])[-1],)


def copy(file, options):
    """The first elements to another file."""
    with open(options["out"], "wb") as out:
        file.column()[: int(options["count"])].tofile(out)
        sync(out)
    return ()


def export(file, options):
    """Grid and values as text."""
    grid = file.start + np.arange(file.shape[0]) * file.step
    values = file.intercept + file.slope * file.column().astype("f8")
    with open(options["out"], "w", encoding="ascii") as out:
        np.savetxt(out, np.column_stack([grid, values]), fmt="%.17g")
        sync(out)
    return ()


def transpose(file, options):
    """Bands that fit 256 MiB, turned tile by tile: the fastest of several ways that were tried."""
    array = file.array()
    rows, columns = array.shape
    width = min(max((256 << 20) // 2 // (columns * 4), 1), rows)
    band = np.empty((width, columns), file.dtype)
    with open(options["out"], "wb") as out:
        for first in range(0, rows, width):
            height = min(width, rows - first)
            for i in range(0, height, TILE):
                end = min(i + TILE, height)
                for j in range(0, columns, TILE):
                    band[i:end, j : j + TILE] = array[first + i : first + end, j : j + TILE]
            band[:height].tofile(out)
        sync(out)
    return ()


def sync(out):
    out.flush()
    if os.path.isfile(out.name):
        os.fsync(out.fileno())


def pack(path, out):
    """Writes the column of a TAF file as HDF5."""
    import h5py

    file = Taf(path)
    data = file.column()
    with h5py.File(out, "w") as target:
        made = target.create_dataset(
            "data", data.shape, data.dtype, chunks=(PART,), compression="gzip", compression_opts=1
        )
        made.attrs["mapping"] = file.intercept, file.slope
        for k in range(0, len(data), PART):
            made[k : k + PART] = data[k : k + PART]


def main(words):
    if words[0] == "pack":
        return pack(*words[1:])
    who, task, path, *rest = words
    options = dict(word.split("=", 1) for word in rest)
    start = time.perf_counter()
    answer = globals()[task]({"numpy": Taf, "h5py": Hdf}[who](path), options)
    seconds = time.perf_counter() - start
    print(*map(repr, map(float, answer)))
    print(f"{seconds:.6f}")


if __name__ == "__main__":
    main(sys.argv[1:])
