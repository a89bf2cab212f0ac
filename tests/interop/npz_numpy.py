"""NPZ: NumPy reads the files of spile, and spile those of NumPy."""

import json
import os
import tempfile
import zipfile

import numpy as np
from support import GOLDEN, spile


def data_offset(path, info):
    """The offset of the data of a member, from its local header."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        header = file.read(30)
        return info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(
            header[28:30], "little")


def good(path):
    """Checksums are right, data are aligned, and the memory map of a member is the array."""
    arrays = np.load(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            at = data_offset(path, info)
            assert at % 64 == 0 and info.compress_type == zipfile.ZIP_STORED, info
            if not info.filename.endswith(".npy"):
                continue
            array = arrays[info.filename[:-4]]
            if array.size and array.dtype.itemsize:
                order = "F" if np.isfortran(array) else "C"
                start = at + info.file_size - array.nbytes
                mapped = np.memmap(path, array.dtype, "r", start, array.shape, order)
                assert mapped.tobytes() == array.tobytes(), info.filename
    return arrays


def main():
    os.chdir(tempfile.mkdtemp())
    sdf = os.path.join(GOLDEN, "sdf/epoch1d_normal_0001.sdf")
    spile("convert", sdf, "sdf.npz", "--strict", "--verify")
    spile("diff", sdf, "sdf.npz")
    field = good("sdf.npz")["Electric Field/Ey"]
    raw = np.frombuffer(spile("cat", "--raw", sdf, "Electric Field/Ey"), field.dtype)
    assert np.array_equal(field.ravel(), raw)

    for folder, _, names in os.walk(os.path.join(GOLDEN, "gsd")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if "corrupt" in folder or not name.endswith(".gsd") or os.path.getsize(path) > 300_000:
                continue
            # Arrays without a common shape are reported as lost; the others must be right.
            spile("convert", path, "gsd.npz", "--overwrite", "--verify")
            good("gsd.npz")

    # Both kinds of archives written by NumPy.
    random = np.random.default_rng(3)
    arrays = {
        "a": random.normal(size=(40, 5)),
        "b/c": np.asfortranarray(random.integers(-9, 9, (3, 4, 5)).astype(">i4")),
        "s": np.array([b"x", b"longer"]), "e": np.zeros((0, 2)), "one": np.float32(2.5),
        "ok": np.array([True, False]), "z": random.normal(size=3) + 1j,
    }
    np.savez("stored.npz", **arrays)
    np.savez_compressed("deflated.npz", **arrays)
    for name in ["stored.npz", "deflated.npz"]:
        assert json.loads(spile("check", "--json", name))["ok"]
        spile("convert", name, "out.npz", "--overwrite", "--strict", "--verify")
        out = good("out.npz")
        for key, value in arrays.items():
            assert np.array_equal(out[key], value) and out[key].shape == np.shape(value), key

    # More than 4 GiB in one member, if there is enough space.
    free = os.statvfs(".")
    if os.environ.get("SPILE_LARGE") and free.f_bavail * free.f_frsize > 12 << 30:
        with open("big.npy", "wb") as file:
            header = {"descr": "<u1", "fortran_order": False, "shape": (5 << 30,)}
            np.lib.format.write_array_header_1_0(file, header)
            start = file.tell()
            file.truncate(start + (5 << 30))
            file.seek(start + (5 << 30) - 1)
            file.write(b"\x07")
        spile("convert", "big.npy", "big.npz", "--verify")
        with zipfile.ZipFile("big.npz") as archive:
            assert archive.testzip() is None
        assert np.load("big.npz")["data"][-1] == 7


main()
