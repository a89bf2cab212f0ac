"""The tasks of `cargo xtask bench taf` with NumPy or h5py.

    peer.py numpy|h5py

Protocol: benches/common.h; after the count come the numbers of the result. A task is a function below, a file and
options NAME=VALUE. Writing includes fsync.
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
    """The header of a TAF file, with the terms of the specification."""

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
    """The same samples as a chunked HDF5 dataset with deflate."""

    def __init__(self, path):
        import h5py

        self.data = h5py.File(path, "r", rdcc_nbytes=4 * PART)["data"]
        self.intercept, self.slope = self.data.attrs["mapping"]

    def column(self):
        return self.data


def stat(file, _):
    """Values are scaled first, part by part."""
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
    """Only the minima and maxima are scaled."""
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
    """The entire array as doubles, with fewer temporaries than `intercept + slope * x`."""
    out = file.column()[:].astype("f8")
    out *= file.slope
    out += file.intercept
    return (out[-1],)


def load(file, options):
    """Stored elements. They are copied: creating a memory map reads nothing."""
    first, count = int(options["first"]), int(options["count"])
    return (np.array(file.column()[first : first + count])[-1],)


def copy(file, options):
    """Copies the first elements to another file."""
    with open(options["out"], "wb") as out:
        file.column()[: int(options["count"])].tofile(out)
        sync(out)
    return ()


def export(file, options):
    """Writes grid and values as text."""
    grid = file.start + np.arange(file.shape[0]) * file.step
    values = file.intercept + file.slope * file.column().astype("f8")
    with open(options["out"], "w", encoding="ascii") as out:
        np.savetxt(out, np.column_stack([grid, values]), fmt="%.17g")
        sync(out)
    return ()


def transpose(file, options):
    """Bands that fit 256 MiB, transposed in tiles: the fastest of several variants."""
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


def pack(file, options):
    """Writes the column of a TAF file as HDF5."""
    import h5py

    data = file.column()
    with h5py.File(options["out"], "w") as target:
        made = target.create_dataset(
            "data", data.shape, data.dtype, chunks=(PART,), compression="gzip", compression_opts=1
        )
        made.attrs["mapping"] = file.intercept, file.slope
        for k in range(0, len(data), PART):
            made[k : k + PART] = data[k : k + PART]
    return ()


def main(name):
    for line in sys.stdin:
        task, path, *rest = line.split()
        options = dict(option.split("=", 1) for option in rest)
        start = time.perf_counter()
        result = globals()[task]({"numpy": Taf, "h5py": Hdf}[name](path), options)
        seconds = time.perf_counter() - start
        print(f"{seconds:.9f} 0", *map(repr, map(float, result)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
