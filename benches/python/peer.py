"""The tasks of `cargo xtask bench python` with one package: spile, sdf-xarray, gsd or numpy, given as argument.

Protocol: benches/common.h; tasks: the functions below.
"""

import gc
import os
import resource
import sys
import time

import numpy as np

PACKAGE = sys.argv[1]

if PACKAGE == "spile":
    import spile
    import spile.gsd.hoomd as hoomd
    import xarray as xr

    OPEN = {"engine": "spile"}
elif PACKAGE == "sdf-xarray":
    import sdf_xarray
    import xarray as xr

    OPEN = {"engine": "sdf_engine"}
elif PACKAGE == "gsd":
    import gsd.fl
    import gsd.hoomd
    from gsd import hoomd


def peak():
    """Peak memory of the process in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def warm():
    """Imports what xarray imports on first use."""
    xr.backends.plugins.list_engines()
    ds = xr.Dataset({"v": ("x", [1.0, 2.0])}, {"x": [1.0, 2.0]})
    ds.chunk({"x": 1}).mean("x").compute()


def open_dump(path):
    """Seconds, and the increase of the peak memory."""
    warm()
    before = peak()
    start = time.perf_counter()
    ds = xr.open_dataset(path, keep_particles=True, **OPEN)
    seconds = time.perf_counter() - start
    return seconds, max(peak() - before, len(ds.variables))


def plane(path, middle):
    start = time.perf_counter()
    with xr.open_dataset(path, **OPEN) as ds:
        field = ds["Field_F0"]
        part = field.isel({field.dims[1]: int(middle)}).values
    return time.perf_counter() - start, part.nbytes


def blocks(path):
    start = time.perf_counter()
    with xr.open_dataset(path, **OPEN) as ds:
        count = len(ds.variables)
    return time.perf_counter() - start, count


def tree(path):
    start = time.perf_counter()
    with spile.open(path) as file:
        count = len(file._handle.open.nodes()[0])
    return time.perf_counter() - start, count


def open_run(folder):
    if PACKAGE == "spile":
        return spile.open_mfdataset(folder + "/*.sdf")
    return sdf_xarray.open_mfdataset(folder + "/*.sdf")


def first(folder):
    """Opening, and the values of a first plot: a plane of a field in the last dump."""
    start = time.perf_counter()
    with open_run(folder) as ds:
        field = ds["Field_F0"].isel(time=-1)
        part = field.isel({field.dims[-1]: 0}).values
    return time.perf_counter() - start, part.size


def mean(folder):
    """Opening and the mean of a field over time; the count is the increase of the peak memory."""
    warm()
    before = peak()
    start = time.perf_counter()
    with open_run(folder) as ds:
        ds["Field_F0"].mean("time").compute()
    return time.perf_counter() - start, max(peak() - before, 1)


def frames(path, count):
    count = int(count)
    if PACKAGE == "spile":
        trajectory = spile.open(path).hoomd
    else:
        trajectory = gsd.hoomd.open(path, "r")
    start = time.perf_counter()
    for k in range(count):
        particles = trajectory[k].particles
        particles.position, particles.velocity, particles.typeid
    return time.perf_counter() - start, count


def entries(path, times):
    """Opening a file and the number of its frames."""
    start = time.perf_counter()
    for _ in range(int(times)):
        if PACKAGE == "spile":
            with spile.open(path) as file:
                count = file.frames
        else:
            with gsd.fl.open(path, "r") as file:
                count = file.nframes
    return time.perf_counter() - start, count


def chunks(path, count):
    """The positions of every frame."""
    count = int(count)
    if PACKAGE == "spile":
        positions = spile.open(path)["particles/position"]
        start = time.perf_counter()
        for k in range(count):
            positions[k]
    else:
        file = gsd.fl.open(path, "r")
        start = time.perf_counter()
        for k in range(count):
            file.read_chunk(k, "particles/position")
    return time.perf_counter() - start, count


def small(path, count):
    """New frames of four particles with one logged quantity."""
    count = int(count)
    frame = hoomd.Frame()
    frame.particles.N = 4
    start = time.perf_counter()
    with hoomd.open(path, "w") as file:
        for k in range(count):
            frame.configuration.step = k
            frame.particles.position = np.full((4, 3), k, np.float32)
            frame.log["energy"] = np.array([0.5 * k])
            file.append(frame)
    return time.perf_counter() - start, count


def log(path):
    start = time.perf_counter()
    found = spile.open(path).hoomd.log() if PACKAGE == "spile" else gsd.hoomd.read_log(path)
    return time.perf_counter() - start, len(found["configuration/step"])


def windows(path, offset, length):
    """1000 views of 1000 samples each of a TAF file without scaling; includes opening the file."""
    offset, length = int(offset), int(length)
    starts = [(k * 7919_003) % (length - 1000) for k in range(1000)]
    start = time.perf_counter()
    if PACKAGE == "spile":
        data = spile.open(path, mmap=True)["data"].view()
    else:
        data = np.memmap(path, "<f4", "r", offset, (length, 1), order="F")
    total = sum(float(data[at : at + 1000, 0].sum()) for at in starts)
    return time.perf_counter() - start, int(total != 0.0) * 4_000_000


def copies(path, offset, length):
    """1000 copies of 1000 samples each of a TAF file; includes opening the file."""
    offset, length = int(offset), int(length)
    starts = [(k * 7919_003) % (length - 1000) for k in range(1000)]
    start = time.perf_counter()
    if PACKAGE == "spile":
        data = spile.open(path)["data"]
        total = sum(float(data[at : at + 1000, 0].sum()) for at in starts)
    else:
        data = np.memmap(path, "<f4", "r", offset, (length, 1), order="F")
        total = sum(float(np.array(data[at : at + 1000, 0]).sum()) for at in starts)
    return time.perf_counter() - start, int(total != 0.0) * 4_000_000


def make_taf(path, length):
    from spile import taf

    samples = (np.arange(int(length)) % 1000).astype("f4").reshape(-1, 1)
    start = time.perf_counter()
    taf.create(path, samples, dtype="flt32", overwrite=True)
    return time.perf_counter() - start, os.path.getsize(path) - samples.nbytes


TASKS = {
    "open": open_dump,
    "plane": plane,
    "blocks": blocks,
    "tree": tree,
    "first": first,
    "mean": mean,
    "frames": frames,
    "entries": entries,
    "chunks": chunks,
    "small": small,
    "log": log,
    "windows": windows,
    "copies": copies,
    "make-taf": make_taf,
}

for line in sys.stdin:
    task, *args = line.split()
    gc.collect()
    seconds, count = TASKS[task](*args)
    print(f"{seconds:.9f} {count}", flush=True)
