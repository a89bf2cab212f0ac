"""The xarray engine ``spile``.

>>> import xarray as xr
>>> ds = xr.open_dataset(spile.sample("sdf"), engine="spile")
>>> ds["Electric_Field_Ex"].dims
('X_Grid_mid', 'Y_Grid_mid')
"""

import functools
import os
import warnings

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from ._array import MOST_POINTS, evenly
from ._open import open
from ._spile import probe
from ._storable import storable_attrs, storable_name, storable_variables, unique
from ._tree import File, Group, node
from .errors import SpileError

__all__ = ["SpileBackend", "dataset"]

#: Formats without another xarray engine. Other formats need ``engine="spile"``.
OWN = {"scda", "sdf", "taf", "gsd", "iotk"}


#: Attributes of missing values, which are NaN in datasets.
MISSING = ("_FillValue", "missing_value")

#: Limits of stored values, which are not those of scaled values.
STORED_LIMITS = ("valid_min", "valid_max", "valid_range")


class Lazy(BackendArray):
    """A lazily read array. Reads are stateless and can run in several threads."""

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
    """A lazily computed array: `make` is called with the index."""

    def __init__(self, shape, dtype, make):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.make = make

    def __getitem__(self, key):
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, self.make)


def lazy(dims, array, attrs=None):
    """A lazy `xarray.Variable`."""
    backend = array if isinstance(array, BackendArray) else Lazy(array)
    data = indexing.LazilyIndexedArray(backend, _whole(len(backend.shape)))
    return xr.Variable(dims, data, attrs, fastpath=True)


@functools.cache
def _whole(rank):
    """The indexer of a whole array. Cached, because creating it dominates the time to open a file."""
    return indexing.BasicIndexer((slice(None),) * rank)


class Builder:
    """Collects the variables of a dataset under unique names."""

    def __init__(self, drop=(), portable=False, decode_times=True):
        self.drop = {drop} if isinstance(drop, str) else set(drop or ())
        #: Names of `drop` that were found.
        self.dropped = set()
        #: Attributes of the dataset besides those of the file.
        self.attrs = {}
        self.portable = portable
        self.decode_times = decode_times
        #: Whether texts have a type of fixed length.
        self.fixed_texts = False
        self.variables = {}
        self.coords = set()
        self.sizes = {}
        #: Names of dimensions, which other variables must not have.
        self.reserved = set()
        #: Names of the variables of each array without and with its suffix, by node number. Ragged
        #: arrays have two.
        self.names = {}

    def name(self, path):
        """A unique variable name for `path`."""
        return unique(plain_name(path), self.variables, self.reserved)

    def dim(self, name, length, other=None):
        """The dimension `name`; if that has another length, `other` or a name derived from `name`."""
        for free in (name, other, f"{name}_{length}"):
            if free and self.sizes.setdefault(free, length) == length:
                return free
        count = 2
        while self.sizes.setdefault(f"{name}_{length}_{count}", length) != length:
            count += 1
        return f"{name}_{length}_{count}"

    def add(self, name, variable, coord=False, array=None, suffix=""):
        """Adds a variable; `array` is the array of the file that it represents, `suffix` distinguishes
        several variables of one array."""
        if name + suffix in self.drop:
            self.dropped.add(name + suffix)
            return
        if array is not None and array._info.numpy is None:
            message = f"{array.path}: {array.type} values are rounded to float64"
            warnings.warn(message, stacklevel=2)
        attrs = variable.attrs
        if self.decode_times and " since " in str(attrs.get("units", "")):
            self.add_units_of_bounds(attrs)
            variable = decoded(name, variable, decode_times=self.decode_times)
        elif str(attrs.get("dtype")).startswith(("bool", "timedelta64")):
            # Types of xarray that NetCDF does not have.
            variable = decoded(name, variable, decode_timedelta=True)
        variable.attrs = storable_attrs(variable.attrs)
        for part, made in storable_variables(
            name, variable, self.portable, self.fixed_texts
        ).items():
            full = name + suffix + part
            self.variables[full] = made
            if coord or made.dims == (full,):
                self.coords.add(full)
            if array is not None:
                self.names.setdefault(array._number, []).append((full, suffix + part))

    def add_units_of_bounds(self, attrs):
        """Decodes the bounds of a variable of times, whose units are those of the variable."""
        name = plain_name(str(attrs.get("bounds", "")))
        bounds = self.variables.get(name)
        if bounds is not None and "units" not in bounds.attrs:
            units = {key: attrs[key] for key in ("units", "calendar") if key in attrs}
            bounds.attrs.update(units)
            self.variables[name] = decoded(name, bounds, decode_times=self.decode_times)

    def dataset(self, group):
        """The dataset. Only coordinates are passed to the constructor, which creates their indexes.
        Data variables are consistent by construction; validating thousands of them would dominate the
        time to open a file."""
        coords = {n: v for n, v in self.variables.items() if n in self.coords}
        data = {n: v for n, v in self.variables.items() if n not in self.coords}
        file = group._handle.open
        attrs = {"filename": group._handle.name, **file.summary(), **group.attrs}
        attrs = {**storable_attrs(attrs), **self.attrs}
        made = xr.Dataset(coords=coords, attrs=attrs)
        try:
            return made._replace(
                variables={**data, **made._variables}, dims=sizes(data, made.sizes)
            )
        except (AttributeError, TypeError):
            return xr.Dataset(data, coords, attrs)


def plain_name(path):
    """`path` as a variable name without slashes, spaces and hyphens."""
    return storable_name(path.replace("/", "_").replace(" ", "_").replace("-", "_"))


def spaced(path):
    """`path` as a descriptive name."""
    return path.replace("/", " ").replace("_", " ").replace("-", " ")


def decoded(name, variable, decode_times=False, decode_timedelta=False):
    """A variable of times, booleans or time differences decoded by xarray; the variable itself if its
    units are not valid."""
    try:
        return xr.conventions.decode_cf_variable(
            name,
            variable,
            mask_and_scale=False,
            decode_times=decode_times,
            decode_timedelta=decode_timedelta,
        )
    except ValueError:
        return variable


def sizes(variables, known):
    """Lengths of all dimensions. Raises `TypeError` if a dimension has two lengths."""
    found = dict(known)
    for variable in variables.values():
        for dim, length in zip(variable.dims, variable.shape):
            if found.setdefault(dim, length) != length:
                raise TypeError(f"dimension {dim} has more than one length")
    return found


def dimensions_of(handle):
    """The dimensions of a file, as of `_spile.File.dimensions`, with storable names."""
    dimensions, owned = handle.open.dimensions()
    names = {}
    for number, (name, *_) in enumerate(dimensions):
        names[unique(storable_name(name), names)] = number
    return [(name, *dimensions[number][1:]) for name, number in names.items()], owned


def plain(builder, group, **_):
    """Any file. Dimensions have the same unique names as in Zarr and NetCDF files written by spile."""
    handle = group._handle
    dimensions, owned = dimensions_of(handle)
    arrays = group.arrays().values()
    used = dict.fromkeys(place for array in arrays for place in owned[array._number])
    builder.reserved.update(dimensions[k][0] for k in used)
    for array in arrays:
        places = owned[array._number]
        # Coordinate arrays are added below, under the name of their dimension.
        if not (len(places) == 1 and dimensions[places[0]][2] == array._number):
            variable(builder, builder.name(array.path), array, [dimensions[k][0] for k in places])
    for name, length, coord, attrs in (dimensions[k] for k in used):
        if isinstance(coord, tuple) and length <= MOST_POINTS:
            points = xr.Variable((name,), evenly(*coord, length), attrs)
            builder.add(name, points, coord=True)
        elif isinstance(coord, int):
            array = node(handle, coord)
            label = name if array.frames is None else f"{name}_moving"
            variable(builder, label, array, [name], coord=True)
    named_coordinates(builder, arrays)
    frame_coordinates(builder, handle)


def named_coordinates(builder, arrays):
    """Makes variables coordinates that the attribute ``coordinates`` of another array names (CF
    conventions, section 5)."""
    for array in arrays:
        group = array.path.rpartition("/")[0]
        for name in str(array.attrs.get("coordinates", "")).split():
            places = (plain_name(f"{group}/{name}"), plain_name(name))
            found = next((place for place in places if place in builder.variables), None)
            if found is not None:
                builder.coords.add(found)


def variable(builder, name, array, dims, coord=False):
    """Adds an array with dimensions `dims`."""
    if array._info.ragged:
        ragged(builder, name, array)
    elif array.frames is not None and array.ragged:
        by_frame(builder, name, array, dims)
    else:
        dims = dims if array.frames is None else ["frame", *dims]
        builder.add(name, lazy(dims, array, attrs_of(array)), coord, array)


def attrs_of(array):
    """Attributes of an array, with a long name."""
    attrs = array_attrs(array)
    attrs.setdefault("long_name", spaced(array.path))
    return attrs


def array_attrs(array):
    """Attributes of an array, without those that reading has applied."""
    applied = {"coordinates", *(MISSING if array._mapped else ())}
    if array.scaling is not None:
        applied.update(STORED_LIMITS)
    return {name: value for name, value in array.attrs.items() if name not in applied}


def ragged(builder, name, array):
    """Adds an array with elements of different lengths: concatenated bytes, and their offsets."""
    offsets = array.offsets
    end = plain_name(array.path)
    rows = Computed((int(offsets[-1]),), "u1", lambda key: array._part(key, None, True))
    builder.add(name, lazy((f"{end}_byte",), rows, attrs_of(array)), array=array)
    about = {"sample_dimension": f"{end}_byte"}
    offsets = xr.Variable((f"{end}_offset",), offsets, about)
    builder.add(name, offsets, array=array, suffix="_offsets")


def by_frame(builder, name, array, dims):
    """Adds an array with frames of different lengths as a CF contiguous ragged array: concatenated
    rows, and the number of rows of each frame."""
    rows = np.maximum(array._lengths()[0], 0)
    row = f"{plain_name(array.path)}_row"
    joined = Joined(array, int(rows.sum()))
    builder.add(name, lazy((row, *dims[1:]), joined, attrs_of(array)), array=array)
    count = xr.Variable(("frame",), rows, {"sample_dimension": row})
    builder.add(name, count, array=array, suffix="_rows")


class Joined(Lazy):
    """Concatenated frames. Reads only the frames that contain selected rows."""

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


def frame_coordinates(builder, handle, dim="frame", attrs=None):
    """Adds steps and times of the frames as coordinates; `attrs` are those of the times."""
    if handle.open.frames is None:
        return
    steps, times = handle.steps_and_times()
    if (steps >= 0).any():
        name = unique("step", builder.variables)
        builder.add(name, xr.Variable((dim,), steps), coord=True)
    if not np.isnan(times).all():
        name = unique("time", builder.variables)
        builder.add(name, xr.Variable((dim,), times, attrs), coord=True)


def dataset(group, *, chunks=None, **options):
    """A group as a lazy `xarray.Dataset`; the other options are those of `built`."""
    _, made = built(group, **options)
    return made if chunks is None else made.chunk(chunks)


def data_array(array):
    """An array as a lazy `xarray.DataArray`, as it is in the dataset of its file."""
    builder, made = built(node(array._handle, 0), keep_particles=True)
    names = builder.names.get(array._number)
    if array._at is None and not array._raw and names:
        return made[names[0][0]]
    name = plain_name(array.path)
    return xr.DataArray(lazy(array.dims, array, attrs_of(array)), name=name)


def built(
    group,
    *,
    drop_variables=None,
    keep_particles=False,
    probe_names=None,
    deck_path=None,
    staggered=False,
    portable=False,
    decode_times=True,
):
    """A group as a lazy `xarray.Dataset`, and its `Builder`."""
    from . import _schemas

    builder = Builder(drop_variables, portable, decode_times)
    build = _schemas.VIEWS.get(group._handle.open.format, plain)
    options = {"keep_particles": keep_particles, "probe_names": probe_names}
    build(builder, group, deck_path=deck_path, staggered=staggered, **options)
    made = builder.dataset(group)
    made.encoding["source"] = group._handle.name
    return builder, made


class SpileBackend(BackendEntrypoint):
    """Opens all formats that spile reads. Files in scda, SDF, TAF, GSD and IOTK format are recognised
    without ``engine="spile"``."""

    description = "Open scda, SDF, TAF, GSD, IOTK and other files with spile"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "keep_particles",
        "probe_names",
        "deck_path",
        "staggered",
        "portable",
        "decode_times",
        "derived",
        "group",
        "mmap",
    )
    supports_groups = True

    def guess_can_open(self, filename_or_obj):
        """Whether the first bytes of the file are those of an scda, SDF, TAF, GSD or IOTK file. The file
        name is ignored."""
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
        deck_path=None,
        staggered=False,
        portable=False,
        decode_times=True,
        derived=False,
        group=None,
        mmap=False,
    ):
        file = _file(filename_or_obj, derived or bool(staggered), mmap)
        chosen = file if group is None else file[group]
        made = dataset(
            chosen,
            drop_variables=drop_variables,
            keep_particles=keep_particles,
            probe_names=probe_names,
            deck_path=deck_path,
            staggered=staggered,
            portable=portable,
            decode_times=decode_times,
        )
        made.set_close(file.close)
        return made

    def open_groups_as_dict(
        self,
        filename_or_obj,
        *,
        drop_variables=None,
        keep_particles=False,
        probe_names=None,
        deck_path=None,
        staggered=False,
        portable=False,
        decode_times=True,
        derived=False,
        mmap=False,
    ):
        from . import _schemas

        file = _file(filename_or_obj, derived or bool(staggered), mmap)
        as_tree = _schemas.TREES.get(file.format)
        if as_tree is None:
            return groups(file, drop_variables, portable, decode_times)
        made = dataset(
            file,
            drop_variables=drop_variables,
            keep_particles=keep_particles,
            probe_names=probe_names,
            deck_path=deck_path,
            staggered=staggered,
            portable=portable,
            decode_times=decode_times,
        )
        return as_tree(made)

    def open_datatree(self, filename_or_obj, **options):
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def groups(file, drop=(), portable=False, decode_times=True):
    """The datasets of all groups of a file, by path.

    A variable has the dimensions and coordinates that it has in the dataset of the whole file. Arrays
    below an array ``a`` are in the group ``a_``, because a DataTree node has either values or children.
    """
    handle = file._handle
    builder = Builder((), portable, decode_times)
    plain(builder, file)
    dimensions, owned = dimensions_of(handle)
    coords = {name: builder.variables[name] for name in builder.variables if name in builder.coords}
    matching = {}

    def coordinates(dims):
        if dims not in matching:
            matching[dims] = {n: c for n, c in coords.items() if set(c.dims) <= set(dims)}
        return matching[dims]

    def add(local, name, array):
        if array._number not in builder.names:
            lengths = zip([dimensions[k][0] for k in owned[array._number]], array._info.shape)
            dims = [builder.dim(dim, length) for dim, length in lengths]
            variable(builder, builder.name(array.path), array, dims)
        for full, suffix in builder.names[array._number]:
            shown = builder.variables[full]
            local.coordinates.update(coordinates(shown.dims))
            if name + suffix != full or full not in coords:
                local.variables[name + suffix] = shown

    paths, arrays, children = handle.tree
    places = {0: ""}
    found = {}
    for number in range(len(paths)):
        below = children.get(number, ())
        names, used = {}, set()
        for child in below:
            names[child] = unique(storable_name(paths[child].rpartition("/")[2]), used)
            used.add(names[child])
        for child in below:
            place = unique(f"{names[child]}_", used) if arrays[child] else names[child]
            places[child] = f"{places[number]}/{place}"
        if arrays[number] and not below:
            continue
        local = _GroupVariables({} if number else dict(coordinates(())))
        for child in below:
            if arrays[child]:
                add(local, names[child], node(handle, child))
        inner = {names[child] for child in below if not arrays[child]}
        attrs = storable_attrs(handle.open.attrs(number))
        found[places[number] or "/"] = local.dataset(attrs, inner, drop)
    return found


class _GroupVariables:
    """Variables and coordinates of one group."""

    def __init__(self, coordinates):
        self.coordinates = coordinates
        self.variables = {}

    def dataset(self, attrs, children, drop):
        """The dataset, without `drop`. Names of child groups cannot be coordinates."""
        dropped = {drop} if isinstance(drop, str) else set(drop or ())
        data = {n: v for n, v in self.variables.items() if n not in dropped}
        hidden = dropped | children | set(self.variables)
        coords = {n: v for n, v in self.coordinates.items() if n not in hidden}
        return xr.Dataset(data, coords, attrs)


def _file(what, derived, mmap):
    if isinstance(what, File):
        return what
    if isinstance(what, Group):
        raise TypeError("expected a file; select a group with group=")
    return open(what, derived=derived, mmap=mmap)
