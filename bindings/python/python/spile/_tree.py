"""Groups and arrays of an open file."""

import math
from collections.abc import Mapping

import numpy as np

from .errors import ArgumentError, LimitError

__all__ = ["Array", "File", "Group"]

#: Bytes that `Array.stream` hands out at once unless told.
CHUNK = 16 << 20

#: Evenly spaced points that are worth an array.
MOST_POINTS = 1 << 26


def evenly(start, step, length):
    """Evenly spaced points. A file may say that they begin at infinity."""
    with np.errstate(all="ignore"):
        return start + step * np.arange(length)


class Handle:
    """The compiled file and its tree, shared by all groups and arrays."""

    __slots__ = ("_tree", "file", "how", "name")

    def __init__(self, file, name, how):
        self.file = file
        self.name = name
        self.how = how
        self._tree = None

    @property
    def open(self):
        if self.file is None:
            raise ValueError(f"{self.name} is closed")
        return self.file

    @property
    def tree(self):
        """Paths, whether arrays, and numbers of children; asked for in one call."""
        if self._tree is None:
            paths, parents, arrays = self.open.nodes()
            children = {}
            for number in range(1, len(paths)):
                children.setdefault(parents[number], []).append(number)
            self._tree = paths, arrays, children
        return self._tree

    def moments(self):
        """Steps and times of all frames."""
        steps, times = self.open.moments()
        whole = [-1 if step is None else step for step in steps]
        # Steps are 64 bits without a sign, which hardly anybody needs.
        wide = any(step > np.iinfo("i8").max for step in whole)
        steps = np.array([max(step, 0) for step in whole], "u8") if wide else np.array(whole, "i8")
        return steps, np.array([np.nan if time is None else time for time in times], "f8")

    def node(self, number):
        return Array(self, number) if self.tree[1][number] else Group(self, number)


def _restored(how, number, options):
    function, arguments = how
    handle = function(*arguments)._handle
    if options is None:
        return handle.node(number)
    return Array(handle, number, *options)


class Group(Mapping):
    """A group: names of what is in it, to groups and arrays. A path leads further down."""

    __slots__ = ("_handle", "_number")

    def __init__(self, handle, number):
        self._handle = handle
        self._number = number

    @property
    def path(self):
        """The whole path; empty for the file itself."""
        return self._handle.tree[0][self._number]

    @property
    def name(self):
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def id(self):
        """The format's own name, where that differs."""
        return self._handle.open.id(self._number)

    @property
    def attrs(self):
        """What is said about the group, as a new dictionary."""
        return self._handle.open.attrs(self._number)

    def __getitem__(self, path):
        if not isinstance(path, str):
            raise KeyError(path)
        whole = f"{self.path}/{path}" if self._number else path
        try:
            return self._handle.node(self._handle.open.find(whole))
        except ArgumentError as error:
            raise KeyError(str(error)) from None

    def __iter__(self):
        paths, _, children = self._handle.tree
        return (paths[k].rpartition("/")[2] for k in children.get(self._number, ()))

    def __len__(self):
        return len(self._handle.tree[2].get(self._number, ()))

    def __contains__(self, path):
        try:
            self[path]
        except KeyError:
            return False
        return True

    def arrays(self):
        """All arrays of the group and below it, by their paths from here.

        >>> file = spile.open(golden("sdf/epoch1d_normal_0001.sdf"))
        >>> [path for path in file.arrays() if path.startswith("Electric")][:2]
        ['Electric Field/Ex', 'Electric Field/Ey']
        """
        paths, arrays, children = self._handle.tree
        found, todo = {}, list(reversed(children.get(self._number, ())))
        skip = len(self.path) + 1 if self._number else 0
        while todo:
            number = todo.pop()
            if arrays[number]:
                found[paths[number][skip:]] = Array(self._handle, number)
            todo.extend(reversed(children.get(number, ())))
        return found

    def to_xarray(self, **options):
        """The group as an `xarray.Dataset`; options are those of the engine."""
        from ._xarray import dataset

        return dataset(self, **options)

    def to_pandas(self):
        """Arrays of one dimension and the same length, side by side."""
        from ._tables import frame

        return frame(self)

    def __repr__(self):
        from ._show import tree

        return tree(self)

    def _repr_html_(self):
        from ._show import html

        return html(self)

    def __reduce__(self):
        return _restored, (self._handle.how, self._number, None)


class File(Group):
    """An open file: the root group, and what is known of the whole."""

    __slots__ = ()

    def __init__(self, file, name, how):
        super().__init__(Handle(file, name, how), 0)

    @property
    def filename(self):
        """Where it came from."""
        return self._handle.name

    @property
    def format(self):
        """Short name of the format."""
        return self._handle.open.format

    @property
    def title(self):
        """Full name of the format."""
        return self._handle.open.title

    @property
    def nbytes(self):
        """Length of the file."""
        return self._handle.open.nbytes

    @property
    def summary(self):
        """What a person wants to know first, in the format's own words."""
        return self._handle.open.summary()

    @property
    def findings(self):
        """What was noticed while the file was opened, as sentences."""
        rows = self._handle.open.findings()
        return [f"{where}: {what}" if where else what for _, _, where, what in rows]

    @property
    def frames(self):
        """Number of frames; `None` where the file has no such axis."""
        return self._handle.open.frames

    @property
    def steps(self):
        """The step of each frame; -1 where it is not told."""
        return self._handle.moments()[0]

    @property
    def times(self):
        """The time of each frame; NaN where it is not told."""
        return self._handle.moments()[1]

    @property
    def hoomd(self):
        """Frames and logs of the HOOMD schema, in the words of ``gsd.hoomd``.

        >>> frame = spile.open(golden("gsd/py-5.0.1/hoomd_full.gsd")).hoomd[0]
        >>> frame.particles.position.shape, frame.bonds.N
        ((20, 3), 3)
        """
        from ._hoomd import Trajectory

        return Trajectory(self._handle.open.hoomd())

    def close(self):
        """Lets go of the file. Arrays that were read stay."""
        self._handle.file = None

    @property
    def closed(self):
        return self._handle.file is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        function, arguments = self._handle.how
        return function, arguments


class Array:
    """An array of a file. Reads when it is indexed, and only what was asked for.

    >>> field = spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"]
    >>> field.shape, field.dims, field.dtype
    ((12, 10, 8), ('X', 'Y', 'Z'), dtype('float64'))
    >>> field[2, ..., ::-3].shape
    (10, 3)

    Values are what is meant: numbers with a linear map (TAF mappings, SDF multipliers) are
    ``float64``; `stored` gives the numbers of the file. Where a file has frames, the first dimension
    is ``frame``. Elements, or frames, of different lengths make an array `ragged`: it has one
    dimension, its elements are arrays, and `offsets` and `values` have all of them end to end.
    """

    __slots__ = ("_about", "_at", "_handle", "_number", "_raw", "_rows")

    def __init__(self, handle, number, at=None, raw=False):
        self._handle = handle
        self._number = number
        self._at = at
        self._raw = raw
        self._about = handle.open.array(number)
        self._rows = None

    # What it is.

    path = Group.path
    name = Group.name
    id = Group.id
    attrs = Group.attrs

    @property
    def units(self):
        """Its units, where the file tells."""
        return self.attrs.get("units")

    @property
    def frames(self):
        """Number of frames; `None` where the array is the same in all."""
        return None if self._at is not None else self._about[6]

    @property
    def ragged(self):
        """Elements, or frames, have lengths of their own."""
        if self._about[7]:
            return True
        return self.frames is not None and self._lengths()[1] is None

    @property
    def shape(self):
        """Lengths of the dimensions."""
        if self.frames is not None:
            rest = self._lengths()[1]
            return (self.frames,) if rest is None else (self.frames, *rest)
        if self._at is not None and self._about[6] is not None:
            shape = self._handle.open.shape(self._number, self._at)
            if shape is None:
                raise KeyError(f"{self.path} is not in frame {self._at}")
            return tuple(shape)
        return self._about[2]

    @property
    def dims(self):
        """Names of the dimensions."""
        if self.frames is None:
            return self._about[3]
        return ("frame",) if self.ragged else ("frame", *self._about[3])

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def nbytes(self):
        """Bytes of all elements in memory."""
        return self.values.nbytes if self.ragged else self.size * self.dtype.itemsize

    @property
    def dtype(self):
        """Element type, in the byte order of the file."""
        if self._mapped or self._about[1] is None:
            return np.dtype("f8")
        if self._bool:
            return np.dtype("?")
        return np.dtype(self._about[1])

    @property
    def type(self):
        """Element type in spile's words, such as ``float64-be`` or ``text[32]``."""
        return self._about[0]

    @property
    def map(self):
        """``(intercept, slope)`` from stored to meant values, or `None`."""
        return self._about[5]

    @property
    def stored(self):
        """The same array without its linear map."""
        return Array(self._handle, self._number, self._at, True)

    @property
    def coords(self):
        """Points along the dimensions that have some: names to arrays.

        >>> field = spile.open(golden("sdf/epoch1d_normal_0001.sdf"))["Electric Field/Ex"]
        >>> field.coords["X"].units
        'm'
        """
        points = {}
        for name, coord, length in zip(self._about[3], self._about[4], self._about[2]):
            if isinstance(coord, tuple):
                start, step = coord
                if length > MOST_POINTS:
                    raise LimitError(f"{self.path} has {length} points along {name}: see grid")
                points[name] = evenly(start, step, length)
            elif coord is not None:
                points[name] = Array(self._handle, coord, self._at)
        return points

    @property
    def grid(self):
        """``(start, step)`` of the dimensions whose points are evenly spaced."""
        found = zip(self._about[3], self._about[4])
        return {name: coord for name, coord in found if isinstance(coord, tuple)}

    @property
    def below(self):
        """What is below the array, where something is."""
        return Group(self._handle, self._number)

    # What is in it.

    def frame(self, number):
        """The array in one frame."""
        if self.frames is None:
            return self
        index = number + self.frames if number < 0 else number
        if not 0 <= index < self.frames:
            raise IndexError(f"there is no frame {number}; the file has {self.frames}")
        return Array(self._handle, self._number, index, self._raw)

    def __getitem__(self, key):
        return self.read(key)

    def read(self, key=(), *, native=False):
        """What stands at `key`: whole numbers, slices, ``...``. With `native` in the byte order of the
        machine, otherwise in that of the file."""
        if self._about[7]:
            return self._elements(key)
        if self.frames is not None:
            return self._stack(key, native)
        return self._part(key, self._at, native)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            array = self.view()
            return array if dtype is None else array.astype(dtype, copy=False)
        if self.ragged:
            raise TypeError(f"{self.path} has elements of different lengths: take offsets and values")
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    def view(self):
        """The array without a copy, read-only: where its bytes lie together in memory or in a file
        that was opened with ``mmap=True``, and mean what they say."""
        if not (self._mapped or self._bool or self._about[1] is None or self._about[7]):
            if self.frames is None and self.dtype.itemsize:
                seen = self._handle.open.view(self._number, frame=self._at)
                if seen is not None:
                    order = "F" if self._about[8] else "C"
                    return seen.view(self.dtype).reshape(self.shape, order=order)
        hint = "open(..., mmap=True) maps files; index the array for a copy"
        raise ArgumentError(f"{self.path} cannot be had without a copy\nhint: {hint}", hint=hint)

    def __dlpack__(self, **options):
        return self.read(native=True).__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def stream(self, chunk=CHUNK):
        """The array in pieces of about `chunk` bytes, along the dimension that runs slowest.

        >>> field = spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"]
        >>> sum(part.size for part in field.stream(1000)) == field.size
        True
        """
        if self.ragged:
            yield from (self[k] for k in range(len(self)))
            return
        shape = self.shape
        if not shape:
            yield self.read()
            return
        fortran = self._about[8] and self.frames is None
        axis = len(shape) - 1 if fortran else 0
        row = self.dtype.itemsize * math.prod(shape) // max(shape[axis], 1)
        rows = max(1, chunk // max(row, 1))
        for start in range(0, shape[axis], rows):
            part = slice(start, start + rows)
            yield self.read((..., part) if fortran else (part,))

    @property
    def offsets(self):
        """Of a ragged array: where each element begins in `values`, and where the last one ends."""
        if self._about[7]:
            return self._handle.open.offsets(self._number)
        if self.frames is None:
            raise ArgumentError(f"{self.path} is not ragged")
        rows = np.maximum(self._lengths()[0], 0)
        return np.concatenate([[0], np.cumsum(rows)]).astype("u8")

    @property
    def values(self):
        """All elements; of a ragged array end to end."""
        if self._about[7]:
            return self._part((), self._at, False)
        if not self.ragged:
            return self.read()
        parts = [part for part in (self[k] for k in range(self.frames)) if part is not None]
        return np.concatenate(parts) if parts else np.empty(0, self.dtype)

    def to_dask(self, chunks="auto"):
        """The array as a dask array that reads when it is computed."""
        from ._dask import array

        return array(self, chunks)

    def to_pandas(self):
        """An array of one dimension as a series, with its points as index."""
        from ._tables import series

        return series(self)

    def __len__(self):
        if not self.shape:
            raise TypeError("a single value has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __repr__(self):
        from ._show import array

        return array(self)

    def _repr_html_(self):
        from ._show import html_array

        return html_array(self)

    def __reduce__(self):
        return _restored, (self._handle.how, self._number, (self._at, self._raw))

    # How that is done.

    @property
    def _mapped(self):
        return self._about[5] is not None and not self._raw and self._about[0][0] not in "ct"

    @property
    def _bool(self):
        return self._about[0].startswith("bool")

    def _lengths(self):
        """Rows in each frame, and the lengths all frames have, if they have the same."""
        if self._rows is None:
            rows, even = self._handle.open.rows(self._number)
            shape = self._about[2]
            same = even and (len(rows) == 0 or (rows == rows[0]).all() and rows[0] >= 0)
            self._rows = rows, shape if same else None
        return self._rows

    def _part(self, key, frame, native):
        meant = self._mapped or self._about[1] is None
        found = self._handle.open.read(
            self._number, key, frame=frame, meant=meant, native=native
        )
        if found is None:
            return None
        data, shape, fortran = found
        if not meant:
            dtype = np.dtype(self._about[1])
            data = data.view(dtype.newbyteorder("=") if native else dtype) if data.size else np.empty(0, dtype)
            if not data.size and 0 not in shape:
                data = np.zeros(math.prod(shape), dtype)
        data = data.reshape(shape, order="F" if fortran else "C")
        if self._bool:
            data = data != 0
        return data[()] if not shape else data

    def _elements(self, key):
        """Elements of different lengths, as bytes."""
        if isinstance(key, tuple):
            if key in ((), (Ellipsis,)):
                key = slice(None)
            elif len(key) == 1:
                key = key[0]
        starts = self.offsets
        count = len(starts) - 1
        if isinstance(key, slice):
            return [self._elements(k) for k in range(*key.indices(count))]
        index = key + count if key < 0 else key
        if not 0 <= index < count:
            raise IndexError(f"there is no element {key}; there are {count}")
        return self._part(slice(int(starts[index]), int(starts[index + 1])), self._at, False)

    def _stack(self, key, native):
        """Frames on top of each other."""
        parts = key if isinstance(key, tuple) else (key,)
        rank = 1 if self.ragged else len(self.shape)
        if Ellipsis in [part if part is Ellipsis else None for part in parts]:
            at = next(k for k, part in enumerate(parts) if part is Ellipsis)
            fill = (slice(None),) * (rank - len(parts) + 1)
            parts = (*parts[:at], *fill, *parts[at + 1 :])
        first, rest = (parts[0] if parts else slice(None)), parts[1:]
        if not isinstance(first, slice):
            index = first.__index__()
            frame = index + self.frames if index < 0 else index
            if not 0 <= frame < self.frames:
                raise IndexError(f"there is no frame {index}; the file has {self.frames}")
            return self._part(rest, frame, native)
        numbers = range(*first.indices(self.frames))
        if self.ragged:
            return [self._part(rest, frame, native) for frame in numbers]
        if not numbers:
            # The shape and the type of what would be there.
            sample = self._part(rest, 0, native) if self.frames else np.empty(0, self.dtype)
            return np.empty((0, *np.shape(sample)), np.asarray(sample).dtype)
        return np.stack([self._part(rest, frame, native) for frame in numbers])
