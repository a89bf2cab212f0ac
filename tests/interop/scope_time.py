"""Oscilloscope recordings have the time base of the manifest, with its unit, in every target."""

import json
import os
import tempfile
import warnings

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyvista as pv
import xarray as xr
from support import GOLDEN, spile


# Files of instruments, which are not part of the project.
REAL = GOLDEN.parent.parent.parent / "shared" / "real" / "scope"


def is_time(name):
    return "time" in name.rsplit("/", 1)[-1]


def csv(path):
    table = pd.read_csv(path, float_precision="round_trip")
    split = {name: name.partition(" (") for name in table.columns}
    return [(table[name], part[2].rstrip(")")) for name, part in split.items() if part[0].endswith("time")]


def parquet(path):
    """Units are in the metadata of fields, which pyarrow shows, and in `DataFrame.attrs`."""
    table, schema = pd.read_parquet(path), pq.read_schema(path)
    units = {field.name: field.metadata[b"units"].decode() for field in schema if b"units" in (field.metadata or {})}
    assert table.attrs["units"] == units, (path, units)
    return [(table[name], units.get(name)) for name in table.columns if name.endswith("time")]


def arrow(path):
    table = pa.ipc.open_file(path).read_all()
    fields = [field for field in table.schema if field.name.endswith("time")]
    return [(table[field.name], field.metadata[b"units"].decode()) for field in fields]


def coordinates(dataset):
    return [(c.values, c.attrs.get("units")) for name, c in dataset.coords.items() if is_time(str(name))]


def netcdf(path):
    with xr.open_dataset(path, decode_times=False) as dataset:
        return coordinates(dataset.load())


def zarr(path):
    return coordinates(xr.open_zarr(path, decode_times=False, consolidated=False))


def hdf5(path):
    """Dimension scales that are attached to a dataset."""
    found = []

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            scales = [scale for dim in item.dims for scale in dim.values() if is_time(scale.name)]
            found.extend((scale[()], scale.attrs.get("units")) for scale in scales)

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def npz(path):
    stored = np.load(path)
    return [(stored[name], None) for name in stored.files if is_time(name)]


def mat(path):
    found = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.append((np.ravel(item), None)) if is_time(name) and
                        isinstance(item, h5py.Dataset) and item.size > 1 else None)
    return found


def vtk(path):
    """The points of each grid along x."""
    blocks = pv.read(path).recursive_iterator(skip_none=True)
    return [(np.unique(block.points[:, 0]), None) for block in blocks]


TARGETS = {"csv": csv, "parquet": parquet, "arrow": arrow, "nc": netcdf, "zarr": zarr, "h5": hdf5, "npz": npz, "mat": mat,
           "vtm": vtk}
WITHOUT_UNITS = {"npz", "mat", "vtm"}


def has(found, base, step):
    """Whether one of the columns is the time base, which a long table repeats."""
    for values, _ in found:
        values = np.asarray(values, dtype=float)
        for part in (values, np.unique(values)):
            if part.size and part.size % base.size == 0 and np.allclose(part.reshape(-1, base.size), base, rtol=0, atol=1e-6 * step):
                return True
    return False


def recordings():
    """Name, path and time bases (start, step, number of samples) of the golden files, and of real ones where they exist."""
    manifest = json.loads((GOLDEN / "digitizer/manifest.json").read_text())
    files = {path.name: path for folder in ("lecroy", "tektronix", "keysight", "dig") for path in (GOLDEN / folder).iterdir()}
    for name, described in manifest.items():
        if name in files and "records" in described:
            records, found = described["records"], objects(files[name])
            if any("segment" in o.get("dims", []) for o in found):
                # The time of segments is that of the first; the differences are the array trigger_offset.
                records = records[:1]
            yield name, files[name], [(float(r["x0"]), float(r["dx"]), r["n"]) for r in records], found
    for path in REAL.glob("*"):
        found = objects(path)
        along = [o for o in found if "time" in o.get("dims", [])]
        if along:
            described = json.loads((REAL / "manifest.json").read_text()).get(path.name, {})
            records = [(c["t0"], c["dt"], c["n"]) for c in described.get("channels", [])]
            if path.name.startswith(("DS1204B", "DS1202CA")):
                # The manifest has n samples on n intervals; the instrument's CSV files have the interval 1 / sample rate.
                records = []
            axes = [(o["coords"][o["dims"].index("time")], o["shape"][o["dims"].index("time")]) for o in along]
            yield path.name, path, records or [(axis["start"], axis["step"], n) for axis, n in axes], found


def objects(path):
    """The arrays of a file; none if it cannot be opened."""
    shown = spile("ls", path, "--json", codes=(0, 1, 2))
    return [o for o in json.loads(shown)["objects"] if o["kind"] == "array"] if shown else []


def main():
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    problems, count = [], 0
    for name, path, records, shown in recordings():
        lengths = {o["shape"][o["dims"].index("time")] for o in shown if "time" in o["dims"]}
        for target, read in TARGETS.items():
            spile("convert", path, f"{name}.{target}")
            found = read(f"{name}.{target}")
            for start, step, samples in records:
                # Pairs of minimum and maximum have one time.
                samples = samples if samples in lengths else samples // 2
                if not has(found, start + np.arange(samples) * step, step):
                    problems.append((name, target, "time base", [np.asarray(v)[:3] for v, _ in found]))
                    break
            units = {unit.decode() if isinstance(unit, bytes) else unit for _, unit in found}
            if target not in WITHOUT_UNITS and units != {"s"}:
                problems.append((name, target, "units", units))
            count += 1
    assert not problems, "\n".join(map(str, problems))
    assert count > 450, count


main()
