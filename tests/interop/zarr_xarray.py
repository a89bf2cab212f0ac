"""Zarr: zarr-python and xarray read the stores and indexes of spile, and spile their stores."""

import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import xarray as xr
import zarr
from support import GOLDEN, spile

warnings.simplefilter("ignore")


def listed(path):
    """All arrays with one shape, as listed by spile."""
    rows = json.loads(spile("ls", "--json", path))
    rows = rows.get("objects") or rows.get("nodes") or rows["rows"]
    return {row["path"]: row for row in rows if row.get("dtype")}


def stored_names(group):
    """The name in a store of every array, by path in spile."""
    nodes = json.loads(group.attrs["spile"])["nodes"]
    return {node["path"]: node["array"].get("at", node["path"]) for node in nodes if "array" in node}


def values(path, array, dtype):
    """The stored values, in C order."""
    raw = spile("cat", "--raw", "--stored", path, array)
    return np.frombuffer(raw, np.dtype(dtype).newbyteorder("<"))


def assert_same(ours, theirs, location):
    ours = ours.astype(theirs.dtype.newbyteorder("="), copy=False).reshape(theirs.shape)
    theirs = np.asarray(theirs).astype(theirs.dtype.newbyteorder("="), copy=False)
    assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes(), location


def store():
    """An SDF dump as a store, with names, units and coordinates."""
    dump = GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf"
    spile("convert", dump, "x.zarr", "--strict", "--verify")
    with xr.open_datatree("x.zarr", engine="zarr", mask_and_scale=False) as tree:
        group, field = next(
            (node, var) for node in tree.subtree for var in node.data_vars.values() if var.ndim == 2
        )
        assert not any(str(dim).startswith("dim_") for dim in field.dims), field.dims
        assert all(dim in field.coords for dim in field.dims), (group.path, field)
        assert "units" in field.attrs, field.attrs
        for dim in field.dims:
            points = field.coords[dim].values
            assert np.all(np.diff(points) > 0), dim
    with xr.open_zarr("x.zarr") as root:
        assert root.attrs["code_name"].startswith("Epoch"), root.attrs
    # Every array, under the name that the metadata states.
    group = zarr.open_group("x.zarr", mode="r")
    names = stored_names(group)
    seen = 0
    for path in listed(dump):
        theirs = group[names[path]]
        if theirs.dtype.kind in "iufc":
            ours = values(dump, path, theirs.dtype)
            assert_same(ours, theirs[...], path)
            seen += 1
    assert seen > 20, seen
    # An array added by Python.
    group = zarr.open_group("x.zarr", mode="a", use_consolidated=False)
    more = group.create_array("more", shape=(3,), dtype="f4")
    more[...] = [1, 2, 3]
    assert "more" in listed("x.zarr")
    assert spile("cat", "x.zarr", "more").split() == [b"1.0", b"2.0", b"3.0"]


def frames():
    """A run: frames are a dimension with times."""
    run = sorted((GOLDEN / "sdf").glob("epoch1d_normal_000*.sdf"))
    folder = Path("series")
    folder.mkdir()
    for dump in run:
        os.symlink(dump, folder / dump.name)
    planes = Path("planes")
    planes.mkdir()
    for dump in (GOLDEN / "sdf").glob("epoch2d_4ranks_id4_000[12].sdf"):
        os.symlink(dump, planes / dump.name)
    spile("convert", planes, "planes.zarr", "--verify")
    spile("convert", folder, "series.zarr", "--verify")
    with xr.open_zarr("series.zarr") as root:
        assert root.sizes["time"] == len(run), root
        assert np.all(np.diff(root["time"].values) >= 0)
    with xr.open_datatree("series.zarr", engine="zarr") as tree:
        assert any("time" in var.dims for node in tree.subtree for var in node.data_vars.values())


def theirs():
    """Stores of xarray, with dimensions, coordinates and units."""
    data = xr.Dataset(
        {"t": (("time", "x"), np.arange(12.0).reshape(4, 3), {"units": "K"})},
        coords={"time": [0.0, 0.5, 1.0, 1.5], "x": [10, 20, 30]},
    )
    for version in (2, 3):
        name = f"v{version}.zarr"
        data.to_zarr(name, zarr_format=version)
        rows = listed(name)
        assert rows["t"]["shape"] == [4, 3], rows
        info = spile("info", "-v", name).decode() + spile("ls", "-v", name).decode()
        assert "time" in info and "K" in info, info
        ours = np.frombuffer(spile("cat", "--raw", name, "t"), "<f8")
        assert np.array_equal(ours, np.arange(12.0)), ours
        # Converted back, with the same values and names.
        spile("convert", name, f"back{version}.zarr", "--verify")
        with xr.open_zarr(f"back{version}.zarr") as back:
            xr.testing.assert_equal(back.load(), data)


def indexes():
    """Indexes: the original bytes in place, through fsspec."""
    files = [
        GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf",
        GOLDEN / "sdf/hand_bigendian_all.sdf",
        GOLDEN / "iotk/be/types.dat",
        GOLDEN / "iotk/subrec/subrec.dat",
        GOLDEN / "scda/a_basic.scd",
        *sorted((GOLDEN / "taf/good").glob("*.taf"))[:6],
        *sorted((GOLDEN / "gsd/py-5.0.1").glob("hoomd*.gsd")),
        Path("series"),
        Path("planes"),
    ]
    seen = 0
    for k, file in enumerate(files):
        spile("index", file, f"{k}.json", codes=(0, 3))
        if file == Path("planes"):
            listed = json.loads(Path(f"{k}.json").read_text())["refs"]
            assert "Electric Field/Ex/1.0.0" in listed, "planes in Fortran order, one per frame"
        # Compared with a store that contains all values.
        spile("convert", file, f"{k}.zarr")
        options = {"fo": f"{k}.json", "remote_protocol": "file"}
        virtual = zarr.open_group("reference://", mode="r", zarr_format=2, storage_options=options)
        real = zarr.open_group(f"{k}.zarr", mode="r")
        names = stored_names(real)
        refs = json.loads(Path(f"{k}.json").read_text())["refs"]
        arrays = [key.removesuffix("/.zarray") for key in refs if key.endswith("/.zarray")]
        for path in arrays:
            found = virtual[path]
            try:
                wanted = real[names.get(path, path)]
            except KeyError:
                continue
            assert found.shape == wanted.shape, (file, path)
            if found.dtype.kind not in "V" and wanted.dtype.kind not in "V":
                assert_same(np.asarray(wanted[...]), found[...], (file, path))
                seen += 1
        with xr.open_dataset("reference://", engine="zarr", mask_and_scale=False,
                             backend_kwargs={"storage_options": options}) as root:
            root.load()
        # The same index as Parquet tables.
        spile("index", file, f"{k}.parq", "--parquet", codes=(0, 3))
        options = {"fo": f"{k}.parq", "remote_protocol": "file"}
        tables = zarr.open_group("reference://", mode="r", zarr_format=2, storage_options=options)
        for path in arrays:
            assert_same(np.asarray(virtual[path][...]), tables[path][...], (file, path, "Parquet"))
    assert seen > 100, seen
    options = {"fo": "0.json", "remote_protocol": "file"}
    with xr.open_datatree("reference://", engine="zarr", storage_options=options) as tree:
        field = tree["Electric Field/Ex"]
        assert field.ndim == 2 and all(dim in field.coords for dim in field.dims), field


def main():
    os.chdir(tempfile.mkdtemp())
    store()
    frames()
    theirs()
    indexes()


main()
