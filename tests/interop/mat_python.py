"""MATLAB 7.3: mat73, hdf5storage and h5py read the files of spile, and spile those of hdf5storage."""

import os
import tempfile

import h5py
import hdf5storage
import mat73
import numpy as np
from support import GOLDEN, spile


def types():
    """Every class, with the shape that MATLAB shows."""
    random = np.random.default_rng(6)
    arrays = {name: (random.normal(size=(2, 3, 4)) * 50).astype(name) for name in [
        "f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]}
    arrays |= {
        "z": random.normal(size=(3, 2)) + 1j * random.normal(size=(3, 2)),
        "ok": np.array([[True, False], [False, True], [True, True]]),
        "one": np.float64(2.5), "line": np.arange(5.0), "empty": np.zeros((0, 3)),
        "2 bad-name": np.arange(3), "words": np.array([b"ab", b"cde"]),
    }
    np.savez("types.npz", **arrays)
    spile("convert", "types.npz", "types.mat", "--verify")
    with open("types.mat", "rb") as file:
        head = file.read(520)
    assert head.startswith(b"MATLAB 7.3 MAT-file") and head[124:128] == b"\x00\x02IM"
    assert head[512:516] == b"\x89HDF"
    read = hdf5storage.loadmat("types.mat")
    for name, value in arrays.items():
        if name in ("2 bad-name", "words"):
            continue
        own = read[name]
        expected = np.reshape(value, (-1, 1)) if np.ndim(value) < 2 else value
        assert own.shape == expected.shape and np.array_equal(own, expected), (name, own)
        assert own.dtype == expected.dtype, (name, own.dtype)
    assert np.array_equal(read["x2_bad_name"].ravel(), [0, 1, 2])
    loaded = mat73.loadmat("types.mat")
    for name in ["f8", "i4", "z", "ok"]:
        assert np.array_equal(loaded[name], arrays[name]), name
    assert loaded["one"] == 2.5 and np.array_equal(loaded["line"], arrays["line"])
    with h5py.File("types.mat") as file:
        assert file.userblock_size == 512
        assert file["f4"].attrs["MATLAB_class"] == b"single" and file["f4"].shape == (4, 3, 2)
        assert file["empty"].attrs["MATLAB_empty"] == 1
        assert file["words"][()].T.astype("u1").tobytes() == b"ab cde"


def field_with_coordinates():
    """A simulation dump: structs, coordinates and units."""
    dump = GOLDEN / "sdf/epoch1d_normal_0001.sdf"
    spile("convert", dump, "dump.mat", "--verify")
    read = mat73.loadmat("dump.mat")
    field = np.fromstring(spile("cat", dump, "Electric Field/Ey"), sep="\n")
    assert np.allclose(read["Electric_Field"]["Ey"], field, rtol=0, atol=0)
    assert read["units"]["Electric_Field"]["Ey"] == "V/m", read["units"]


def traces():
    """Oscilloscope traces are volts, with a time axis in seconds."""
    found = 0
    for folder in ["lecroy", "tektronix"]:
        for path in sorted((GOLDEN / folder).rglob("*")):
            if path.suffix.lower() not in (".trc", ".wfm") or "bad" in str(path):
                continue
            spile("convert", path, "trace.mat", "--overwrite", "--verify", codes=(0, 1, 2))
            if not os.path.exists("trace.mat"):
                continue
            read = mat73.loadmat("trace.mat")
            os.remove("trace.mat")
            found += 1

            def leaves(value):
                return [leaf for each in value.values() for leaf in leaves(each)] if isinstance(
                    value, dict) else [value]

            assert "s" in leaves(read["units"]), (path, read["units"])
    assert found > 0


def trajectory():
    """Frames are the last dimension."""
    path = next(iter(sorted((GOLDEN / "gsd").rglob("*.gsd"))))
    spile("convert", path, "run.mat", codes=(0,))
    assert mat73.loadmat("run.mat")


def from_others():
    values = {"a": np.arange(6.0).reshape(2, 3), "flag": np.array([[True, False]])}
    hdf5storage.savemat("other.mat", values, format="7.3", store_python_metadata=False)
    listed = spile("ls", "-l", "other.mat").decode()
    assert "2 x 3" in listed and "bool8" in listed, listed
    text = spile("cat", "other.mat", "a").decode().split()
    assert [float(word) for word in text] == [0, 1, 2, 3, 4, 5], text


def main():
    os.chdir(tempfile.mkdtemp())
    types()
    field_with_coordinates()
    traces()
    trajectory()
    from_others()


main()
