"""HDF5 and NetCDF: h5py, netCDF4, h5netcdf and xarray read the files of spile, with names, units and
coordinates, and spile theirs; with an index, h5py reads SDF, GSD and TAF files in place.
"""

import hashlib
import json
import os
import subprocess
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
        assert [list(dim.keys())[0] for dim in ex.dims] == ["X_Grid_mid", "Y_Grid_mid"]
        values, points = ex[()], file["Grid/Grid/X_mid"][()]
    for engine in ("netcdf4", "h5netcdf"):
        with xr.open_datatree("f.nc", engine=engine) as tree:
            ex = tree["Electric_Field_Ex"]
            assert ex.dims == ("X_Grid_mid", "Y_Grid_mid") and ex.attrs["units"] == "V/m"
            assert np.array_equal(ex, values) and np.array_equal(ex["X_Grid_mid"], points)
            assert ex["X_Grid_mid"].attrs["units"] == "m"
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


def filters():
    """Every filter that h5py has, and bzip2, on every type."""
    random = np.random.default_rng(5)
    shape, chunks = (37, 41), (10, 7)
    with h5py.File("f.h5", "w") as file:
        for code in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"):
            low = 0 if "u" in code else -50
            values = random.integers(low, 77, shape).astype(code)
            if "f" in code:
                values = (values + random.normal(size=shape)).astype(code)
            runs = np.where(np.arange(60000).reshape(300, 200) % 5000 < 20, 7, 0).astype(code)
            walk = np.cumsum(random.integers(-2, 3, (300, 200)), axis=1).astype(code)

            def add(name, data=values, chunks=chunks, **options):
                file.create_dataset(f"{code}/{name}", data=data, chunks=chunks, **options)

            for digits in (0, 3):
                add(f"scaleoffset {digits}", scaleoffset=digits)
                add(f"scaleoffset {digits} and gzip", scaleoffset=digits, compression="gzip", shuffle=True)
            add("scaleoffset with a fill value", scaleoffset=0, fillvalue=5)
            for option in ("nn", "ec"):
                for block in (8, 32):
                    add(f"szip {option} {block}", compression="szip", compression_opts=(option, block))
            add("szip runs", runs, (100, 150), compression="szip", compression_opts=("nn", 8))
            add("szip walk", walk, (100, 150), compression="szip")
            add("gzip", compression="gzip", fletcher32=True)
            add("lzf", compression="lzf", shuffle=True)
        # Integers that use some of their bits, with and without the filter nbit.
        types = [("STD_I32LE", 12, 4), ("STD_I32BE", 17, 3), ("STD_U16LE", 9, 0), ("STD_I64LE", 33, 7), ("STD_I32LE", 32, 0)]
        for base, precision, offset in types:
            datatype = getattr(h5py.h5t, base).copy()
            if precision < 8 * datatype.get_size():
                datatype.set_precision(precision)
                datatype.set_offset(offset)
            for nbit in (False, True):
                creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                if nbit:
                    creation.set_chunk(chunks)
                    creation.set_filter(h5py.h5z.FILTER_NBIT)
                name = f"{base} {precision} {nbit}".encode()
                item = h5py.h5d.create(file.id, name, datatype, h5py.h5s.create_simple(shape), creation)
                low = 0 if "U" in base else -200
                item.write(h5py.h5s.ALL, h5py.h5s.ALL, random.integers(low, 200, shape))
    expected = hashes("f.h5")
    with h5py.File("f.h5") as file:
        found = datasets(file)
        assert len(found) == 14 * 13 + 10 == len(expected)
        for path, item in found.items():
            assert hash_of(item[()]) == expected[path], path


def compounds():
    """Members of compounds, variable-length numbers and references."""
    inner = np.dtype([("a", ">i2"), ("b", "<f4", (2,))])
    record = np.dtype([("x", "<f8"), ("n", ">i4"), ("v", "<f4", (3,)), ("s", "S5"), ("z", "<c16"), ("inner", inner)])
    random = np.random.default_rng(9)
    values = np.frombuffer(random.bytes(record.itemsize * 60), "u1").copy().view(record).reshape(6, 5, 2)
    values["x"], values["v"], values["s"] = random.normal(size=(6, 5, 2)), 1.5, b"ab"
    values["z"], values["inner"]["b"] = 1 + 2j, 3
    options = {"contiguous": {}, "chunked": {"chunks": (4, 2, 2)}, "gzip": {"chunks": (4, 2, 2), "compression": "gzip"}}
    text = np.dtype([("name", h5py.string_dtype()), ("k", "i4")])
    lists = [[0, 1, 2], [], [3]]
    for libver in ("earliest", "latest"):
        with h5py.File("c.h5", "w", libver=libver) as file:
            for name, option in options.items():
                file.create_dataset(name, data=values, **option)
            file.create_dataset("empty", (4,), record, chunks=(2,), fillvalue=values[0, 0, 0])
            file["scalar"] = values[0, 0, 0]
            file["text"] = np.array([("one", 1), ("three", 3)], text)
            ragged = file.create_dataset("lists", (3,), h5py.vlen_dtype(np.dtype(">i4")))
            for k, items in enumerate(lists):
                ragged[k] = items
            references = file.create_dataset("references", (3,), h5py.ref_dtype)
            references[0], references[1] = file["scalar"].ref, file.ref
        expected = hashes("c.h5")

        def compare(path, data):
            for member in data.dtype.names:
                part = data[member]
                if part.dtype.names:
                    compare(f"{path}/{member}", part)
                else:
                    assert hash_of(part) == expected[f"{path}/{member}"], (libver, path, member)

        for name in options:
            compare(name, values)
        compare("scalar", values[0, 0, :1].reshape(()))
        compare("empty", np.repeat(values[0, 0, :1], 4))
        assert expected["text/k"] == hash_of(np.array([1, 3], "i4"))
        assert spile("cat", "c.h5", "text/name").split() == [b"one", b"three"]
        assert expected["lists"] == hash_of(np.arange(4, dtype="i4"))
        assert expected["lists.sizes"] == hash_of(np.array([3, 0, 1], "u8"))
        assert spile("cat", "c.h5", "references").decode().splitlines()[:2] == ["/scalar", "/"]


def unreadable():
    """An object that cannot be read is reported with the reason."""
    with h5py.File("u.h5", "w") as file:
        file.create_dataset("outside", (4,), "i4", external=[("nothing.bin", 0, 16)])
        file["other"] = np.arange(3)
    result = subprocess.run([os.environ["SPILE"], "cat", "u.h5", "outside"], capture_output=True)
    error = [line for line in result.stderr.decode().splitlines() if line.startswith("error")]
    assert result.returncode != 0 and "\"nothing.bin\" does not exist" in error[0], result.stderr


def classic():
    """NetCDF classic files of all versions, and what xarray shows after a conversion."""
    random = np.random.default_rng(4)
    types = {"NETCDF3_CLASSIC": "i1 i2 i4 f4 f8", "NETCDF3_64BIT_OFFSET": "i1 i2 i4 f4 f8",
             "NETCDF3_64BIT_DATA": "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8"}
    for form, codes in types.items():
        with netCDF4.Dataset("k.nc", "w", format=form) as file:
            for name, length in (("time", None), ("x", 5), ("y", 3), ("len", 4)):
                file.createDimension(name, length)
            shapes = {(): (), ("x",): (5,), ("y", "x"): (3, 5), ("time",): (4,), ("time", "y"): (4, 3), ("time", "y", "x"): (4, 3, 5)}
            for code in codes.split():
                for dims, shape in shapes.items():
                    variable = file.createVariable(f"{code}_{'_'.join(dims)}", code, dims)
                    variable[...] = random.integers(0, 100, shape).astype(code)
                    variable.units = "m"
            file.createVariable("time", "f8", ("time",))[:] = np.arange(4.0)
            file["time"].units = "days since 2000-01-01"
            file.createVariable("x", "f4", ("x",))[:] = np.linspace(0, 1, 5)
            packed = file.createVariable("packed", "i2", ("time", "x"), fill_value=-99)
            packed.setncatts({"scale_factor": 0.5, "add_offset": 10.0, "units": "K"})
            packed[:] = np.ma.masked_greater(random.integers(0, 40, (4, 5)) / 2 + 10.0, 28)
            file.createVariable("tag", "S1", ("time", "len"))[:] = netCDF4.stringtochar(np.array(["a", "bc", "def", "ghij"], "S4"))
        expected = hashes("k.nc")
        with netCDF4.Dataset("k.nc") as file:
            file.set_auto_maskandscale(False)
            file.set_auto_chartostring(False)
            assert set(file.variables) == set(expected)
            for name, variable in file.variables.items():
                assert hash_of(variable[...]) == expected[name], (form, name)
        spile("check", "k.nc")
        spile("-q", "convert", "--overwrite", "k.nc", "k.zarr")
        with xr.open_dataset("k.nc", engine="netcdf4") as old, xr.open_zarr("k.zarr", consolidated=False) as new:
            assert set(old.variables) == set(new.variables), form
            for name in old.variables:
                assert old[name].dims == new[name].dims, (form, name)
                a, b = np.asarray(old[name]), np.asarray(new[name])
                if a.dtype.kind in "SU":
                    a, b = a.astype("U"), b.astype("U")
                assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), (form, name)
                assert old[name].attrs.get("units") == new[name].attrs.get("units"), (form, name)


def indexed():
    """Indexes: datasets are ranges of the original file."""
    for name in FILES[:5] + ["taf/good/dims_3d_4x3x2.taf", "sdf/epoch3d_0001.sdf"]:
        spile("-q", "index", "--h5", "--overwrite", GOLDEN / name, "i.h5", codes=(0, 3))
        spile("-q", "convert", "--stored", "--overwrite", GOLDEN / name, "c.h5", codes=(0, 3))
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
    filters()
    compounds()
    unreadable()
    classic()
    indexed()
