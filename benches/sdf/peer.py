"""The tasks of `cargo xtask bench sdf` with sdf-xarray or sdfr (the C library), given as argument.

Protocol: benches/common.h; tasks: formats/sdf/examples/bench_sdf.rs. Both packages read into newly allocated
memory.
"""

import gc
import sys
import time

import numpy as np

PACKAGE = sys.argv[1]

if PACKAGE == "sdfr":
    import sdfr
else:
    import sdf_xarray
    import xarray as xr
    from sdf_xarray.sdf_interface import SDFFile


def sdfr_blocks(path):
    return sdfr.read(path, dict=True, derived=False)


def list_blocks(path):
    if PACKAGE == "sdfr":
        return len(sdfr_blocks(path))
    with SDFFile(path) as file:
        return len(file.variables) + len(file.grids)


def tree(path):
    with xr.open_dataset(path, engine="sdf_engine") as data:
        return len(data.variables)


def read(path, *names):
    """Entire arrays, by name."""
    bytes_read = 0
    if PACKAGE == "sdfr":
        blocks = sdfr_blocks(path)
        for name in names:
            bytes_read += blocks[name].data.nbytes
    else:
        with SDFFile(path) as file:
            for name in names:
                bytes_read += file.read(file.variables[name]).nbytes
    return bytes_read


def everything(path):
    if PACKAGE == "sdfr":
        total = 0
        for block in sdfr_blocks(path).values():
            data = getattr(block, "data", None)
            parts = data if isinstance(data, (tuple, list)) else [data]
            total += sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
        return total
    with SDFFile(path) as file:
        # Without blocks that the library computes: boundaries, ranks, cell centres.
        def own(name, block):
            computed = "boundary" in block._id or "cpus_current" in block._id
            return not computed and not name.endswith("_mid")

        total = 0
        for name, block in file.variables.items():
            total += file.read(block).nbytes if own(name, block) else 0
        for name, block in file.grids.items():
            if own(name, block):
                total += sum(np.asarray(axis).nbytes for axis in file.read(block))
        return total


def part(path, name, *spans):
    """A part of an array; includes opening the file."""
    key = []
    for span in spans:
        if ":" in span:
            start, end = span.split(":")
            key.append(slice(int(start) if start else None, int(end) if end else None))
        else:
            key.append(int(span))
    if PACKAGE == "sdfr":
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
    task, *args = line.split()
    gc.collect()
    if task == "write":
        work, count = write(*args)
        start = time.perf_counter()
        work()
    else:
        start = time.perf_counter()
        count = TASKS[task](*args)
    print(f"{time.perf_counter() - start:.9f} {count}", flush=True)
