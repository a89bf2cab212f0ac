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
import pyarrow.parquet
import pyvista
import sdfr
import xarray as xr


@dataclasses.dataclass
class Seen:
    """An array in an output: values, unit, and coordinates as pairs of points and unit."""

    values: object
    units: str = None
    coords: list = dataclasses.field(default_factory=list)


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


class Npz:
    def __init__(self, path):
        with np.load(path) as file:
            self.arrays = {name: file[name] for name in file.files}

    def find(self, quantity):
        found = self.arrays.get(quantity.path)
        return None if found is None else Seen(found)


class Hdf5:
    """h5py: groups, attributes, dimension scales."""

    def __init__(self, path):
        self.file = h5py.File(path)

    def find(self, quantity):
        dataset = self.file.get(quantity.path)
        if not isinstance(dataset, h5py.Dataset):
            return None
        scales = [scale for dim in dataset.dims for scale in dim.values()]
        coords = [(scale[()], scale.attrs.get("units", "")) for scale in scales]
        # Particles: the arrays that the attribute `coordinates` names.
        for name in str(dataset.attrs.get("coordinates", "")).split():
            if name in self.file:
                coords.append((self.file[name][()], self.file[name].attrs.get("units", "")))
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
        name = plain(quantity.path)
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
    """pandas (CSV) and pyarrow (Parquet): columns `name (unit)`; columns of coordinates come first."""

    def __init__(self, path):
        if str(path).endswith("csv"):
            self.table = pd.read_csv(path, float_precision="round_trip", low_memory=False)
        else:
            self.table = pyarrow.parquet.read_table(path).to_pandas()

    def find(self, quantity):
        columns, path = list(self.table.columns), quantity.path
        own = [c for c in columns if re.fullmatch(re.escape(path) + r"(\[[\d,]+\])*( \(.*\))?", c)]
        if not own:
            return None
        values = self.table[own].to_numpy()
        if values.dtype == object:
            values = self.table[own].map(lambda v: np.nan if v is None else v).to_numpy()
        unit = re.fullmatch(r".*? \(([^()]*)\)", own[0][len(path):])
        others = [c for c in columns[:columns.index(own[0])] if c not in own]
        coords = []
        for name in others:
            named = re.fullmatch(r".* \((.*)\)", name)
            coords.append((self.table[name].to_numpy(), named[1] if named else ""))
        return Seen(values, unit[1] if unit else "", coords)

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
            field = re.sub(r"[^A-Za-z0-9_]", "_", part)
            field = field if field[:1].isalpha() else f"x{field}"
            if not isinstance(tree, dict) or field not in tree:
                return None
            tree = tree[field]
        return tree

    def find(self, quantity):
        values = self.get(quantity.path, self.data)
        if values is None or isinstance(values, dict):
            return None
        values = np.asarray(values)
        units = self.get(quantity.path, self.data.get("units", {}))
        leaves, unit_tree = [], self.data.get("units", {})
        def walk(tree, units):
            for key, value in tree.items():
                if isinstance(value, dict):
                    walk(value, units.get(key, {}) if isinstance(units, dict) else {})
                else:
                    leaves.append((np.asarray(value), units.get(key, "") if isinstance(units, dict) else ""))
        walk({k: v for k, v in self.data.items() if k != "units"}, unit_tree)
        if quantity.frames and values.ndim > 1:
            values = np.moveaxis(values, -1, 0)
        return Seen(values, units or "", leaves)


class Vtk:
    """pyvista: data of points and cells of all blocks."""

    def __init__(self, path):
        opened = pyvista.read(path)
        self.blocks = []
        self.scalars = opened
        self.flatten(opened)

    def flatten(self, data):
        if isinstance(data, pyvista.MultiBlock):
            for block in data:
                if block is not None:
                    self.flatten(block)
        else:
            self.blocks.append(data)

    @staticmethod
    def axes(grid, points):
        if isinstance(grid, pyvista.ImageData):
            axes = [o + s * np.arange(n) for o, s, n in zip(grid.origin, grid.spacing, grid.dimensions)]
        else:
            axes = [grid.x, grid.y, grid.z]
        return axes if points else [0.5 * (a[1:] + a[:-1]) if len(a) > 1 else a for a in axes]

    def find(self, quantity):
        stem, leaf = quantity.path.rsplit("/", 1) if "/" in quantity.path else ("", quantity.path)
        for block in self.blocks:
            units = dict(zip(block.field_data.get("names", []), block.field_data.get("units", [])))
            for data, points in ((block.point_data, True), (block.cell_data, False)):
                for name, component in ((quantity.path, None), (leaf[:-1], leaf[-1:]), (f"{stem}/{leaf[:-1]}", leaf[-1:])):
                    if name not in data or (component and component not in "xyz"):
                        continue
                    values = np.asarray(data[name])
                    if component:
                        if values.ndim != 2:
                            continue
                        values = values[:, "xyz".index(component)]
                    if isinstance(block, (pyvista.ImageData, pyvista.RectilinearGrid)):
                        axes = self.axes(block, points)
                        shape = [len(a) for a in axes]
                        if values.ndim == 1:
                            values = values.reshape(shape, order="F")
                        coords = [(axis, None) for axis in axes]
                    else:
                        coords = [(block.points[:, k], None) for k in range(3)]
                    return Seen(values, units.get(name, ""), coords)
            if quantity.path in block.field_data:
                return Seen(np.asarray(block.field_data[quantity.path]), units.get(quantity.path, ""))
        for data in (self.scalars, *self.blocks):
            if quantity.path in data.field_data:
                names = dict(zip(data.field_data.get("names", []), data.field_data.get("units", [])))
                return Seen(np.asarray(data.field_data[quantity.path]), names.get(quantity.path, ""))
        return self.geometry(quantity, leaf)

    def geometry(self, quantity, leaf):
        """Nodes of grids and positions of particles are the geometry itself."""
        for block in self.blocks:
            axes = self.axes(block, True) if isinstance(block, (pyvista.ImageData, pyvista.RectilinearGrid)) else block.points.T
            for axis in axes:
                units = dict(zip(block.field_data.get("names", []), block.field_data.get("units", [])))
                if axis.shape == np.shape(quantity.values) and close(quantity.values, axis):
                    return Seen(axis, units.get(quantity.path, ""))
            points = block.points if hasattr(block, "points") else None
            if points is not None and points.shape == np.shape(quantity.values) and close(quantity.values, points):
                return Seen(points, units.get(quantity.path, ""))
        return None


class Sdf:
    """The library of EPOCH."""

    def __init__(self, path):
        blocks = sdfr.read(str(path), dict=True, derived=False).values()
        self.blocks = {block.name: block for block in blocks if getattr(block, "data", None) is not None and hasattr(block, "name")}

    def find(self, quantity):
        block = self.blocks.get(quantity.path)
        if block is None:
            group, _, label = quantity.path.rpartition("/")
            mesh = self.blocks.get(group)
            if mesh is None or label not in (getattr(mesh, "labels", None) or ()):
                return None
            k = mesh.labels.index(label)
            return Seen(mesh.data[k], mesh.units[k])
        coords, grid, data = [], getattr(block, "grid", None), np.asarray(block.data)
        if grid is not None and type(block).__name__ == "BlockPointVariable":
            coords = list(zip(grid.data, grid.units))
        elif grid is not None:
            for k, (nodes, unit) in enumerate(zip(grid.data, grid.units)):
                coords.append((nodes if nodes.shape[0] == data.shape[k] else block.grid_mid.data[k], unit))
        factor = getattr(block, "mult", None)
        if factor not in (None, 1):
            data = data * factor
        return Seen(data, getattr(block, "units", None) or "", coords)


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
