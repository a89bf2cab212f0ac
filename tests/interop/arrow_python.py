"""Arrow IPC (Feather): pyarrow, pandas and polars open the tables of spile, and spile reads theirs."""

import os
import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
from support import GOLDEN, spile
from support.tables import columns, compare


def arrays(path):
    spile("convert", path, "read.npz", "--stored", "--overwrite")
    stored = dict(np.load("read.npz"))
    return {name: values for name, values in stored.items() if isinstance(values, np.ndarray)}


def written():
    """What spile writes has the same names, types and values everywhere."""
    random = np.random.default_rng(8)
    rows = 50_000
    own = {"x": random.normal(size=rows), "v": random.normal(size=(rows, 3)).astype("f4")}
    for code in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
        info = np.iinfo(code)
        own[code] = random.integers(info.min, info.max, rows, dtype=code, endpoint=True)
    own |= {"f2": own["x"].astype("f2"), "ok": own["x"] > 0}
    own["s"] = np.array([b"a", b"", "größe".encode()])[np.arange(rows) % 3]
    own["m"] = random.normal(size=(rows, 2, 2))
    np.savez("x.npz", **own)
    for path, options in [("x.arrow", []), ("x.feather", []), ("z.arrow", ["--compress", "zstd:5"])]:
        spile("convert", "x.npz", path, "--strict", "--verify", *options)
        for table in [feather.read_feather(path), pl.read_ipc(path).to_pandas()]:
            assert list(table["v[2]"]) == list(own["v"][:, 2]) and list(table["m[1,0]"]) == list(own["m"][:, 1, 0])
            assert [s.encode() for s in table["s"][:6]] == list(own["s"][:6])
            for name in [name for name in own if name not in ("v", "s", "m")]:
                assert table[name].dtype == own[name].dtype and np.array_equal(table[name], own[name]), name
    # Times and units.
    trace = GOLDEN / "keysight/keysight_ag10_2ch.bin"
    spile("convert", trace, "trace.arrow", "--verify")
    schema = pa.ipc.open_file("trace.arrow").schema
    units = {field.name: (field.metadata or {}).get(b"units") for field in schema}
    expected = {"time": b"s", "Channel 2_time": b"s", "Channel 1": b"V", "Channel 2": b"V"}
    assert units == expected, units
    # Particles in frames.
    gsd = GOLDEN / "gsd/py-5.0.1/hoomd_varying_N.gsd"
    spile("convert", gsd, "p.feather", "--verify")
    table = pd.read_feather("p.feather")
    assert list(table.columns) == ["frame", "step", "particle", "particles/typeid", "x", "y", "z"], table.columns
    assert table.groupby("frame").size().nunique() > 1
    spile("convert", gsd, "p.arrow", "--verify", "--compress", "zstd")
    pd.testing.assert_frame_equal(table, pd.read_feather("p.arrow"))
    # A field is a long table.
    dump = GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf"
    spile("convert", dump, "f.arrow", "--verify", "--select", "Electric Field/Ex")
    spile("convert", dump, "f.csv", "--select", "Electric Field/Ex")
    own, other = pd.read_feather("f.arrow"), pd.read_csv("f.csv", float_precision="round_trip")
    assert list(own.columns) == ["X", "Y", "Electric Field/Ex"] and np.array_equal(own, other), own


def foreign():
    """Every value of tables of other writers, or the column is reported."""
    table = pa.table(columns())
    files = {}
    for name in ["uncompressed", "lz4", "zstd"]:
        feather.write_feather(table, f"{name}.feather", compression=name, chunksize=70)
        files[f"{name}.feather"] = table
    words = pa.table({
        "word": table["word"].dictionary_encode(), "word_null": table["word_null"].dictionary_encode(),
        "number": table["i4"].dictionary_encode(), "large": table["word"].cast(pa.large_string()),
        "view": table["word_null"].cast(pa.string_view()), "duration": table["i8"].cast(pa.duration("ms")),
        "second": pa.array(np.arange(table.num_rows), pa.timestamp("s", "UTC")),
        "decimal256": table["decimal_18"].cast(pa.decimal256(18, 4)),
    })
    for name in ["uncompressed", "lz4"]:
        feather.write_feather(words, f"words_{name}.feather", compression=name)
        files[f"words_{name}.feather"] = words
    frame = pl.from_arrow(table.drop_columns(["nothing"]))
    for name in ["uncompressed", "lz4", "zstd"]:
        frame.write_ipc(f"polars_{name}.arrow", compression=name)
        files[f"polars_{name}.arrow"] = pa.ipc.open_file(f"polars_{name}.arrow").read_all()
    feather.write_feather(table.slice(0, 0), "empty.feather")
    files["empty.feather"] = table.slice(0, 0)
    # Streams, with and without the mark at the end.
    for name, own in {"stream": table, "words": words, "none": table.slice(0, 0)}.items():
        with pa.OSFile(f"{name}.arrows", "wb") as sink, pa.ipc.new_stream(sink, own.schema) as writer:
            writer.write_table(own.combine_chunks(), max_chunksize=70)
        files[f"{name}.arrows"] = own
    with open("stream.arrows", "rb") as file, open("unmarked.arrows", "wb") as out:
        out.write(file.read()[:-8])
    files["unmarked.arrows"] = table
    with open("cut.arrows", "wb") as out, open("stream.arrows", "rb") as file:
        out.write(file.read()[:-100])
    assert b"arrow-002" in spile("check", "cut.arrows", codes=(1,))
    replaced = [pa.array(words).dictionary_encode() for words in (["a", "b"], ["c", "d"])]
    schema = pa.schema([("word", replaced[0].type)])
    with pa.OSFile("replaced.arrows", "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for one in replaced:
            writer.write_batch(pa.record_batch([one], schema=schema))
    assert b"a dictionary is replaced" in spile("check", "replaced.arrows", codes=(1,))
    for path, expected in files.items():
        own = arrays(path)
        assert list(own) == expected.column_names, (path, set(own) ^ set(expected.column_names))
        for name in expected.column_names:
            compare(path, name, own[name], expected[name])
    nested = pa.table({
        "x": [1.5, 2.5], "list": [[1, 2], []], "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "point": pa.array([{"x": 1.0, "y": "a"}, {"x": 2.0, "y": "b"}]),
        "null": pa.array([{"z": 1.0}, None]), "n": pa.array([1, 2], pa.int32()),
    })
    feather.write_feather(nested, "nested.feather", compression="uncompressed")
    own = arrays("nested.feather")
    assert {name: values.tolist() for name, values in own.items()} == {
        "x": [1.5, 2.5], "point/x": [1, 2], "point/y": [b"a", b"b"], "n": [1, 2]}, own
    told = spile("check", "nested.feather", codes=(0, 1))
    assert b"columns of type list are not supported" in told, told
    feather.write_feather(pd.DataFrame({"x": [1.0]}), "old.feather", version=1)
    spile("info", "old.feather", codes=(2,))


def main():
    os.chdir(tempfile.mkdtemp())
    written()
    foreign()


main()
