"""CSV: tables of pandas, polars, R, Excel and instruments are read as pandas reads them, and pandas opens the tables
of spile with names, units, coordinates and values."""

import csv
import gzip
import io
import json
import os
import subprocess
import tempfile
import warnings

import numpy as np
import pandas as pd
import polars as pl
from support import GOLDEN, SPILE, spile


def read(path, **options):
    with warnings.catch_warnings():
        # Newer versions warn that the option is not needed.
        warnings.simplefilter("ignore")
        return pd.read_csv(path, float_precision="round_trip", **options)


def arrays(path):
    """All arrays of a file by path: values and units."""
    spile("convert", path, "read.npz", "--overwrite")
    stored = np.load("read.npz")
    units = {o["path"]: o.get("attrs", {}).get("units") for o in json.loads(spile("ls", "--json", path))["objects"]}
    return {name: (stored[name], units[name]) for name in stored.files if name in units}


def same(own, other, name):
    """The values of an array are those of a column of pandas."""
    if own.dtype.kind == "S":
        # pandas has no text for a missing string.
        text = [b"" if isinstance(v, float) and np.isnan(v) else str(v).encode() for v in other]
        assert list(own) == text, (name, own, text)
    else:
        other = np.asarray(other)
        assert own.dtype.kind == other.dtype.kind, (name, own.dtype, other.dtype)
        assert np.array_equal(own, other, equal_nan=own.dtype.kind == "f"), (name, own, other)


def imported(path, expected, units=None, names=None):
    """Compares a file with a table of pandas, whose columns may have other names."""
    found = arrays(path)
    names = names or {}
    keys = [str(names.get(c, c)) for c in expected.columns]
    assert list(found) == keys, (path, list(found), keys)
    for column, key in zip(expected.columns, keys):
        same(found[key][0], expected[column], (path, column))
    for key, unit in (units or {}).items():
        assert found[key][1] == unit, (path, key, found[key][1])


def tables():
    """Tables written by libraries with their defaults and their options."""
    random = np.random.default_rng(3)
    table = pd.DataFrame({
        "n": np.arange(9) * 3 - 4, "x": random.normal(size=9), "gap": [1.5, None, *range(7)], "igap": [None, *range(8)],
        "ok": random.normal(size=9) > 0, "word": ["a", "b,c", "say \"x\"", "two\nlines", "ü", "", "NA!", "x y", "5\" d"],
        "day": pd.date_range("2024-02-27", periods=9).astype(str), "big": np.arange(9) + 2**62,
        "u": np.full(9, 2**64 - 1, dtype="u8"), "mixed": ["1", "2", "x", "4", "5", "6", "7", "8", "9"],
    })
    first = {"Unnamed: 0": "index"}
    for k, options in enumerate([
        {}, {"index": False}, {"sep": ";"}, {"sep": "\t", "index": False}, {"sep": "|"}, {"quoting": csv.QUOTE_ALL},
        {"quoting": csv.QUOTE_NONNUMERIC}, {"lineterminator": "\r\n"}, {"encoding": "utf-8-sig", "index": False},
        {"na_rep": "NaN"}, {"na_rep": "NA"}, {"float_format": "%.5e"}, {"compression": "gzip"}, {"compression": "zstd"},
    ]):
        path = f"pandas{k}.csv"
        table.to_csv(path, **options)
        back = {name: options[name] for name in ("sep", "encoding", "compression") if name in options}
        # Only numbers may be missing; "NA" is one of the texts of nobody.
        expected = read(path, **back)
        expected["word"] = read(path, **back, keep_default_na=False)["word"]
        imported(path, expected, names=first)
    table.to_csv("comma.csv", sep=";", decimal=",", index=False)
    imported("comma.csv", read("comma.csv", sep=";", decimal=","))
    pl.from_pandas(table).write_csv("polars.csv")
    expected = read("polars.csv")
    imported("polars.csv", expected)
    pl.from_pandas(table[["n", "x"]]).write_csv("polars.tsv", separator="\t")
    imported("polars.tsv", read("polars.tsv", sep="\t"))
    # Names that are numbers, with and without an index.
    pd.DataFrame(random.normal(size=(4, 3))).to_csv("numbers.csv")
    imported("numbers.csv", read("numbers.csv"), names=first)
    indexed = pd.DataFrame({"v": [1.0, 2.0]}, index=pd.Index([0.5, 1.0], name="t"))
    indexed.to_csv("named.csv")
    imported("named.csv", read("named.csv"))
    with open("module.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], [1, "x"], [2.5, ""]])
    imported("module.csv", read("module.csv", keep_default_na=False))


def headers():
    """Columns of several levels: their names are paths. Rows of labels below the names are levels, too."""
    columns = pd.MultiIndex.from_product([["a", "b"], ["x", "y"]])
    table = pd.DataFrame(np.arange(12.0).reshape(3, 4) / 7, columns=columns)
    paths = {"/".join(key): table[key].to_numpy() for key in columns}
    table.to_csv("levels.csv")
    table.to_csv("bare.csv", index=False)
    table.columns.names, table.index.name = ["first", "second"], "id"
    table.to_csv("names.csv")
    table.to_csv("quoted.csv", quoting=1)
    for name, index in [("levels.csv", "index"), ("bare.csv", None), ("names.csv", "id"), ("quoted.csv", "id")]:
        found = arrays(name)
        expected = {**paths, **({index: table.index.to_numpy()} if index else {})}
        assert set(found) == set(expected), (name, set(found))
        for path, values in expected.items():
            assert np.array_equal(found[path][0], values), (name, path)
    groups = pd.DataFrame({"g": ["u", "u", "v"], "v": [1.0, 2, 3]}).groupby("g").agg(["mean", "std"])
    groups.to_csv("groups.csv")
    found = {name: values for name, (values, _) in arrays("groups.csv").items()}
    assert found["g"].tolist() == [b"u", b"v"], found["g"]
    assert np.array_equal(found["v/mean"], [1.5, 3]) and np.isnan(found["v/std"][1]), found


def complex_numbers():
    """Complex arrays are two columns, with the unit and the coordinate of the array."""
    random = np.random.default_rng(8)
    psi = (random.normal(size=(6, 4)) + 1j * random.normal(size=(6, 4))).astype("c8")
    np.savez("psi.npz", psi=psi[:, 0].astype("c16"), field=np.asfortranarray(psi), x=np.arange(6.0))
    spile("convert", "psi.npz", "psi.csv", "--verify", "--overwrite", "--select", "psi", "--select", "x")
    spile("convert", "psi.npz", "psi.parquet", "--verify", "--overwrite", "--select", "psi", "--select", "x")
    for table in read("psi.csv"), pd.read_parquet("psi.parquet"):
        found = table["psi_real"].to_numpy() + 1j * table["psi_imag"].to_numpy()
        assert np.array_equal(found, psi[:, 0].astype("c16")), table
    spile("convert", "psi.npz", "field.csv", "--verify", "--overwrite", "--select", "field")
    table = read("field.csv")
    found = table.filter(like="field_real").to_numpy() + 1j * table.filter(like="field_imag").to_numpy()
    assert np.array_equal(found.astype("c8"), psi), table
    lost = json.loads(spile("convert", "--json", "--overwrite", "psi.npz", "field.csv", "--select", "field"))["lost"]
    assert [(row["path"], row["what"]) for row in lost if row["what"] != "type"] == [("field", "name")], lost


def texts():
    """Texts as instruments and spreadsheets write them: text, options of pandas, units."""
    cases = [
        ("plain", "a,b\n1,2\n3,4", {}, {}),
        ("one", "x\n1.5\n2\n", {}, {}),
        ("units", "t (s),U [mV]\n0,1\n1,2\n", {"names": ["t", "U"], "header": 0}, {"t": "s", "U": "mV"}),
        ("row", "x;U\nm;mV\n0;1,5\n1;2\n", {"sep": ";", "decimal": ",", "skiprows": [1]}, {"x": "m", "U": "mV"}),
        ("comments", "# it's 5\" long\n# x\nt,U\n0,1.5\n1,2\n", {"comment": "#"}, {}),
        ("percent", "% a\n% b\nt\tU\n0\t1.5\n1\t2\n", {"sep": "\t", "comment": "%"}, {}),
        ("semicolon", "; a\nt,U\n0,1.5\n1,2\n", {"skiprows": 1}, {}),
        ("excel", "\ufeffsep=;\r\n\"a\";\"b c\"\r\n1;\"x\r\ny\"\r\n2;\"\"\"q\"\"\"\r\n", {"sep": ";", "skiprows": 1}, {}),
        ("trailing", "a,b,\n1,2,\n3,4,\n", {"usecols": [0, 1]}, {}),
        ("twice", "a,a,b\n1,2,3\n4,5,6\n", {}, {}),
        ("blanks", "a, b\n1, 2.5\n 3, 4\n", {"skipinitialspace": True}, {}),
        ("missing", "a,b\n1,NA\n,2.5\n3,null\n", {}, {}),
        ("r", '"","a","s"\n"1",1.5,"x"\n"2",NA,"y"\n', {"dtype": {0: str}}, {}),
        ("hex", "a,b\n0x10,1\n0x1f,2\n", {}, {}),
        ("month", "m,v\n2020-01,1\n2020-02,2\n", {}, {}),
        ("scan", "a,b,c\n1,True,TRUE\n2,False,FALSE\n", {}, {}),
    ]
    for name, text, options, units in cases:
        with open(f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            file.write(text)
        expected = read(f"{name}.csv", **options)
        columns = {c: c.lstrip("\ufeff") for c in expected.columns} | {"Unnamed: 0": "index"}
        with open(f"{name}.csv", "rb") as file, gzip.open(f"{name}.csv.gz", "wb") as packed:
            packed.write(file.read())
        for path in (f"{name}.csv", f"{name}.csv.gz"):
            imported(path, expected, units, {k: v for k, v in columns.items()})
    with open("fortran.csv", "w") as file:
        file.write("a,b\n1.5D+03,2\n-2d-1,3\n")
    assert list(arrays("fortran.csv")["a"][0]) == [1500, -0.2]
    # Numbers that no type represents are text, and damaged rows are named.
    with open("huge.csv", "w") as file:
        file.write("a,b\n99999999999999999999,9007199254740993\n1,\n")
    found = arrays("huge.csv")
    assert found["a"][0][0] == b"99999999999999999999" and found["b"][0][0] == b"9007199254740993"
    with open("ragged.csv", "w") as file:
        file.write("a,b\n1,2\n\n3\n4,5\n")
    told = subprocess.run([SPILE, "ls", "ragged.csv"], capture_output=True, check=False).stderr
    assert b"line 4: expected 2 fields, found 1" in told, told
    with open("empty.csv", "w") as file:
        file.write("a,b,c\n")
    assert [o["shape"] for o in json.loads(spile("ls", "empty.csv", "--json"))["objects"]] == [[0]] * 3


def waveforms():
    """Oscilloscope traces have a time column with its unit, in every file."""
    count = 0
    for folder in ("lecroy", "tektronix", "keysight"):
        for path in sorted((GOLDEN / folder).iterdir()):
            if path.suffix == ".json":
                continue
            listed = json.loads(spile("ls", path, "--json"))["objects"]
            for array in [o for o in listed if o["kind"] == "array" and "time" in o["dims"]]:
                spile("convert", path, "w.csv", "--select", array["path"], "--overwrite")
                table = read("w.csv")
                time = [c for c in table.columns if c.split(" ")[0] == "time"]
                assert time == ["time (s)"], (path, list(table.columns))
                axis = array["coords"][array["dims"].index("time")]
                if axis and "start" in axis and len(array["dims"]) == 1:
                    points = axis["start"] + np.arange(array["shape"][0]) * axis["step"]
                    assert np.array_equal(table["time (s)"], points), path
                unit = array["attrs"].get("units")
                name = f"{array['path']} ({unit})" if unit else array["path"]
                assert name in table.columns, (name, list(table.columns))
                shown = json.loads(spile("cat", path, array["path"], "--json"))
                values = np.ravel(shown["values"]).astype(shown["dtype"].removesuffix("-be"))
                assert np.array_equal(table[name], values, equal_nan=values.dtype.kind == "f"), path
                count += 1
    assert count > 30, count


def fields():
    """A field is a table of its elements with the coordinates of all dimensions."""
    path = GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf"
    name = "Derived/Number_Density"
    spile("convert", path, "field.csv.gz", "--select", name, "--overwrite")
    table = read("field.csv.gz")
    described = json.loads(spile("ls", path, "--json"))["objects"]
    field = next(o for o in described if o["path"] == name)
    unit = field["attrs"]["units"]
    # The name also selects the arrays below it.
    assert list(table.columns[:3]) == ["X (m)", "Y (m)", f"{name} ({unit})"], table.columns
    values = np.array(json.loads(spile("cat", path, name, "--json"))["values"])
    x, y = (np.array(json.loads(spile("cat", path, f"Grid/Grid/{a}_mid", "--json"))["values"]) for a in "XY")
    grid = table.pivot(index="X (m)", columns="Y (m)", values=table.columns[2])
    assert np.array_equal(grid.index, np.sort(x)) and np.array_equal(grid.columns, np.sort(y))
    assert np.array_equal(grid.to_numpy(), values[np.argsort(x)][:, np.argsort(y)])


def printed():
    """`cat --csv` prints names, units and coordinates."""
    path = GOLDEN / "lecroy/lecroy_be_byte_noprefix.trc"
    table = read(io.BytesIO(spile("cat", path, "trace", "10:20:3", "--csv", "--header", "--coords")))
    spile("convert", path, "trace.csv", "--overwrite")
    pd.testing.assert_frame_equal(table, read("trace.csv").iloc[10:20:3].reset_index(drop=True))
    path = GOLDEN / "sdf/epoch2d_4ranks_id4_0001.sdf"
    part = spile("cat", path, "Derived/Number_Density", ":4, ::-5", "--csv", "--header", "--coords")
    table, values = read(io.BytesIO(part)), json.loads(spile("cat", path, "Derived/Number_Density", ":4, ::-5", "--json"))
    y = json.loads(spile("cat", path, "Grid/Grid/Y_mid", "::-5", "--json"))["values"]
    assert list(table.columns)[:2] == ["X (m)", "Y (m)"], table.columns
    assert np.array_equal(table["Y (m)"], np.tile(y, 4)) and np.array_equal(table.iloc[:, 2], np.ravel(values["values"]))


def round_trip():
    random = np.random.default_rng(8)
    bits = random.integers(0, 2**64, 20_000, dtype="u8").view("f8")
    columns = {
        "any": bits, "f4": random.integers(0, 2**32, bits.size, dtype="u4").view("f4"),
        "i": random.integers(-2**62, 2**62, bits.size), "u": random.integers(0, 2**64, bits.size, dtype="u8"),
        "ok": bits > 0, "s": np.array([b"a,b", b"say \"x\"", b"", b"line\nline"])[np.arange(bits.size) % 4],
        "v": random.normal(size=(bits.size, 3)),
    }
    np.savez("x.npz", **columns)
    for path in ("x.csv", "x.csv.gz", "x.csv.zst"):
        spile("convert", "x.npz", path, "--verify")
        table = read(path)
        assert list(table.columns) == ["any", "f4", "i", "u", "ok", "s", "v[0]", "v[1]", "v[2]"], table.columns
        equal = (table["any"].to_numpy().view("u8") == bits.view("u8")) | np.isnan(bits)
        assert equal.all()
        assert np.array_equal(table["f4"].to_numpy("f4"), columns["f4"], equal_nan=True)
        assert np.array_equal(table["i"], columns["i"]) and np.array_equal(table["ok"], columns["ok"])
        assert np.array_equal(table["u"].astype("u8"), columns["u"])
        assert np.array_equal(table[["v[0]", "v[1]", "v[2]"]].to_numpy(), columns["v"])
        assert [str(s) for s in table["s"][:2]] == ["a,b", "say \"x\""]
        # Reading restores the same arrays; float32 becomes float64 with the same numbers.
        spile("convert", path, "y.npz", "--verify", "--overwrite")
        back = np.load("y.npz")
        for name, array in columns.items():
            assert back[name].dtype == (np.float64 if name == "f4" else array.dtype), name
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

    # A waveform: the grid is the first column.
    np.save("wave.npy", np.sin(np.linspace(0, 20, 600)).reshape(-1, 2))
    spile("taf", "create", "wave.npy", "-t", "64", "--grid", "0:0.5", "-o", "w.taf")
    spile("convert", "w.taf", "w.csv", "--verify", "--overwrite")
    table = read("w.csv")
    assert np.array_equal(table.iloc[:, 0], 0.5 * np.arange(300)), table.columns
    assert np.array_equal(table.iloc[:, 1:].to_numpy(), np.load("wave.npy"))


def main():
    os.chdir(tempfile.mkdtemp())
    for part in (tables, headers, complex_numbers, texts, waveforms, fields, printed, round_trip):
        part()


if __name__ == "__main__":
    main()
