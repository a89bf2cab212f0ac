"""Small HDF5 files by h5py, old and new structures: python make.py FOLDER. Needs h5py, hdf5plugin and numpy.

`manifest.json` gets the SHA-256 of the little-endian values of every dataset that is one array.
"""

import hashlib
import json
import pathlib
import sys

import h5py
import hdf5plugin
import numpy as np

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(5)
sums = {}


def little(values):
    """Values as spile hands them out: little-endian, in C order."""
    values = np.ascontiguousarray(values)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def create(name, libver=("earliest", "latest"), **more):
    return h5py.File(folder / name, "w", libver=libver, **more)


def done(file):
    name = pathlib.Path(file.filename).name
    found = []

    def look(_, item):
        if not isinstance(item, h5py.Dataset) or item.dtype.kind == "O":
            return
        if item.dtype.names and set(item.dtype.names) != {"r", "i"}:
            return
        if item.shape is not None:
            found.append(hashlib.sha256(little(item[()])).hexdigest())

    file.visititems(look)
    file.close()
    sums[name] = sorted(found)


def types(file):
    for kind in ["i1", "<i2", ">i4", "<i8", "u1", "<u2", ">u4", "<u8", "<f2", "<f4", ">f8", "<c8", ">c16"]:
        name = "t_" + kind.replace("<", "le_").replace(">", "be_")
        file[name] = (rng.normal(size=5) * 50).astype(kind)
    file["longdouble"] = rng.normal(size=3).astype(np.longdouble)
    file["bool"] = np.array([[True, False, True]])
    file["text"] = np.array([b"one", b"three", b""], "S7")
    file["opaque"] = np.frombuffer(b"abcdefghi", "V3")
    file["scalar"] = 3.5
    file["none"] = np.zeros((0, 4), "f4")
    file["subarray"] = np.zeros(3, np.dtype("(2,2)f4"))
    enum = h5py.enum_dtype({"solid": 1, "fluid": 2}, basetype="i2")
    file.create_dataset("phase", data=np.array([1, 2, 2], "i2"), dtype=enum)


def attributes(thing):
    thing.attrs["units"] = "m/s"
    thing.attrs["fixed"] = np.bytes_("fixed text")
    thing.attrs["long text"] = "ä" * 300
    thing.attrs["one"] = 1
    thing.attrs["pi"] = 3.14159
    thing.attrs["yes"] = True
    thing.attrs["z"] = 1.5 - 2j
    thing.attrs["numbers"] = np.arange(6, dtype=">i2").reshape(2, 3)
    thing.attrs["names"] = ["alpha", "beta", ""]
    thing.attrs["nothing"] = h5py.Empty("f4")


for version, libver in [("old", ("earliest", "v108")), ("new", ("latest", "latest"))]:
    with create(f"types_{version}.h5", libver) as file:
        types(file)
        done(file)
    with create(f"attributes_{version}.h5", libver) as file:
        attributes(file)
        group = file.create_group("group")
        attributes(group)
        data = group.create_dataset("data", data=np.arange(3.0))
        attributes(data)
        data.attrs["scale_factor"] = 0.5
        data.attrs["add_offset"] = -1.0
        done(file)
    with create(f"links_{version}.h5", libver) as file:
        file["a/b/c/data"] = np.arange(4)
        file["a/again"] = file["a/b/c/data"]
        file["soft"] = h5py.SoftLink("/a/b/c/data")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
        file["a/circle"] = file["a"]
        done(file)
    with create(f"many_{version}.h5", libver) as file:
        for k in range(40):
            file.create_group(f"group {k:02}")
        for k in range(20):
            file.attrs[f"attribute {k:02}"] = k
        file.attrs["huge"] = np.arange(5000, dtype="<i4")[:: 1 if version == "new" else 10]
        done(file)
    with create(f"text_{version}.h5", libver) as file:
        file["words"] = ["one", "", "three", "größer"]
        file["word"] = "alone"
        lists = file.create_dataset("lists", (3,), dtype=h5py.vlen_dtype("<i2"))
        lists[0], lists[2] = [1, 2, 3], [4]
        file.create_dataset("chunked words", data=["a", "bc"], chunks=(1,), maxshape=(None,), dtype=h5py.string_dtype())
        done(file)
    with create(f"table_{version}.h5", libver) as file:
        rows = np.zeros(4, [("id", "<i4"), ("x", ">f8"), ("name", "S5"), ("v", "<f4", 3)])
        rows["id"], rows["x"], rows["name"] = range(4), [1, 2, 3, 4], b"abc"
        file["particles"] = rows
        file["one"] = rows[2]
        done(file)
    with create(f"chunks_{version}.h5", libver) as file:
        data = rng.integers(0, 9, (7, 11)).astype(">i4")
        file.create_dataset("plain", data=data, chunks=(3, 4))
        file.create_dataset("deflate", data=data, chunks=(3, 4), compression="gzip")
        file.create_dataset("shuffle", data=data, chunks=(4, 5), compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("lzf", data=data, chunks=(4, 5), compression="lzf")
        file.create_dataset("single", data=data, chunks=(7, 11))
        file.create_dataset("single deflate", data=data, chunks=(7, 11), compression="gzip")
        file.create_dataset("sum", data=data, chunks=(2, 2), fletcher32=True)
        grown = file.create_dataset("grows", (7, 11), ">i4", chunks=(2, 3), maxshape=(None, 11))
        grown[...] = data
        both = file.create_dataset("grows both", (7, 11), ">i4", chunks=(2, 3), maxshape=(None, None), compression="gzip")
        both[...] = data
        holes = file.create_dataset("holes", (7, 11), ">i4", chunks=(2, 3), fillvalue=-7)
        holes[2:4, 3:6] = 1
        file.create_dataset("limit", data=data, chunks=(2, 3), maxshape=(20, 30))
        file.create_dataset("empty", (5, 5), "<f4", chunks=(2, 2), fillvalue=2.5)
        file.create_dataset("unwritten", (5, 5), "<f8", fillvalue=1.25)
        file.create_dataset("cube", data=rng.normal(size=(3, 4, 5)), chunks=(2, 3, 2), compression="gzip", shuffle=True)
        done(file)
    with create(f"long_{version}.h5", libver) as file:
        line = file.create_dataset("line", (3000,), "<u1", chunks=(2,), maxshape=(None,))
        line[...] = rng.integers(0, 255, 3000)
        fixed = file.create_dataset("fixed", (3000,), "<u1", chunks=(2,))
        fixed[...] = rng.integers(0, 255, 3000)
        done(file)
    with create(f"scales_{version}.h5", libver) as file:
        file["field"] = rng.normal(size=(3, 4))
        file["x"], file["grid/y"] = np.arange(3.0), np.arange(4.0) / 2
        file["x"].make_scale("x")
        file["grid/y"].make_scale("y")
        file["field"].dims[0].attach_scale(file["x"])
        file["field"].dims[1].attach_scale(file["grid/y"])
        file["labelled"] = np.zeros((2, 2))
        file["labelled"].dims[0].label = "row"
        done(file)

with create("compact.h5") as file:
    space = h5py.h5s.create_simple((6,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    item = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, space, plist)
    item.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype="i2"))
    done(file)
with create("committed.h5") as file:
    file["type"] = np.dtype("<f4")
    file.create_dataset("data", data=np.arange(5, dtype="<f4"), dtype=file["type"])
    done(file)
with create("userblock.h5", userblock_size=512) as file:
    file["data"] = np.arange(5)
    done(file)
with create("tracked.h5", track_order=True) as file:
    for name in ["zebra", "apple", "mango"]:
        file[name] = np.arange(2)
        file.attrs[name] = name
    done(file)

# Filters with registered identifiers, by hdf5plugin. Chunks have several blocks and a rest that is not shuffled.
with create("filters.h5", ("latest", "latest")) as file:
    data = (np.arange(77 * 26, dtype="<i4") // 7 * 300).reshape(77, 26)
    filters = {
        "zstd": hdf5plugin.Zstd(),
        "lz4": hdf5plugin.LZ4(),
        "lz4 blocks": hdf5plugin.LZ4(nbytes=1024),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle blocks": hdf5plugin.Bitshuffle(nelems=64, cname="none"),
        "bitshuffle lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle zstd": hdf5plugin.Bitshuffle(nelems=512, cname="zstd"),
        "blosc bits": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
    }
    for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]:
        filters[f"blosc {cname}"] = hdf5plugin.Blosc(cname=cname, shuffle=hdf5plugin.Blosc.SHUFFLE)
    for name, options in filters.items():
        file.create_dataset(name, data=data, chunks=(39, 26), **options)
    file.create_dataset("zstd sum", data=data, chunks=(39, 26), fletcher32=True, shuffle=True, **hdf5plugin.Zstd())
    noise = np.random.default_rng(6).integers(0, 255, 300).astype("<u1")
    file.create_dataset("noise", data=noise, chunks=(300,), **hdf5plugin.LZ4(nbytes=128))
    file.create_dataset("pairs", data=noise.view("V6"), chunks=(50,), **hdf5plugin.Bitshuffle(cname="lz4"))
    done(file)

# Datasets that spile cannot decode, beside some that it can. The manifest has only the latter.
for version, libver in [("old", ("earliest", "v110")), ("new", ("latest", "latest"))]:
    with create(f"unsupported_{version}.h5", libver) as file:
        data = np.arange(64, dtype="<i4").reshape(8, 8)
        file["good"] = data
        file.create_dataset("szip", data=data, chunks=(8, 8), compression="szip")
        file.create_dataset("scaleoffset", data=data, chunks=(4, 4), scaleoffset=0)
        space = h5py.h5s.create_simple((8,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        plist.set_filter(32123, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"plugin", h5py.h5t.STD_I32LE, space, plist)
        layout = h5py.VirtualLayout((8, 8), "<i4")
        layout[...] = h5py.VirtualSource(file["good"])
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (3,), "<i4", external=[("external.bin", 0, 12)])
        file.create_dataset("too many strings", (10**9,), h5py.string_dtype(), chunks=(1000,))
        file.create_dataset("reference", data=[file["good"].ref], dtype=h5py.ref_dtype)
        h5py.h5d.create(file.id, b"time", h5py.h5t.UNIX_D32LE, space)
        rows = np.zeros(2, [("id", "<i4"), ("name", h5py.string_dtype())])
        rows["name"] = b"abc"
        file["table"] = rows
        file["group/inner"] = data
        file["link"] = h5py.SoftLink("/second link")
        file["second link"] = h5py.SoftLink("/good")
        file["group link"] = h5py.SoftLink("/group")
        file["through"] = h5py.SoftLink("/group link/inner")
        file["to virtual"] = h5py.SoftLink("/virtual")
        name = pathlib.Path(file.filename).name
        sums[name] = [hashlib.sha256(little(data)).hexdigest()] * 2

(folder / "manifest.json").write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n")
