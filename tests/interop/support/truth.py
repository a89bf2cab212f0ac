"""What golden files contain, by readers other than spile.

| format | reader |
|---|---|
| SDF | `sdfr` (the C library of EPOCH) |
| GSD | `gsd.fl` |
| IOTK | binary: the values of `tests/golden/iotk/manifest.json`; text: `xml.etree` |
| TAF, scda, oscilloscopes | `spile cat`, because no other reader exists for all of them; the values must have the SHA-256 of the manifest |

Units, coordinates and shapes are those of these readers and manifests. The units of oscilloscope traces are not in the
manifest: all golden traces are volts over seconds.
"""

import collections
import dataclasses
import hashlib
import json
import shutil
import types
import xml.etree.ElementTree

import gsd.fl
import gsd.hoomd
import numpy as np
import sdfr

from . import GOLDEN, spile


@dataclasses.dataclass
class Quantity:
    """An array: physical values, its unit, and its coordinates as pairs of points and unit."""

    path: str
    # One array, or one for each frame (None where a frame has none).
    values: object
    units: str = ""
    # Per dimension; positions of particles belong to dimension 0 together.
    coords: list = dataclasses.field(default_factory=list)
    frames: bool = False
    # Step or time of each frame.
    times: list = None
    # Values of the frames that the file contains; `values` includes those that frames inherit from frame 0.
    stored: list = None

    def rows(self):
        """All values as one array: frames stacked, or their rows in sequence where they differ."""
        if not self.frames:
            return np.asarray(self.values)
        some = [v for v in self.values if v is not None]
        equal = len(some) == len(self.values) and len({v.shape for v in some}) == 1
        return np.stack(some) if equal else np.concatenate(some)

    def stored_rows(self):
        """The values in the file as one array."""
        return self.rows() if self.stored is None else dataclasses.replace(self, values=self.stored).rows()

    def coordinates(self):
        """Coordinates as the array of the whole shape, and as the points along a dimension."""
        values = np.asarray(self.values)
        for k, points, units in self.coords:
            if points.ndim == 1:
                along = [1] * values.ndim
                along[k] = len(points)
                yield points, np.broadcast_to(points.reshape(along), values.shape), units
            else:
                yield points, points, units


def sdfr_blocks(path):
    """The blocks of the library, with copies of the values: its arrays end with the file that it has read."""
    file = sdfr.read(str(path), dict=True, derived=False)
    known = {}

    def copied(block):
        if block is None or not hasattr(block, "id"):
            return None
        if block.id not in known:
            data = getattr(block, "data", None)
            factors = getattr(block, "mult", None)
            if isinstance(data, tuple) and isinstance(factors, tuple):
                data = tuple(np.array(part if mult == 1 else part * mult) for part, mult in zip(data, factors))
            names = ("id", "name", "units", "labels", "mult")
            fields = {name: getattr(block, name, None) for name in names}
            known[block.id] = types.SimpleNamespace(
                **fields,
                kind=type(block).__name__,
                data=np.array(data) if isinstance(data, np.ndarray) else data,
                grid=copied(getattr(block, "grid", None)),
                grid_mid=copied(getattr(block, "grid_mid", None)),
            )
        return known[block.id]

    blocks = [copied(block) for block in file.values()]
    return [block for block in blocks if block is not None and block.data is not None]


def sdf(path):
    found, blocks = [], sdfr_blocks(path)
    for block in blocks:
        kind, data = block.kind, block.data
        # Characters are one byte each here and texts in spile.
        if getattr(data, "dtype", np.dtype("f8")).kind == "S":
            continue
        if kind in ("BlockPlainVariable", "BlockPointVariable"):
            factor = 1 if block.mult in (None, 1) else block.mult
            coords, grid = [], block.grid
            if kind == "BlockPointVariable":
                coords = [(0, points, unit) for points, unit in zip(grid.data, grid.units)]
            elif grid is not None and "Lagrangian" not in grid.kind:
                for k, (nodes, unit) in enumerate(zip(grid.data, grid.units)):
                    on_nodes = len(nodes) == data.shape[k]
                    coords.append((k, nodes if on_nodes else block.grid_mid.data[k], unit))
            found.append(Quantity(block.name, data * factor if factor != 1 else data, block.units or "", coords))
        elif kind == "BlockArray":
            found.append(Quantity(block.name, data))
        elif kind == "BlockConstant":
            found.append(Quantity(block.name, np.asarray(data)))
        elif kind in ("BlockPlainMesh", "BlockPointMesh", "BlockLagrangianMesh") and not block.id.endswith("_mid"):
            for label, axis, unit in zip(block.labels, data, block.units):
                found.append(Quantity(f"{block.name}/{label}", axis, unit))
    return found


def hoomd_value(frame, name):
    """What gsd.hoomd shows under the name of a chunk; None if it has another form."""
    section, _, leaf = name.partition("/")
    if section == "log":
        return frame.log.get(leaf)
    if leaf in ("types", "type_shapes"):
        return None
    value = getattr(getattr(frame, section, None), leaf, None)
    return None if value is None else np.atleast_1d(value)


def gsd_file(path):
    found = []
    with gsd.fl.open(str(path), "r") as file:
        if file.schema == "hoomd":
            with gsd.hoomd.open(str(path)) as trajectory:
                shown = list(trajectory)
    with gsd.fl.open(str(path), "r") as file:
        # HOOMD: step 0, unless frame 0 or the frame has another.
        def step(frame):
            stored = [k for k in (frame, 0) if file.chunk_exists(k, "configuration/step")]
            return int(file.read_chunk(stored[0], "configuration/step")[0]) if stored else 0

        frames = range(file.nframes)
        times = [step(k) for k in frames] if file.schema == "hoomd" else list(frames)
        for name in file.find_matching_chunk_names(""):
            def read(frame):
                if not file.chunk_exists(frame, name):
                    return None
                return file.read_chunk(frame, name)
            stored = [read(k) for k in frames]
            # Text is compared by other tests.
            if any(isinstance(value, str) for value in stored):
                continue
            values = list(stored)
            for k in frames:
                if file.schema == "hoomd" and stored[k] is None:
                    value = hoomd_value(shown[k], name)
                    values[k] = stored[0] if value is None else value
            found.append(Quantity(name, values, frames=True, times=times, stored=stored))
    return found


def iotk(path):
    """Numbers; elements with the same path are skipped, as spile numbers them."""
    parts = list(iotk_xml(path) if path.suffix == ".xml" else iotk_binary(path))
    count = collections.Counter(part.path for part in parts)
    return [part for part in parts if count[part.path] == 1]


def iotk_xml(path):
    def walk(element, above):
        name = "/".join([*above, element.tag])
        if element.get("type") in ("real", "integer") and element.text and not len(element):
            values = np.array(element.text.replace(",", " ").split(), "f8" if element.get("type") == "real" else "i8")
            yield Quantity(name, values)
        for child in element:
            yield from walk(child, [*above, element.tag])

    yield from walk(xml.etree.ElementTree.parse(path).getroot(), [])


def iotk_binary(path):
    open_tags = []
    nodes = json.loads((GOLDEN / "iotk/manifest.json").read_text())[str(path.relative_to(GOLDEN / "iotk"))]["nodes"]
    for node in nodes:
        kind = node["kind_of_node"]
        if kind == "begin":
            open_tags.append((node["name"], dict(node["attrs"])))
        elif kind == "end":
            open_tags.pop()
        elif kind == "data" and isinstance(node.get("values"), list):
            attrs = open_tags[-1][1]
            if attrs.get("type") not in ("real", "integer"):
                continue
            values = np.array(node["values"], "f8" if attrs["type"] == "real" else "i8")
            yield Quantity("/".join(name for name, _ in open_tags), values)


def listed(path):
    rows = json.loads(spile("ls", "--json", path))["objects"]
    return [row for row in rows if row["kind"] == "array"]


def proved(path, name, dtype, shape, sha256, order="C", stored=False):
    """The values that spile reads, if they have the SHA-256 of the manifest."""
    text = spile("cat", "--raw", *(["--stored"] if stored else []), path, name)
    values = np.frombuffer(text, dtype).reshape(shape)
    flat = values if stored else values.astype("<f8")
    assert hashlib.sha256(flat.tobytes(order)).hexdigest() == sha256, (path, name)
    return values


def taf(path):
    manifest = json.loads((GOLDEN / "taf/manifest.json").read_text())["good"]
    entry = manifest[path.stem]
    dims = entry["dims"]
    row = listed(path)[0]
    dtype = "<f8" if entry["mapped"] else np.dtype(row["dtype"]).newbyteorder("<")
    values = proved(path, row["path"], dtype, dims, entry["sha256_f64"], "F")
    coords = []
    for k, (start, step) in enumerate(entry["grid"]):
        start, step = float(start), float(step)
        coords.append((k, start + step * np.arange(dims[k]), ""))
    return [Quantity(row["path"], values, coords=coords)]


def scda(path):
    files = json.loads((GOLDEN / "scda/manifest.json").read_text())["files"]
    entry = next(entry for entry in files if entry["file"] == path.name)
    rows, found = listed(path), []
    for row, section in zip(rows, entry["sections"]):
        text = spile("cat", "--raw", "--stored", path, row["path"])
        assert hashlib.sha256(text).hexdigest() == section["data_sha256"], (path, row["path"])
        values = np.frombuffer(text, "u1")
        if section["type"] == "A":
            values = values.reshape(section["N"], section["E"])
        found.append(Quantity(row["path"], values))
    return found


def scope(path):
    manifest = json.loads((GOLDEN / "digitizer/manifest.json").read_text())
    records = manifest[path.name]["records"]
    rows, found, records = listed(path), [], iter(records)
    for row in rows:
        shape = row["shape"]
        raw = np.frombuffer(spile("cat", "--raw", path, row["path"]), "u1")
        if "time" not in row["dims"]:
            # Values of the segments, such as the times of their triggers.
            found.append(Quantity(row["path"], raw.view("<f8"), row["attrs"].get("units", "")))
            continue
        # Equal segments are the rows of one array.
        own = [next(records) for _ in range(shape[0] if len(shape) == 2 else 1)]
        size = raw.size // sum(record["n"] for record in own)
        dtype = {4: "<f4", 8: "<f8", 1: own[0]["raw_dtype"], 2: own[0]["raw_dtype"]}[size]
        values = raw.view(dtype).reshape(shape)
        for segment, record in zip(values.reshape(len(own), -1), own):
            assert hashlib.sha256(segment.astype("<f8").tobytes()).hexdigest() == record["sha256_y_f64le"], path
        points = float(own[0]["x0"]) + float(own[0]["dx"]) * np.arange(shape[-1])
        coords = [(len(shape) - 1, points, "s")]
        found.append(Quantity(row["path"], values, row["attrs"].get("units", ""), coords))
    assert next(records, None) is None, path
    return found


def run(paths, folder):
    """Dumps of one EPOCH run: each file is a frame."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in paths:
        shutil.copy(path, folder / path.name)
    times = [sdfr.read(str(path), dict=True)["Header"]["time"] for path in paths]
    dumps = [{quantity.path: quantity for quantity in sdf(path)} for path in paths]
    found = []
    for name in dumps[0]:
        parts = [dump[name] for dump in dumps if name in dump]
        if all(np.shape(part.values) == np.shape(parts[0].values) for part in parts) and len(parts) == len(dumps):
            values = [np.asarray(part.values) for part in parts]
            # Axes that do not move are written once.
            fixed = name.startswith("Grid/") and all(np.array_equal(value, values[0]) for value in values)
            values = values[0] if fixed else values
            found.append(Quantity(name, values, parts[0].units, frames=not fixed, times=times))
    return found
