"""What sdf-xarray and sdfr (the C library) do with the same files.

The argument says which of them. A line on standard input is a task, and is answered by a line with its
seconds and its bytes, or what else is counted. Memory that an array is read into is new each time: that
is how both of them work.
"""

import gc
import sys
import time

import numpy as np

WHO = sys.argv[1]

if WHO == "sdfr":
    import sdfr
else:
    import sdf_xarray
    import xarray as xr
    from sdf_xarray.sdf_interface import SDFFile


def sdfr_blocks(path):
    return sdfr.read(path, dict=True, derived=False)


def list_blocks(path):
    if WHO == "sdfr":
        return len(sdfr_blocks(path))
    with SDFFile(path) as file:
        return len(file.variables) + len(file.grids)


def tree(path):
    with xr.open_dataset(path, engine="sdf_engine") as data:
        return len(data.variables)


def read(path, *names):
    """Whole arrays, by their names in the file."""
    bytes_read = 0
    if WHO == "sdfr":
        blocks = sdfr_blocks(path)
        for name in names:
            bytes_read += blocks[name].data.nbytes
    else:
        with SDFFile(path) as file:
            for name in names:
                bytes_read += file.read(file.variables[name]).nbytes
    return bytes_read


def everything(path):
    if WHO == "sdfr":
        total = 0
        for block in sdfr_blocks(path).values():
            data = getattr(block, "data", None)
            parts = data if isinstance(data, (tuple, list)) else [data]
            total += sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
        return total
    with SDFFile(path) as file:
        # Without what the library computes: boundaries, ranks, points between others.
        def own(name, block):
            made = "boundary" in block._id or "cpus_current" in block._id
            return not made and not name.endswith("_mid")

        total = 0
        for name, block in file.variables.items():
            total += file.read(block).nbytes if own(name, block) else 0
        for name, block in file.grids.items():
            if own(name, block):
                total += sum(np.asarray(axis).nbytes for axis in file.read(block))
        return total


def part(path, name, *spans):
    """A part of an array, from a file that is not open yet."""
    key = []
    for span in spans:
        if ":" in span:
            start, end = span.split(":")
            key.append(slice(int(start) if start else None, int(end) if end else None))
        else:
            key.append(int(span))
    if WHO == "sdfr":
        return np.ascontiguousarray(sdfr_blocks(path)[name].data[tuple(key)]).nbytes
    with xr.open_dataset(path, engine="sdf_engine", keep_particles=True) as data:
        found = [v for v in data.variables.values() if v.attrs.get("full_name") == name]
        return np.ascontiguousarray(found[0][tuple(key)].values).nbytes


def series(folder):
    with sdf_xarray.open_mfdataset(folder + "/*.sdf") as data:
        return data.sizes["time"]


def write(path, cells, fields, particles):
    cells, fields, particles = int(cells), int(fields), int(particles)
    n = round(cells ** (1 / 3))
    if not hasattr(write, "arrays"):
        field = np.asfortranarray(np.arange(n**3, dtype=float).reshape(n, n, n))
        write.arrays = field, np.arange(particles, dtype=float)
    field, points = write.arrays

    def work():
        out = sdfr.new()
        for k in range(fields):
            sdfr.add_block(out, name=f"Field/F{k}", value=field, id=f"f{k}", mesh_id="grid")
        for k in range(3):
            sdfr.add_block(out, name=f"Particles/P{k}", value=points, id=f"p{k}", mesh_id="grid")
        sdfr.write(out, path)

    return work, fields * field.nbytes + 3 * points.nbytes


TASKS = {"list": list_blocks, "tree": tree, "read": read, "all": everything, "part": part, "series": series}

for line in sys.stdin:
    task, *words = line.split()
    gc.collect()
    if task == "write":
        work, count = write(*words)
        start = time.perf_counter()
        work()
    else:
        start = time.perf_counter()
        count = TASKS[task](*words)
    print(f"{time.perf_counter() - start:.9f} {count}", flush=True)
