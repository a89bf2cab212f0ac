"""CSV as programs and instruments write it: every file has the values of pandas, or is refused with the reason."""

import bz2
import json
import os
import subprocess
import tempfile

import numpy as np
from support import SPILE, spile

NUMBERS = {"a": [1, 2, 3], "b": [1.5, 2.25, -3.0]}
PLAIN = "a,b\n1,1.5\n2,2.25\n3,-3.0\n"

# Name, bytes, and the arrays that must be found.
READ = [
    ("plain", PLAIN.encode(), NUMBERS),
    ("crlf", PLAIN.replace("\n", "\r\n").encode(), NUMBERS),
    ("no_last_line_end", PLAIN[:-1].encode(), NUMBERS),
    ("bom", PLAIN.encode("utf-8-sig"), NUMBERS),
    ("semicolon", PLAIN.replace(",", ";").encode(), NUMBERS),
    ("tab", PLAIN.replace(",", "\t").encode(), NUMBERS),
    ("pipe", PLAIN.replace(",", "|").encode(), NUMBERS),
    ("decimal_comma", PLAIN.replace(",", ";").replace(".", ",").encode(), NUMBERS),
    ("excel", ("sep=;\r\n" + PLAIN.replace(",", ";")).encode(), NUMBERS),
    ("quoted", b'"a","b"\n"1","1.5"\n"2","2.25"\n"3","-3.0"\n', NUMBERS),
    ("quoted_names", b'"a","b"\n1,1.5\n2,2.25\n3,-3.0\n', NUMBERS),
    ("comments", ("# program 1.2\n# 5\" long\n" + PLAIN).encode(), NUMBERS),
    ("blank_lines", PLAIN.replace("\n", "\n\n").encode(), NUMBERS),
    ("trailing_separator", PLAIN.replace("\n", ",\n").encode(), NUMBERS),
    ("units", b"a [s],b (mV)\n1,1.5\n2,2.25\n3,-3.0\n", NUMBERS),
    ("index", b",a,b\n0,1,1.5\n1,2,2.25\n2,3,-3.0\n", NUMBERS),
    ("r_row_names", b'"","a","b"\n"1",1,1.5\n"2",2,2.25\n"3",3,-3.0\n', NUMBERS),
    ("fortran", b"a,b\n1,1.5D+00\n2,2.25D+00\n3,-3.0D+00\n", NUMBERS),
    ("missing", b"a,b\n1,1.5\n2,NA\n3,\n", {"a": [1, 2, 3], "b": [1.5, np.nan, np.nan]}),
    ("booleans", b"a,b\n1,True\n2,False\n3,True\n", {"a": [1, 2, 3], "b": [True, False, True]}),
    ("dates", b"a,b\n1,2024-02-29\n2,2024-03-01\n3,\n", {"a": [1, 2, 3], "b": [b"2024-02-29", b"2024-03-01", b""]}),
    ("latin1_name", "größe,b\n1,1.5\n2,2.25\n3,-3.0\n".encode("latin-1"), {"größe": [1, 2, 3], "b": NUMBERS["b"]}),
    ("duplicates", b"a,a\n1,1.5\n2,2.25\n3,-3.0\n", {"a": [1, 2, 3], "a.1": NUMBERS["b"]}),
    ("dots", b"a.x,b y\n1,1.5\n2,2.25\n3,-3.0\n", {"a.x": [1, 2, 3], "b y": NUMBERS["b"]}),
    # Whether a point or comma separates thousands is not known: text, never a wrong number.
    ("thousands", b'a,b\n1,"1,234"\n2,"2,345,678"\n3,"5"\n', {"a": [1, 2, 3], "b": [b"1,234", b"2,345,678", b"5"]}),
    ("thousands_point", b"a;b\n1;1.234,5\n2;2.345,5\n3;5,5\n", {"a": [1, 2, 3], "b": [b"1.234,5", b"2.345,5", b"5,5"]}),
    ("zeros", b"a,b\n1,007\n2,008\n3,009\n", {"a": [1, 2, 3]}),
    ("quoted_booleans", b'"a","b"\n"1","True"\n"2","False"\n"3","True"\n', {"a": [1, 2, 3], "b": [True, False, True]}),
    ("latin1_values", "s,b\nü,1.5\nö,2.25\n,-3\n".encode("latin-1"), {"s": ["ü".encode(), "ö".encode(), b""], "b": NUMBERS["b"]}),
    # A date and a time, and words with blanks, are one field.
    ("times", b"t\n2020-01-01 00:00:00+01:00\n2020-01-02 00:00:00+01:00\n",
     {"t": [b"2020-01-01 00:00:00+01:00", b"2020-01-02 00:00:00+01:00"]}),
    ("cities", b"city\nNew York\nLos Angeles\n", {"city": [b"New York", b"Los Angeles"]}),
    ("row_names", b"x y\nfirst 1 1.5\nsecond 2 2.25\n", {"index": [b"first", b"second"], "x": [1, 2], "y": [1.5, 2.25]}),
    # numpy.savetxt(header="a,b"), and pandas without names.
    ("savetxt", b"# a,b\n1.0e+00,1.5e+00\n2.0e+00,2.25e+00\n3.0e+00,-3.0e+00\n", {"a": [1.0, 2.0, 3.0], "b": NUMBERS["b"]}),
    ("numbered", b"0,1,2\n0.5,1.5,\n1.0,-2.5e-3,4.0\n", {"0": [0.5, 1.0], "1": [1.5, -0.0025], "2": [np.nan, 4.0]}),
    ("not_numbered", b"0,1,2\n3,4,5\n6.5,7,8\n", {"data": [[0.0, 1, 2], [3, 4, 5], [6.5, 7, 8]]}),
    ("title", b"My experiment\nDate,2024-01-01\n\nt (s),V (mV)\n0,1\n1,2\n2,3\n", {"t": [0, 1, 2], "V": [1, 2, 3]}),
    ("title_one", b"Calibration of 3 May\na,b\n1,1.5\n2,2.25\n3,-3.0\n", NUMBERS),
    ("title_words", b"Product,2450\nSerial,123\n\nIndex,Reading (A),Unit\n1,1.5E-6,A\n2,1.6E-6,A\n",
     {"Index": [1, 2], "Reading": [1.5e-6, 1.6e-6], "Unit": [b"A", b"A"]}),
    ("title_semicolon", b"Ger\xc3\xa4t;7\nBereich;0,5\n\na;b\n1;1,5\n2;2,25\n3;-3,0\n", NUMBERS),
    ("blanks_comma", b"t U\n0,5 1,25\n1,5 2,25\n", {"data": [[0.5, 1.25], [1.5, 2.25]], "t": [0.5, 1.5]}),
    # Not a quoted field: it is a text as it is.
    ("backslash", b'a,b\n1,"x\\"y"\n2,"z"\n', {"a": [1, 2], "b": [b'"x\\"y"', b"z"]}),
    ("encodings", "a,b\nMüller,1\n".encode() + "Grün,2\n".encode("latin-1"),
     {"a": ["Müller".encode(), "Grün".encode()], "b": [1, 2]}),
    ("utf16", PLAIN.encode("utf-16"), NUMBERS),
    ("utf16_be", b"\xfe\xff" + PLAIN.encode("utf-16-be"), NUMBERS),
    ("bz2", bz2.compress(PLAIN.encode()), NUMBERS),
]


def arrays(path):
    spile("convert", path, "read.npz", "--overwrite")
    stored = dict(np.load("read.npz"))
    return {name: values for name, values in stored.items() if isinstance(values, np.ndarray)}


def read():
    for name, content, expected in READ:
        with open(f"{name}.csv", "wb") as file:
            file.write(content)
        done = subprocess.run([SPILE, "ls", f"{name}.csv", "--json"], capture_output=True, check=False)
        assert done.returncode == 0, (name, done.stderr)
        found = arrays(f"{name}.csv")
        for column, values in expected.items():
            assert column in found, (name, column, list(found))
            own = found[column]
            assert np.array_equal(own, np.array(values), equal_nan=own.dtype.kind == "f"), (name, column, own, values)
            assert own.dtype.kind == np.array(values).dtype.kind, (name, column, own.dtype)


def written():
    """The name, or the option, decides on the compression; they must not contradict each other."""
    np.savez("x.npz", a=np.arange(500), b=np.arange(500) / 8)
    plain = None
    for path, options, magic in [("x.csv", [], b'"a"'), ("x.csv.gz", [], b"\x1f\x8b"), ("x.csv.zst", [], b"\x28\xb5\x2f\xfd"),
                                 ("z.csv", ["--compress", "zstd:19"], b"\x28\xb5\x2f\xfd"),
                                 ("g.csv.gz", ["--compress", "gzip:9"], b"\x1f\x8b"), ("n.csv", ["--compress", "none"], b'"a"')]:
        spile("convert", "x.npz", path, "--verify", *options)
        with open(path, "rb") as file:
            assert file.read(len(magic)) == magic, path
        shown = json.loads(spile("cat", path, "b", "--json"))["values"]
        plain = plain or shown
        assert shown == plain, path
    for path, method in [("y.csv.gz", "zstd"), ("y.csv.gz", "none"), ("y.csv", "snappy")]:
        spile("convert", "x.npz", path, "--compress", method, codes=(2,))
        assert not os.path.exists(path)
    sizes = {}
    for method in ["none", "gzip", "zstd:9", "snappy", "lz4"]:
        path = f"{method[:4]}.parquet"
        spile("convert", "x.npz", path, "--verify", "--compress", method)
        sizes[method] = os.path.getsize(path)
    assert max(sizes["gzip"], sizes["zstd:9"], sizes["snappy"], sizes["lz4"]) < sizes["none"], sizes


def main():
    os.chdir(tempfile.mkdtemp())
    written()
    read()


main()
