"""Zarr: byte orders, fill values in all notations, attributes of all JSON types, object codecs, partially written
stores, and datasets and trees of xarray. Each array has the values of zarr-python or xarray, or is refused with the
reason."""

import json
import os
import tempfile
import warnings
from pathlib import Path

import dask.array as da
import numcodecs
import numpy as np
import xarray as xr
import zarr
from support import spile
from support.zarr_stores import agree, compare, listed, numbers, unreadable, write
from zarr.codecs import BytesCodec, ShardingCodec, TransposeCodec, ZstdCodec

warnings.simplefilter("ignore")


def byte_orders():
    """Elements of both byte orders in chunks, shards and transposed shards."""
    group = zarr.open_group("orders.zarr", mode="w")
    for dtype in ("i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"):
        for endian in ("little", "big"):
            last = BytesCodec(endian=endian)
            for key, codecs in {
                "plain": [last], "zstd": [last, ZstdCodec()], "moved": [TransposeCodec(order=(1, 0)), last],
                "shard": [ShardingCodec(chunk_shape=(2, 2), codecs=[TransposeCodec(order=(1, 0)), last, ZstdCodec()])],
            }.items():
                array = zarr.create(
                    shape=(7, 5), chunks=(4, 4), dtype=dtype, codecs=codecs, store=group.store, zarr_format=3,
                    path=f"{key}_{dtype}_{endian}", fill_value=3)
                array[:, :3] = numbers(dtype, (7, 3))
    return agree("orders.zarr")


def fills():
    """Fill values that zarr-python reads but does not write."""
    seen = 0
    Path("fills.zarr").mkdir()
    Path("fills.zarr/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    for dtype, fill in (
        ("float64", "0x7ff8000000000001"), ("float32", "0x7fc00000"), ("float16", "0x7e00"), ("float64", "NaN"),
        ("float64", "-Infinity"), ("float32", 1), ("complex64", ["NaN", "0x3f800000"]), ("bool", True), ("int8", -1),
        ("uint64", 2**64 - 1),
    ):
        path = Path(f"fills.zarr/f{seen}")
        path.mkdir()
        (path / "zarr.json").write_text(json.dumps({
            "zarr_format": 3, "node_type": "array", "shape": [3], "data_type": dtype, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}))
        seen += 1
    assert agree("fills.zarr") == seen
    group = zarr.open_group("fills2.zarr", mode="w", zarr_format=2)
    for dtype in ("f8", "i4", "S3", "U2", "?", "c8"):
        name = dtype.replace("?", "bool")
        array = group.create_array(name, shape=(4,), chunks=(2,), dtype=dtype)
        array[:2] = np.ones(2, dtype)
        path = Path(f"fills2.zarr/{name}/.zarray")
        meta = json.loads(path.read_text())
        meta["fill_value"] = None
        path.write_text(json.dumps(meta))
    # Without a fill value, zarr-python gives zeros.
    return seen + agree("fills2.zarr")


def attributes():
    """Attributes of all JSON types, at all kinds of nodes."""
    values = {
        "text": "ä\n\"", "empty": "", "int": -5, "large": 2**63, "real": 0.1, "true": True, "list": [1, 2, 3],
        "reals": [0.5, 1e300], "texts": ["a", "é"], "none": None, "object": {"a": {"b": [1, None]}}, "void": [],
        "mixed": [1, "x", 2.5, False], "rows": [[1, 2], [3, 4]],
    }
    for version in (2, 3):
        name = f"attrs{version}.zarr"
        group = zarr.open_group(name, mode="w", zarr_format=version)
        write(group, "g/a", np.arange(3.0))
        group["g"].attrs.update(values)
        group["g/a"].attrs.update(values)
        rows = {row["path"]: row for row in json.loads(spile("ls", "--json", name))["objects"]}
        for path in ("g", "g/a"):
            found = rows[path]["attrs"]
            for key, value in values.items():
                own = found[key]
                # Objects and null are JSON text.
                if value is None or isinstance(value, dict):
                    own = json.loads(own)
                assert own == value and type(own) is type(value), (version, path, key, own)
        # Every attribute arrives in another store.
        spile("convert", name, f"copy{version}.zarr", "--strict", "--verify")


def objects():
    """Objects that are not strings are refused with the name of their codec, and hide no other array."""
    group = zarr.open_group("objects.zarr", mode="w", zarr_format=2)
    write(group, "good", np.arange(4.0))
    for codec in (numcodecs.JSON(), numcodecs.MsgPack(), numcodecs.Pickle(), numcodecs.VLenArray("<i4")):
        path = Path("objects.zarr", codec.codec_id)
        path.mkdir()
        (path / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "order": "C", "fill_value": None,
            "filters": [codec.get_config()], "compressor": None}))
        values = np.array([np.array([1, 2], "i4"), np.array([3], "i4")], object) if "vlen" in codec.codec_id \
            else np.array(["a", "b"], object)
        (path / "0").write_bytes(bytes(codec.encode(values)))
    found = unreadable("objects.zarr")
    assert sorted(found) == ["json2", "msgpack2", "pickle", "vlen-array"], found
    assert all(f"encoded by {name} " in message for name, message in found.items()), found
    assert list(listed("objects.zarr")) == ["good"]
    categories = numcodecs.Categorize(["x", "y"], dtype="U1", astype="u1")
    array = zarr.create_array("categories.zarr", shape=(3,), dtype="U1", filters=[categories], zarr_format=2)
    array[...] = np.array(["y", "x", ""])
    assert "codec categorize is not supported" in unreadable("categories.zarr")["data"]


def partially_written():
    """Arrays of which some chunks and shards exist, and arrays that grew and shrank."""
    for version in (2, 3):
        group = zarr.open_group(f"partial{version}.zarr", mode="w", zarr_format=version)
        shards = [None, (4, 4)] if version == 3 else [None]
        for shard in shards:
            for fill in (0, 9):
                array = group.create_array(
                    f"a{fill}{shard is None}", shape=(12, 12), chunks=(2, 2), dtype="i4", fill_value=fill,
                    **({"shards": shard} if shard else {}))
                array[3:5, 5:11] = numbers("i4", (2, 6))
                array[11, 11] = 5
                array.resize((9, 16))
                array[8, 12:] = 1
                array.resize((7, 13))
        agree(f"partial{version}.zarr")


def not_understood():
    """Storage transformers, and keys that readers may not ignore, are refused by name."""
    cases = {
        "good": {}, "optional": {"note": {"name": "x", "must_understand": False}},
        "transformer": {"storage_transformers": [{"name": "mystery"}]}, "extra": {"mystery": {"must_understand": True}},
        "plain": {"mystery": 5},
    }
    group = zarr.open_group("keys.zarr", mode="w")
    for name, keys in cases.items():
        write(group, name, np.arange(3.0), compressors=None)
        path = Path("keys.zarr", name, "zarr.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    found = unreadable("keys.zarr")
    assert sorted(found) == ["extra", "plain", "transformer"] and all("mystery" in why for why in found.values()), found
    assert sorted(listed("keys.zarr")) == ["good", "optional"]


def times():
    """Dates and times of all units of NumPy are those that xarray decodes after a conversion."""
    units = ["10us", "W", "D", "h", "15m", "s", "ms", "us", "ns", "7ns", "ps", "1000fs"]
    for version in (2, 3):
        group = zarr.open_group(f"times{version}.zarr", mode="w", zarr_format=version)
        numbers_of = {unit: np.array([0, 1, -3, 1000, -(2**63)], "i8") for unit in units}
        for unit in ("ps", "1000fs"):
            # Times of xarray have whole nanoseconds.
            numbers_of[unit][:4] *= 1000
        for unit, own in numbers_of.items():
            for kind in "Mm":
                write(group, f"{kind}{unit}", own.view(f"<{kind}8[{unit}]"), compressors=None, chunks=(5,))
        for unit in "YM":
            write(group, f"M{unit}", np.arange(5).astype(f"M8[{unit}]"), compressors=None, chunks=(5,))
        for target in ("times.nc", "times.zarr"):
            spile("convert", f"times{version}.zarr", target, "--overwrite", "--verify")
            with xr.open_dataset(target, decode_timedelta=True) as own:
                for unit, stored in numbers_of.items():
                    for kind in "Mm":
                        expected = stored.view(f"{kind}8[{unit}]").astype(f"{kind}8[ns]")
                        found = own[f"{kind}{unit}"].values
                        assert found.dtype.kind == kind, (target, kind, unit, found.dtype)
                        found = found.astype(f"{kind}8[ns]")
                        assert np.isnat(found[4]) and np.array_equal(found[:4], expected[:4]), (kind, unit, found, expected)
                assert own["MM"].attrs["units"] == "months" and own["MY"].attrs["reference_date"] == "1970-01-01"


def datasets():
    """Datasets and trees of xarray in both versions: physical values, times, strings, groups, dask chunks."""
    time_axis = np.array(["2000-01-01", "NaT", "2000-01-04"], "M8[ns]")
    data = xr.Dataset(
        {"t": (("x", "y"), np.array([[1.0, np.nan], [2.5, 3.0], [-1.0, 0.5]]), {"units": "K"}),
         "packed": (("x",), np.array([0.5, np.nan, 2.0])),
         "moment": ("x", time_axis), "lag": ("x", np.array([1, 2, 3], "m8[h]").astype("m8[ns]")),
         "name": ("x", np.array(["ab", "é", ""], object)), "fixed": ("x", np.array(["a", "bcd", ""], "U3")),
         "flag": ("x", np.array([True, False, True])), "scalar": ((), 4.5), "none": ("z", np.zeros(0))},
        coords={"x": [10, 20, 30], "y": ("y", [0.5, 1.5], {"units": "m"})}, attrs={"title": "a"})
    encoding = {"packed": {"dtype": "u1", "scale_factor": 0.5, "_FillValue": 255},
                "moment": {"units": "hours since 1999-01-01", "dtype": "f8"}}
    seen = 0
    for version in (2, 3):
        for chunks in (None, {"x": 2, "y": 1}):
            name = f"data{version}{chunks is None}.zarr"
            (data if chunks is None else data.chunk(chunks)).to_zarr(name, zarr_format=version, encoding=encoding)
            seen += agree(name)
            spile("convert", name, f"back_{name}", "--verify")
            with xr.open_zarr(name) as wanted, xr.open_zarr(f"back_{name}") as back:
                wanted, back = wanted.load(), back.load()
                for key in ("t", "packed", "moment", "scalar", "flag", "none", "x", "y"):
                    xr.testing.assert_equal(back[key].drop_attrs(), wanted[key].drop_attrs())
                assert back["t"].attrs["units"] == "K" and back["y"].attrs["units"] == "m"
                texts = [t.decode() if isinstance(t, bytes) else str(t) for t in back["name"].values]
                assert texts == ["ab", "é", ""], texts
        name = f"tree{version}.zarr"
        tree = xr.DataTree.from_dict({"/": data[["t"]], "/a": data[["packed"]], "/a/b": data[["t", "scalar"]]})
        tree.to_zarr(name, zarr_format=version)
        seen += agree(name)
        rows = listed(name)
        assert {"t", "a/packed", "a/b/t", "a/b/scalar"} <= set(rows), sorted(rows)
        wave = xr.Dataset({"w": (("x", "y"), da.from_array(numbers("f4", (9, 8)), chunks=(4, 8)))})
        wave.to_zarr(f"wave{version}.zarr", zarr_format=version)
        seen += agree(f"wave{version}.zarr")
    return seen


def main():
    os.chdir(tempfile.mkdtemp())
    seen = {test.__name__: test() for test in (byte_orders, fills, datasets)}
    attributes()
    objects()
    not_understood()
    times()
    partially_written()
    assert sum(seen.values()) > 120, seen


if __name__ == "__main__":
    main()
