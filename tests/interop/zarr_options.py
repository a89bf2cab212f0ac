"""Zarr: chunks, shards and compression of new stores, as zarr-python and xarray see them."""

import os
import tempfile
import warnings

import numpy as np
import xarray as xr
import zarr
from support import GOLDEN, spile

DUMP = GOLDEN / "sdf/epoch3d_0001.sdf"
FIELD = "Electric_Field_Ex"
CHUNKS = ("--chunks", "X=3,Y=4,Z=2")
SHARDS = ("--shards", "X=6,Y=8,Z=4")


def stored(*options):
    """The dump, converted with these options, and the encoding of a field."""
    spile("-q", "convert", "--overwrite", "--verify", *options, DUMP, "x.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_zarr("x.zarr", consolidated=True) as data:
            field = data[FIELD]
            return data.load(), field.encoding, zarr.open_array(f"x.zarr/{FIELD}", mode="r")


def combinations():
    plain, encoding, array = stored()
    assert encoding["compressors"] == () and encoding["shards"] is None, encoding
    assert encoding["chunks"] == plain[FIELD].shape, encoding
    sizes = []
    for compression, codec, level, layouts in (
        ("none", None, None, (CHUNKS, CHUNKS + SHARDS)), ("zstd", zarr.codecs.ZstdCodec, 3, ((), CHUNKS + SHARDS)),
        ("zstd:19", zarr.codecs.ZstdCodec, 19, (CHUNKS,)), ("gzip", zarr.codecs.GzipCodec, 5, (CHUNKS + SHARDS,)),
        ("gzip:1", zarr.codecs.GzipCodec, 1, ((),)),
    ):
        for layout in layouts:
            data, encoding, array = stored("--compress", compression, *layout)
            xr.testing.assert_identical(data, plain)
            compressors = encoding["compressors"]
            assert [type(c) for c in compressors] == ([codec] if codec else []), compressors
            assert all(c.to_dict()["configuration"]["level"] == level for c in compressors), compressors
            shape = plain[FIELD].shape
            chunks = tuple(min(a, b) for a, b in zip((3, 4, 2), shape, strict=True)) if layout else shape
            assert encoding["chunks"] == array.chunks == chunks, (encoding, chunks)
            if len(layout) > 2:
                wanted = tuple(
                    min(a, -(-n // c) * c) for a, n, c in zip((6, 8, 4), shape, chunks, strict=True))
                assert encoding["shards"] == array.shards == wanted, (encoding, wanted)
            else:
                assert encoding["shards"] is None, encoding
            # Coordinates are not divided, as in xarray.
            assert zarr.open_array("x.zarr/X_Grid_mid", mode="r").chunks == plain["X_Grid_mid"].shape
            sizes.append(array.nbytes_stored())
            # Parts of zarr-python, across chunks and shards.
            part = array[1:, ::2, 1:3]
            assert np.array_equal(part, plain[FIELD].values[1:, ::2, 1:3])
    assert len(set(sizes)) > 4, sizes


def appended():
    """xarray appends to a store with shards, and spile reads the result."""
    data, _, _ = stored("--compress", "zstd", *CHUNKS, *SHARDS)
    more = data[[FIELD]].assign_attrs({}).rename({FIELD: "twice"}) * 2
    more.to_zarr("x.zarr", mode="a", consolidated=False)
    ours = np.frombuffer(spile("cat", "--raw", "x.zarr", "twice"), "<f8").reshape(more["twice"].shape)
    assert np.array_equal(ours, more["twice"].values)


def frames():
    """Frames, whose chunks extend over several files."""
    os.mkdir("run")
    for dump in sorted((GOLDEN / "sdf").glob("epoch1d_normal_000*.sdf")):
        os.symlink(dump, f"run/{dump.name}")
    with_options = ("--chunks", "frame=2,X=7", "--shards", "frame=4", "--compress", "zstd")
    spile("-q", "convert", "--verify", "run", "frames.zarr", *with_options)
    spile("-q", "convert", "run", "plain.zarr")
    with xr.open_zarr("frames.zarr") as data, xr.open_zarr("plain.zarr") as plain:
        xr.testing.assert_identical(data.load(), plain.load())
        field = data[FIELD]
        assert field.dims[0] == "time" and field.encoding["chunks"] == (2, 7) and field.encoding["shards"] == (4, 7), field.encoding


def missing_values():
    """Missing values: xarray masks what spile wrote, with and without compression."""
    original = xr.Dataset({
        "f": ("x", np.array([1.5, np.nan, -2.0]), {"units": "K"}),
        "n": ("x", np.array([1.0, np.nan, 3.0])),
    })
    original.to_netcdf("x.nc", encoding={
        "f": {"_FillValue": -9.0}, "n": {"dtype": "i2", "_FillValue": -1, "scale_factor": 0.5, "add_offset": 0.5}})
    for options in ((), ("--compress", "gzip")):
        spile("-q", "convert", "--overwrite", "x.nc", "missing.zarr", *options)
        with xr.open_zarr("missing.zarr") as data:
            xr.testing.assert_equal(data.load(), original)
            assert data["f"].encoding["_FillValue"] == -9.0 and data["n"].encoding["_FillValue"] == -1


def main():
    os.chdir(tempfile.mkdtemp())
    combinations()
    appended()
    frames()
    missing_values()


if __name__ == "__main__":
    main()
