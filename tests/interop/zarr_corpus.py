"""Zarr: stores of zarr-python, numcodecs and xarray with every option of these writers. Each array has the values of
zarr-python, or is refused with the reason."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numcodecs
import numpy as np
import xarray as xr
import zarr
import zarr.codecs.numcodecs as n3
from support import SPILE, spile
from support.zarr_stores import RNG, agree, compare, listed, numbers, unreadable, write
from zarr.codecs import (
    BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec,
)

warnings.simplefilter("ignore")


POINT = np.dtype([("id", "<i4"), ("x", "<f8"), ("tag", "S3"), ("name", "<U4")])
NESTED = np.dtype([("a", "<i2"), ("in", [("b", ">f4"), ("c", "?")])])
ROWS = np.dtype([("v", "<f4", (3,)), ("m", "<i2", (2, 2)), ("k", "u1")])


def records(dtype, shape):
    out = np.zeros(shape, dtype)
    raw = out.reshape(-1).view("u1")
    if dtype is not POINT:
        raw[:] = RNG.integers(0, 2, raw.size)
        return out
    out["id"], out["x"] = RNG.integers(0, 99, shape), RNG.normal(size=shape)
    out["tag"], out["name"] = b"ab", "zé"
    return out


def data_types(version):
    types = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    arrays = {f"{t.replace('?', 'bool')}": numbers(t) for t in types}
    for t in ("i2", "u4", "i8", "f4", "f8", "c16"):
        arrays[f"{t}_be"] = numbers(">" + t)
    arrays["s"] = np.array([[b"a", b"bcd"], [b"", b"xyz12"]], "S5")
    arrays["u"] = np.array([["a", "é"], ["", "日本語xx"]], "<U5")
    arrays["u_be"] = np.array(["a", "bé", "日本語xx"], ">U5")
    arrays["u_inner"] = np.array(["a\0b", "c"], "<U4")
    arrays["v"] = np.array([b"ab\0", b"\1\2\3"], "V3")
    for unit in ("ns", "us", "ms", "s", "m", "h", "D", "W", "M", "Y", "10us"):
        arrays[f"date_{unit}"] = np.array([0, 5, -3, -2**63], "i8").view(f"<M8[{unit}]")
    arrays["delta_s"] = np.array([0, 5, -3], "i8").view("<m8[s]")
    arrays["date_be"] = np.array([0, 5, -3], ">i8").view(">M8[s]")
    arrays["point"] = records(POINT, (3, 4))
    return arrays


FILLS = {
    "f8": [np.nan, np.inf, -np.inf, 1.5, 0.0], "f4": [np.nan, 2.5], "f2": [np.nan, 1.5], "i2": [-3],
    "u8": [2**64 - 1], "i8": [-2**63], "c16": [complex(np.nan, 1), 2 + 3j], "bool": [True],
    "S4": [b"ab"], "U3": ["é1"], ">f4": [0.5], ">i4": [77], "<M8[s]": [np.datetime64("NaT"), 5],
}


def types_and_fills(version):
    name = f"types{version}.zarr"
    group = zarr.open_group(name, mode="w", zarr_format=version)
    for key, values in data_types(version).items():
        for suffix, compressors in (("", None), ("_packed", "auto")):
            write(group, key + suffix, values, compressors=compressors)
    for dtype, fills in FILLS.items():
        for k, fill in enumerate(fills):
            plain = "".join(c for c in dtype if c.isalnum())
            array = group.create_array(
                f"fill_{plain}_{k}_{dtype[0] == '>'}", shape=(5, 6), chunks=(2, 4), dtype=dtype, fill_value=fill)
            array[2:4, 4:] = np.zeros((2, 2), array.dtype)
    write(group, "kept", np.zeros((4, 4)), config={"write_empty_chunks": True})
    write(group, "dropped", np.zeros((4, 4)))
    return agree(name)


def structures():
    """Nested and array fields, which zarr-python does not describe completely: by hand, version 2."""
    seen = 0
    for name, dtype, descr in (
        ("nested", NESTED, [["a", "<i2"], ["in", [["b", ">f4"], ["c", "|b1"]]]]),
        ("rows", ROWS, [["v", "<f4", [3]], ["m", "<i2", [2, 2]], ["k", "|u1"]]),
    ):
        for order in "CF":
            values = records(dtype, (4, 3))
            folder = Path(f"{name}{order}.zarr")
            folder.mkdir()
            (folder / ".zarray").write_text(json.dumps({
                "zarr_format": 2, "shape": [4, 3], "chunks": [4, 3], "dtype": descr, "order": order,
                "fill_value": None, "filters": None, "compressor": {"id": "zlib", "level": 1}}))
            chunk = values.tobytes(order=order)
            (folder / "0.0").write_bytes(numcodecs.Zlib().encode(chunk))
            rows = listed(folder)
            for field in dtype.names:
                compare(folder, f"data/{field}", values[field], rows)
            seen += 1
    return seen


def strings(version):
    name = f"strings{version}.zarr"
    group = zarr.open_group(name, mode="w", zarr_format=version)
    texts = np.array([["a", "", "日本語"], ["long " * 9, "é", "x"], ["1", "2", "3"]], object)
    for key, options in (("one", {"chunks": (3, 3)}), ("many", {"chunks": (2, 2)}),
                         ("plain", {"chunks": (2, 3), "compressors": None}),
                         ("sharded", {"chunks": (1, 2), "shards": (2, 2)} if version == 3 else {"chunks": (2, 2)})):
        array = group.create_array(key, shape=texts.shape, dtype=str, fill_value="", **options)
        array[...] = texts
    sparse = group.create_array("sparse", shape=(6,), chunks=(2,), dtype=str, fill_value="none")
    sparse[2:4] = np.array(["p", "q"], object)
    group.create_array("absent", shape=(3,), chunks=(2,), dtype=str, fill_value="none")
    raw = np.array([b"", b"\0a", b"xyz"], object)
    array = group.create_array("raw", shape=(3,), chunks=(2,), dtype=zarr.dtype.VariableLengthBytes(), fill_value=b"")
    array[...] = raw
    return agree(name)


def shapes(version):
    name = f"shapes{version}.zarr"
    group = zarr.open_group(name, mode="w", zarr_format=version)
    for key, shape, chunks in (
        ("scalar", (), ()), ("empty", (0,), (3,)), ("empty2", (3, 0), (2, 2)), ("larger", (3, 2), (5, 7)),
        ("edges", (7, 5, 3), (2, 3, 2)), ("line", (100,), (7,)), ("one", (1, 1, 1), (1, 1, 1)),
    ):
        for order in "CF":
            options = {"order": order} if version == 2 else {}
            if version == 3 and order == "F" and shape:
                options["filters"] = [TransposeCodec(order=tuple(range(len(shape)))[::-1])]
            for separator in "./":
                encoding = {"name": "v2" if version == 2 else "default", "separator": separator}
                path = f"g/{separator == '/'}/{key}{order}"
                write(group, path, numbers("f4", shape), chunks=chunks, chunk_key_encoding=encoding, **options)
    write(group, "g/mixed", numbers("i4", (4, 6, 5)), **(
        {"filters": [TransposeCodec(order=(1, 2, 0))]} if version == 3 else {}))
    group.attrs.update({"text": "a", "none": None, "deep": {"a": [1, {"b": None}]}, "mixed": [1, "x", 2.5]})
    group["g"].attrs["é"] = [1.5, 2]
    return agree(name)


def filters(version):
    """All codecs of numcodecs."""
    name = f"codecs{version}.zarr"
    group = zarr.open_group(name, mode="w", zarr_format=version)
    v2 = version == 2
    smooth = np.cumsum(RNG.integers(0, 20, (40, 30)), axis=1)
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for k, shuffle in enumerate(("noshuffle", "shuffle", "bitshuffle")):
            for dtype in ("u1", "i2", "f4", "f8"):
                codec = numcodecs.Blosc(cname, 5, k) if v2 else BloscCodec(cname=cname, shuffle=shuffle)
                write(group, f"blosc/{cname}_{shuffle}_{dtype}", smooth.astype(dtype), compressors=codec)
    make = numcodecs if v2 else n3
    for key, codec in {
        "gzip": make.GZip(level=3), "zlib": make.Zlib(level=3), "bz2": make.BZ2(level=2), "lz4": make.LZ4(),
        "lzma": make.LZMA(preset=1), "zstd": make.Zstd(level=3), "lzma_alone": make.LZMA(format=2, preset=1),
    }.items():
        write(group, key, smooth.astype("f4"), compressors=codec)
        if not v2:
            write(group, key + "_crc", smooth.astype("i4"), compressors=[codec, Crc32cCodec()])
    for key, codec in {
        "crc32": make.CRC32(), "crc32_end": make.CRC32(location="end"), "crc32c": make.CRC32C(),
        "crc32c_start": make.CRC32C(location="start"), "adler32": make.Adler32(), "fletcher32": make.Fletcher32(),
        "shuffle": make.Shuffle(elementsize=4),
    }.items():
        if v2:
            write(group, key, smooth.astype("i4"), filters=[codec], compressors=None)
            write(group, key + "_z", smooth.astype("i4"), filters=[codec], compressors=numcodecs.Zlib())
        else:
            write(group, key, smooth.astype("i4"), compressors=[codec])
            write(group, key + "_z", smooth.astype("i4"), compressors=[codec, n3.Zlib()])
    for key, values, codecs in (
        ("delta_i4", smooth.astype("i4"), [make.Delta(dtype="<i4")]),
        ("delta_i1", smooth.astype("i4"), [make.Delta(dtype="<i4", astype="<i2")]),
        ("delta_u2", smooth[:, ::-1].astype("u2"), [make.Delta(dtype="<u2")]),
        ("delta_f4", (smooth / 7).astype("f4"), [make.Delta(dtype="<f4")]),
        ("delta_f8", smooth / 7, [make.Delta(dtype="<f8")]),
        ("scale_f8", smooth / 10, [make.FixedScaleOffset(offset=3, scale=10, dtype="<f8", astype="<i4")]),
        ("scale_f4", (smooth / 10).astype("f4"), [make.FixedScaleOffset(offset=0.5, scale=7, dtype="<f4", astype="<u2")]),
        ("scale_same", (smooth / 10).astype("f4"), [make.FixedScaleOffset(offset=0.1, scale=7.3, dtype="<f4")]),
        ("quantize", smooth / 7, [make.Quantize(digits=2, dtype="<f8")]),
        ("bitround", (smooth / 7).astype("f4"), [make.BitRound(keepbits=7)]),
        ("astype", smooth / 7, [make.AsType(encode_dtype="<f4", decode_dtype="<f8")]),
        ("astype_f2", (smooth / 7).astype("f4"), [make.AsType(encode_dtype="<f2", decode_dtype="<f4")]),
        ("astype_i2", smooth.astype("i8"), [make.AsType(encode_dtype="<i2", decode_dtype="<i8")]),
        ("packbits", smooth % 3 == 0, [make.PackBits()]),
        ("two", smooth / 10, [make.FixedScaleOffset(offset=3, scale=10, dtype="<f8", astype="<i4"), make.Delta(dtype="<i4")]),
    ):
        if key == "packbits" and not v2:
            continue  # zarr-python cannot write it.
        write(group, key, values, filters=codecs, compressors=None)
        write(group, key + "_z", values, filters=codecs, compressors=make.Zlib())
    if v2:
        write(group, "delta_fortran", smooth.astype("i4"), filters=[make.Delta(dtype="<i4")], order="F")
        write(group, "twice", smooth.astype("i4"), filters=[numcodecs.Zlib()], compressors=numcodecs.GZip())
    return agree(name)


def shards():
    group = zarr.open_group("shards.zarr", mode="w")
    values = numbers("f4", (13, 18))
    for location in ("start", "end"):
        for k, inner in enumerate((
            [BytesCodec()], [BytesCodec(endian="big"), ZstdCodec()], [TransposeCodec(order=(1, 0)), BytesCodec(), GzipCodec()],
            [BytesCodec(), BloscCodec(), Crc32cCodec()],
            [ShardingCodec(chunk_shape=(2, 3), codecs=[BytesCodec(), ZstdCodec()])],
        )):
            for j, index in enumerate(([BytesCodec()], [BytesCodec(), Crc32cCodec()])):
                for before in (False, True):
                    chunk = (4, 6) if k == 4 else (2, 3)
                    codec = ShardingCodec(
                        chunk_shape=chunk, codecs=inner, index_codecs=index, index_location=location)
                    codecs = [TransposeCodec(order=(1, 0)), codec] if before else [codec]
                    options = {"dtype": "f4", "codecs": codecs, "store": group.store, "zarr_format": 3}
                    path = f"{location}{k}{j}{before}"
                    array = zarr.create(shape=values.shape, chunks=(24, 12), path=path, **options)
                    array[...] = values
                    sparse = zarr.create(
                        shape=(30, 30), chunks=(12, 12), fill_value=np.nan, path=f"sparse_{path}", **options)
                    sparse[13:15, 5:20] = 1
    return agree("shards.zarr")


def archives():
    """Stores in zip archives: stored members are byte ranges."""
    seen = 0
    for version in (2, 3):
        store = zarr.storage.ZipStore(f"direct{version}.zarr.zip", mode="w")
        group = zarr.open_group(store, mode="w", zarr_format=version)
        write(group, "a/plain", numbers("f8", (30, 20)), compressors=None)
        write(group, "packed", numbers("i4", (30, 20)))
        store.close()
        store = zarr.storage.ZipStore(f"direct{version}.zarr.zip", mode="r")
        seen += agree(f"direct{version}.zarr.zip", source=store)
        for method, name in ((zipfile.ZIP_STORED, "stored"), (zipfile.ZIP_DEFLATED, "deflated")):
            for prefix in ("", "x.zarr/"):
                target = f"{name}{version}{len(prefix)}.zarr.zip"
                folder = Path(f"types{version}.zarr")
                with zipfile.ZipFile(target, "w", method) as archive:
                    for file in sorted(folder.rglob("*")):
                        if file.is_file():
                            archive.write(file, prefix + str(file.relative_to(folder)))
                seen += agree(target, source=folder)
    with zipfile.ZipFile("escape.zarr.zip", "w") as archive:
        archive.write("types3.zarr/zarr.json", "zarr.json")
        archive.writestr("../outside", b"x")
    assert b"zarr-010" in refused("escape.zarr.zip")
    return seen


def refused(path):
    """The error about a store that cannot be opened."""
    done = subprocess.run([SPILE, "ls", path], capture_output=True, check=False)
    assert done.returncode == 2, done
    return done.stderr


def conventions():
    """xarray: masks, scaling, times, strings, dimensions."""
    time_axis = np.array(["2000-01-01", "2000-01-02", "2000-01-04"], "M8[ns]")
    data = xr.Dataset(
        {"t": (("time", "x"), np.array([[1.0, np.nan], [2.5, 3.0], [-1.0, 0.5]]), {"units": "K"}),
         "n": ("x", np.array([0, 5], "i4")), "name": ("x", np.array(["ab", "é"], object)),
         "flag": ("x", np.array([True, False]))},
        coords={"time": time_axis, "x": [10, 20]}, attrs={"title": "a", "nan": float("nan")})
    encodings = {
        "default": {}, "scaled": {"t": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -99}},
        "fill": {"t": {"_FillValue": -9.0}}, "single": {"t": {"dtype": "f4", "_FillValue": np.float32(1e20)}},
        "unsigned": {"t": {"dtype": "i1", "scale_factor": 0.5, "add_offset": -10.0, "_FillValue": -1, "_Unsigned": "true"}},
    }
    seen = 0
    for version in (2, 3):
        for key, encoding in encodings.items():
            for consolidated in (False, True):
                name = f"{key}{version}{consolidated}.xarray.zarr"
                data.to_zarr(name, zarr_format=version, encoding=encoding, consolidated=consolidated)
                agree(name)
                with xr.open_zarr(name, consolidated=consolidated) as back:
                    wanted = back["t"].values
                spile("convert", name, f"{name}.npz")
                ours = np.load(f"{name}.npz")["t"]
                assert np.array_equal(ours, wanted, equal_nan=True), (name, ours, wanted)
                described = spile("ls", "-l", "-v", name).decode()
                assert "days since" in described and "time" in described, described
                seen += 1
    return seen


def hostile():
    """Links out of the store, huge grids, unsupported codecs: refused with the reason, without hiding others."""
    group = zarr.open_group("hostile.zarr", mode="w")
    for key in ("good", "linked", "folder", "codec"):
        write(group, key, np.arange(6.0), chunks=(3,), compressors=None)
    Path("secret").write_bytes(bytes(24))
    Path("hostile.zarr/linked/c/1").unlink()
    os.symlink(Path("secret").absolute(), "hostile.zarr/linked/c/1")
    shutil.move("hostile.zarr/folder/c", "chunks")
    os.symlink(Path("chunks").absolute(), "hostile.zarr/folder/c")
    meta = json.loads(Path("hostile.zarr/codec/zarr.json").read_text())
    meta["codecs"].append({"name": "mystery"})
    Path("hostile.zarr/codec/zarr.json").write_text(json.dumps(meta))
    found = unreadable("hostile.zarr")
    assert sorted(found) == ["codec", "folder", "linked"], found
    assert "mystery is not supported" in found["codec"] and "link" in found["linked"], found
    assert sorted(listed("hostile.zarr")) == ["good"]
    for length, chunk, stored in ((2**40, 1, False), (2**40, 1, True), (2**50, 2**50, False), (2**50, 2**20, True)):
        only_in_metadata(f"huge{chunk}{stored}.zarr", length, chunk, stored)


def only_in_metadata(name, length, chunk, stored):
    """A few bytes that describe an array of any size cost no time and no memory in any command."""
    huge = {"zarr_format": 3, "node_type": "array", "shape": [length], "data_type": "uint8", "fill_value": 7,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}
    Path(name).mkdir()
    Path(name, "zarr.json").write_text(json.dumps(huge))
    if stored:
        Path(name, "c").mkdir()
        Path(name, "c/0").write_bytes(bytes(chunk))
    start = time.monotonic()
    assert listed(name)["data"]["shape"] == [length]
    assert spile("cat", name, "data", length - 1).split() == [b"7"]
    # Fill values are counted, not read; a digest needs them.
    for command in (["check"], ["stat"], ["hash"]):
        spile(*command, name, codes=(0, 2) if command != ["hash"] else (2,))
    spile("diff", name, name, codes=(2,))
    for extension in ("zarr", "csv", "parquet", "nc", "h5", "npz", "vtu"):
        spile("convert", name, f"{name}.{extension}", codes=(2,))
        assert not Path(f"{name}.{extension}").exists()
    spile("convert", name, f"{name}.zarr", "--compress", "zstd", codes=(2,))
    assert time.monotonic() - start < 10


def main():
    os.chdir(tempfile.mkdtemp())
    seen = {}
    for version in (2, 3):
        for test in (types_and_fills, strings, shapes, filters):
            seen[test.__name__, version] = test(version)
    for test in (structures, shards, archives, conventions):
        seen[test.__name__] = test()
    hostile()
    assert sum(seen.values()) > 300, seen


if __name__ == "__main__":
    main()
