"""HDF5: files of PyTables, pandas, h5netcdf and of rare options of the library. Each dataset has the values of h5py, or
there is a finding that names it."""

import os
import tempfile
import warnings

import h5netcdf
import h5py
import hdf5plugin  # noqa: F401, registers filters
import numpy as np
import pandas as pd
import tables
from h5py import h5d, h5f, h5p, h5s, h5t, h5z
from support import spile
from support.hdf5_files import RNG, Compared, agree, findings, listed, values

warnings.simplefilter("ignore")


def low(file, name, kind, data, properties=None, memory=None):
    """A dataset by the low-level interface."""
    space = h5s.create_simple(data.shape) if data.shape else h5s.create(h5s.SCALAR)
    own = h5d.create(file.id, name.encode(), kind, space, properties)
    own.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(data), mtype=memory)
    return own


def agree_with(path, as_stored=()):
    """Each dataset that h5py reads has its values, or a finding tells why not. `as_stored`: names with another type of
    h5py."""
    compared = Compared(path)
    with h5py.File(path) as file:
        found = []
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in found:
            try:
                data = np.asarray(file[name][()])
            except (TypeError, ValueError, OSError):
                inside = [row for row in compared.rows if row == name or row.startswith(f"{name}/")]
                assert inside or name in compared.findings, (path, name, "neither listed nor reported")
                continue
            row = compared.rows.get(name)
            if name in as_stored:
                data = data.astype(row["dtype"])
            is_complex = row and row["dtype"].startswith("complex") and data.dtype.fields
            is_opaque = row and row["dtype"].startswith("opaque") and name in compared.findings
            is_padded = name == "text_space"
            names = [field for field in data.dtype.fields or () if "/" in field]
            if is_complex:
                assert spile("cat", "--raw", "--stored", path, name) == np.ascontiguousarray(data).tobytes(), (path, name)
            elif names:
                # A slash in the name of a member is another character.
                for field in set(data.dtype.fields) - set(names):
                    compared.array(f"{name}/{field}", data[field], file)
            elif not is_opaque and not is_padded:
                compared.array(name, data, file)
    return compared


def datatypes(libver):
    """Datatypes that h5py makes by its low-level interface only."""
    with h5py.File("datatypes.h5", "w", libver=libver) as file:
        for pad, name in [(h5t.STR_SPACEPAD, "space"), (h5t.STR_NULLPAD, "null"), (h5t.STR_NULLTERM, "term")]:
            kind = h5t.C_S1.copy()
            kind.set_size(8)
            kind.set_strpad(pad)
            data = np.array([b"ab", b"c d", b"", b"abcdefg"], "S8")
            if pad == h5t.STR_SPACEPAD:
                data = np.array([t.ljust(8) for t in (b"ab", b"c d", b"", b"abcdefgh")], "S8")
            low(file, f"text_{name}", kind, data, memory=kind)
        for size in (3, 5, 6, 7):
            for order, label in [(h5t.ORDER_LE, "le"), (h5t.ORDER_BE, "be")]:
                for base, data in [(h5t.STD_I64LE, values("i8") >> (65 - 8 * size)), (h5t.STD_U64LE, values("u8") >> np.uint64(65 - 8 * size))]:
                    kind = base.copy()
                    kind.set_size(size)
                    kind.set_order(order)
                    low(file, f"int{size}{label}{data.dtype.kind}", kind, data)
        for precision, offset in [(24, 0), (20, 3), (16, 8)]:
            for order in (h5t.ORDER_LE, h5t.ORDER_BE):
                for base, own in [(h5t.STD_I32LE, values("i4") >> 20), (h5t.STD_U32LE, values("u4") >> 23)]:
                    kind = base.copy()
                    kind.set_order(order)
                    kind.set_precision(precision)
                    kind.set_offset(offset)
                    low(file, f"bits{precision}_{offset}_{order}_{own.dtype.kind}", kind, own)
        # A float of 3 bytes, bfloat16, 8 bits.
        for name, fields, size, bias in [
            ("bfloat16", (15, 7, 8, 0, 7), 2, 127), ("float24", (23, 15, 8, 0, 15), 3, 127),
            ("float8", (7, 3, 4, 0, 3), 1, 7), ("padded", (23, 15, 8, 0, 15), 4, 127), ("high", (31, 23, 8, 8, 15), 4, 127),
        ]:
            for order in (h5t.ORDER_LE, h5t.ORDER_BE):
                kind = h5t.IEEE_F64LE.copy() if size > 4 else h5t.IEEE_F32LE.copy()
                kind.set_fields(*fields)
                kind.set_offset(fields[3])
                kind.set_precision(fields[0] - fields[3] + 1)
                kind.set_size(size)
                kind.set_ebias(bias)
                kind.set_order(order)
                low(file, f"{name}_{order}", kind, np.array([0, 1, -2.5, 0.125, 96.0, -0.0], "f4"))
        for kind in "<>":
            file.create_dataset(f"enum{kind == '<'}", data=np.array([-2, 2**40, -2], f"{kind}i8"),
                                dtype=h5py.enum_dtype({"a": -2, "b": 2**40}, f"{kind}i8"))
        file.create_dataset("enum_array", (2,), dtype=np.dtype((h5py.enum_dtype({"x": 1, "y": 2}, "u2"), (3,))))
        # A boolean in two bytes, and one with other values, are no booleans.
        file.create_dataset("bool2", data=np.array([0, 1, 1], "i2"), dtype=h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, "i2"))
        file.create_dataset("bool3", data=np.array([0, 1, 2], "i1"), dtype=h5py.enum_dtype({"FALSE": 0, "TRUE": 1, "NO": 2}, "i1"))
        complex_like = {
            "other": [("a", "<f4"), ("b", "<f4")], "order": [("i", "<f8"), ("r", "<f8")], "mixed": [("r", "<f8"), ("i", "<f4")],
            "integers": [("r", "<i4"), ("i", "<i4")], "big": [("r", ">f4"), ("i", ">f4")], "half": [("r", "<f2"), ("i", "<f2")],
            "named": [("re", "<f8"), ("im", "<f8")],
        }
        for name, fields in complex_like.items():
            data = np.zeros(4, fields)
            for k, (field, _) in enumerate(fields):
                data[field] = np.arange(4) + 10 * k
            kind = h5t.py_create(np.dtype([("x", "u1")]), logical=True)
            kind = h5t.create(h5t.COMPOUND, np.dtype(fields).itemsize)
            for field, (one, at) in np.dtype(fields).fields.items():
                kind.insert(field.encode(), at, h5t.py_create(one))
            space = h5s.create_simple((4,))
            h5d.create(file.id, f"like_{name}".encode(), kind, space).write(h5s.ALL, h5s.ALL, data, mtype=kind)
        # Compounds with gaps, overlapping names, one member, and deep ones.
        gaps = np.dtype({"names": ["a", "b"], "formats": ["<i2", ">f8"], "offsets": [3, 11], "itemsize": 32})
        data = np.zeros((3, 2), gaps)
        data["a"], data["b"] = values("i2", (3, 2)), values("f8", (3, 2))
        file["gaps"] = data
        deep = np.dtype([("a/b", "i4"), ("ä", [("x", [("y", [("z", ">u2", (2,))])])])])
        data = np.zeros(5, deep)
        data["ä"]["x"]["y"]["z"] = values("u2", (5, 2))
        file["deep"] = data
        file["deep0"] = data[:0]
        file.create_dataset("members", (3,), dtype=np.dtype([("s", h5py.string_dtype()), ("v", h5py.vlen_dtype("i4")), ("n", "i4")]))
        file["members"][1] = ("größe", np.arange(3), 7)
        file.create_dataset("member_ref", (2,), dtype=np.dtype([("r", h5py.ref_dtype), ("e", h5py.enum_dtype({"a": 5}, "u1"))]))
        words = file.create_dataset("vlen_grid", (2, 3), dtype=h5py.string_dtype(), chunks=(1, 2), maxshape=(None, None))
        words[1, 1] = "x" * 3000
        file.create_dataset("fixed_null", data=np.array([b"a\0b", b"\0", b"ab"], "S3"))
    compared = agree_with("datatypes.h5", {"bool2": "u1"})
    assert spile("cat", "datatypes.h5", "text_space").decode().splitlines() == ["ab", "c d", "", "abcdefgh"]
    opaque = {name for name, row in compared.rows.items() if row["dtype"].startswith("opaque")}
    assert opaque <= set(compared.findings) and len(opaque) > 20, opaque ^ set(compared.findings)
    # Numbers that are complex, and those that are not.
    like = {name: row["dtype"] for name, row in compared.rows.items() if name.startswith("like")}
    assert like == {
        "like_big": "complex64-be", "like_half": "complex32", "like_named": "complex128", "like_integers/r": "int32",
        "like_integers/i": "int32", "like_mixed/r": "float64", "like_mixed/i": "float32", "like_order/i": "float64",
        "like_order/r": "float64", "like_other/a": "float32", "like_other/b": "float32"}, like
    assert compared.rows["members/v.sizes"]["shape"] == [3] and compared.rows["member_ref/e"]["dtype"] == "uint8"


def storage(libver):
    """Rare properties of files and datasets."""
    data = values("f4", (50, 41))
    for name, options in {
        "page": {"fs_strategy": "page", "fs_persist": True, "fs_page_size": 4096}, "aggregate": {"fs_strategy": "aggregate"},
        "fsm": {"fs_strategy": "fsm", "fs_persist": True}, "block": {"userblock_size": 512}, "align": {"alignment_interval": 4096, "alignment_threshold": 1},
        "meta": {"meta_block_size": 1 << 16},
    }.items():
        with h5py.File("storage.h5", "w", libver=libver, **options) as file:
            file["a"] = data
            file.create_dataset("g/b", data=data, chunks=(7, 9), compression="gzip", maxshape=(None, 50))
            file["g"].attrs["n"] = 5
            for k in range(30):
                file[f"g/h/{k}"] = k
            del file["g/h/7"]
        if options.get("userblock_size"):
            with open("storage.h5", "r+b") as raw:
                raw.write(b"anything" * 64)
        agree("storage.h5", 31)
    with h5py.File("edges.h5", "w", libver="latest") as file:
        # Partial chunks at the edges without filters.
        for name, limits in [("fixed", (50, 41)), ("extensible", (None, 41)), ("btree", (None, None))]:
            own = h5p.create(h5p.DATASET_CREATE)
            own.set_chunk((7, 9))
            own.set_deflate(4)
            if hasattr(own, "set_chunk_opts"):
                own.set_chunk_opts(2)
            space = h5s.create_simple((50, 41), tuple(h5s.UNLIMITED if n is None else n for n in limits))
            h5d.create(file.id, name.encode(), h5t.IEEE_F32LE, space, own).write(h5s.ALL, h5s.ALL, data)
        for time in (h5d.FILL_TIME_NEVER, h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_IFSET):
            own = h5p.create(h5p.DATASET_CREATE)
            own.set_chunk((7, 9))
            own.set_fill_time(time)
            space = h5s.create_simple((20, 20))
            part = h5d.create(file.id, f"time{time}".encode(), h5t.STD_I32LE, space, own)
            inner = h5s.create_simple((20, 20))
            inner.select_hyperslab((0, 0), (7, 9))
            part.write(h5s.create_simple((7, 9)), inner, np.arange(63, dtype="i4").reshape(7, 9))
        file.create_dataset("late", (5,), "f8", maxshape=(None,))
        file["late"].resize((12,))
        file.create_dataset("rank32", data=np.arange(8).reshape((1,) * 29 + (2, 2, 2)))
        file.create_dataset("rank32c", data=np.arange(8).reshape((1,) * 29 + (2, 2, 2)), chunks=(1,) * 32)
        file.create_dataset("text", data=np.array([b"a b ", b"c"], "S9"), chunks=(1,), compression="gzip", fillvalue=b"fill")
        file.create_dataset("text_unwritten", (3,), "S9", chunks=(1,), fillvalue=b"fill")
        file.create_dataset("compound_fill", (3,), np.dtype([("a", "i2"), ("b", "f8")]), chunks=(2,),
                            fillvalue=np.array((3, 2.5), np.dtype([("a", "i2"), ("b", "f8")])))
        file.create_dataset("bool_fill", (9,), "?", chunks=(4,), fillvalue=True)
        file.create_dataset("complex_fill", (9,), "c16", chunks=(4,), fillvalue=1 + 2j)
        file.create_dataset("big_fill", (9,), ">i4", chunks=(4,), fillvalue=258)
        file.create_dataset("array_fill", (4,), np.dtype(("i2", (2,))), chunks=(4,))
    agree("edges.h5", 12)


def pytables():
    """Tables and arrays of PyTables with all its compressors."""
    class Row(tables.IsDescription):
        name = tables.StringCol(7)
        n = tables.Int64Col(dflt=4)
        ok = tables.BoolCol()
        z = tables.ComplexCol(16)
        v = tables.Float32Col(shape=(2, 3))
        color = tables.EnumCol(["red", "green"], "red", "uint8")

        class inner(tables.IsDescription):
            x = tables.Float64Col()
            y = tables.UInt16Col()

    written = 0
    with tables.open_file("tables.h5", "w") as file:
        for k, (name, level) in enumerate([("zlib", 5), ("bzip2", 5), ("blosc", 5), ("blosc:lz4", 9), ("blosc:zstd", 1), ("blosc2", 5),
                                           ("blosc2:zstd", 5), ("zlib", 0)]):
            try:
                filters = tables.Filters(level, name, shuffle=k % 2 == 0, bitshuffle=k == 4, fletcher32=k == 0)
            except ValueError:
                continue
            group = file.create_group("/", f"g{k}")
            table = file.create_table(group, "table", Row, "a title", filters=filters, chunkshape=5)
            for j in range(23):
                row = table.row
                row["name"], row["n"], row["ok"], row["z"] = f"n{j}", j, j % 2, j + 1j
                row["v"], row["color"] = values("f4", (2, 3)), j % 2
                row["inner/x"], row["inner/y"] = j, j
                row.append()
            table.flush()
            file.create_carray(group, "carray", obj=values("i2", (40, 30)), filters=filters, chunkshape=(9, 8))
            file.create_earray(group, "earray", obj=values(">f8", (40, 3)), filters=filters)
            ragged = file.create_vlarray(group, "vlarray", tables.Int32Atom())
            ragged.append([1, 2, 3])
            ragged.append([])
            ragged.append([4])
            strings = file.create_vlarray(group, "strings", tables.VLUnicodeAtom())
            strings.append("größe")
            objects = file.create_vlarray(group, "objects", tables.ObjectAtom())
            objects.append({"a": 1})
            file.create_array(group, "array", values("c8", (3, 4)))
            file.create_array(group, "text", [b"abc", b"d"])
            file.create_array(group, "bools", np.array([True, False, True]))
            written += 1
        file.create_table("/", "none", Row)
        file.create_soft_link("/", "soft", "/g0/table")
        file.create_hard_link("/", "hard", "/g0/carray")
    found = agree("tables.h5", written * 8, silent=False)
    for name, reason in found.items():
        assert "blosc2" in reason or name == "soft", (name, reason)


def of_pandas():
    frame = pd.DataFrame({"a": np.arange(9), "b": np.linspace(0, 1, 9), "s": [f"w{k}" for k in range(9)], "t": pd.date_range("2001-01-01", periods=9),
                          "ok": np.arange(9) % 2 == 0})
    for fmt in ("fixed", "table"):
        for library in (None, "zlib", "blosc:zstd"):
            frame.to_hdf("pandas.h5", key="df/one", mode="w", format=fmt, complib=library, complevel=5 if library else 0)
            frame["b"].to_hdf("pandas.h5", key="series", format=fmt)
            agree("pandas.h5", 2)


def of_h5netcdf():
    with h5netcdf.File("h5netcdf.nc", "w", invalid_netcdf=True) as file:
        file.dimensions = {"x": 5, "t": None, "y": 3}
        file.create_variable("x", ("x",), data=np.arange(5.0))
        file.create_variable("z", ("x", "y"), data=values("c16", (5, 3)))
        file.create_variable("b", ("x",), data=values("?", 5))
        own = file.create_variable("grow", ("t", "x"), "f4", fillvalue=-1.0)
        file.resize_dimension("t", 3)
        own[1] = np.arange(5)
        file.create_variable("g/v", ("y",), data=values(">i4", 3), compression="gzip")
        file.create_variable("half", ("x",), data=values("f2", 5))
        file.create_variable("names", ("x",), dtype=h5py.string_dtype())
        file.attrs["title"] = "x"
    compared = Compared("h5netcdf.nc")
    with h5py.File("h5netcdf.nc") as file:
        for name in ["x", "z", "b", "grow", "g/v", "half", "names"]:
            compared.array(name, np.asarray(file[name][()]), file)
    assert "t" not in compared.rows and compared.findings == {}, compared.findings


def more_links():
    os.makedirs("sub/deeper", exist_ok=True)
    with h5py.File("sub/other.h5", "w") as file:
        file["group/there"] = np.arange(3)
        file["back"] = h5py.ExternalLink("../links2.h5", "/a")
    with h5py.File("links2.h5", "w") as file:
        file["a"] = np.arange(6.0)
        file["g/d"] = np.arange(4)
        file["g/h/e"] = np.arange(4)
        file["hard_group"] = file["g"]
        file["soft_group"] = h5py.SoftLink("/g")
        file["g/relative"] = h5py.SoftLink("h/e")
        file["through"] = h5py.SoftLink("/soft_group/h/e")
        file["through_hard"] = h5py.SoftLink("hard_group/d")
        file["dots"] = h5py.SoftLink("./g/./d")
        file["external"] = h5py.ExternalLink("sub/other.h5", "/group/there")
        file["external_group"] = h5py.ExternalLink("sub/other.h5", "/group")
        file["external_chain"] = h5py.ExternalLink("sub/other.h5", "/back")
        file["external_missing"] = h5py.ExternalLink("sub/none.h5", "/back")
        file["external_out"] = h5py.ExternalLink("/etc/passwd", "/back")
    found, rows = findings("links2.h5"), listed("links2.h5")
    groups = {name for name in ("g", "hard_group", "soft_group") if name in found}
    assert len(groups) == 2, found
    (group,) = {"g", "hard_group", "soft_group"} - groups
    for name, target in [("through", "h/e"), ("through_hard", "d"), ("dots", "d"), (f"{group}/relative", "h/e")]:
        assert rows[name]["shape"] == [4] and rows[f"{group}/{target}"], (name, sorted(rows))
    external = {name for name in found if name.startswith("external")}
    assert external == {f"external{end}" for end in ("", "_group", "_chain", "_missing", "_out")}, found


def more_virtual():
    os.makedirs("vparts", exist_ok=True)
    for k in range(4):
        with h5py.File(f"vparts/s{k}.h5", "w") as file:
            file["d"] = values("f4", (4, 5))
            file["i"], file["l"] = values("i2", (4, 5)), values("i4", (4, 5))
            file["s"] = np.array([b"ab", b"c"], "S4")
            file["c"] = np.zeros(4, [("a", "i2"), ("b", "f8")])
            file["v"] = ["a", "bc"]
            file.create_dataset("grow", data=values("f8", (k + 2, 3)), maxshape=(None, 3))
    with h5py.File("virtual2.h5", "w", libver="latest") as file:
        def make(name, shape, kind, pairs, **options):
            layout = h5py.VirtualLayout(shape, kind)
            for where, source in pairs:
                layout[where] = source
            file.create_virtual_dataset(name, layout, **options)
        src = lambda k, name, shape, kind="f4": h5py.VirtualSource(f"vparts/s{k}.h5", name, shape=shape, dtype=kind)
        make("promoted", (4, 4, 5), "f8", [(k, src(k, "d", (4, 5))) for k in range(4)])
        make("to_int", (4, 5), "i4", [(slice(None), src(0, "i", (4, 5), "i2"))])
        make("to_big", (4, 5), ">f4", [(slice(None), src(0, "d", (4, 5)))])
        make("to_float", (4, 5), "f8", [(slice(None), src(0, "i", (4, 5), "i2"))])
        make("texts", (2, 2), "S4", [(k, src(k, "s", (2,), "S4")) for k in range(2)])
        make("compound", (4,), np.dtype([("a", "i2"), ("b", "f8")]), [(slice(None), src(0, "c", (4,), np.dtype([("a", "i2"), ("b", "f8")])))])
        make("vlen", (2,), h5py.string_dtype(), [(slice(None), src(0, "v", (2,), h5py.string_dtype()))])
        make("parts", (4, 10), "f4", [((slice(None), slice(0, 5)), src(0, "d", (4, 5))), ((slice(0, 2), slice(5, 8)), src(1, "d", (4, 5))[1:3, 2:5])])
        make("overlap", (4, 5), "f4", [(slice(None), src(0, "d", (4, 5))), ((slice(1, 3),), src(1, "d", (4, 5))[1:3])])
        make("turned", (5, 4), "f4", [((slice(None), 0), src(0, "d", (4, 5))[0, :]), ((slice(None), 3), src(0, "d", (4, 5))[2, :])])
        make("reshaped", (20,), "f4", [(slice(None), src(0, "d", (4, 5)))])
        make("nothing", (3,), "f4", [])
        for name, files, step in [("series", b"vparts/s%b.h5", 1)]:
            series = h5p.create(h5p.DATASET_CREATE)
            space = h5s.create_simple((4, 4, 5), (h5s.UNLIMITED, 4, 5))
            space.select_hyperslab((0, 0, 0), (h5s.UNLIMITED, 1, 1), (1, 1, 1), (1, 4, 5))
            series.set_virtual(space, files, b"d", h5s.create_simple((4, 5)))
            h5d.create(file.id, name.encode(), h5t.IEEE_F32LE, h5s.create_simple((0, 4, 5), (h5s.UNLIMITED, 4, 5)), series)
        grow = h5p.create(h5p.DATASET_CREATE)
        space = h5s.create_simple((1, 3), (h5s.UNLIMITED, 3))
        space.select_hyperslab((0, 0), (1, 1), (1, 1), (h5s.UNLIMITED, 3))
        source = h5s.create_simple((1, 3), (h5s.UNLIMITED, 3))
        source.select_hyperslab((0, 0), (1, 1), (1, 1), (h5s.UNLIMITED, 3))
        grow.set_virtual(space, b"vparts/s3.h5", b"grow", source)
        h5d.create(file.id, b"unlimited", h5t.IEEE_F64LE, h5s.create_simple((1, 3), (h5s.UNLIMITED, 3)), grow)
        points = h5p.create(h5p.DATASET_CREATE)
        space = h5s.create_simple((3,))
        source = h5s.create_simple((4, 5))
        source.select_elements([(0, 1), (3, 2), (2, 2)])
        try:
            points.set_virtual(space, b"vparts/s0.h5", b"d", source)
            h5d.create(file.id, b"points", h5t.IEEE_F32LE, space, points)
        except ValueError as error:
            assert "point selections" in str(error), error
        make("clipped", (4, 5), "i1", [(slice(None), src(0, "i", (4, 5), "i2"))])
        make("rounded", (4, 5), "f4", [(slice(None), src(0, "l", (4, 5), "i4"))])
    compared = agree_with("virtual2.h5")
    refused = {"clipped", "rounded", "reshaped", "series", "unlimited", "vlen", "compound/a", "compound/b"}
    assert set(compared.findings) <= refused, compared.findings


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for libver in ["earliest", "latest"]:
            datatypes(libver)
            storage(libver)
        for part in (pytables, of_pandas, of_h5netcdf, more_links, more_virtual):
            part()


main()
