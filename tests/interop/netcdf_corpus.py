"""NetCDF: files of netCDF4 and xarray with every option of these writers, in all formats. Each variable has the values
of netCDF4, or there is a finding that names it."""

import hashlib
import json
import os
import tempfile
import warnings

import h5py
import netCDF4
import numpy as np
import xarray as xr
from support import spile

warnings.simplefilter("ignore")
RNG = np.random.default_rng(9)
CLASSIC = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
SIGNED = ["i1", "i2", "i4", "f4", "f8"]
TYPES = [*SIGNED, "u1", "u2", "u4", "i8", "u8"]


def values(kind, shape):
    if np.dtype(kind).kind in "iu":
        limits = np.iinfo(kind)
        return RNG.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    return (RNG.normal(size=shape) * 1000).astype(kind)


def objects(path):
    found = json.loads(spile("ls", "--json", path))["objects"]
    return {item["path"]: item for item in found}


def findings(path):
    found = json.loads(spile("check", "--json", path, codes=(0, 1)))
    found = found[0] if isinstance(found, list) else found
    found = found["files"][0] if "files" in found else found
    found = found.get("check", found)
    return {f["object"].strip('"'): f["message"] for f in found["findings"] if f.get("object")}


def variables(group, prefix=""):
    for name, variable in group.variables.items():
        yield prefix + name, variable
    for name, below in group.groups.items():
        yield from variables(below, f"{prefix}{name}/")


def agree(path, least=1, silent=True):
    """Names of dimensions, shapes, types and stored values of all variables."""
    shown, found, seen = objects(path), findings(path), 0
    hashes = json.loads(spile("hash", "--native", "--json", path))["objects"]
    hashes = {item["path"]: item["sha256"] for item in hashes}
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        for name, variable in variables(file):
            seen += 1
            if name not in shown:
                assert name in found, (path, name, "neither listed nor reported", sorted(shown))
                continue
            compare(path, name, variable, shown, hashes)
    assert seen >= least, (path, seen)
    if silent:
        assert found == {}, (path, found)
    return found


def extended(path, name, theirs):
    """The stored records, and the fill value for the others: netCDF 4.10 reads only fill values if the first dimension is
    not the unlimited one."""
    with h5py.File(path) as file:
        stored = file.get(name)
        if stored is None or stored.shape == theirs.shape or stored.dtype != theirs.dtype or theirs.dtype.kind not in "iuf":
            return theirs
        whole = np.full(theirs.shape, stored.fillvalue, theirs.dtype)
        whole[tuple(slice(0, n) for n in stored.shape)] = stored[()]
        return whole


def compare(path, name, variable, shown, hashes):
    row, theirs = shown[name], np.asarray(variable[...])
    if path == "records.nc":
        theirs = extended(path, name, theirs)
    where = (path, name, row.get("dtype"), theirs.dtype)
    if theirs.dtype.fields:
        for field in theirs.dtype.names:
            raw = spile("cat", "--raw", "--stored", path, f"{name}/{field}")
            assert raw == np.ascontiguousarray(theirs[field]).tobytes(), (where, field)
        return
    if isinstance(variable.datatype, netCDF4.VLType) or variable.dtype is str:
        flat = theirs.reshape(-1)
        if variable.dtype is str:
            size = int(row["dtype"].split("[")[1].rstrip("]"))
            raw = spile("cat", "--raw", "--stored", path, name)
            own = [raw[k:k + size].rstrip(b"\0").decode() for k in range(0, len(raw), size)]
            assert own == flat.tolist() and row["shape"] == list(theirs.shape), (where, own, flat)
            return
        raw = spile("cat", "--raw", "--stored", path, name)
        assert raw == b"".join(np.ascontiguousarray(item).tobytes() for item in flat), where
        return
    dims, shape = list(variable.dimensions), list(theirs.shape)
    if theirs.dtype.kind == "S" and shape and shape[-1] > 0 and row["shape"] == shape[:-1]:
        dims, shape = dims[:-1], shape[:-1]
    assert row["shape"] == shape, (where, row["shape"], shape)
    assert row["dims"] == dims, (where, row["dims"], dims)
    little = np.ascontiguousarray(theirs.astype(theirs.dtype.newbyteorder("<"))).tobytes()
    if hashes.get(name) != hashlib.sha256(little).hexdigest():
        # The stored dataset has fewer records.
        assert spile("cat", "--raw", "--stored", path, name) == little, where


def classic(version):
    """Fixed and record variables of all types; lengths that need padding."""
    kinds = TYPES if version in ("NETCDF3_64BIT_DATA", "NETCDF4") else SIGNED
    for records in [0, 5]:
        with netCDF4.Dataset("all.nc", "w", format=version) as file:
            file.createDimension("t", None)
            file.createDimension("x", 3)
            file.createDimension("y", 5)
            file.createDimension("n", 7)
            for kind in kinds:
                file.createVariable(f"f_{kind}", kind, ("x", "y"))[:] = values(kind, (3, 5))
                file.createVariable(f"s_{kind}", kind, ())[...] = values(kind, ())
                file.createVariable(f"u_{kind}", kind, ("y",))
                if records:
                    file.createVariable(f"r_{kind}", kind, ("t", "x"))[:] = values(kind, (records, 3))
                    file.createVariable(f"q_{kind}", kind, ("t",))[:] = values(kind, records)
            text = file.createVariable("text", "S1", ("x", "n"))
            text[:] = netCDF4.stringtochar(np.array(["alpha", "b", "gammas"], "S7"))
            file.createVariable("letters", "S1", ("n",))[:] = np.array(list("abcdefg"), "S1")
            if records:
                words = file.createVariable("words", "S1", ("t", "n"))
                words[:] = netCDF4.stringtochar(np.array([f"w{k}" for k in range(records)], "S7"))
            file.title = "titleä"
            file.numbers = np.array([1.5, 2.5])
        agree("all.nc", len(kinds) * 3)
        if version != "NETCDF4":
            for kind in ["i1", "i2", "f8"]:
                # One record variable is not padded.
                with netCDF4.Dataset("one.nc", "w", format=version) as file:
                    file.createDimension("t", None)
                    file.createDimension("x", 3)
                    own = file.createVariable("only", kind, ("t", "x"))
                    if records:
                        own[:] = values(kind, (records, 3))
                agree("one.nc")


def netcdf4_types():
    """Groups, types of the user, unlimited dimensions, storage options."""
    with netCDF4.Dataset("four.nc", "w") as file:
        for name, length in [("t", None), ("x", 6), ("y", 4), ("n", 9)]:
            file.createDimension(name, length)
        for name, options in {
            "plain": {}, "contiguous": {"contiguous": True}, "zlib": {"zlib": True, "complevel": 3},
            "checked": {"fletcher32": True, "zlib": True, "shuffle": False}, "chunked": {"chunksizes": (2, 3)},
            "big": {"endian": "big"}, "zstd": {"compression": "zstd"}, "bzip2": {"compression": "bzip2"},
            "szip": {"compression": "szip"},
            "rounded": {"zlib": True, "least_significant_digit": 1},
            "significant": {"zlib": True, "significant_digits": 3},
        }.items():
            for kind in ["f4", "i2"]:
                if name in ("rounded", "significant") and kind == "i2":
                    continue
                own = file.createVariable(f"{name}_{kind}", kind, ("x", "y"), **options)
                own[:] = values(kind, (6, 4))
        late = file.createVariable("late", "i4", ("t", "x"), fill_value=-5, chunksizes=(2, 3))
        late[4:6, 1:3] = 7
        file.createVariable("no_fill", "f8", ("x",), fill_value=False)[:3] = 1
        own = file.createVariable("strings", str, ("x",))
        own[:] = np.array(["aä", "", "long " * 30, "d", "e", "漢"], object)
        file.createVariable("one_string", str, ())[...] = "scalar"
        characters = file.createVariable("names", "S1", ("t", "n"), zlib=True)
        characters[:] = netCDF4.stringtochar(np.array(["a", "bcd", "", "wordsword", "e", "f"], "S9"))
        inner = file.createCompoundType(np.dtype([("u", "i2"), ("v", "f8", (3,))]), "inner")
        file.createVariable("records", inner, ("x",))[:] = np.zeros(6, inner.dtype)
        sizes = file.createVLType("i4", "ragged")
        ragged = file.createVariable("ragged_values", sizes, ("y",))
        for k in range(4):
            ragged[k] = np.arange(k + 1, dtype="i4")
        cloud = file.createEnumType("u1", "cloud", {"clear": 0, "rain": 3, "missing": 255})
        file.createVariable("clouds", cloud, ("x",), fill_value=255)[:] = [0, 3, 0, 3, 3, 0]
        below = file.createGroup("outer/inner")
        below.createDimension("z", 2)
        below.createVariable("z", "f8", ("z",))[:] = [1, 2]
        below.createVariable("deep", "i8", ("z", "x"))[:] = values("i8", (2, 6))
        for k in range(120):
            file.createVariable(f"many_{k}", "i2", ("x",))[:] = k
    agree("four.nc", 140)
    shown = objects("four.nc")
    assert shown["names"]["dtype"] == "text[9]" and shown["outer/inner/deep"]["dims"] == ["z", "x"]


def conventions():
    """Scaling, missing values, unsigned numbers, times, bounds: xarray shows the same of a conversion."""
    time = np.array(["2001-01-01", "2001-01-03", "2001-02-01"], "M8[ns]")
    data = xr.Dataset(
        {"packed": (("time", "x"), RNG.normal(size=(3, 4)).round(1), {"units": "K", "long_name": "temperature"}),
         "masked": (("x",), np.array([1.0, np.nan, 3.0, 4.0])), "count": (("x",), np.arange(4)),
         "byte": (("x",), np.array([0, 100, -56, -1], "i1"), {"_Unsigned": "true"}),
         "x_bnds": (("x", "nv"), np.arange(8.0).reshape(4, 2)), "label": (("x",), ["a", "bb", "ccc", "d"])},
        coords={"time": time, "x": ("x", [0.5, 1.5, 2.5, 3.5], {"bounds": "x_bnds", "units": "m"}),
                "lat": (("x",), np.linspace(0, 1, 4), {"units": "degrees_north"})})
    encoding = {
        "packed": {"dtype": "i2", "scale_factor": 0.1, "add_offset": 20.0, "_FillValue": -999},
        "masked": {"_FillValue": -1e30}, "time": {"units": "days since 2000-01-01", "calendar": "standard"}}
    for version in ["NETCDF4", *CLASSIC]:
        data.to_netcdf("cf.nc", format=version, encoding=encoding, engine="netcdf4")
        for target in ["again.nc", "again.zarr"]:
            spile("convert", "cf.nc", target, "--overwrite")
            with xr.open_dataset("cf.nc") as wanted, xr.open_dataset(target) as own:
                for name in ["packed", "masked", "count", "byte", "x_bnds"]:
                    assert np.array_equal(own[name].values, wanted[name].values, equal_nan=True), (
                        version, target, name, own[name].values, wanted[name].values)
                assert np.array_equal(own["time"].values, wanted["time"].values), (version, target)
                assert own["packed"].attrs["units"] == "K"
                assert own["x"].attrs["units"] == "m" and np.array_equal(own["x"], wanted["x"])
                labels = [str(t.decode() if isinstance(t, bytes) else t) for t in own["label"].values.tolist()]
                assert labels == ["a", "bb", "ccc", "d"], (version, target, labels)
    with netCDF4.Dataset("limits.nc", "w") as file:
        file.createDimension("x", 5)
        own = file.createVariable("v", "i2", ("x",), fill_value=-1)
        own.valid_range = np.array([0, 10], "i2")
        own.missing_value = np.int16(7)
        own.set_auto_mask(False)
        own[:] = [-1, 3, 7, 11, 10]
    spile("convert", "limits.nc", "limits.csv", "--overwrite")
    with open("limits.csv") as file:
        cells = [line.strip().split(",")[-1] for line in file if not line.startswith("#")]
    expected = [np.nan, 3, np.nan, np.nan, 10]
    assert np.array_equal([float(cell) for cell in cells[1:]], expected, equal_nan=True), cells


def texts():
    """Texts, also of one character and as coordinates: names, values and coordinates for xarray, in files of all kinds."""
    for words in (["u", "v", "w"], ["electron", "", "größe"]):
        data = xr.Dataset({"a": ("k", [1.0, 2.0, 3.0]), "b": ("x", np.array(words, object)), "c": ((), words[0])},
                          coords={"k": np.array(words, object)})
        data.to_netcdf("texts.nc")
        data.to_netcdf("texts3.nc", format="NETCDF3_64BIT")
        data.to_zarr("texts.zarr", mode="w")
        assert objects("texts.nc")["k"]["shape"] == [3], objects("texts.nc")
        for source in ["texts.nc", "texts3.nc", "texts.zarr"]:
            # xarray joins single characters in Zarr to one text.
            for target in ["texts.out.nc", "texts.out.zarr"][: 1 if len(words[0]) == 1 else 2]:
                spile("convert", source, target, "--overwrite")
                with xr.open_dataset(target) as own:
                    for name in "kbc":
                        assert own[name].dims == data[name].dims and name in own.coords or name != "k", (source, target, own)
                        assert own[name].values.tolist() == data[name].values.tolist(), (source, target, name, own[name])
                    assert own["a"].sel(k=words[1]) == 2
    # Bytes that are not UTF-8 stay bytes.
    np.savez("bytes.npz", a=np.array([b"\xff\xfe", b"ab"]))
    for target in ["bytes.nc", "bytes.zarr"]:
        spile("convert", "bytes.npz", target)
        with xr.open_dataset(target) as own:
            assert own["a"].values.tolist() == [b"\xff\xfe", b"ab"], own


def records():
    """Variables with fewer records than an unlimited dimension has: the others are the fill value."""
    with netCDF4.Dataset("records.nc", "w") as file:
        for name in "tuw":
            file.createDimension(name, None)
        file.createDimension("x", 5)
        file.createVariable("t", "f8", ("t",))[:] = [0, 1, 2]
        for filters in [{}, {"zlib": True, "shuffle": True}, {"fletcher32": True}]:
            end = "_".join(filters)
            chunks = [{}, {"chunksizes": (4, 3)}, {"chunksizes": (2, 5)}]
            for k, chunk in enumerate(chunks):
                file.createVariable(f"a{k}{end}", "i4", ("t", "x"), **filters, **chunk)[:7] = values("i4", (7, 5))
                file.createVariable(f"b{k}{end}", ">f4", ("t", "x"), fill_value=-5, **filters, **chunk)[:3] = 1
                file.createVariable(f"c{k}{end}", "f8", ("x", "u"), **filters)[:, :2] = values("f8", (5, 2))
            file.createVariable(f"d{end}", "u2", ("t", "u"), **filters, chunksizes=(2, 2))[:5, :9] = values("u2", (5, 9))
            file.createVariable(f"e{end}", "i8", ("t", "u", "w"), **filters)[1, 3, 2] = 8
            file.createVariable(f"f{end}", "i1", ("t", "x"), **filters)
        file.createVariable("s", str, ("t",))[:2] = np.array(["a", "b"], object)
        file.createVariable("g", "S1", ("t", "x"))[:2] = np.array([list("abcde"), list("fghij")], "S1")
        below = file.createGroup("below")
        below.createVariable("a", "f8", ("t",))[:9] = np.arange(9)
    agree("records.nc", 35)
    spile("check", "records.nc")
    spile("stat", "records.nc")


def names():
    """Variables with the name of a dimension that are not its coordinate, dimensions that occur twice, names with blanks,
    and dimensions of groups."""
    with netCDF4.Dataset("names.nc", "w") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 2)
        file.createDimension("two words", 2)
        file.createVariable("x", "f4", ("y",))[:] = [1, 2]
        file.createVariable("y", "i4", ("y", "x"))[:] = values("i4", (2, 3))
        file.createVariable("twice", "f8", ("x", "x"))[:] = values("f8", (3, 3))
        file.createVariable("a b", "i2", ("two words",))[:] = [1, 2]
        file.createVariable("größe", "i2", ("x",))[:] = [1, 2, 3]
        below = file.createGroup("g")
        below.createDimension("x", 5)
        below.createVariable("x", "f8", ("x",))[:] = np.arange(5)
        below.createVariable("w", "f8", ("x", "y"))[:] = values("f8", (5, 2))
        below.createGroup("h").createVariable("q", "f4", ("x",))[:] = np.arange(5)
    agree("names.nc", 8)
    for target in ("names.out.nc", "names.out.zarr"):
        spile("convert", "names.nc", target, "--verify", "--overwrite")
        with xr.open_dataset(target) as own:
            own.load()
            assert len(own.variables) >= 7, own


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for version in [*CLASSIC, "NETCDF4", "NETCDF4_CLASSIC"]:
            classic(version)
        netcdf4_types()
        conventions()
        texts()
        records()
        names()


main()
