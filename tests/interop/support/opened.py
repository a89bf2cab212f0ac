"""Converted files, as the programs of their users open them.

Each class has `find(quantity)`, which returns the array with its values, unit and coordinates, or None. Names follow the
rules of README.md: the path where the format has groups, otherwise the path with underscores.
"""

import dataclasses
import re
import warnings

import ase.io
import gsd.fl
import h5py
import mat73
import numpy as np
import pandas as pd
import pyarrow.feather
import pyvista
import xarray as xr
from vtkmodules.vtkIOHDF import vtkHDFReader

from .truth import sdfr_blocks


@dataclasses.dataclass
class Seen:
    """An array in an output: values, unit, and coordinates as pairs of points and unit."""

    values: object
    units: str = None
    coords: list = dataclasses.field(default_factory=list)
    # Whether it was found by its values only.
    by_values: bool = False


def plain(path):
    """A path as the name of a variable."""
    name = re.sub(r"[^\w.]", "_", path)
    name = re.sub(r"(?<=_)_+", "", name) if not re.search("__", path) else name
    return name if path.endswith("_") else name.rstrip("_") or "_"


class Npy:
    def __init__(self, path):
        self.array = np.load(path)

    def find(self, quantity):
        return Seen(self.array)


def beside(path, get):
    """The object of `path`, or None. Arrays below an array are in a group beside it: its name and `~2`, or `_2`."""
    parts = path.split("/")
    paths = [path]
    for mark in "~_":
        paths += ["/".join([*parts[:k], f"{parts[k]}{mark}2", *parts[k + 1:]]) for k in range(len(parts) - 1)]
    return next((found for found in map(get, paths) if found is not None), None)


class Npz:
    def __init__(self, path):
        with np.load(path) as file:
            self.arrays = {name: file[name] for name in file.files}

    def find(self, quantity):
        found = beside(quantity.path, self.arrays.get)
        return None if found is None else Seen(found)


class Hdf5:
    """h5py: groups, attributes, dimension scales."""

    def __init__(self, path):
        self.file = h5py.File(path)

    def find(self, quantity):
        def get(path):
            found = self.file.get(path)
            return found if isinstance(found, h5py.Dataset) else None

        dataset = beside(quantity.path, get)
        if dataset is None:
            return None
        scales = [scale for dim in dataset.dims for scale in dim.values()]
        coords = [(scale[()], scale.attrs.get("units", "")) for scale in scales]
        return Seen(dataset[()], dataset.attrs.get("units", ""), coords)

    def times(self):
        return {name: self.file[name][()] for name in ("time", "step") if name in self.file}


class Xarray:
    """NetCDF and Zarr: variables at the root, coordinates of the CF conventions."""

    def __init__(self, path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            opened = xr.open_zarr(path, chunks=None) if str(path).endswith("zarr") else xr.open_dataset(path)
            with opened:
                self.data = opened.load()
        names = self.data.variables
        self.by_path = {names[name].attrs.get("long_name"): name for name in names}

    def find(self, quantity):
        # Coordinates have the name of their dimension.
        for name in (quantity.path, plain(quantity.path), self.by_path.get(quantity.path)):
            if name in self.data.variables:
                variable = self.data[name]
                coords = [(c.values, c.attrs.get("units", "")) for key, c in variable.coords.items() if key != name]
                return Seen(variable.values, variable.attrs.get("units", ""), coords)
        return None

    def times(self):
        return {name: self.data[name].values for name in ("time", "step") if name in self.data.variables}


class Table:
    """pandas: columns `name (unit)` of CSV, `attrs["units"]` of Parquet; columns of coordinates come first."""

    def __init__(self, path):
        if str(path).endswith("csv"):
            self.table = pd.read_csv(path, float_precision="round_trip", low_memory=False)
            named = {c: re.fullmatch(r"(.*) \((.*)\)", c) for c in self.table}
            self.units = {c: match[2] if match else "" for c, match in named.items()}
        elif str(path).endswith("arrow"):
            table = pyarrow.feather.read_table(path)
            metadata = {field.name: field.metadata or {} for field in table.schema}
            self.table = table.to_pandas()
            self.units = {c: metadata[c].get(b"units", b"").decode() for c in self.table}
        else:
            self.table = pd.read_parquet(path)
            self.units = {c: self.table.attrs.get("units", {}).get(c, "") for c in self.table}

    def find(self, quantity):
        columns, path = list(self.table.columns), quantity.path
        own = [c for c in sorted(columns) if re.fullmatch(re.escape(path) + r"(\[[\d,]+\])*( \(.*\))?", c)]
        # Vectors of points have columns with the names of their components.
        prefix = {"particles/position": "", "particles/velocity": "v"}.get(path)
        if not own and prefix is not None:
            own = [c for c in columns if re.fullmatch(prefix + r"[xyz]", c)]
        if not own and path.startswith("Grid/Particles/"):
            # The coordinate of the other columns.
            own = [c for c in columns if c.split(" ")[0] == path.rsplit("/", 1)[1]]
        if not own:
            return None
        values = self.table[own].to_numpy()
        if values.dtype == object:
            values = self.table[own].map(lambda v: np.nan if v is None else v).to_numpy()
        if "frame" in columns:
            # Frames without the array have no values.
            values = values[~pd.isna(values).all(axis=1)]
        coords = [(self.table[c].to_numpy(), self.units[c]) for c in columns if c not in own]
        return Seen(values, self.units[own[0]], coords)

    def times(self):
        return {name.split(" ")[0]: self.table[name].unique() for name in self.table if name.split(" ")[0] in ("time", "step")}


class Mat:
    """MATLAB 7.3 by mat73: structs, and the struct `units` with the same fields."""

    def __init__(self, path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.data = mat73.loadmat(str(path))

    def get(self, path, tree):
        for part in path.split("/"):
            field = re.sub(r"[^A-Za-z0-9_]", "_", part)[:63]
            field = field if field[:1].isalpha() else f"x{field}"
            if not isinstance(tree, dict) or field not in tree:
                return None
            tree = tree[field]
        return tree

    def find(self, quantity):
        path = quantity.path

        def get(path):
            found = self.get(path, self.data)
            return None if isinstance(found, dict) else found

        values = beside(path, get)
        if values is None:
            # mat73 shows no value for an array without elements.
            return Seen(np.zeros(quantity.rows().shape)) if quantity.rows().size == 0 else None
        values = np.asarray(values)
        units = beside(path, lambda path: self.get(path, self.data.get("units", {})))
        leaves, unit_tree = [], self.data.get("units", {})
        def walk(tree, units):
            for key, value in tree.items():
                if isinstance(value, dict):
                    walk(value, units.get(key, {}) if isinstance(units, dict) else {})
                else:
                    leaves.append((np.asarray(value), units.get(key, "") if isinstance(units, dict) else ""))
        walk({k: v for k, v in self.data.items() if k != "units"}, unit_tree)
        stacked = quantity.frames and all(value is not None for value in quantity.values)
        if values.ndim > 1 and stacked and quantity.rows().ndim > quantity.values[0].ndim:
            # Frames are the last dimension.
            values = np.moveaxis(values, -1, 0)
        return Seen(values, units or "", leaves)


class Vtk:
    """pyvista: data of points and cells of all blocks."""

    def __init__(self, path):
        opened = path if isinstance(path, pyvista.DataObject) else pyvista.read(path)
        self.blocks, self.groups = [], []
        self.flatten(opened)

    def flatten(self, data, name=None):
        if isinstance(data, pyvista.MultiBlock):
            self.groups.append(data)
            for name, block in zip(data.keys(), data):
                if block is not None:
                    self.flatten(block, name)
        else:
            self.blocks.append((name, data))

    @staticmethod
    def axes(grid, points):
        if isinstance(grid, pyvista.ImageData):
            axes = [o + s * np.arange(n) for o, s, n in zip(grid.origin, grid.spacing, grid.dimensions)]
        else:
            axes = [grid.x, grid.y, grid.z]
        return axes if points else [0.5 * (a[1:] + a[:-1]) if len(a) > 1 else a for a in axes]

    def find(self, quantity):
        parts = quantity.path.split("/")
        # Components of a vector: `Electric Field/Ex` is in `E`, `Particles/Px/electron` in `P`, `p1/Px` in `p1/P`.
        # Names in VTKHDF have no slashes.
        plain = quantity.path.replace("/", "_")
        vectors = [(part[:-1], part[-1:]) for part in parts]
        vectors += [(path[:-1], path[-1]) for path in (quantity.path, plain)]
        # Vectors of species have the same name in each block.
        for _, block in sorted(self.blocks, key=lambda named: named[0] not in parts):
            units = dict(zip(block.field_data.get("names", []), block.field_data.get("units", [])))
            for data, points in ((block.point_data, True), (block.cell_data, False)):
                for name, component in [(quantity.path, None), (plain, None), *vectors]:
                    if name not in data or (component and component not in "xyz"):
                        continue
                    values = np.asarray(data[name])
                    if component:
                        if values.ndim != 2 or len(values) != np.size(quantity.values):
                            continue
                        values = values[:, "xyz".index(component)]
                    if isinstance(block, (pyvista.ImageData, pyvista.RectilinearGrid)):
                        axes = self.axes(block, points)
                        shape = [len(a) for a in axes]
                        if values.ndim == 1:
                            values = values.reshape(shape, order="F")
                        # The axes of an array in C order are reversed: x is its last dimension.
                        shape = quantity.rows().shape
                        if np.squeeze(values).shape != np.squeeze(quantity.rows()).shape or (
                            len(set(shape)) < len(shape) and not close(np.squeeze(quantity.rows()), np.squeeze(values))
                        ):
                            values = values.T
                        coords = [(axis, None) for axis in axes]
                    else:
                        coords = [(block.points[:, k], None) for k in range(3)]
                    return Seen(values, units.get(name, ""), coords)
        for data in (*self.groups, *(block for _, block in self.blocks)):
            found = next((name for name in (quantity.path, plain) if name in data.field_data), None)
            if found:
                names = dict(zip(data.field_data.get("names", []), data.field_data.get("units", [])))
                values, shape = np.asarray(data.field_data[found]), quantity.rows().shape
                if values.ndim == 1 and len(shape) > 2 and values.size == np.prod(shape):
                    # Field data has at most two dimensions; the first index is fastest.
                    values = values.reshape(shape, order="F")
                return Seen(values, names.get(quantity.path, ""))
        return self.geometry(quantity)

    def geometry(self, quantity):
        """Nodes of grids and positions of particles are the geometry itself."""
        for _, block in self.blocks:
            units = dict(zip(block.field_data.get("names", []), block.field_data.get("units", [])))
            axes = self.axes(block, True) if isinstance(block, (pyvista.ImageData, pyvista.RectilinearGrid)) else block.points.T
            for axis in axes:
                if axis.shape == np.shape(quantity.values) and close(quantity.values, axis):
                    return Seen(axis, units.get(quantity.path) or units.get("Points", ""), by_values=True)
            points = block.points if hasattr(block, "points") else None
            if points is not None and points.shape == np.shape(quantity.values) and close(quantity.values, points):
                return Seen(points, units.get("Points", ""), by_values=True)
        return None


class VtkHdf:
    """The reader of ParaView for VTKHDF: one `Vtk` for each time step."""

    def __init__(self, path):
        reader = vtkHDFReader()
        reader.SetFileName(str(path))
        reader.UpdateInformation()
        self.path, self.values = path, None
        if not reader.GetHasTemporalData():
            self.frames = [Vtk(path)]
            return
        self.frames = []
        for step in range(reader.GetNumberOfSteps()):
            reader.SetStep(step)
            reader.Modified()
            reader.Update()
            self.frames.append(Vtk(pyvista.wrap(reader.GetOutputDataObject(0)).copy()))
        with h5py.File(path) as file:
            self.values = file["VTKHDF/Steps/Values"][()]

    def find(self, quantity):
        found = self.frames[0].find(quantity) if self.values is None else Pvd.find(self, quantity)
        if found is None and not np.size(quantity.rows()):
            # Readers leave out arrays without elements.
            name = quantity.path.replace("/", "_")
            with h5py.File(self.path) as file:
                item = file["VTKHDF"].visititems(lambda path, item: item if path.endswith(f"/{name}") else None)
                return Seen(item[()].reshape(np.shape(quantity.values))) if item is not None else None
        return found

    def times(self):
        return {} if self.values is None else {"time": self.values}


class Pvd:
    """A collection: one file of VTK for each frame, with its time."""

    def __init__(self, path):
        reader = pyvista.get_reader(path)
        self.frames, self.values = [], reader.time_values
        for time in self.values:
            reader.set_active_time_value(time)
            self.frames.append(Vtk(reader.read()))

    def find(self, quantity):
        if not quantity.frames:
            return self.frames[0].find(quantity)
        found = []
        for frame, value in zip(self.frames, quantity.values):
            seen = None if value is None else frame.find(dataclasses.replace(quantity, values=value, frames=False))
            if value is not None and seen is None:
                return None
            found.append(seen)
        some = [seen for seen in found if seen is not None]
        values = [np.asarray(seen.values) for seen in some]
        equal = len(values) == len(found) and len({value.shape for value in values}) == 1
        return Seen(np.stack(values) if equal else np.concatenate(values), some[0].units, some[0].coords)

    def times(self):
        return {"time": self.values}


class Sdf:
    """The library of EPOCH."""

    def __init__(self, path):
        self.blocks = {block.name: block for block in sdfr_blocks(path)}

    def find(self, quantity):
        block = self.blocks.get(quantity.path)
        if block is None:
            group, _, label = quantity.path.rpartition("/")
            mesh = self.blocks.get(group)
            if mesh is None or label not in (mesh.labels or ()):
                return None
            k = mesh.labels.index(label)
            return Seen(mesh.data[k], mesh.units[k])
        coords, grid, data = [], block.grid, np.asarray(block.data)
        if grid is not None and block.kind == "BlockPointVariable":
            coords = list(zip(grid.data, grid.units))
        elif grid is not None:
            for k, (nodes, unit) in enumerate(zip(grid.data, grid.units)):
                coords.append((nodes if nodes.shape[0] == data.shape[k] else block.grid_mid.data[k], unit))
        if block.mult not in (None, 1):
            data = data * block.mult
        return Seen(data, block.units or "", coords)

    @staticmethod
    def expected(quantity):
        """Frames have the values that the file contains."""
        return quantity.stored_rows()


class Gsd:
    def __init__(self, path):
        self.file = gsd.fl.open(str(path), "r")

    def find(self, quantity):
        names = self.file.find_matching_chunk_names(quantity.path)
        if quantity.path not in names:
            return None
        frames = range(self.file.nframes) if quantity.frames else [0]
        parts = [self.file.read_chunk(k, quantity.path) for k in frames if self.file.chunk_exists(k, quantity.path)]
        parts = [np.frombuffer(p.encode(), "S1") if isinstance(p, str) else p for p in parts]
        same = quantity.frames and len(parts) == self.file.nframes and len({p.shape for p in parts}) == 1
        return Seen(np.stack(parts) if same else np.concatenate(parts) if quantity.frames else parts[0])

    @staticmethod
    def expected(quantity):
        """Frames have the values that the file contains."""
        return quantity.stored_rows()


class Xyz:
    """ASE: positions, velocities and other arrays of the atoms of each frame."""

    NAMES = {"position": "positions", "velocity": "velo", "mass": "masses", "charge": "initial_charges"}

    def __init__(self, path):
        self.frames = ase.io.read(path, ":", format="extxyz")

    def find(self, quantity):
        leaf = quantity.path.rsplit("/", 1)[-1]
        name = self.NAMES.get(leaf, leaf)
        parts = []
        for atoms in self.frames:
            if name == "positions":
                parts.append(atoms.positions)
            elif name in atoms.arrays:
                parts.append(atoms.arrays[name])
            elif name == "initial_charges" and atoms.calc is not None and "charges" in atoms.calc.results:
                parts.append(atoms.calc.results["charges"])
            elif name in atoms.info:
                parts.append(np.atleast_1d(atoms.info[name]))
        if not parts:
            return None
        return Seen(np.stack(parts) if len({p.shape for p in parts}) == 1 else np.concatenate(parts))

    def times(self):
        return {"step": np.array([atoms.info.get("step", -1) for atoms in self.frames])}


def close(expected, found):
    """Whether values are those of the source. Text and floats of single precision have fewer digits."""
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.dtype.kind in "SU" or found.dtype.kind in "SUO":
        return True if expected.size == 0 else [str(v) for v in expected.ravel()] == [str(v) for v in found.ravel()]
    if found.dtype == np.float32 or expected.dtype == np.float32:
        return np.allclose(found, expected, rtol=3e-7, atol=0, equal_nan=True)
    return np.allclose(found, expected, rtol=1e-12, atol=0, equal_nan=True)
