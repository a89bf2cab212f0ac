"""HDF5 files, compared with what h5py reads."""

import hashlib
import json

import h5py
import numpy as np

from . import spile

RNG = np.random.default_rng(5)
NUMBERS = [f"{order}{kind}{size}" for order in "<>" for kind, sizes in [
    ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)), ("f", (2, 4, 8)), ("c", (8, 16))] for size in sizes]


def values(dtype, shape=(7, 11)):
    """Values that use all bytes of an element."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return RNG.integers(limits.min, limits.max, shape, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)
    if dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    return (RNG.normal(size=shape) * 100).astype(dtype)


def listed(path):
    rows = json.loads(spile("ls", "--json", path))
    rows = rows.get("objects") or rows.get("nodes") or rows.get("rows") or []
    return {row["path"]: row for row in rows if row.get("dtype")}


def findings(path):
    """Messages by object, of all severities."""
    found = json.loads(spile("check", "--json", path, codes=(0, 1)))
    found = found[0] if isinstance(found, list) else found
    found = found["files"][0] if "files" in found else found
    found = found.get("check", found)
    return {f["object"].strip('"'): f["message"] for f in found["findings"] if f.get("object")}


def texts(path, name, row):
    size = int(row["dtype"].split("[")[1].rstrip("]"))
    raw = spile("cat", "--raw", "--stored", path, name)
    return [raw[k:k + size].rstrip(b"\0") for k in range(0, len(raw), size)]


class Compared:
    """The datasets of a file as spile reads them."""

    def __init__(self, path):
        self.path, self.rows, self.findings = path, listed(path), findings(path)
        objects = json.loads(spile("hash", "--native", "--json", path))["objects"]
        self.hashes = {item["path"]: item["sha256"] for item in objects}

    def array(self, name, theirs, file):
        where = (self.path, name, theirs.dtype, theirs.shape)
        reference = h5py.check_ref_dtype(theirs.dtype)
        if theirs.dtype.fields and theirs.dtype.kind == "V":
            for field in theirs.dtype.names:
                self.array(f"{name}/{field}", np.asarray(theirs[field]), file)
            return
        if name not in self.rows:
            assert name in self.findings, (where, "neither listed nor reported", sorted(self.rows))
            return
        row = self.rows[name]
        if reference is not None:
            assert row["shape"] == list(theirs.shape), (where, row)
            wanted = [file[ref].name.encode() if ref else b"" for ref in theirs.reshape(-1)]
            assert texts(self.path, name, row) == wanted, (where, texts(self.path, name, row))
            return
        if theirs.dtype.kind == "O" and h5py.check_string_dtype(theirs.dtype) is None:
            flat = theirs.reshape(-1)
            items = np.concatenate([np.asarray(item) for item in flat]) if len(flat) else np.zeros(0)
            sizes = np.array([len(item) for item in flat], "<u8").reshape(theirs.shape)
            self.array(name, items.astype(h5py.check_vlen_dtype(theirs.dtype)), file)
            self.array(f"{name}.sizes", sizes, file)
            return
        assert row["shape"] == list(theirs.shape), (where, row)
        if theirs.dtype.kind == "O":
            wanted = [t if isinstance(t, bytes) else str(t).encode() for t in theirs.reshape(-1).tolist()]
            assert texts(self.path, name, row) == wanted, (where, texts(self.path, name, row)[:5], wanted[:5])
            return
        plain = np.ascontiguousarray(theirs.astype(theirs.dtype.newbyteorder("<")))
        wanted = hashlib.sha256(plain.tobytes()).hexdigest()
        if self.hashes.get(name) != wanted:
            raw = spile("cat", "--raw", "--stored", self.path, name)
            assert raw == plain.tobytes(), (where, row, raw[:64], plain.tobytes()[:64])


def agree(path, least=1, silent=True):
    """Every dataset that h5py visits; returns the findings. `silent`: there must be none."""
    compared = Compared(path)
    seen = 0
    with h5py.File(path) as file:
        found = []
        file.visititems(lambda name, item: found.append((name, item)) if isinstance(item, h5py.Dataset) else None)
        for name, item in found:
            if item.shape is None:
                assert compared.rows[name]["shape"] == [0], (path, name, compared.rows[name])
            else:
                compared.array(name, np.asarray(item[()]), file)
            seen += 1
    assert seen >= least, (path, seen)
    if silent:
        assert compared.findings == {}, (path, compared.findings)
    return compared.findings
