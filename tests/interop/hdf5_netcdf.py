"""HDF5 and NetCDF-4: h5py, netCDF4, h5netcdf and xarray read the files of spile, with names, units and
coordinates, and spile theirs; with an index, h5py reads SDF, GSD and TAF files in place.
"""

import hashlib
import json
import os
import tempfile
import warnings

import h5netcdf
import h5py
import netCDF4
import numpy as np
import xarray as xr
from support import GOLDEN, spile


# One file of each kind.
FILES = [
    "sdf/epoch2d_4ranks_id4_0001.sdf",
    "sdf/hand_bigendian_all.sdf",
    "taf/good/example_2d_101x3.taf",
    "taf/good/legacy_32_mapped.taf",
    "gsd/py-5.0.1/fl_special_floats.gsd",
    "scda/enc_v.scd",
    "npy/c16_2x2x2.npy",
    "npy/f2_edge.npy",
    "npy/bool_0x3.npy",
    "npy/s5.npy",
    "npy/longdouble.npy",
]


def little(values):
    values = np.ascontiguousarray(values)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def hash_of(values):
    return hashlib.sha256(little(values)).hexdigest()


def hashes(path):
    """The hash of every dataset of a file, as read by spile."""
    objects = json.loads(spile("hash", "--native", "--json", path))["objects"]
    return {item["path"]: item["sha256"] for item in objects}


def datasets(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


def is_bare_dimension(item):
    """Whether it is a dimension without a variable, which has no values."""
    return b"not a netCDF variable" in np.bytes_(item.attrs.get("NAME", b""))


def written():
    """Files written by spile."""
    for name in FILES:
        for ending in ("h5", "nc"):
            spile("-q", "convert", "--verify", "--overwrite", GOLDEN / name, f"x.{ending}")
            expected = hashes(f"x.{ending}")
            with h5py.File(f"x.{ending}") as file:
                seen = 0
                for path, item in datasets(file).items():
                    if is_bare_dimension(item):
                        continue
                    seen += 1
                    if item.size > 0:
                        assert hash_of(item[()]) == expected[path], (name, ending, path)
            assert seen > 0, name
        with netCDF4.Dataset("x.nc") as file:
            visit(file)
        for engine in ("netcdf4", "h5netcdf"):
            with xr.open_datatree("x.nc", engine=engine) as tree:
                tree.load()


def visit(group):
    for variable in group.variables.values():
        variable[...]
    for inner in group.groups.values():
        visit(inner)


def metadata():
    """Names, units and coordinates of files written by spile."""
    spile("-q", "convert", "--overwrite", GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf", "f.nc")
    spile("-q", "convert", "--overwrite", GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf", "f.h5")
    with h5py.File("f.h5") as file:
        ex = file["Electric Field/Ex"]
        assert ex.attrs["units"] == "V/m"
        assert [list(dim.keys())[0] for dim in ex.dims] == ["X_mid", "Y_mid"]
        values, points = ex[()], file["Grid/Grid/X_mid"][()]
    for engine in ("netcdf4", "h5netcdf"):
        with xr.open_datatree("f.nc", engine=engine) as tree:
            ex = tree["Electric Field/Ex"]
            assert ex.dims == ("X_mid", "Y_mid") and ex.attrs["units"] == "V/m"
            assert np.array_equal(ex, values) and np.array_equal(ex["X_mid"], points)
            assert ex["X_mid"].attrs["units"] == "m"
    # Scaled values.
    spile("-q", "convert", "--overwrite", GOLDEN / "taf/good/legacy_32_mapped.taf", "m.nc")
    spile("-q", "convert", "--overwrite", GOLDEN / "taf/good/legacy_32_mapped.taf", "m.npy")
    with xr.open_dataset("m.nc") as data:
        assert np.array_equal(data["data"], np.load("m.npy")), "scale_factor"
    # Frames are a dimension.
    gsd = next(GOLDEN.glob("gsd/py-5.0.1/*all*.gsd"), None) or GOLDEN / FILES[4]
    spile("-q", "convert", "--overwrite", gsd, "g.nc")
    with netCDF4.Dataset("g.nc") as file:
        assert "frame" in file.dimensions or "time" in file.dimensions


def read():
    """Files written by others."""
    random = np.random.default_rng(3)
    for libver in ("earliest", "latest"):
        for round in range(4):
            with h5py.File("r.h5", "w", libver=libver) as file:
                for k, code in enumerate(["<i2", ">i8", "<f4", ">f8", "<c16", "u1", "?"]):
                    shape = tuple(random.integers(1, 40, int(random.integers(1, 4))))
                    chunks = tuple(int(random.integers(1, n + 1)) for n in shape)
                    options = [{}, {"chunks": chunks}, {"chunks": chunks, "compression": "gzip"},
                               {"chunks": chunks, "compression": "lzf", "shuffle": True},
                               {"chunks": chunks, "fletcher32": True, "maxshape": (None,) * len(shape)}]
                    values = (random.normal(size=shape) * 100).astype(code)
                    chosen = options[int(random.integers(len(options)))]
                    file.create_dataset(f"group {k % 3}/{k}", data=values, **chosen)
            expected = hashes("r.h5")
            with h5py.File("r.h5") as file:
                all_of_them = datasets(file)
                assert len(all_of_them) == len(expected) == 7
                for path, item in all_of_them.items():
                    assert hash_of(item[()]) == expected[path], (libver, path, item.chunks)
    data = xr.Dataset(
        {"t": (("time", "x"), random.normal(size=(4, 5)), {"units": "K"}),
         "flag": ("x", np.array([1, 0, 1, 0, 1], bool)), "name": ("x", np.array(list("abcde")))},
        coords={"time": np.arange(4.0), "x": ("x", np.arange(5.0) / 2, {"units": "m"})},
    )
    for engine in ("netcdf4", "h5netcdf"):
        data.to_netcdf("d.nc", engine=engine)
        expected = hashes("d.nc")
        for name in ("t", "time", "x"):
            assert expected[name] == hash_of(data[name]), (engine, name)
        listing = spile("ls", "-l", "d.nc").decode()
        assert "K" in listing or "time" in listing, listing
        # Converted by spile and read by xarray.
        spile("-q", "convert", "--overwrite", "d.nc", "e.nc")
        with xr.open_dataset("e.nc", engine=engine) as back:
            assert back["t"].dims == ("time", "x") and back["t"].attrs["units"] == "K"
            assert np.array_equal(back["t"], data["t"]) and np.array_equal(back["x"], data["x"])
    with h5netcdf.File("h.nc", "w") as file:
        file.dimensions = {"x": 5}
        file.create_variable("v", ("x",), float)[:] = np.arange(5.0)
    assert hashes("h.nc")["v"] == hash_of(np.arange(5.0))


def indexed():
    """Indexes: datasets are ranges of the original file."""
    for name in FILES[:5] + ["taf/good/dims_3d_4x3x2.taf", "sdf/epoch3d_0001.sdf"]:
        spile("-q", "index", "--h5", "--overwrite", GOLDEN / name, "i.h5", codes=(0, 3))
        spile("-q", "convert", "--overwrite", GOLDEN / name, "c.h5")
        with h5py.File("i.h5") as index, h5py.File("c.h5") as copy:
            outside = 0
            found = datasets(index)
            for path, item in found.items():
                values = item[()]
                if "note" in item.attrs and "reverse" in str(item.attrs["note"]):
                    first = 1 if copy[path].dims[0].label == "frame" else 0
                    order = list(range(first)) + list(range(values.ndim))[: first - 1 if first else None : -1]
                    values = values.transpose(order)
                assert hash_of(values) == hash_of(copy[path][()]), (name, path)
                outside += item.external is not None
            assert outside > 0 and len(found) > 0, name
        assert os.path.getsize("i.h5") < os.path.getsize("c.h5") + 100_000


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    written()
    metadata()
    read()
    indexed()
