"""Datasets of trajectories in the HOOMD schema, for xarray."""

import functools

import numpy as np
import xarray as xr

from .._create import LINKS
from .._padding import filled
from .._storable import STRING
from .._xarray import (
    Computed,
    attrs_of,
    dimensions_of,
    frame_coordinates,
    lazy,
    plain,
    plain_name,
    variable,
)
from ..errors import SpileError
from .fl import GSDFile
from .hoomd import HOOMDTrajectory

__all__ = ["gsd"]

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
    """A trajectory in the HOOMD schema: particle properties with dimensions frame and particle, and
    the logged quantities. Values missing in a frame are those of frame 0 or the defaults of the schema.
    Where the number of particles or links changes, rows that a frame lacks are NaN, and integers are
    floats."""
    handle = group._handle
    try:
        trajectory = HOOMDTrajectory(GSDFile._of(handle.open.gsd(), handle.name))
    except SpileError:
        trajectory = None
    if trajectory is None or group._number:
        plain(builder, group, **options)
        return
    arrays = group.arrays()
    frames = len(trajectory)
    shown = {"configuration/step", "configuration/box", "particles/N"}
    counts = _counts(arrays.get("particles/N"), frames)
    most = int(counts.max(initial=0))
    first = trajectory[0] if frames else None

    def column(path, dims, lengths, padded, default="f4"):
        """Adds the values at `path` of all frames; if `padded`, to `lengths`, by NaN."""
        dtype = trajectory._read_array(0, path).dtype if frames else np.dtype(default)
        if padded and dtype.kind in "iu":
            dtype = np.dtype("f8")
        shape = (frames, *lengths)
        values = Computed(shape, dtype, _Column(trajectory, path, shape, dtype))
        builder.sizes.update(zip(("frame", *dims), shape))
        name = path.removeprefix("particles/").removeprefix("configuration/")
        builder.add(plain_name(name), lazy(("frame", *dims), values))
        shown.add(path)

    def number(name, counts):
        """Adds the numbers of particles or links."""
        shown.add(f"{name}/N")
        about = {"long_name": f"number of {name}"}
        builder.add(f"n_{name}", xr.Variable(("frame",), counts, about))

    varying = bool((counts != most).any())
    for name, extra in _COLUMNS.items():
        lengths = (most, *[_WIDTH[e] for e in extra])
        column(f"particles/{name}", ("particle", *extra), lengths, varying)
    number("particles", counts)
    column("configuration/box", ("box_part",), (6,), False)
    parts = np.array(["Lx", "Ly", "Lz", "xy", "xz", "yz"], STRING)
    builder.add("box_part", xr.Variable(("box_part",), parts), coord=True)
    for name, width in LINKS.items():
        counts = _counts(arrays.get(f"{name}/N"), frames)
        if counts.any():
            link = name.removesuffix("s")
            most = int(counts.max())
            varying = bool((counts != most).any())
            second = "value" if name == "constraints" else "typeid"
            column(f"{name}/group", (link, f"{link}_member"), (most, width), varying)
            column(f"{name}/{second}", (link,), (most,), varying)
            number(name, counts)
    for name in ("particles", *LINKS):
        path = f"{name}/types"
        if path in arrays and (arrays[path]._lengths()[0][1:] < 0).all():
            types = np.array(getattr(first, name).types, STRING)
            builder.add(f"{name}_types", xr.Variable((f"{name.removesuffix('s')}_type",), types))
            shown.add(path)
    log = _Log(trajectory)
    for path, array in arrays.items():
        if path.startswith("log/") and array._info.ragged is False:
            shape, dtype = _log_shape(array, frames), array.dtype
            if dtype == "S1" and len(shape) == 2 and shape[1]:
                shape, dtype = (frames,), np.dtype(f"S{shape[1]}")
            dims = ["frame"]
            dims += [builder.dim(f"{plain_name(path)}_{k}", n) for k, n in enumerate(shape[1:])]
            values = Computed(shape, dtype, _Logged(log, path, shape, dtype))
            builder.add(builder.name(path), lazy(dims, values, attrs_of(array)))
            shown.add(path)
    dimensions, owned = dimensions_of(handle)
    for path, array in arrays.items():
        if path not in shown:
            names = [dimensions[k][0] for k in owned[array._number]]
            dims = [builder.dim(name, length) for name, length in zip(names, array._info.shape)]
            variable(builder, builder.name(path), array, dims)
    frame_coordinates(builder, handle)


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
    """Shape of a logged quantity over all frames, as in ``gsd.hoomd.read_log``: single values have no
    dimension of their own."""
    rows = list(array._info.shape)
    if rows in ([1], [1, 1]):
        return (frames,)
    if len(rows) == 2 and rows[1] == 1:
        rows = rows[:1]
    return (frames, *rows)


class _Column:
    """Values of the schema over all frames."""

    def __init__(self, trajectory, path, shape, dtype):
        self.trajectory = trajectory
        self.path = path
        self.shape = shape
        self.dtype = dtype

    def __call__(self, key):
        read = functools.partial(self.trajectory._read_array, path=self.path)
        return filled(key, self.shape, self.dtype, read)


class _Log:
    """The logged quantities, read at the first access."""

    def __init__(self, trajectory):
        self.trajectory = trajectory
        self.columns = None

    def __getitem__(self, name):
        if self.columns is None:
            self.columns = self.trajectory._log("*", False, strings=False)
        return self.columns[name]


class _Logged:
    """A logged quantity over all frames."""

    def __init__(self, log, name, shape, dtype):
        self.log = log
        self.name = name
        self.shape = shape
        self.dtype = dtype

    def __call__(self, key):
        return self.log[self.name].view(self.dtype).reshape(self.shape)[key]
