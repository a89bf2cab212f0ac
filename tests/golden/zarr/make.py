"""Writes the golden stores with zarr-python 3, and what is in them as manifest.json.

Run in this folder: python make.py (needs zarr >= 3.1, numcodecs, numpy).
"""

import hashlib
import json
import shutil
import warnings
from pathlib import Path

import numcodecs
import numpy as np
import zarr
import zarr.codecs as zc

warnings.simplefilter("ignore")
HERE = Path(__file__).parent
MANIFEST = {}


def numbers(shape, dtype):
    """Values that differ from place to place."""
    count = int(np.prod(shape))
    values = (np.arange(count) * 7 + 3) % 251
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[::-1]).astype(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def store(name, version):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    MANIFEST[name] = {}
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.attrs.update({"title": "golden", "count": 3, "ratio": 0.5, "list": [1, 2], "nothing": None})
    return group


def put(group, store_name, path, values, **words):
    array = group.create_array(path, shape=values.shape, dtype=values.dtype, **words)
    array[...] = values
    little = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")))
    MANIFEST[store_name][path] = {
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "sha256": hashlib.sha256(little.tobytes()).hexdigest(),
    }
    return array


def codecs(name, version):
    group = store(name, version)
    cube = numbers((5, 7, 6), "f8")
    plain = {"compressors": None, "filters": None} if version == 2 else {"compressors": None}
    put(group, name, "plain", cube, chunks=(2, 3, 4), **plain)
    put(group, name, "whole", cube, chunks=(5, 7, 6), **plain)
    put(group, name, "slabs", cube, chunks=(2, 7, 6), **plain)
    put(group, name, "longer", cube, chunks=(8, 9, 10), **plain)
    for kind in ["i1", "u2", "i4", "u8", "f2", "f4", "c8", "c16", "?"]:
        put(group, name, f"types/{np.dtype(kind).name}", numbers((9,), kind), chunks=(4,), **plain)
    put(group, name, "scalar", np.array(42.5), **plain)
    put(group, name, "none", np.zeros((0, 3), "f4"), chunks=(1, 3), **plain)
    sparse = group.create_array("sparse", shape=(10, 10), chunks=(4, 4), dtype="i2", fill_value=-7, **plain)
    sparse[4:8, 0:4] = numbers((4, 4), "i2")
    MANIFEST[name]["sparse"] = {
        "dtype": "int16",
        "shape": [10, 10],
        "sha256": hashlib.sha256(np.ascontiguousarray(sparse[...]).tobytes()).hexdigest(),
    }
    return group, cube


def version_3():
    name = "v3.zarr"
    group, cube = codecs(name, 3)
    put(group, name, "gzip", cube, chunks=(3, 4, 6), compressors=zc.GzipCodec(level=5))
    put(group, name, "zstd", cube, chunks=(3, 4, 6), compressors=zc.ZstdCodec(level=3, checksum=True))
    put(group, name, "crc32c", cube, chunks=(3, 4, 6), compressors=[zc.Crc32cCodec()])
    put(group, name, "gzip_crc32c", cube, chunks=(3, 4, 6), compressors=[zc.GzipCodec(), zc.Crc32cCodec()])
    put(group, name, "big", cube, chunks=(3, 4, 6), compressors=None,
        serializer=zc.BytesCodec(endian="big"))
    put(group, name, "transposed", cube, chunks=(3, 4, 6), compressors=zc.GzipCodec(),
        filters=[zc.TransposeCodec(order=(1, 2, 0))])
    put(group, name, "fortran", cube, chunks=(5, 7, 6), compressors=None,
        filters=[zc.TransposeCodec(order=(2, 1, 0))])
    put(group, name, "sharded", cube, chunks=(2, 2, 3), shards=(4, 4, 6), compressors=zc.ZstdCodec())
    put(group, name, "sharded_plain", cube, chunks=(1, 2, 3), shards=(2, 4, 6), compressors=None)
    put(group, name, "dots", cube, chunks=(3, 4, 6), compressors=None,
        chunk_key_encoding={"name": "default", "separator": "."})
    put(group, name, "keys2", cube, chunks=(3, 4, 6), compressors=None,
        chunk_key_encoding={"name": "v2", "separator": "/"})
    for kind in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"]:
            values = np.repeat(numbers((600,), "f8"), 3)
            put(group, name, f"blosc/{kind}_{shuffle}", values, chunks=(1000,),
                compressors=zc.BloscCodec(cname=kind, clevel=5, shuffle=shuffle, typesize=8))
    put(group, name, "text", np.array([b"one", b"", b"three"]), compressors=None)
    put(group, name, "T", numbers((5, 7), "i2"), chunks=(5, 7), compressors=None,
        dimension_names=["time", "x"], attributes={"units": "K", "scale_factor": 0.5, "add_offset": 10.0})
    put(group, name, "time", numbers((5,), "f8"), chunks=(5,), compressors=None, dimension_names=["time"])
    # Not read: text of any length.
    group.create_array("words", shape=(2,), dtype="str", compressors=None)[...] = ["a", "bc"]


def version_2():
    name = "v2.zarr"
    group, cube = codecs(name, 2)
    filters = {"filters": None}
    for word, codec in [
        ("gzip", numcodecs.GZip()),
        ("zlib", numcodecs.Zlib()),
        ("zstd", numcodecs.Zstd()),
        ("lz4", numcodecs.LZ4()),
        ("blosc", numcodecs.Blosc()),
    ]:
        put(group, name, word, cube, chunks=(3, 4, 6), compressors=codec, **filters)
    put(group, name, "shuffled", cube, chunks=(3, 4, 6), compressors=numcodecs.Zlib(),
        filters=[numcodecs.Shuffle(elementsize=8)])
    put(group, name, "fortran", cube, chunks=(3, 4, 6), order="F", compressors=numcodecs.Zlib(), **filters)
    put(group, name, "fortran_plain", cube, chunks=(5, 7, 2), order="F", compressors=None, **filters)
    put(group, name, "big", cube.astype(">f8"), chunks=(3, 4, 6), compressors=None, **filters)
    put(group, name, "slashes", cube, chunks=(3, 4, 6), compressors=None, filters=None,
        chunk_key_encoding={"name": "v2", "separator": "/"})
    put(group, name, "text", np.array([b"one", b"", b"three"]), compressors=None, **filters)
    array = put(group, name, "T", numbers((5, 7), "i2"), chunks=(5, 7), compressors=None, **filters)
    array.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
    array = put(group, name, "time", numbers((5,), "f8"), chunks=(5,), compressors=None, **filters)
    array.attrs["_ARRAY_DIMENSIONS"] = ["time"]
    zarr.consolidate_metadata(HERE / name)


version_3()
version_2()
(HERE / "manifest.json").write_text(json.dumps(MANIFEST, indent=1) + "\n")
