"""TAF: spile and NumPy read each other's data, and statistics agree."""

import json
import os
import tempfile

import numpy as np
from support import spile

TYPES = {
    "uint8": "u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
    "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "flt32": "<f4", "flt64": "<f8",
}


def mapped(path):
    """The file as mapped with the output of `spile taf map`."""
    where = json.loads(spile("taf", "map", "--json", path))
    stored = eval(where["numpy"], {"numpy": np})
    if "slope" not in where:
        return stored
    return where["intercept"] + where["slope"] * stored.astype("f8")


def main():
    random = np.random.default_rng(11)
    os.chdir(tempfile.mkdtemp())
    for name, code in TYPES.items():
        for order in "CF":
            for byteorder in "<>":
                dtype = np.dtype(code).newbyteorder(byteorder)
                if dtype.kind == "f":
                    array = random.normal(size=(50, 3, 4)).astype(dtype)
                else:
                    info = np.iinfo(dtype)
                    array = random.integers(info.min, info.max, (50, 3, 4), dtype=code.lstrip("<"))
                    array = array.astype(dtype)
                np.save("in.npy", np.asarray(array, order=order))
                spile("taf", "create", "in.npy", "-t", name, "-o", "x.taf", "--overwrite")
                # The same type: every bit is preserved.
                assert np.array_equal(mapped("x.taf"), array), name
                raw = np.frombuffer(spile("cat", "--raw", "--stored", "x.taf"), code)
                assert np.array_equal(raw.reshape(array.shape), array), name
                part = np.frombuffer(spile("cat", "--raw", "x.taf", "45:2:-3, 1, ::2"), code)
                assert np.array_equal(part.reshape(-1, 2), array[45:2:-3, 1, ::2]), name
                spile("taf", "permute", "x.taf", "3,1,2")
                assert np.array_equal(mapped("x.taf"), array.transpose(2, 0, 1)), name

                spile("convert", "x.taf", "out.npy", "--overwrite", "--verify")
                again = np.load("out.npy")
                assert again.dtype == np.dtype(code) and np.array_equal(again, mapped("x.taf")), name

    wave = np.sin(np.linspace(0, 20, 5000)).reshape(-1, 2)
    np.save("in.npy", wave)
    for name in ["uint8", "int8", "uint16", "int16", "int32"]:
        spile("taf", "create", "in.npy", "-t", name, "-o", "x.taf", "--overwrite")
        levels = 2.0 ** (8 * np.dtype(TYPES[name]).itemsize) - 1
        assert np.abs(mapped("x.taf") - wave).max() <= 0.5001 * np.ptp(wave) / levels, name
        stat = json.loads(spile("stat", "--json", "x.taf"))["arrays"][0]
        values = mapped("x.taf")
        for key, expected in [("min", values.min()), ("max", values.max())]:
            assert stat[key] == expected, (name, key)
        for key, expected in [("mean", values.mean()), ("std", values.std(ddof=1))]:
            assert abs(stat[key] - expected) < 1e-12, (name, key)

    # Text, in both directions.
    spile("taf", "create", "in.npy", "-t", "64", "--grid", "0:0.5", "-o", "y.taf")
    spile("taf", "export", "y.taf", "-o", "y.txt")
    table = np.loadtxt("y.txt")
    assert np.array_equal(table[:, 1:], wave) and np.array_equal(table[:, 0], 0.5 * np.arange(2500))
    spile("taf", "create", "y.txt", "-t", "64", "--grid-column", "-o", "z.taf")
    assert open("y.taf", "rb").read() == open("z.taf", "rb").read()
    assert np.array_equal(mapped("z.taf"), wave)

    # Standard input, and appending.
    with open("in.npy", "rb") as stream:
        spile("taf", "create", "-", "-t", "flt64", "-o", "s.taf", stdin=stream)
    spile("taf", "append", "s.taf", "in.npy")
    assert np.array_equal(mapped("s.taf"), np.hstack([wave, wave]))


main()
