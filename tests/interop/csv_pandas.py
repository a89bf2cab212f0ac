"""CSV: pandas reads the files of spile with the same bits, and spile those of pandas."""

import csv
import os
import tempfile
import warnings

import numpy as np
import pandas as pd
from support import GOLDEN, spile


def read(path):
    with warnings.catch_warnings():
        # Newer versions warn that the option is not needed.
        warnings.simplefilter("ignore")
        return pd.read_csv(path, float_precision="round_trip")


def main():
    os.chdir(tempfile.mkdtemp())
    random = np.random.default_rng(8)
    bits = random.integers(0, 2**64, 20_000, dtype="u8").view("f8")
    columns = {
        "any": bits, "f4": random.integers(0, 2**32, bits.size, dtype="u4").view("f4"),
        "i": random.integers(-2**62, 2**62, bits.size), "u": random.integers(0, 2**64, bits.size, dtype="u8"),
        "ok": bits > 0, "s": np.array([b"a,b", b"say \"x\"", b"", b"line\nline"])[np.arange(bits.size) % 4],
        "v": random.normal(size=(bits.size, 3)),
    }
    np.savez("x.npz", **columns)
    spile("convert", "x.npz", "x.csv", "--verify")
    table = read("x.csv")
    assert list(table.columns)[:3] == ["any", "f4 {float32}", "i"], table.columns
    same = (table["any"].to_numpy().view("u8") == bits.view("u8")) | np.isnan(bits)
    assert same.all()
    assert np.array_equal(table["f4 {float32}"].to_numpy("f4"), columns["f4"], equal_nan=True)
    assert np.array_equal(table["i"], columns["i"]) and np.array_equal(table["ok"], columns["ok"])
    assert np.array_equal(table["u {uint64}"].astype("u8"), columns["u"])
    assert np.array_equal(table[["v[0]", "v[1]", "v[2]"]].to_numpy(), columns["v"])
    assert [str(s) for s in table["s {text[9]}"][:2]] == ["a,b", "say \"x\""]
    # Reading restores the same arrays with the same types.
    spile("convert", "x.csv", "y.npz", "--verify")
    back = np.load("y.npz")
    for name, array in columns.items():
        assert back[name].dtype == array.dtype, name
        assert np.array_equal(back[name], array, equal_nan=array.dtype.kind == "f"), name

    # Logged quantities, one row per frame.
    path = os.path.join(GOLDEN, "gsd/py-5.0.1/hoomd_many_frames.gsd")
    spile("convert", path, "log.csv", "--select", "log/*", "--verify")
    log = read("log.csv")
    assert list(log["frame"]) == list(range(len(log))) and "step" in log.columns, log.columns
    logged = [name for name in log.columns if name.startswith("log/")]
    assert logged
    spile("convert", "log.csv", "log.npz", "--verify")
    for name in logged:
        own = np.load("log.npz")[name]
        assert np.array_equal(own.ravel(), log[name][~log[name].isna()]), name

    # A file written by pandas.
    frame = pd.DataFrame({"n": np.arange(9), "x": random.normal(size=9), "word": list("abcdefghi")})
    frame.to_csv("p.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    spile("convert", "p.csv", "p.npz", "--strict")
    arrays = np.load("p.npz")
    assert np.array_equal(arrays["n"], frame["n"]) and np.array_equal(arrays["x"], frame["x"])
    assert [w.decode() for w in arrays["word"]] == list(frame["word"])

    # A waveform: the grid is the first column.
    np.save("wave.npy", np.sin(np.linspace(0, 20, 600)).reshape(-1, 2))
    spile("taf", "create", "wave.npy", "-t", "64", "--grid", "0:0.5", "-o", "w.taf")
    spile("convert", "w.taf", "w.csv", "--verify")
    table = read("w.csv")
    assert np.array_equal(table.iloc[:, 0], 0.5 * np.arange(300)), table.columns
    assert np.array_equal(table.iloc[:, 1:].to_numpy(), np.load("wave.npy"))


main()
