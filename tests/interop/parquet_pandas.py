"""Parquet: pandas and pyarrow read the files of spile, and spile theirs."""

import glob
import os
import tempfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from support import GOLDEN, spile


def main():
    os.chdir(tempfile.mkdtemp())
    random = np.random.default_rng(8)
    rows = 3_000_000
    arrays = {"x": random.normal(size=rows), "v": random.normal(size=(rows, 3)).astype("f4")}
    for code in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
        info = np.iinfo(code)
        arrays[code] = random.integers(info.min, info.max, rows, dtype=code, endpoint=True)
    arrays["ok"] = arrays["x"] > 0
    arrays["s"] = np.array([b"a", b"", "größe".encode()])[np.arange(rows) % 3]
    np.savez("x.npz", **arrays)
    # Nothing is lost, including text, booleans and small integers.
    spile("convert", "x.npz", "x.parquet", "--strict", "--verify")
    table = pd.read_parquet("x.parquet")
    assert len(table) == rows and pq.ParquetFile("x.parquet").num_row_groups > 1
    for name, array in arrays.items():
        if name == "v":
            own = table[["v[0]", "v[1]", "v[2]"]].to_numpy()
            assert own.dtype == array.dtype and np.array_equal(own, array)
        elif name == "s":
            assert [s.encode() for s in table["s"][:6]] == list(array[:6])
        else:
            assert table[name].dtype == array.dtype and np.array_equal(table[name], array), name

    # Tables with frames: logged quantities and particles.
    gsd = os.path.join(GOLDEN, "gsd/py-5.0.1/hoomd_many_frames.gsd")
    spile("convert", gsd, "log.parquet", "--select", "log/*", "--verify")
    log = pd.read_parquet("log.parquet")
    assert list(log["frame"]) == list(range(len(log))) and any(c.startswith("log/") for c in log)
    varying = os.path.join(GOLDEN, "gsd/py-5.0.1/hoomd_varying_N.gsd")
    pick = ["--select", "particles/position", "--select", "particles/mass"]
    spile("convert", varying, "p.parquet", *pick, "--verify")
    particles = pd.read_parquet("p.parquet")
    counts = particles.groupby("frame").size()
    assert counts.nunique() > 1 and list(particles[["x", "y", "z"]]) == ["x", "y", "z"], particles
    assert [list(rows["particle"]) for _, rows in particles.groupby("frame")] == [list(range(n)) for n in counts]

    # Files of pyarrow without compression are read in place.
    frame = pa.table({"n": np.arange(9), "x": random.normal(size=9), "word": list("abcdefghi")})
    pq.write_table(frame, "p.parquet", compression="none", use_dictionary=False)
    spile("convert", "p.parquet", "p.npz", "--strict", "--verify")
    back = np.load("p.npz")
    assert np.array_equal(back["n"], frame["n"]) and np.array_equal(back["x"], frame["x"])
    assert [w.decode() for w in back["word"]] == frame["word"].to_pylist()

    # Defaults of pandas and common options.
    rows = 200_000
    frame = pd.DataFrame({
        "n": random.integers(0, 50, rows), "x": random.normal(size=rows),
        "f4": random.normal(size=rows).astype("f4"), "word": random.choice(["a", "größe", ""], rows),
        "ok": random.normal(size=rows) > 0,
    })
    frame.loc[::5, "x"] = np.nan
    for k, how in enumerate([{}, {"compression": "zstd"}, {"compression": "gzip"}, {"compression": "lz4"},
                             {"compression": None}, {"data_page_version": "2.0"}, {"engine": "fastparquet"}]):
        frame.to_parquet(f"{k}.parquet", **how)
        spile("convert", f"{k}.parquet", f"{k}.npz", "--strict", "--verify")
        back = np.load(f"{k}.npz")
        for name in ["n", "x", "f4", "ok"]:
            assert back[name].dtype == frame[name].dtype, (how, name)
            assert np.array_equal(back[name], frame[name], equal_nan=name in "xf4"), (how, name)
        assert [w.decode() for w in back["word"]] == frame["word"].to_list(), how

    # A trace has a time column.
    trace = os.path.join(GOLDEN, "lecroy")
    trace = sorted(glob.glob(f"{trace}/**/*.trc", recursive=True))[0]
    spile("convert", trace, "trace.parquet", "--verify")
    time = pd.read_parquet("trace.parquet")["time"]
    assert len(time) > 1 and (np.diff(time) > 0).all(), time


main()
