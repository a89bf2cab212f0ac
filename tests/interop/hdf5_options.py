"""Compression and chunks of HDF5, NetCDF-4 and MATLAB files: h5py, netCDF4, xarray, mat73 and hdf5storage read them."""

import hashlib
import os
import subprocess
import tempfile

import gsd.fl
import h5py
import hdf5plugin  # noqa: F401, registers the filter of Zstandard
import hdf5storage
import mat73
import netCDF4
import numpy as np
import xarray as xr
from support import SPILE, spile

RANDOM = np.random.default_rng(12)


def same(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc")


def arrays():
    """Every element type, and shapes that are no multiples of the chunks."""
    values = {name: (RANDOM.normal(size=(37, 29)) * 50).astype(name) for name in [
        "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]}
    values |= {
        "z": RANDOM.normal(size=(5, 7, 3)) + 1j * RANDOM.normal(size=(5, 7, 3)),
        "ok": RANDOM.integers(0, 2, size=300).astype(bool),
        "text": np.array([b"a", b"bc", b"def"] * 40), "fortran": np.asfortranarray(
            RANDOM.normal(size=(40, 30, 20))), "one": np.float64(4), "empty": np.zeros((0, 3)),
    }
    np.savez("arrays.npz", **values)
    return values


def hdf5(values):
    for option, number, level in [("gzip", 1, 4), ("gzip:9", 1, 9), ("zstd", 32015, 3),
                                  ("zstd:19", 32015, 19)]:
        spile("convert", "arrays.npz", "out.h5", "--overwrite", "--verify", "--compress", option)
        with h5py.File("out.h5") as file:
            for name, value in values.items():
                own = file[name]
                same(own[()].astype(value.dtype), value)
                if name in ("one", "empty"):
                    assert own.chunks is None, name
                    continue
                properties = own.id.get_create_plist()
                filters = [properties.get_filter(k) for k in range(properties.get_nfilters())]
                assert filters[-1][0] == number and filters[-1][2] == (level,), (name, filters)
                assert own.shuffle == (value.itemsize > 1 and name != "text"), name
                assert own.compression == ("gzip" if number == 1 else "unknown") and own.chunks, own.compression
    sizes = {}
    for option in ["none", "gzip"]:
        np.save("smooth.npy", np.arange(1 << 20, dtype="f4") // 8)
        spile("convert", "smooth.npy", "smooth.h5", "--overwrite", "--compress", option)
        sizes[option] = os.path.getsize("smooth.h5")
    assert sizes["gzip"] * 10 < sizes["none"], sizes


def chunk_shapes():
    """Lengths by name of the dimension; those of other dimensions give chunks of about 1 MiB."""
    field = RANDOM.normal(size=(6, 200, 300))
    xr.Dataset({"e": (("t", "x", "y"), field), "n": (("x",), np.arange(200.0)),
                "label": (("t",), np.arange(6))}).to_netcdf("field.nc")
    for output in ["field.h5", "field2.nc"]:
        spile("convert", "field.nc", output, "--verify", "--chunks", "x=64,y=50")
        with h5py.File(output) as file:
            assert file["e"].chunks == (6, 64, 50) and file["n"].chunks == (64,), file["e"].chunks
            assert file["label"].chunks is None and file["e"].compression is None
            same(file["e"][()], field)
    spile("convert", "field.nc", "field3.nc", "--verify", "--compress", "gzip:2")
    with xr.open_dataset("field3.nc") as read:
        same(read["e"].values, field)
        encoding = read["e"].encoding
        assert encoding["chunksizes"] == (2, 200, 300), encoding
        assert encoding["zlib"] and encoding["complevel"] == 2 and encoding["shuffle"], encoding
    with netCDF4.Dataset("field3.nc") as read:
        assert read["e"].filters()["complevel"] == 2 and read["e"].chunking() == [2, 200, 300]
    for format_ in ["h5", "nc", "mat"]:
        error = refused("field.nc", f"bad.{format_}", "--chunks", "nothing=3")
        assert b'"nothing"' in error and b"t, x, y" in error, error
    assert b"zstd" in refused("field.nc", "bad.mat", "--compress", "zstd")
    assert b"lz4" in refused("field.nc", "bad.nc", "--compress", "lz4")
    assert b"shards" in refused("field.nc", "bad.h5", "--shards", "x=64")
    assert not [name for name in os.listdir() if name.startswith("bad")]


def refused(*args):
    """The message of a conversion that fails."""
    done = subprocess.run([SPILE, "convert", *args], capture_output=True, check=False)
    assert done.returncode == 2, done
    return done.stderr


def netcdf(values):
    for option in ["gzip", "zstd:5"]:
        spile("convert", "arrays.npz", "out.nc", "--overwrite", "--verify", "--compress", option)
        with netCDF4.Dataset("out.nc") as file:
            for name in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
                same(np.asarray(file[name][:]), values[name].astype(
                    "f4" if name == "f2" else name))
                filters = file[name].filters()
                assert filters["zlib" if option == "gzip" else "zstd"], filters
            # Characters in UTF-8 are joined by netCDF4.
            assert file["text"]._Encoding == "utf-8"
            text = file["text"][:]
            assert text.tolist() == [word.decode() for word in values["text"].tolist()]


def frames():
    """Frames are the first dimension; large ones are chunks of their own."""
    large = RANDOM.normal(size=(4, 6000, 3)).astype("f4")
    small = RANDOM.normal(size=(4, 20)).astype("f4")
    with gsd.fl.open("run.gsd", "w", "spile", "own", [1, 0]) as file:
        for big, little in zip(large, small, strict=True):
            file.write_chunk("big", big)
            file.write_chunk("little", little)
            file.end_frame()
    for output in ["run.h5", "run.nc"]:
        spile("convert", "run.gsd", output, "--verify", "--compress", "gzip")
        with h5py.File(output) as file:
            assert file["big"].chunks == (1, 6000, 3) and file["little"].chunks == (4, 20)
            same(file["big"][()], large)
            same(file["little"][()], small)
    spile("convert", "run.gsd", "run.mat", "--verify", "--compress", "gzip")
    same(hdf5storage.loadmat("run.mat")["big"], np.moveaxis(large, 0, 2))


def many_chunks():
    """A B-tree of three levels."""
    values = np.arange(100_000, dtype="u4")
    np.save("many.npy", values.reshape(1000, 100))
    spile("convert", "many.npy", "many.h5", "--chunks", "dim1=1,dim2=1", "--verify")
    with h5py.File("many.h5") as file:
        own = file["many"] if "many" in file else file[list(file)[0]]
        assert own.chunks == (1, 1) and own.id.get_num_chunks() == 100_000
        same(own[()].ravel(), values)
        same(own[990:, 3], values.reshape(1000, 100)[990:, 3])


def matlab(values):
    spile("convert", "arrays.npz", "out.mat", "--verify", "--compress", "gzip:6")
    read = hdf5storage.loadmat("out.mat")
    loaded = mat73.loadmat("out.mat")
    for name in ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "z", "fortran"]:
        same(read[name], values[name])
        same(loaded[name], values[name])
    same(read["f2"], values["f2"].astype("f4"))
    with h5py.File("out.mat") as file:
        assert file["fortran"].compression_opts == 6 and file["fortran"].shape == (20, 30, 40)
        assert file["text"].chunks and file["f2"].chunks
    spile("convert", "field.nc", "field.mat", "--verify", "--chunks", "x=32,y=30", "--compress", "gzip")
    with h5py.File("field.mat") as file, h5py.File("field.nc") as own:
        assert file["e"].chunks[:2] == (30, 32), file["e"].chunks
        same(file["e"][()].T, own["e"][()])
    # A file that another program compressed, in the order of MATLAB.
    hdf5storage.savemat("other.mat", {"a": values["fortran"], "b": values["i2"]}, format="7.3",
                        compress=True, compress_size_threshold=0)
    spile("convert", "other.mat", "other.npz")
    with np.load("other.npz") as read:
        same(read["a"], values["fortran"])
        same(read["b"], values["i2"])


def deterministic():
    """The output does not depend on the number of threads."""
    sums = set()
    for threads in [1, 2, 5]:
        environment = os.environ | {"RAYON_NUM_THREADS": str(threads)}
        spile("convert", "arrays.npz", "same.h5", "--overwrite", "--compress", "gzip", env=environment)
        with open("same.h5", "rb") as file:
            sums.add(hashlib.sha256(file.read()).hexdigest())
    assert len(sums) == 1


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    VALUES = arrays()
    hdf5(VALUES)
    chunk_shapes()
    netcdf(VALUES)
    frames()
    many_chunks()
    matlab(VALUES)
    deterministic()
