"""What formats mean to xarray: SDF dumps as users of sdf-xarray know them, GSD trajectories."""

import re

import numpy as np
import xarray as xr

from ._hoomd import Trajectory
from ._xarray import (
    Computed,
    Lazy,
    attrs_of,
    lazy,
    moments,
    plain,
    plain_name,
    ragged,
    spaced,
)
from .errors import SpileError

#: Kinds of SDF blocks that are about points.
POINTS = {"point_variable", "point_mesh", "point_derived"}

#: A constant such as ``Total Field Energy in Simulation (J)``.
_UNITS = re.compile(r"^(.*\S)\s*\(([^()]*)\)$")


class _Mesh:
    """The axes of a mesh, under the names that sdf-xarray gives them."""

    def __init__(self, path, kind):
        self.path = path
        self.name = plain_name(path.removeprefix("Grid/"))
        self.points = kind == "point_mesh"
        self.axes = {}


def sdf(builder, group, *, keep_particles=False, probe_names=None):
    """A dump: variables as blocks are called, coordinates with units, particles with a dimension of
    their own."""
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
    variables = []
    for array in arrays:
        about = array.attrs
        parent, _, label = array.path.rpartition("/")
        mesh = meshes.get(parent)
        if mesh is None and "derived" not in about:
            variables.append((array, about))
        elif mesh is not None and "derived" not in about and "sdf_type" not in about:
            mesh.axes[label] = array
    probes = {probe_names} if isinstance(probe_names, str) else set(probe_names or ())
    wanted = _Wanted(builder, meshes, by_id, lead, keep_particles, probes)
    for array, about in variables:
        wanted.variable(array, about)
    wanted.coordinates()
    if series:
        moments(builder, handle, "time")
    else:
        for name in ("step", "time"):
            value = group.attrs.get(name, handle.open.attrs(0).get(name))
            if value is not None:
                builder.add(name, xr.Variable((), value), coord=True)


class _Wanted:
    """What of a dump becomes variables."""

    def __init__(self, builder, meshes, by_id, lead, particles, probes):
        self.builder = builder
        self.meshes = meshes
        self.by_id = by_id
        self.lead = lead
        self.particles = particles
        self.probes = probes
        #: Dimensions by mesh, names and lengths: most variables have those of others.
        self.known = {}

    def variable(self, array, about):
        kind = about.get("sdf_type", "")
        if array._info.ragged:
            ragged(self.builder, self.builder.name(array.path), array)
            return
        full = about.get("sdf_name", array.path)
        attrs = {"full_name": full, "point_data": kind in POINTS, **about}
        if kind == "constant" and (found := _UNITS.match(full)):
            full, attrs["units"] = found[1], found[2]
        attrs["long_name"] = spaced(full)
        if kind in POINTS:
            mesh = self.by_id.get(about.get("mesh"))
            probe = full.partition("/")[0]
            if not self.particles and probe not in self.probes:
                return
            dims = (self.points(mesh, array),)
        else:
            dims = self.grid(array, about)
        self.add(self.builder.name(full), dims, array, attrs)

    def add(self, name, dims, array, attrs, coord=False):
        if self.lead and array.frames is not None:
            if array.ragged:
                # Where frames only lack the array, its dimensions are what they are.
                array, usual = Padded(array), array._info.shape
                dims = [
                    dim if most == length else self.builder.dim(f"{dim}_most", most)
                    for dim, most, length in zip(dims, array.shape[1:], usual)
                ]
            dims = (*self.lead, *dims)
        self.builder.add(name, lazy(dims, array, attrs), coord)

    def points(self, mesh, array):
        """The dimension of particles."""
        length = array._info.shape[0] if array._info.shape else 1
        species = array._info.dims[0]
        other = f"ID_{mesh.name}" if mesh else None
        return self.builder.dim(plain_name(f"ID_{species}"), length, other)

    def grid(self, array, about):
        """The dimensions of a variable on a mesh, or of anything else."""
        place = about.get("mesh"), array._info.dims, array._info.shape
        if place not in self.known:
            self.known[place] = self.dimensions(array, self.by_id.get(place[0]))
        return self.known[place]

    def dimensions(self, array, mesh):
        dims = []
        for label, length in zip(array._info.dims, array._info.shape):
            axis = mesh.axes.get(label) if mesh else None
            nodes = axis._info.shape[0] if axis is not None and len(axis._info.shape) == 1 else None
            if nodes == length:
                name = f"{label}_{mesh.name}"
            elif nodes == length + 1:
                name = f"{label}_{mesh.name}_mid"
            else:
                name = f"{label}_{length}"
            dims.append(self.builder.dim(plain_name(name), length))
        if len(set(dims)) < len(dims):
            dims = [f"{dim}_{k}" for k, dim in enumerate(dims)]
        return tuple(dims)

    def coordinates(self):
        """The axes of all meshes: nodes, and the middles of cells."""
        for mesh in self.meshes.values():
            for label, axis in mesh.axes.items():
                attrs = {**axis.attrs, "long_name": label, "full_name": mesh.path}
                name = plain_name(f"{label}_{mesh.name}")
                if mesh.points:
                    probe = mesh.name.rpartition("Probe_")[2]
                    if self.particles or probe in self.probes:
                        dim = self.points(mesh, axis)
                        self.add(name, (dim,), axis, {**attrs, "point_data": True}, True)
                    continue
                self.axis(name, axis, {**attrs, "point_data": False})

    def axis(self, name, axis, attrs):
        builder = self.builder
        if axis.frames is not None:
            # A window that moves: nodes are other ones in each frame.
            if not axis.ragged:
                dims = (*self.lead, builder.dim(name, axis.shape[1]))
                builder.add(f"{name}_moving", lazy(dims, axis, attrs), True)
            return
        if axis.ndim != 1:
            dims = [builder.dim(f"{name}_{k}", n) for k, n in enumerate(axis.shape)]
            builder.add(name, lazy(dims, axis, attrs), True)
            return
        nodes = axis.read(native=True)
        if builder.sizes.setdefault(name, nodes.size) == nodes.size:
            builder.add(name, xr.Variable((name,), nodes, attrs), True)
        middles = 0.5 * (nodes[1:] + nodes[:-1])
        mid = f"{name}_mid"
        if nodes.size > 1 and builder.sizes.setdefault(mid, middles.size) == middles.size:
            attrs = {**attrs, "full_name": f"{attrs['full_name']}_mid"}
            builder.add(mid, xr.Variable((mid,), middles, attrs), True)


class Padded(Lazy):
    """Frames of different lengths, each filled up to the longest: with NaN, or with zeros where there
    is no such number."""

    def __init__(self, array):
        self.array = array
        rows = np.maximum(array._lengths()[0], 0)
        lengths = array._info.shape
        most = (int(rows.max(initial=0)), *lengths[1:]) if lengths else ()
        self.shape = (len(rows), *most)
        self.dtype = array.dtype.newbyteorder("=")

    def _read(self, key):
        return filled(key, self.shape, self.dtype, lambda k: self.array._part((), k, True))


def filled(key, shape, dtype, read):
    """Frames on top of each other, each as far as it goes."""
    frames, rest = key[0], key[1:]
    one = not isinstance(frames, slice)
    numbers = [int(frames)] if one else range(*frames.indices(shape[0]))
    empty = np.nan if np.dtype(dtype).kind in "fc" else np.zeros((), dtype)
    out = np.full((len(numbers), *shape[1:]), empty, dtype)
    for place, frame in enumerate(numbers):
        part = read(frame)
        if part is not None:
            out[(place, *[slice(0, n) for n in np.shape(part)[:1]])] = part
    out = out[(slice(None), *rest)]
    return out[0] if one else out


_COLUMNS = {
    "typeid": (),
    "mass": (),
    "charge": (),
    "diameter": (),
    "body": (),
    "moment_inertia": ("xyz",),
    "position": ("xyz",),
    "orientation": ("quaternion",),
    "velocity": ("xyz",),
    "angmom": ("quaternion",),
    "image": ("xyz",),
}
_WIDTH = {"xyz": 3, "quaternion": 4}


def gsd(builder, group, **options):
    """A trajectory of the HOOMD schema: frames by particles, with what frames take from the first one
    filled in; and the logged quantities."""
    handle = group._handle
    try:
        trajectory = Trajectory(handle.open.hoomd())
    except SpileError:
        plain(builder, group, **options)
        return
    arrays = group.arrays()
    frames = len(trajectory)
    counts = _counts(arrays.get("particles/N"), frames)
    most = int(counts.max(initial=0))
    first = trajectory[0].particles if frames else None
    for name, extra in _COLUMNS.items():
        dtype = getattr(first, name).dtype if first is not None else "f4"
        shape = (frames, most, *[_WIDTH[e] for e in extra])
        column = Computed(shape, dtype, _Column(trajectory, name, shape, dtype))
        builder.add(name, lazy(("frame", "particle", *extra), column))
    if counts.size and (counts != most).any():
        builder.add("particles", xr.Variable(("frame",), counts, {"long_name": "particles"}))
    box = Computed((frames, 6), "f8", _Column(trajectory, "box", (frames, 6), "f8"))
    builder.add("box", lazy(("frame", "box_part"), box))
    parts = np.array(["Lx", "Ly", "Lz", "xy", "xz", "yz"])
    builder.add("box_part", xr.Variable(("box_part",), parts), coord=True)
    log = _Log(trajectory)
    for path, array in arrays.items():
        if path.startswith("log/") and array._info.ragged is False:
            shape = _log_shape(array, frames)
            dims = ["frame"]
            dims += [builder.dim(f"{plain_name(path)}_{k}", n) for k, n in enumerate(shape[1:])]
            values = Computed(shape, array.dtype, _Logged(log, path, shape))
            builder.add(path, lazy(dims, values, attrs_of(array)))
    moments(builder, handle)


def _counts(array, frames):
    """The number of particles in each frame."""
    counts = np.zeros(frames, "i8")
    if array is None or frames == 0:
        return counts
    has = array._lengths()[0] >= 0 if array.frames is not None else np.ones(frames, bool)
    first = None
    for frame in np.flatnonzero(has):
        value = int(np.ravel(array._part((), int(frame), True))[0])
        counts[frame] = value
        first = value if frame == 0 else first
    counts[~has] = first or 0
    return counts


def _log_shape(array, frames):
    """As ``read_log`` has it: no dimensions for a single value."""
    rows = list(array._info.shape)
    if rows in ([1], [1, 1]):
        return (frames,)
    if len(rows) == 2 and rows[1] == 1:
        rows = rows[:1]
    return (frames, *rows)


class _Column:
    """A column of the particles over frames."""

    def __init__(self, trajectory, name, shape, dtype):
        self.trajectory = trajectory
        self.name = name
        self.shape = shape
        self.dtype = dtype

    def __call__(self, key):
        return filled(key, self.shape, self.dtype, self.read)

    def read(self, frame):
        read = self.trajectory[frame]
        return read.box if self.name == "box" else getattr(read.particles, self.name)


class _Log:
    """All logged quantities, read once."""

    def __init__(self, trajectory):
        self.trajectory = trajectory
        self.columns = None

    def __getitem__(self, name):
        if self.columns is None:
            self.columns = self.trajectory.log()
        return self.columns[name]


class _Logged:
    def __init__(self, log, name, shape):
        self.log = log
        self.name = name
        self.shape = shape

    def __call__(self, key):
        return self.log[self.name].reshape(self.shape)[key]


VIEWS = {"sdf": sdf, "gsd": gsd}
