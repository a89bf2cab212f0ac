"""Datasets of formats with a schema: SDF files as in sdf-xarray (GSD: `gsd._dataset`)."""

import os
import re
import time
import warnings

import numpy as np
import xarray as xr

from ._array import MOST_POINTS, evenly
from ._deck import load_deck
from ._padding import filled
from ._sdf_tree import datasets
from ._storable import storable_name
from ._tree import node
from ._xarray import (
    Lazy,
    array_attrs,
    attrs_of,
    frame_coordinates,
    lazy,
    plain_name,
    ragged,
    spaced,
)
from .gsd._dataset import gsd

#: Types of SDF blocks with one value per point.
POINTS = {"point_variable", "point_mesh", "point_derived"}

#: Types of SDF blocks with units, which may be empty.
WITH_UNITS = {"plain_variable", "plain_derived", "point_variable", "point_derived"}

#: Value of the option ``staggered`` for averages at cell centres.
CENTRE = "centre"

#: Coordinates of series, which cannot be names of other dimensions.
FRAME_COORDINATES = {"step", "time"}

#: Attributes of the time coordinate, as in sdf-xarray.
TIME = {"units": "s", "long_name": "Time", "full_name": "time"}

#: Names of vector components, which are typeset in long names, as in sdf-xarray.
_COMPONENT = re.compile(r"\b([EBJP])([xyz])\b")

#: Name of a constant with units, such as ``Total Field Energy in Simulation (J)``.
_UNITS = re.compile(r"^(.*\S)\s*\(([^()]*)\)$")


class _Mesh:
    """The axes of a mesh, with its name in sdf-xarray."""

    def __init__(self, path, kind):
        self.path = path
        self.name = plain_name(path.removeprefix("Grid/"))
        self.points = kind == "point_mesh"
        self.axes = {}
        #: Computed cell centres, and true positions of staggered fields, by the label of the axis.
        self.centres = {}
        self.faces = {}

    def dim(self, label):
        """The name of an axis in sdf-xarray, which keeps hyphens of labels (``gamma-1``)."""
        return storable_name(f"{label}_{self.name}".replace("/", "_"))


def point_data(variable):
    """Whether a variable or coordinate has one value per particle."""
    return bool(variable.attrs.get("point_data", False))


def sdf(builder, group, *, keep_particles=False, probe_names=None, deck_path=None, staggered=False):
    """An SDF file with the names and attributes of sdf-xarray. Particle variables and their positions
    are included with `keep_particles`, those of single probes with `probe_names`. The attribute
    ``deck`` is the input deck; see `spile.sdf.load_deck`. `staggered` is that of
    `spile.sdf.open_mfdataset`; the file must be opened with derived arrays for it."""
    if staggered not in (False, True, CENTRE):
        raise ValueError(f'staggered must be False, True or "{CENTRE}", found {staggered!r}')
    builder.drop = {plain_name(name) for name in builder.drop}
    builder.fixed_texts = True
    handle = group._handle
    series = handle.open.frames is not None
    lead = ("time",) if series else ()
    arrays = list(group.arrays().values())
    meshes, by_id = {}, {}
    paths, is_array, _ = handle.tree
    for number, path in enumerate(paths):
        if is_array[number]:
            continue
        kind = handle.open.attrs(number).get("sdf_type", "")
        if kind.endswith("mesh"):
            meshes[path] = by_id[handle.open.id(number)] = _Mesh(path, kind)
    variables, averages = [], {}
    for array in arrays:
        about = array.attrs
        parent, _, label = array.path.rpartition("/")
        mesh = meshes.get(parent)
        if mesh is None and "derived" not in about:
            variables.append((array, about))
        elif mesh is not None and "derived" not in about and "sdf_type" not in about:
            mesh.axes[label] = array
        elif mesh is not None and label.endswith("_mid"):
            mesh.centres[label.removesuffix("_mid")] = array
        elif mesh is not None and label.endswith("_face"):
            mesh.faces[label.removesuffix("_face")] = array
        elif mesh is None and not staggered:
            variables.append((array, about))
        elif label.endswith("_centred"):
            averages[array.path.removesuffix("_centred")] = array
    probes = {probe_names} if isinstance(probe_names, str) else set(probe_names or ())
    wanted = _Wanted(builder, meshes, by_id, lead, keep_particles, probes)
    code = str(handle.open.attrs(0).get("code_name", ""))
    wanted.at_faces = code.lower().startswith("epoch")
    wanted.true_positions = staggered is True
    wanted.find_other_coordinates(variables)
    for array, about in variables:
        if array._number not in wanted.other.values():
            centred = averages.get(array.path) if staggered == CENTRE else None
            wanted.variable(array, about, centred)
    wanted.coordinates()
    wanted.other_coordinates(handle)
    if series and wanted.left_out:
        warnings.warn(
            f"{wanted.left_out} particle variables are not included; keep_particles=True adds them",
            stacklevel=2,
        )
    if series:
        frame_coordinates(builder, handle, "time", TIME)
    unknown = builder.drop - wanted.names - builder.dropped
    if unknown:
        raise KeyError(f"drop_variables: the file has no variable {', '.join(sorted(unknown))}")
    for name, made in builder.variables.items():
        if name not in builder.coords:
            chunks = {dim: max(n, 1) for dim, n in zip(made.dims, made.shape)}
            made.encoding["preferred_chunks"] = {**chunks, **({"time": 1} if series else {})}
    if not group._number:
        builder.attrs.update(_file_attrs({**handle.open.summary(), **handle.open.attrs(0)}))
        folder = handle.name if os.path.isdir(handle.name) else os.path.dirname(handle.name)
        deck = load_deck(folder, deck_path)
        if deck is not None:
            builder.attrs["deck"] = deck


def _file_attrs(about):
    """Attributes of a file that sdf-xarray has under another name, or as text."""
    made = {}
    parts = [about.get(name) for name in ("code_version", "code_revision", "minor_rev")]
    if None not in parts:
        made["version"] = ".".join(map(str, parts))
    version, dot, revision = str(about.get("revision", "")).partition(".")
    if dot and version.isdigit() and revision.isdigit():
        made["file_version"], made["file_revision"] = int(version), int(revision)
    if "subdomain_file" in about:
        made["other_domains"] = np.int8(about["subdomain_file"])
    if "defines" in about:
        made["defines"] = str(about["defines"])
    for name in ("compile_date", "run_date", "io_date"):
        try:
            made[name] = time.ctime(about[name])
        except (KeyError, TypeError, ValueError, OverflowError, OSError):
            continue
    return made


class _Wanted:
    """Adds the variables and coordinates of an SDF file to a dataset."""

    def __init__(self, builder, meshes, by_id, lead, particles, probes):
        self.builder = builder
        self.meshes = meshes
        self.by_id = by_id
        self.lead = lead
        self.particles = particles
        self.probes = probes
        #: Names of the variables of the file, also of those that are not included.
        self.names = set()
        #: Number of particle variables that are not included.
        self.left_out = 0
        #: Dimensions by mesh, labels and lengths, which many variables share.
        self.known = {}
        #: Mesh of the points along each dimension.
        self.point_dims = {}
        #: Dimensions of the probes in `probes`, by the path of the mesh: as in sdf-xarray, they are
        #: called after the first variable.
        self.probe_dims = {}
        #: Coordinates that are not axes of a mesh, by dimension: ``(start, step)`` or an array number.
        self.other = {}
        #: Whether staggered fields have their values at the upper faces of cells.
        self.at_faces = False
        #: Whether these positions are their coordinates.
        self.true_positions = False
        #: Axes with these coordinates: dimension, axis of the mesh, and mesh.
        self.used_faces = {}

    def find_other_coordinates(self, variables):
        """Names the dimensions whose coordinates are not axes of a mesh, as in files written by
        spile from other formats."""
        for array, about in variables:
            info = array._info
            mesh = self.mesh_of(array, about)
            if info.ragged or about.get("sdf_type") in POINTS:
                continue
            for label, length, coord in zip(info.dims, info.shape, info.coords):
                if coord is not None and not (mesh and label in mesh.axes):
                    self.other_dimension(label, length, coord)

    def other_dimension(self, label, length, coord):
        """The dimension with this coordinate."""
        label = plain_name(label)
        if label in FRAME_COORDINATES:
            label = f"{label}_{length}"
        name = dim = self.builder.dim(label, length)
        count = 1
        while self.other.setdefault(dim, coord) != coord:
            count += 1
            dim = self.builder.dim(f"{name}_{count}", length)
        return dim

    def variable(self, array, about, centred=None):
        kind = about.get("sdf_type", "")
        if array._info.ragged:
            ragged(self.builder, self.builder.name(array.path), array)
            return
        full = about.get("sdf_name", array.path)
        attrs = {"point_data": kind in POINTS, **array_attrs(array)}
        if kind == "constant" and (found := _UNITS.match(full)):
            full, attrs["units"] = found[1], found[2]
        if kind in WITH_UNITS:
            attrs.setdefault("units", "")
        attrs["full_name"] = full
        attrs["long_name"] = _COMPONENT.sub(r"$\1_\2$", spaced(full))
        self.names.add(plain_name(full))
        if kind in POINTS:
            mesh = self.mesh_of(array, about)
            probe = full.partition("/")[0]
            if not self.particles and probe not in self.probes:
                self.left_out += 1
                return
            if probe in self.probes and mesh:
                self.probe_dims.setdefault(mesh.path, plain_name(f"ID_{full}"))
            dims = (self.points(mesh, array),)
        else:
            if centred is not None and (
                not self.at_faces or centred._info.shape == array._info.shape
            ):
                # EPOCH stores distribution functions at nodes, which are not faces of cells.
                array, attrs["stagger"] = centred, 0
            dims = self.grid(array, {**about, "stagger": attrs.get("stagger", 0)})
            if self.at_faces and kind == "plain_variable" and (mesh := self.mesh_of(array, about)):
                attrs["cell_position"] = self.cell_position(array, attrs, mesh)
        self.add(self.builder.name(full), dims, array, attrs)

    def cell_position(self, array, about, mesh):
        """The position of the values in their cell along each dimension: 0.5 is the centre, 1 the upper
        face, 0 the node of values at nodes."""
        nodes = [_length(mesh.axes.get(label)) for label in array._info.dims]
        stagger = int(about.get("stagger", 0))
        return [
            0.0 if n and n == length else 1.0 if stagger >> k & 1 else 0.5
            for k, (n, length) in enumerate(zip(nodes, array._info.shape))
        ]

    def add(self, name, dims, array, attrs, coord=False):
        values = array
        if self.lead and array.frames is not None:
            if array.ragged:
                # Frames of different lengths are padded; missing frames do not change the dimensions.
                padded, usual = Padded(array, attrs.get("point_data")), array._info.shape
                dims = [
                    dim if most == length else self.builder.dim(f"{dim}_most", most)
                    for dim, most, length in zip(dims, padded.shape[1:], usual)
                ]
                values = padded
            dims = (*self.lead, *dims)
        self.builder.add(name, lazy(dims, values, attrs), coord, array)

    def points(self, mesh, array):
        """The dimension of the points of a species or probe."""
        length = array._info.shape[0] if array._info.shape else 1
        species = array._info.dims[0]
        other = f"ID_{mesh.name}" if mesh else None
        if mesh and mesh.path in self.probe_dims:
            return self.builder.dim(self.probe_dims[mesh.path], length, other)
        dim = self.builder.dim(plain_name(f"ID_{species}"), length, other)
        if mesh and self.point_dims.setdefault(dim, mesh) is not mesh:
            # Another set of points with the same species name and length.
            dim = self.builder.dim(other, length)
        return dim

    def grid(self, array, about):
        """The dimensions of any other variable."""
        mesh, info = self.mesh_of(array, about), array._info
        at_faces = self.true_positions and self.at_faces and about.get("stagger", 0)
        name = about.get("sdf_name", array.path) if mesh is None else mesh.path
        key = name, info.dims, info.shape, info.coords, at_faces
        if key not in self.known:
            self.known[key] = self.dimensions(array, mesh, int(at_faces), name)
        return self.known[key]

    def mesh_of(self, array, about):
        """The mesh of a variable, or `None`."""
        return self.meshes.get(array._info.mesh) or self.by_id.get(about.get("mesh"))

    def dimensions(self, array, mesh, at_faces, full):
        """The dimensions of an array; the bits of `at_faces` are directions with values at faces. Those
        without a mesh and a name are called after the array, `full`."""
        dims = []
        info = array._info
        for k, (label, length, coord) in enumerate(zip(info.dims, info.shape, info.coords)):
            axis = mesh.axes.get(label) if mesh else None
            nodes = _length(axis)
            if nodes and nodes == length:
                name = mesh.dim(label)
            elif nodes == length + 1 and at_faces >> k & 1:
                name = f"{mesh.dim(label)}_face"
                self.used_faces[name] = label, mesh
            elif nodes == length + 1:
                name = f"{mesh.dim(label)}_mid"
            elif coord is not None and axis is None:
                name = self.other_dimension(label, length, coord)
            elif mesh is None and label == f"dim{k + 1}":
                name = storable_name(f"dim_{full}_{k}".replace("/", "_"))
            else:
                name = plain_name(f"{label}_{length}")
            dims.append(self.builder.dim(name, length))
        if len(set(dims)) < len(dims):
            dims = [f"{dim}_{k}" for k, dim in enumerate(dims)]
        return tuple(dims)

    def coordinates(self):
        """Adds nodes and cell centres of all meshes, and positions of points."""
        for mesh in self.meshes.values():
            for label, axis in mesh.axes.items():
                title = label.replace("_", " ")
                attrs = {"units": "", **array_attrs(axis), "long_name": title}
                attrs["full_name"] = mesh.path
                name = mesh.dim(label)
                if mesh.points:
                    probe = mesh.name.rpartition("Probe_")[2]
                    if self.particles or probe in self.probes:
                        dim = self.points(mesh, axis)
                        self.add(name, (dim,), axis, {**attrs, "point_data": True}, True)
                    continue
                self.axis(name, axis, mesh.centres.get(label), {**attrs, "point_data": False})
        for name, (label, mesh) in self.used_faces.items():
            # The faces of a reduced mesh are not known without the mesh of the grid.
            if (faces := mesh.faces.get(label)) is None:
                continue
            path = f"{mesh.path}_face"
            attrs = {
                **array_attrs(faces),
                "long_name": label.replace("_", " "),
                "full_name": path,
                "point_data": False,
            }
            attrs.pop("derived", None)
            if faces.frames is not None:
                self.moving(name, faces, attrs)
            else:
                points = xr.Variable((name,), faces.read(native=True), attrs)
                self.builder.add(name, points, True, faces)

    def other_coordinates(self, handle):
        """Adds the coordinates that are not axes of a mesh."""
        for dim, coord in self.other.items():
            length = self.builder.sizes[dim]
            if isinstance(coord, int):
                array = node(handle, coord)
                if array.frames is not None:
                    self.moving(dim, array, attrs_of(array))
                elif array.shape == (length,):
                    self.builder.add(dim, lazy((dim,), array, attrs_of(array)), True, array)
            elif length <= MOST_POINTS:
                self.builder.add(dim, xr.Variable((dim,), evenly(*coord, length)), True)

    def axis(self, name, axis, centres, attrs):
        """Adds the nodes of an axis, and the cell centres."""
        builder = self.builder
        mid = f"{name}_mid"
        mid_attrs = {**attrs, "full_name": f"{attrs['full_name']}_mid"}
        if axis.frames is not None:
            # A moving window: the nodes differ between frames.
            self.moving(name, axis, attrs)
            if centres is not None and centres.frames is not None:
                self.moving(mid, centres, mid_attrs)
            return
        if axis.ndim != 1:
            dims = [builder.dim(f"{name}_{k}", n) for k, n in enumerate(axis.shape)]
            builder.add(name, lazy(dims, axis, attrs), True, axis)
            return
        nodes = axis.read(native=True)
        if builder.sizes.setdefault(name, nodes.size) == nodes.size:
            builder.add(name, xr.Variable((name,), nodes, attrs), True, axis)
        middles = 0.5 * (nodes[1:] + nodes[:-1])
        if nodes.size > 1 and builder.sizes.setdefault(mid, middles.size) == middles.size:
            builder.add(mid, xr.Variable((mid,), middles, mid_attrs), True, centres)

    def moving(self, name, axis, attrs):
        """Adds coordinates that differ between frames, or that frames do not have. Those that are equal
        in all frames with them are not moving."""
        dims = (self.builder.dim(name, axis._info.shape[0]),)
        if axis.ragged and dims == (name,) and (values := _constant(axis)) is not None:
            self.builder.add(name, xr.Variable(dims, values, attrs), True, axis)
        else:
            self.add(f"{name}_moving", dims, axis, attrs, True)


def _length(axis):
    """Number of nodes of a one-dimensional axis; 0 for others."""
    return axis._info.shape[0] if axis is not None and len(axis._info.shape) == 1 else 0


def _constant(axis):
    """The values of an axis that all frames with it have, or `None`."""
    rows = axis._lengths()[0]
    frames = np.flatnonzero(rows >= 0)
    if len(axis._info.shape) != 1 or not frames.size or rows[frames].min() != rows.max():
        return None
    first = axis._part((), int(frames[0]), True)
    for frame in frames[1:]:
        if not np.array_equal(axis._part((), int(frame), True), first):
            return None
    return first


class Padded(Lazy):
    """Frames of different lengths, padded to the longest with NaN. Integers are padded with zeros if
    `points`; otherwise, if frames are missing, they are floats with NaN, as in xarray."""

    def __init__(self, array, points=False):
        self.array = array
        rows = array._lengths()[0]
        missing = (rows < 0).any() and not points
        rows = np.maximum(rows, 0)
        lengths = array._info.shape
        most = (int(rows.max(initial=0)), *lengths[1:]) if lengths else ()
        self.shape = (len(rows), *most)
        self.dtype = array.dtype.newbyteorder("=")
        if missing and self.dtype.kind in "iu":
            self.dtype = np.dtype("f8" if self.dtype.itemsize > 2 else "f4")

    def _read(self, key):
        return filled(key, self.shape, self.dtype, lambda k: self.array._part((), k, True))


#: Datasets of formats with a schema.
VIEWS = {"sdf": sdf, "gsd": gsd}

#: Trees of formats with a schema, made from the dataset.
TREES = {"sdf": datasets}
