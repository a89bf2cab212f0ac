"""The engine ``spile`` of xarray.

>>> import xarray as xr
>>> ds = xr.open_dataset(golden("sdf/epoch2d_4ranks_id4_0001.sdf"), engine="spile")
>>> ds["Electric_Field_Ex"].dims
('X_Grid_mid', 'Y_Grid_mid')
"""

import functools
import os

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from ._array import MOST_POINTS, evenly
from ._open import open
from ._spile import probe
from ._tree import File, Group, node
from .errors import SpileError

__all__ = ["SpileBackend", "dataset"]

#: Formats that nobody else opens with xarray; the others are opened when the engine is named.
OWN = {"scda", "sdf", "taf", "gsd", "iotk"}


class Lazy(BackendArray):
    """An array that reads what is asked for when it is asked for. Reads keep no state, so that any
    number of threads may."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype.newbyteorder("=")

    def __getitem__(self, key):
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, self._read)

    def _read(self, key):
        return np.asarray(self.array.read(key, native=True))


class Computed(BackendArray):
    """Values that a function makes when they are asked for."""

    def __init__(self, shape, dtype, make):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.make = make

    def __getitem__(self, key):
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, self.make)


def lazy(dims, array, attrs=None):
    """A variable of xarray that reads when it is used."""
    backend = array if isinstance(array, BackendArray) else Lazy(array)
    data = indexing.LazilyIndexedArray(backend, _whole(len(backend.shape)))
    return xr.Variable(dims, data, attrs, fastpath=True)


@functools.cache
def _whole(rank):
    """All of an array; making this anew takes as long as all the rest."""
    return indexing.BasicIndexer((slice(None),) * rank)


class Builder:
    """The variables of a dataset, each under a name of its own."""

    def __init__(self, drop=()):
        self.drop = {drop} if isinstance(drop, str) else set(drop or ())
        self.variables = {}
        self.coords = set()
        self.sizes = {}

    def name(self, path):
        """`path` as a name that other formats can hold, and that is free."""
        name = plain_name(path)
        free, count = name, 1
        while free in self.variables:
            count += 1
            free = f"{name}_{count}"
        return free

    def dim(self, name, length, other=None):
        """A dimension called `name`, or something like it where that has another length."""
        for free in (name, other, f"{name}_{length}"):
            if free and self.sizes.setdefault(free, length) == length:
                return free
        count = 2
        while self.sizes.setdefault(f"{name}_{length}_{count}", length) != length:
            count += 1
        return f"{name}_{length}_{count}"

    def add(self, name, variable, coord=False):
        if name in self.drop:
            return
        self.variables[name] = variable
        if coord:
            self.coords.add(name)

    def dataset(self, group):
        """Coordinates go through xarray's front door, where they get their indexes. Everything else is
        known to fit: looking at thousands of variables once more would be most of the time that it
        takes to open them."""
        coords = {n: v for n, v in self.variables.items() if n in self.coords}
        data = {n: v for n, v in self.variables.items() if n not in self.coords}
        file = group._handle.open
        attrs = {"filename": group._handle.name, **file.summary(), **group.attrs}
        made = xr.Dataset(coords=coords, attrs=attrs)
        try:
            return made._replace(
                variables={**data, **made._variables}, dims=sizes(data, made.sizes)
            )
        except (AttributeError, TypeError):
            return xr.Dataset(data, coords, attrs)


def plain_name(path):
    """`path` as a name that other formats can hold."""
    return path.replace("/", "_").replace(" ", "_").replace("-", "_")


def spaced(path):
    """`path` for people."""
    return path.replace("/", " ").replace("_", " ").replace("-", " ")


def sizes(variables, known):
    """Dimensions and their lengths; what does not agree is for xarray to complain about."""
    found = dict(known)
    for variable in variables.values():
        for dim, length in zip(variable.dims, variable.shape):
            if found.setdefault(dim, length) != length:
                raise TypeError(f"{dim} has more than one length")
    return found


def plain(builder, group, **_):
    """Any tree: dimensions get names that are their own, as in Zarr and NetCDF files of spile."""
    handle = group._handle
    dimensions, owned = handle.open.dimensions()
    used = {}
    for array in group.arrays().values():
        places = owned[array._number]
        used.update(dict.fromkeys(places))
        # Points stand under the name of their dimension.
        if not (len(places) == 1 and dimensions[places[0]][2] == array._number):
            variable(builder, builder.name(array.path), array, [dimensions[k][0] for k in places])
    for name, length, coord in (dimensions[k] for k in used):
        if isinstance(coord, tuple) and length <= MOST_POINTS:
            builder.add(name, xr.Variable((name,), evenly(*coord, length)), coord=True)
        elif isinstance(coord, int):
            array = node(handle, coord)
            label = name if array.frames is None else f"{name}_moving"
            variable(builder, label, array, [name], coord=True)
    moments(builder, handle)


def variable(builder, name, array, dims, coord=False):
    """An array along dimensions of these names."""
    if array._info.ragged:
        ragged(builder, name, array)
    elif array.frames is not None and array.ragged:
        by_frame(builder, name, array, dims)
    else:
        dims = dims if array.frames is None else ["frame", *dims]
        builder.add(name, lazy(dims, array, attrs_of(array)), coord)


def attrs_of(array):
    attrs = array.attrs
    attrs.setdefault("long_name", spaced(array.path))
    return attrs


def ragged(builder, name, array):
    """Elements of different lengths, as bytes end to end and where each begins."""
    offsets = array.offsets
    end = plain_name(array.path)
    rows = Computed((int(offsets[-1]),), "u1", lambda key: array._part(key, None, True))
    builder.add(name, lazy((f"{end}_byte",), rows, attrs_of(array)))
    about = {"sample_dimension": f"{end}_byte"}
    builder.add(f"{name}_offsets", xr.Variable((f"{end}_offset",), offsets, about))


def by_frame(builder, name, array, dims):
    """Frames of different lengths end to end, and how many rows each has (CF's contiguous ragged
    arrays)."""
    rows = np.maximum(array._lengths()[0], 0)
    row = f"{plain_name(array.path)}_row"
    joined = Joined(array, int(rows.sum()))
    builder.add(name, lazy((row, *dims[1:]), joined, attrs_of(array)))
    builder.add(f"{name}_rows", xr.Variable(("frame",), rows, {"sample_dimension": row}))


class Joined(Lazy):
    """Frames end to end; only those are read that have some of the rows."""

    def __init__(self, array, rows):
        self.array = array
        self.shape = (rows, *array._info.shape[1:])
        self.dtype = array.dtype.newbyteorder("=")

    def _read(self, key):
        first, rest = key[0], key[1:]
        starts = self.array.offsets.astype("i8")
        wanted = np.arange(self.shape[0])[first]
        low, high = (wanted.min(), wanted.max() + 1) if wanted.size else (0, 0)
        begin = max(int(np.searchsorted(starts, low, "right")) - 1, 0)
        end = int(np.searchsorted(starts, high, "left"))
        parts = [self.array._part((), frame, True) for frame in range(begin, end)]
        parts = [np.atleast_1d(part) for part in parts if part is not None]
        whole = np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)
        return whole[(wanted - int(starts[begin]), *rest)]


def moments(builder, handle, dim="frame"):
    """Steps and times of the frames."""
    if handle.open.frames is None:
        return
    steps, times = handle.moments()
    if (steps >= 0).any():
        builder.add("step", xr.Variable((dim,), steps), coord=True)
    if not np.isnan(times).all():
        builder.add("time", xr.Variable((dim,), times, {"units": "s"}), coord=True)


def dataset(
    group,
    *,
    drop_variables=None,
    keep_particles=False,
    probe_names=None,
    chunks=None,
):
    """The dataset of a group, lazily."""
    from . import _schemas

    builder = Builder(drop_variables)
    build = _schemas.VIEWS.get(group._handle.open.format, plain)
    build(builder, group, keep_particles=keep_particles, probe_names=probe_names)
    made = builder.dataset(group)
    made.encoding["source"] = group._handle.name
    return made if chunks is None else made.chunk(chunks)


class SpileBackend(BackendEntrypoint):
    """Opens scda, SDF, TAF, GSD and IOTK files, and whatever else spile reads."""

    description = "Open scda, SDF, TAF, GSD, IOTK and other files with spile"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "keep_particles",
        "probe_names",
        "derived",
        "group",
        "mmap",
    )
    supports_groups = True

    def guess_can_open(self, filename_or_obj):
        """By the first bytes of the file, which are read at once, and not by its name."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        try:
            found = probe(os.fspath(filename_or_obj))
        except (SpileError, TypeError):
            return False
        return found is not None and found[0] in OWN and found[1] >= 50

    def open_dataset(
        self,
        filename_or_obj,
        *,
        drop_variables=None,
        keep_particles=False,
        probe_names=None,
        derived=False,
        group=None,
        mmap=False,
    ):
        file = _file(filename_or_obj, derived, mmap)
        chosen = file if group is None else file[group]
        made = dataset(
            chosen,
            drop_variables=drop_variables,
            keep_particles=keep_particles,
            probe_names=probe_names,
        )
        made.set_close(file.close)
        return made

    def open_groups_as_dict(
        self, filename_or_obj, *, drop_variables=None, derived=False, mmap=False, **_
    ):
        file = _file(filename_or_obj, derived, mmap)
        handle = file._handle
        paths, arrays, children = handle.tree
        dimensions, owned = handle.open.dimensions()
        found = {}
        for number, path in enumerate(paths):
            below = children.get(number, ())
            if arrays[number] and not below:
                continue
            builder = Builder(drop_variables)
            for array in (node(handle, child) for child in below if arrays[child]):
                dims = [dimensions[k][0] for k in owned[array._number]]
                variable(builder, builder.name(array.name), array, dims)
            # What is below an array stands beside it.
            place = f"/{path}_" if arrays[number] else f"/{path}"
            found[place] = xr.Dataset(builder.variables, attrs=handle.open.attrs(number))
        return found

    def open_datatree(self, filename_or_obj, **options):
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def _file(what, derived, mmap):
    if isinstance(what, File):
        return what
    if isinstance(what, Group):
        raise TypeError("name the file, and the group with group=")
    return open(what, derived=derived, mmap=mmap)
