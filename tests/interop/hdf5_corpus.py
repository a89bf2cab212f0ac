"""HDF5: files of h5py with every option of this writer. Each dataset has the values of h5py, or there is a finding that
names it."""

import json
import os
import tempfile

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from support import spile
from support.hdf5_files import NUMBERS, RNG, Compared, agree, findings, listed, values


def types(libver):
    with h5py.File("types.h5", "w", libver=libver) as file:
        for dtype in NUMBERS:
            name = dtype.replace("<", "little_").replace(">", "big_")
            data = values(dtype)
            file[name] = data
            file.create_dataset(f"{name}_chunked", data=data, chunks=(3, 4))
            file.create_dataset(f"{name}_gzip", data=data, chunks=(3, 4), compression="gzip", shuffle=True)
            file[f"{name}_scalar"] = data[0, 0]
        file["bool"] = values("?")
        file.create_dataset("enum", data=values("i2") % 3, dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, "i2"))
        file["opaque"] = RNG.integers(0, 256, (5, 6), "u1").view("V3")
        file["long"] = values("f8").astype(np.longdouble)
        file["time"] = np.arange(5).astype("M8[s]").astype(h5py.opaque_dtype(np.dtype("M8[s]")))
        file["bytes"] = np.array([[b"a", b"bcd"], [b"", b"ef"]])
        file.create_dataset("utf8", data=[t.encode() for t in ("aä", "", "漢字")], dtype=h5py.string_dtype("utf-8", 12))
        file.create_dataset("vlen_utf8", data=["aä", "", "漢字" * 40], dtype=h5py.string_dtype())
        file.create_dataset("vlen_ascii", data=[[b"x", b"yy"], [b"", b"zzz"]], dtype=h5py.string_dtype("ascii"))
        file.create_dataset("vlen_unwritten", (4,), dtype=h5py.string_dtype())
        file["vlen_scalar"] = "one string"
        file.create_dataset("vlen_chunked", data=[f"s{k}" for k in range(50)], chunks=(8,), compression="gzip",
                            dtype=h5py.string_dtype())
        for kind in ["<f8", "<i2"]:
            ragged = file.create_dataset(f"ragged{kind[1:]}", (2, 3), dtype=h5py.vlen_dtype(np.dtype(kind)))
            for k in range(5):
                ragged[k // 3, k % 3] = values(kind, k)
        file.create_dataset("array", data=np.arange(24).reshape(2, 3, 4).astype("i2"))
        nested = np.dtype([("a", "<i4"), ("b", [("c", ">f8", (2, 3)), ("d", "S5")]), ("e", "?"), ("z", "c16")])
        records = np.zeros((4, 3), nested)
        records["a"], records["b"]["c"] = values("i4", (4, 3)), values("f8", (4, 3, 2, 3))
        records["b"]["d"], records["z"] = b"word", values("c16", (4, 3))
        records["e"] = values("?", (4, 3))
        file["compound"] = records
        file["compound_scalar"] = records[0, 0]
        file.create_dataset("compound_chunked", data=records, chunks=(3, 2), compression="lzf", shuffle=True)
        file.create_dataset("compound_unwritten", (3,), dtype=nested)
        file.create_dataset("bits", data=values("u1"), dtype=h5t.STD_B8LE)
        file.create_dataset("references", data=[file["bool"].ref, file.ref, h5py.Reference()], dtype=h5py.ref_dtype)
        committed = np.dtype([("p", "f4"), ("q", "i8")])
        file["committed"] = committed
        file.create_dataset("of_committed", (5,), dtype=file["committed"], data=np.ones(5, committed))
        own = file.create_dataset("array_type", (4,), dtype=np.dtype((">i2", (2, 3))))
        own[...] = values(">i2", (4, 2, 3))
    agree("types.h5", 100)


def layouts(libver):
    """All storage layouts and chunk indexes."""
    data = values("f4", (60, 50))
    with h5py.File("layouts.h5", "w", libver=libver) as file:
        compact = h5p.create(h5p.DATASET_CREATE)
        compact.set_layout(h5d.COMPACT)
        own = h5d.create(file.id, b"compact", h5t.IEEE_F32BE, h5s.create_simple((60, 50)), compact)
        own.write(h5s.ALL, h5s.ALL, data)
        file["contiguous"] = data
        file.create_dataset("early", (60, 50), "f4", fillvalue=3)
        file.create_dataset("single", data=data, chunks=(60, 50))
        file.create_dataset("single_gzip", data=data, chunks=(60, 50), compression="gzip")
        file.create_dataset("fixed", data=data, chunks=(7, 9))
        file.create_dataset("fixed_gzip", data=data, chunks=(7, 9), compression="gzip")
        file.create_dataset("fixed_max", data=data, chunks=(7, 9), maxshape=(100, 200))
        file.create_dataset("paged", data=values("i2", (300, 70)), chunks=(2, 3))
        early = h5p.create(h5p.DATASET_CREATE)
        early.set_chunk((7, 9))
        early.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        own = h5d.create(file.id, b"implicit", h5t.IEEE_F32LE, h5s.create_simple((60, 50)), early)
        own.write(h5s.ALL, h5s.ALL, data)
        file.create_dataset("extensible", data=data, chunks=(7, 9), maxshape=(None, 50))
        file.create_dataset("extensible_2", data=data, chunks=(7, 9), maxshape=(60, None), compression="gzip")
        file.create_dataset("extensible_long", data=values("i2", (5000, 3)), chunks=(1, 3), maxshape=(None, 3))
        file.create_dataset("btree", data=data, chunks=(7, 9), maxshape=(None, None))
        file.create_dataset("btree_gzip", data=data, chunks=(3, 2), maxshape=(None, None), compression="gzip")
        for name, limits in [("grown", (None, 50)), ("grown_2", (None, None)), ("grown_fixed", (90, 80))]:
            own = file.create_dataset(name, (20, 30), "f4", chunks=(7, 9), maxshape=limits, fillvalue=-1)
            own[...] = data[:20, :30]
            own.resize((55, 47) if name != "grown" else (55, 30))
            own[40:50, 5:8] = 8
            own.resize((44, 33) if name != "grown" else (44, 30))
            own.resize((50, 35) if name != "grown" else (50, 30))
        partly = file.create_dataset("partly", (40, 40), ">i4", chunks=(8, 8), fillvalue=-7, compression="gzip")
        partly[3:9, 11:13] = 5
        file.create_dataset("unwritten", (4, 5), "i8", chunks=(2, 2), fillvalue=9)
        file.create_dataset("unwritten_contiguous", (4, 5), ">f8", fillvalue=1.5)
        file["null"] = h5py.Empty("f4")
        file["null_text"] = h5py.Empty("S4")
        file["zero"] = np.zeros((3, 0, 2))
        file.create_dataset("zero_chunked", (0, 4), "f4", maxshape=(None, 4))
        file["scalar"] = 5
        masked = file.create_dataset("masked", (4, 4), "i4", chunks=(2, 2), compression="gzip", shuffle=True)
        masked.id.write_direct_chunk((0, 2), np.arange(4, dtype="i4").tobytes(), filter_mask=3)
        file.create_dataset("high_rank", data=values("i2", (2,) * 12), chunks=(1,) * 12)
        file.create_dataset("one_dimension", data=values("f8", 1000), chunks=(333,), maxshape=(None,))
    agree("layouts.h5", 29)


def filters():
    data = {kind: values(kind, (40, 33)) for kind in ["<i2", ">i4", "<f4", ">f8", "<u8", "u1"]}
    data["smooth"] = np.cumsum(RNG.integers(-3, 4, (40, 33))).reshape(40, 33).astype("i4")
    options = {
        "gzip": {"compression": "gzip"}, "gzip9": {"compression": "gzip", "compression_opts": 9},
        "lzf": {"compression": "lzf"}, "szip": {"compression": "szip"},
        "szip_ec": {"compression": "szip", "compression_opts": ("ec", 8)},
        "shuffle": {"shuffle": True}, "sum": {"fletcher32": True},
        "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf_all": {"compression": "lzf", "shuffle": True, "fletcher32": True},
        "zstd": hdf5plugin.Zstd(clevel=5), "lz4": hdf5plugin.LZ4(nbytes=1024), "bzip2": hdf5plugin.BZip2(),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"), "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "blosc2": hdf5plugin.Blosc2(), "zfp": hdf5plugin.Zfp(reversible=True),
    }
    for codec in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in range(3):
            options[f"blosc_{codec}_{shuffle}"] = hdf5plugin.Blosc(cname=codec, shuffle=shuffle)
    written = 0
    with h5py.File("filters.h5", "w") as file:
        for name, own in options.items():
            for kind, array in data.items():
                if name == "zfp" and kind not in ("<f4", "smooth"):
                    continue
                label = kind.replace("<", "").replace(">", "be_")
                try:
                    file.create_dataset(f"{name}/{label}", data=array, chunks=(16, 10), **dict(own))
                    written += 1
                except (ValueError, RuntimeError) as error:
                    assert name.startswith("szip"), (name, kind, error)
        for bits, kind in [(None, "<i4"), (0, ">i2"), (12, "<u4")]:
            scaled = values(kind, (40, 33)) % 3000
            file.create_dataset(f"scaleoffset/{kind[1:]}", data=scaled, chunks=(16, 10), scaleoffset=bits or 0)
        file.create_dataset("scaleoffset/f", data=values("f4", (40, 33)), chunks=(16, 10), scaleoffset=3)
        file.create_dataset("scaleoffset/d", data=values("f8", (40, 33)), chunks=(16, 10), scaleoffset=2,
                            compression="gzip")
        for base, precision, offset in [(h5t.STD_I32LE, 17, 3), (h5t.STD_U16BE, 9, 0), (h5t.STD_I64LE, 40, 11)]:
            kind = base.copy()
            kind.set_precision(precision)
            kind.set_offset(offset)
            properties = h5p.create(h5p.DATASET_CREATE)
            properties.set_chunk((16, 10))
            properties.set_filter(h5py.h5z.FILTER_NBIT)
            own = h5d.create(file.id, f"nbit{precision}".encode(), kind, h5s.create_simple((40, 33)), properties)
            own.write(h5s.ALL, h5s.ALL, values("i4", (40, 33)) % 200)
    found = agree("filters.h5", written, silent=False)
    assert all(name.startswith(("blosc2/", "zfp/", "nbit")) for name in found), found


def links():
    with h5py.File("other.h5", "w") as file:
        file["there"] = np.arange(3)
    with h5py.File("links.h5", "w", userblock_size=1024, track_order=True) as file:
        file["z/y/x"] = np.arange(5)
        file["a"] = np.arange(6.0)
        file["hard"] = file["a"]
        file["soft"] = h5py.SoftLink("/z/y/x")
        file["soft_chain"] = h5py.SoftLink("/soft")
        file["dangling"] = h5py.SoftLink("/nothing")
        file["loop"] = h5py.SoftLink("/loop")
        file["external"] = h5py.ExternalLink("other.h5", "/there")
        file["z/up"] = file["/"]
        file["z/soft_group"] = h5py.SoftLink("/z/y")
        for k in range(1500):
            file[f"many/g{k:04}/v"] = k
    found = agree("links.h5", 1500, silent=False)
    rows = listed("links.h5")
    for name, target in [("hard", "a"), ("soft", "z/y/x"), ("soft_chain", "z/y/x")]:
        own, other = (spile("cat", "--raw", "links.h5", each) for each in (name, target))
        assert own == other and rows[name]["shape"] == rows[target]["shape"]
    for name in ["dangling", "loop", "external", "z/up", "z/soft_group"]:
        assert name in found, (name, found)


def attributes(libver):
    """Attributes of every type, in the header and dense."""
    with h5py.File("attributes.h5", "w", libver=libver) as file:
        own = file.create_dataset("d", data=np.arange(3))
        expected = {}
        for dtype in NUMBERS:
            name = dtype.replace("<", "l").replace(">", "b")
            own.attrs[name] = expected[name] = values(dtype, (3,))
        for name, value in {"text": "aä漢", "empty": "", "int": 5, "float": -0.25, "bool": True,
                            "matrix": np.arange(6).reshape(2, 3), "words": ["a", "bc"],
                            "large": np.arange(20000), "bytes": np.bytes_(b"raw"), "null": h5py.Empty("f4"),
                            "ragged": None}.items():
            if name == "ragged":
                value = np.empty(2, object)
                value[:] = [np.arange(2), np.arange(3)]
                own.attrs.create(name, value, dtype=h5py.vlen_dtype("i4"))
            elif name == "large" and libver == "earliest":
                continue
            else:
                own.attrs[name] = value
            expected[name] = value
        own.attrs["reference"] = file["d"].ref
        for k in range(200):
            file.create_group("g") if k == 0 else None
            file["g"].attrs[f"n{k}"] = k
    agree("attributes.h5")
    objects = json.loads(spile("ls", "--json", "attributes.h5"))["objects"]
    shown = {item["path"]: item.get("attrs", {}) for item in objects}
    assert shown["g"] == {f"n{k}": k for k in range(200)}
    assert shown["d"].pop("reference") == "/d"
    assert sorted(shown["d"]) == sorted(expected), set(expected) ^ set(shown["d"])
    for name, value in expected.items():
        assert plain(shown["d"][name]) == json_value(value), (name, shown["d"][name], value)


def plain(value):
    """A value of JSON; complex numbers are objects there."""
    if isinstance(value, dict):
        return complex(*(float(value[part]) for part in ("re", "im")))
    return [plain(item) for item in value] if isinstance(value, list) else value


def json_value(value):
    """A value of h5py in terms of JSON."""
    if isinstance(value, h5py.Empty):
        return []
    if isinstance(value, np.ndarray):
        return [json_value(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value.decode() if isinstance(value, bytes) else value


def special():
    """Cases of other programs and rare forms."""
    with h5py.File("big.h5", "w") as file:
        # h5py itself reads these with swapped bytes.
        own = file.create_dataset("ragged", (1,), dtype=h5py.vlen_dtype(np.dtype(">i2")))
        own[0] = np.array([1, -2, 300], ">i2")
    assert spile("cat", "big.h5", "ragged").split() == [b"1", b"-2", b"300"]
    with h5py.File("special.h5", "w", libver="latest") as file:
        scale = file.create_dataset("x", data=np.arange(4.0))
        scale.make_scale("x axis")
        file["field"] = values("f4", (4, 3))
        file["field"].dims[0].attach_scale(scale)
        file["field"].dims[1].label = "y"
        file["region"] = np.arange(10)
        file.create_dataset("regions", data=[file["region"].regionref[2:5]], dtype=h5py.regionref_dtype)
        file["name with space/ä/漢"] = np.arange(2)
        file["a.b"] = np.arange(2)
        file["group/a.sizes"] = np.arange(2)
        file.create_dataset("group/a", (2,), dtype=h5py.vlen_dtype("i4"))
        file.create_dataset("default", data=np.ones(3), fillvalue=np.nan)
        file.create_dataset("vlen_compound", (2,), dtype=np.dtype([("s", h5py.string_dtype()), ("n", "i4")]))
        file.create_dataset("vlen_vlen", (2,), dtype=h5py.vlen_dtype(h5py.vlen_dtype("i4")))
        file.create_dataset("string_array", (3,), dtype=np.dtype(("S4", (2,))))
        file.create_dataset("enum_2", data=np.array([0, 1], "i1"), dtype=h5py.enum_dtype({"TRUE": 1, "NO": 0}, "i1"))
    found = Compared("special.h5")
    for name in ["x", "field", "name with space/ä/漢", "a.b", "default", "region", "enum_2"]:
        with h5py.File("special.h5") as file:
            found.array(name, file[name][()], file)
    assert "regions" in found.findings and "vlen_vlen" in found.findings, found.findings
    assert found.rows["vlen_compound/s"]["shape"] == [2] and "string_array" in found.rows


def virtual(libver):
    """Virtual datasets, with sources in this file and in others."""
    data = [values(">f8", (4, 5)) for _ in range(3)]
    os.makedirs("parts", exist_ok=True)
    for k, own in enumerate(data):
        with h5py.File(f"parts/s{k}.h5", "w", libver=libver) as file:
            file["d"] = own
            file.create_dataset("g/packed", data=own, chunks=(3, 2), compression="gzip", shuffle=True)
            file["long"] = values("i4", (40000, 3))
    stack = h5py.VirtualLayout((4, 4, 5), "f8")
    for k in range(3):
        stack[k] = h5py.VirtualSource(f"parts/s{k}.h5", "g/packed" if k == 1 else "/d", shape=(4, 5))
    stack[3] = h5py.VirtualSource("parts/missing.h5", "d", shape=(4, 5))
    spaced = h5py.VirtualLayout((8, 10), ">f8")
    source = h5py.VirtualSource("parts/s0.h5", "d", shape=(4, 5))
    spaced[::2, 5:] = source
    spaced[1::2, 1:9:4] = source[:, 1:4:2]
    whole = h5py.VirtualLayout((80000, 3), "i4")
    whole[:40000] = h5py.VirtualSource("parts/s0.h5", "long", shape=(40000, 3))
    whole[40000:] = h5py.VirtualSource("parts/s2.h5", "long", shape=(40000, 3))
    with h5py.File("virtual.h5", "w", libver="latest") as file:
        file["own"] = np.arange(12, dtype="i2").reshape(3, 4)
        inside = h5py.VirtualLayout((4, 3), "i2")
        for k in range(3):
            inside[:, k] = h5py.VirtualSource(file["own"])[k]
        file.create_virtual_dataset("inside", inside)
        file.create_virtual_dataset("stack", stack, fillvalue=-1.5)
        file.create_virtual_dataset("spaced", spaced, fillvalue=np.nan)
        file.create_virtual_dataset("whole", whole)
        file["stack"].attrs["units"] = "m"
    found = agree("virtual.h5", 5, silent=False)
    assert list(found) == ["stack"] and "missing.h5" in found["stack"], found
    spile("convert", "virtual.h5", "virtual.nc", "--verify", "--overwrite")
    # Refused with the reason: a series of names, other types, a file elsewhere.
    with h5py.File("refused.h5", "w", libver="latest") as file:
        for name, kind, path in [("other_type", "f4", "parts/s0.h5"), ("elsewhere", "f8", "/etc/passwd")]:
            own = h5py.VirtualLayout((4, 5), kind)
            own[:] = h5py.VirtualSource(path, "d", shape=(4, 5))
            file.create_virtual_dataset(name, own)
        series = h5p.create(h5p.DATASET_CREATE)
        space = h5s.create_simple((0, 4, 5), (h5s.UNLIMITED, 4, 5))
        space.select_hyperslab((0, 0, 0), (h5s.UNLIMITED, 1, 1), (1, 1, 1), (1, 4, 5))
        series.set_virtual(space, b"parts/s%b.h5", b"d", h5s.create_simple((4, 5)))
        h5d.create(file.id, b"series", h5t.IEEE_F64LE, h5s.create_simple((0, 4, 5), (h5s.UNLIMITED, 4, 5)), series)
        file["fine"] = 1
        file["to_series"] = h5py.SoftLink("/series")
    reasons = findings("refused.h5")
    assert sorted(reasons) == ["elsewhere", "other_type", "series", "to_series"], reasons
    assert "cannot be read" in reasons["to_series"], reasons
    assert "type" in reasons["other_type"] and "folder" in reasons["elsewhere"], reasons


def nested(libver):
    """Virtual datasets of virtual datasets, in this file and in others. Those that refer to themselves are refused."""
    def layout(file, dataset, shape=(4, 5)):
        own = h5py.VirtualLayout(shape, "f8")
        own[1:] = h5py.VirtualSource(file, dataset, shape=shape)[:-1]
        return own

    os.makedirs("parts", exist_ok=True)
    with h5py.File("parts/base.h5", "w", libver=libver) as file:
        file.create_dataset("d", data=values("f8", (4, 5)), chunks=(3, 2), compression="gzip")
        file["other"] = values("i8", (4, 5))
    with h5py.File("parts/middle.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout("base.h5", "d"), fillvalue=-1)
        file.create_virtual_dataset("bad", layout("base.h5", "other"))
    with h5py.File("nested.h5", "w", libver="latest") as file:
        # Each refers to the next one by name.
        file.create_virtual_dataset("a", layout(".", "b"), fillvalue=-4)
        file.create_virtual_dataset("b", layout(".", "c"), fillvalue=-3)
        file.create_virtual_dataset("c", layout("parts/middle.h5", "v"), fillvalue=-2)
        file.create_virtual_dataset("direct", layout("parts/base.h5", "d"))
    assert not agree("nested.h5", 4)
    spile("convert", "nested.h5", "nested.nc", "--verify", "--overwrite")
    with h5py.File("cycles.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout(".", "y"))
        file.create_virtual_dataset("y", layout(".", "x"))
        file.create_virtual_dataset("self", layout("cycles.h5", "self"))
        file.create_virtual_dataset("after_x", layout(".", "x"))
        file.create_virtual_dataset("to_bad", layout("parts/middle.h5", "bad"))
        file.create_virtual_dataset("through_link", layout(".", "soft"))
        file["soft"] = h5py.SoftLink("/fine")
        file["fine"] = values("f8", (4, 5))
        for k in range(20):
            file.create_virtual_dataset(f"deep{k}", layout(".", f"deep{k + 1}"))
        file["deep20"] = values("f8", (4, 5))
    reasons = findings("cycles.h5")
    refused = ["after_x", *(f"deep{k}" for k in range(12)), "self", "through_link", "to_bad", "x", "y"]
    assert sorted(reasons) == sorted(refused), sorted(reasons)
    assert "themselves" in reasons["x"] and "link" in reasons["through_link"], reasons
    assert "type" in reasons["to_bad"], reasons


def external():
    """Data in other files."""
    data = values(">i4", (20, 30))
    with open("raw_a.bin", "wb") as first, open("raw_b.bin", "wb") as second:
        first.write(b"head" + data.tobytes()[:1000])
        second.write(data.tobytes()[1000:] + b"tail")
    with h5py.File("external.h5", "w") as file:
        parts = [("raw_a.bin", 4, 1000), ("raw_b.bin", 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("two", (20, 30), ">i4", external=parts)
        file.create_dataset("one", (5,), "u1", external=[("raw_b.bin", 1, 5)])
        file["plain"] = np.arange(4)
        file.create_dataset("missing", (5,), "u1", external=[("nothing.bin", 0, 5)])
        file.create_dataset("outside", (5,), "u1", external=[("../etc/passwd", 0, 5), ("/etc/passwd", 0, 5)])
    compared = Compared("external.h5")
    compared.array("two", data, None)
    with open("raw_b.bin", "rb") as file:
        compared.array("one", np.frombuffer(file.read()[1:6], "u1"), None)
    compared.array("plain", np.arange(4), None)
    assert sorted(compared.findings) == ["missing", "outside"], compared.findings


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for libver in ["earliest", "latest"]:
            types(libver)
            layouts(libver)
            attributes(libver)
            virtual(libver)
            nested(libver)
        external()
        filters()
        links()
        special()


main()
