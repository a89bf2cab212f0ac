"""Arrays of an open file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._node import Handle, Node
from .errors import ArgumentError, LimitError

if TYPE_CHECKING:
    import dask.array
    import pandas

    from ._tree import Group

__all__ = ["Array", "evenly"]

#: Bytes that `Array.stream` hands out at once unless told.
CHUNK = 16 << 20

#: Evenly spaced points that are worth an array.
MOST_POINTS = 1 << 26

#: NumPy's word for whether the first index runs fastest.
_ORDER: Any = {False: "C", True: "F"}


def evenly(start: float, step: float, length: int) -> np.ndarray:
    """Evenly spaced points. A file may say that they begin at infinity."""
    with np.errstate(all="ignore"):
        return start + step * np.arange(length)


def restored(how: Any, number: int, at: int | None, raw: bool) -> Array:
    """The other end of a pickle."""
    function, arguments = how
    return Array(function(*arguments)._handle, number, at, raw)


class Array(Node):
    """An array of a file. Reads when it is indexed, and only what was asked for.

    >>> field = spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"]
    >>> field.shape, field.dims, field.dtype
    ((12, 10, 8), ('X', 'Y', 'Z'), dtype('float64'))
    >>> field[2, ..., ::-3].shape
    (10, 3)

    Values are physical: scaled numbers (TAF mappings, SDF multipliers, CF scale factors) are
    ``float64``, missing ones NaN; `stored` gives the numbers of the file. Where a file has frames, the first dimension
    is ``frame``. Elements, or frames, of different lengths make an array `ragged`: it has one
    dimension, its elements are arrays, and `offsets` and `values` have all of them end to end.
    """

    __slots__ = ("_info", "_at", "_raw", "_rows")

    def __init__(
        self, handle: Handle, number: int, at: int | None = None, raw: bool = False
    ) -> None:
        super().__init__(handle, number)
        self._at = at
        self._raw = raw
        self._info = handle.open.array(number)
        self._rows: tuple[np.ndarray, tuple[int, ...] | None] | None = None

    # What it is.

    @property
    def units(self) -> str | None:
        """Its units, where the file tells."""
        return self.attrs.get("units")

    @property
    def long_name(self) -> str | None:
        """Descriptive name, where known."""
        return self.attrs.get("long_name")

    @property
    def role(self) -> str:
        """What it is: ``field``, ``mesh``, ``points``, ``log``, ``trace``, ``table``, ``text``,
        ``cell`` or ``data``."""
        return self._info.role

    @property
    def mesh(self) -> str | None:
        """Path of the mesh of a field, or of the positions of points."""
        return self._info.mesh

    @property
    def centring(self) -> str | None:
        """Where the values of a field are: ``node``, ``cell``, ``face`` or ``edge``."""
        return self._info.centring

    @property
    def component(self) -> tuple[str, int] | None:
        """Name of the vector and number of the component, for components of a vector."""
        return self._info.component

    @property
    def point_set(self) -> str | None:
        """The species or other set of points that the values belong to."""
        return self._info.point_set

    @property
    def frames(self) -> int | None:
        """Number of frames; `None` where the array is the same in all."""
        return None if self._at is not None else self._info.frames

    @property
    def ragged(self) -> bool:
        """Elements, or frames, have lengths of their own."""
        if self._info.ragged:
            return True
        return self.frames is not None and self._lengths()[1] is None

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        if self.frames is not None:
            rest = self._lengths()[1]
            return (self.frames,) if rest is None else (self.frames, *rest)
        if self._at is not None and self._info.frames is not None:
            shape = self._handle.open.shape(self._number, self._at)
            if shape is None:
                raise KeyError(f"{self.path} is not in frame {self._at}")
            return tuple(shape)
        return self._info.shape

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        if self.frames is None:
            return self._info.dims
        return ("frame",) if self.ragged else ("frame", *self._info.dims)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.values.nbytes if self.ragged else self.size * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype:
        """Element type, in the byte order of the file."""
        if self._mapped or self._info.numpy is None:
            return np.dtype("f8")
        if self._bool:
            return np.dtype("?")
        return np.dtype(self._info.numpy)

    @property
    def type(self) -> str:
        """Element type in spile's words, such as ``float64-be`` or ``text[32]``."""
        return self._info.dtype

    @property
    def map(self) -> tuple[float, float] | None:
        """``(intercept, slope)`` from stored to physical values, or `None`."""
        return self._info.scaling

    @property
    def stored(self) -> Array:
        """The same array without its linear map."""
        return Array(self._handle, self._number, self._at, True)

    @property
    def coords(self) -> dict[str, Array | np.ndarray]:
        """Points along the dimensions that have some: names to arrays.

        >>> field = spile.open(golden("sdf/epoch1d_normal_0001.sdf"))["Electric Field/Ex"]
        >>> field.coords["X"].units
        'm'
        """
        points: dict[str, Array | np.ndarray] = dict(self._positions())
        if points:
            return points
        for name, coord, length in zip(self._info.dims, self._info.coords, self._info.shape):
            if isinstance(coord, tuple):
                start, step = coord
                if length > MOST_POINTS:
                    raise LimitError(f"{self.path} has {length} points along {name}: see grid")
                points[name] = evenly(start, step, length)
            elif coord is not None:
                points[name] = Array(self._handle, coord, self._at)
        return points

    @property
    def grid(self) -> dict[str, tuple[float, float]]:
        """``(start, step)`` of the dimensions whose points are evenly spaced."""
        found = zip(self._info.dims, self._info.coords)
        return {name: coord for name, coord in found if isinstance(coord, tuple)}

    @property
    def below(self) -> Group:
        """What is below the array, where something is."""
        from ._tree import Group

        return Group(self._handle, self._number)

    # What is in it.

    def frame(self, number: int) -> Array:
        """The array in one frame."""
        if self.frames is None:
            return self
        index = number + self.frames if number < 0 else number
        if not 0 <= index < self.frames:
            raise IndexError(f"there is no frame {number}; the file has {self.frames}")
        return Array(self._handle, self._number, index, self._raw)

    def __getitem__(self, key: Any) -> Any:
        return self.read(key)

    def read(self, key: Any = (), *, native: bool = False) -> Any:
        """What stands at `key`: whole numbers, slices, ``...``. With `native` in the byte order of the
        machine, otherwise in that of the file."""
        if self._info.ragged:
            return self._elements(key)
        if self.frames is not None:
            return self._stack(key, native)
        return self._part(key, self._at, native)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            array = self.view()
            return array if dtype is None else array.astype(dtype, copy=False)
        if self.ragged:
            raise TypeError(
                f"{self.path} has elements of different lengths: take offsets and values"
            )
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    def view(self) -> np.ndarray:
        """The array without a copy, read-only: where its bytes lie together in memory or in a file
        that was opened with ``mmap=True``, and mean what they say."""
        changed = self._mapped or self._bool or self._info.numpy is None or self._info.ragged
        if not changed and self.frames is None and self.dtype.itemsize:
            seen = self._handle.open.view(self._number, frame=self._at)
            if seen is not None:
                return seen.view(self.dtype).reshape(self.shape, order=_ORDER[self._info.fortran])
        hint = "open(..., mmap=True) maps files; index the array for a copy"
        raise ArgumentError(f"{self.path} cannot be had without a copy\nhint: {hint}", hint=hint)

    def __dlpack__(self, **options: Any) -> Any:
        try:
            # Who does not know about read-only memory gets a copy.
            return self.view().__dlpack__(**options)
        except (ArgumentError, BufferError):
            return self.read(native=True).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def stream(self, chunk: int = CHUNK) -> Iterator[Any]:
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
        fortran = self._info.fortran and self.frames is None
        axis = len(shape) - 1 if fortran else 0
        row = self.dtype.itemsize * math.prod(shape) // max(shape[axis], 1)
        rows = max(1, chunk // max(row, 1))
        for start in range(0, shape[axis], rows):
            part = slice(start, start + rows)
            yield self.read((..., part) if fortran else (part,))

    @property
    def offsets(self) -> np.ndarray:
        """Of a ragged array: where each element begins in `values`, and where the last one ends."""
        if self._info.ragged:
            return self._handle.open.offsets(self._number)
        if self.frames is None:
            raise ArgumentError(f"{self.path} is not ragged")
        rows = np.maximum(self._lengths()[0], 0)
        return np.concatenate([[0], np.cumsum(rows)]).astype("u8")

    @property
    def values(self) -> np.ndarray:
        """All elements; of a ragged array end to end."""
        if self._info.ragged:
            return self._part((), self._at, False)
        if not self.ragged:
            return self.read()
        parts = [part for part in (self[k] for k in range(len(self))) if part is not None]
        return np.concatenate(parts) if parts else np.empty(0, self.dtype)

    def to_dask(self, chunks: Any = "auto") -> dask.array.Array:
        """The array as a dask array that reads when it is computed."""
        from ._dask import array

        return array(self, chunks)

    def to_pandas(self) -> pandas.Series:
        """An array of one dimension as a series, with its points as index."""
        from ._tables import series

        return series(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single value has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        from ._show import array

        return array(self)

    def _repr_html_(self) -> str:
        from ._show import html_array

        return html_array(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self._handle.how, self._number, self._at, self._raw)

    # Implementation.

    def _positions(self) -> dict[str, Array]:
        """The position arrays of values on points, if the mesh is a group of such arrays."""
        mesh = self._info.mesh
        if self._info.role != "points" or mesh is None:
            return {}
        paths, is_array, children = self._handle.tree
        number = self._handle.open.find(mesh)
        if is_array[number]:
            return {}
        arrays = [Array(self._handle, k, self._at) for k in children.get(number, ()) if is_array[k]]
        return {array.name: array for array in arrays if array._info.role == "mesh"}

    @property
    def _mapped(self) -> bool:
        scaled = self._info.scaling is not None or self._info.has_missing
        return scaled and not self._raw and self._info.dtype[0] not in "ct"

    @property
    def _bool(self) -> bool:
        return self._info.dtype.startswith("bool")

    def _lengths(self) -> tuple[np.ndarray, tuple[int, ...] | None]:
        """Rows in each frame, and the lengths all frames have, if they have the same."""
        if self._rows is None:
            rows, even = self._handle.open.rows(self._number)
            shape = self._info.shape
            same = even and (len(rows) == 0 or ((rows == rows[0]).all() and rows[0] >= 0))
            self._rows = rows, shape if same else None
        return self._rows

    def _part(self, key: Any, frame: int | None, native: bool) -> Any:
        physical = self._mapped or self._info.numpy is None
        found = self._handle.open.read(self._number, key, frame=frame, physical=physical, native=native)
        if found is None:
            return None
        data, shape, fortran = found
        if not physical:
            dtype = np.dtype(self._info.numpy)
            data = (
                data.view(dtype.newbyteorder("=") if native else dtype)
                if data.size
                else np.empty(0, dtype)
            )
            if not data.size and 0 not in shape:
                data = np.zeros(math.prod(shape), dtype)
        data = data.reshape(shape, order=_ORDER[fortran])
        if self._bool:
            data = data != 0
        return data[()] if not shape else data

    def _elements(self, key: Any) -> Any:
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

    def _stack(self, key: Any, native: bool) -> Any:
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
        numbers = range(*first.indices(self.frames or 0))
        if self.ragged:
            return [self._part(rest, frame, native) for frame in numbers]
        if not numbers:
            # The shape and the type of what would be there.
            sample = self._part(rest, 0, native) if self.frames else np.empty(0, self.dtype)
            return np.empty((0, *np.shape(sample)), np.asarray(sample).dtype)
        return np.stack([self._part(rest, frame, native) for frame in numbers])
