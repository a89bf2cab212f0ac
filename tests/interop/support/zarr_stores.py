"""Stores of zarr-python, compared with what spile reads."""

import json

import numpy as np
import zarr

from . import spile

RNG = np.random.default_rng(7)


def listed(path):
    rows = json.loads(spile("ls", "--json", path))
    rows = rows.get("objects") or rows.get("nodes") or rows["rows"]
    return {row["path"]: row for row in rows if row.get("dtype")}


def unreadable(path):
    """Messages about arrays that cannot be read, by path."""
    found = json.loads(spile("check", "--json", path, codes=(0, 1)))
    found = found[0] if isinstance(found, list) else found
    found = found["files"][0] if "files" in found else found
    found = found.get("check", found)
    return {f["object"].strip('"'): f["message"] for f in found["findings"] if f.get("object")}


def compare(store, path, theirs, rows):
    """All values of an array as stored."""
    where = (str(store), path, theirs.dtype)
    if theirs.dtype.fields:
        for field in theirs.dtype.names:
            compare(store, f"{path}/{field}", theirs[field], rows)
        return
    assert path in rows, (where, "is not listed", sorted(rows))
    row = rows[path]
    assert row["shape"] == list(theirs.shape), (where, row)
    raw = spile("cat", "--raw", "--stored", store, path)
    kind = theirs.dtype.kind
    if kind in "OTU":
        size = int(row["dtype"].split("[")[1].rstrip("]"))
        texts = [raw[k:k + size].rstrip(b"\0") for k in range(0, len(raw), size)]
        wanted = [t if isinstance(t, bytes) else str(t).encode() for t in theirs.reshape(-1).tolist()]
        assert texts == wanted, (where, texts[:5], wanted[:5])
        return
    if kind in "mM":
        theirs = theirs.view(theirs.dtype.str[0] + "i8")
    plain = np.ascontiguousarray(theirs.astype(theirs.dtype.newbyteorder("<")))
    assert raw == plain.tobytes(), (where, np.frombuffer(raw, plain.dtype)[:5], plain.reshape(-1)[:5])


def agree(store, source=None):
    """Every array of a store; returns their number."""
    group = zarr.open_group(source or store, mode="r", use_consolidated=False)
    rows = listed(store)
    seen = 0
    for path, array in group.members(max_depth=None):
        if isinstance(array, zarr.Array):
            compare(store, path, np.asarray(array[...]), rows)
            seen += 1
    assert unreadable(store) == {}, unreadable(store)
    return seen


def numbers(dtype, shape=(7, 11)):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return RNG.integers(0, 2, count).astype(bool).reshape(shape)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = RNG.integers(info.min, info.max, count, dtype=dtype.newbyteorder("="), endpoint=True)
        return values.astype(dtype).reshape(shape)
    if dtype.kind == "c":
        return (RNG.normal(size=count) + 1j * RNG.normal(size=count)).astype(dtype).reshape(shape)
    values = RNG.normal(size=count).astype(dtype)
    values[::5] = np.nan
    values[1::7] = np.inf
    return values.reshape(shape)


def write(group, name, values, **options):
    options.setdefault("chunks", tuple(max(1, (n + 1) // 2) for n in values.shape))
    array = group.create_array(name, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
