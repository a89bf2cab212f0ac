"""Arrays of an open file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._index import is_advanced, take
from ._node import Handle, Node, ReadOnlyDict, read_only
from ._reduce import STREAMED
from .errors import ArgumentError, LimitError

if TYPE_CHECKING:
    import dask.array
    import pandas
    import xarray

    from ._tree import Group

__all__ = ["Array", "evenly"]

#: Default size of the chunks of `Array.stream` in bytes.
CHUNK = 16 << 20

#: Maximum length of computed uniform coordinates.
MOST_POINTS = 1 << 26

#: NumPy order by whether the first index runs fastest.
_ORDER: Any = {False: "C", True: "F"}


def evenly(start: float, step: float, length: int) -> np.ndarray:
    """Uniform coordinates. Damaged files can contain infinite or NaN values; they cause no warning."""
    with np.errstate(all="ignore"):
        return start + step * np.arange(length)


def restored(how: Any, number: int, at: int | None, raw: bool) -> Array:
    """Restores a pickled array."""
    function, arguments = how
    return Array(function(*arguments)._handle, number, at, raw)


class Array(Node):
    """A lazy array of a file. Indexing reads the selected values.

    >>> field = spile.open(spile.sample("sdf"))["Electric Field/Ex"]
    >>> field.shape, field.dims, field.dtype
    ((44, 36), ('X', 'Y'), dtype('float64'))
    >>> field[2:12, ::-12].shape
    (10, 3)

    Values are physical: scaled values (TAF mappings, SDF multipliers, CF scale factors) are
    ``float64``, missing values are NaN; `stored` is the array without scaling. In files with frames,
    the first dimension is ``frame``. An array whose elements or frames have different lengths is
    `ragged`: it has one dimension, its elements are arrays, and `offsets` and `values` contain the
    concatenated elements.
    """

    __slots__ = ("_at", "_bool", "_frames", "_info", "_raw", "_rows", "_types")

    def __init__(
        self, handle: Handle, number: int, at: int | None = None, raw: bool = False
    ) -> None:
        super().__init__(handle, number)
        self._at = at
        self._raw = raw
        self._info = handle.open.array(number)
        self._bool = self._info.dtype.startswith("bool")
        self._frames = self._info.frames if at is None else None
        self._rows: tuple[np.ndarray, tuple[int, ...] | None] | None = None
        #: Whether values are scaled; the type of stored values in the byte order of the file and in the
        #: native one.
        self._types: tuple[bool, np.dtype, np.dtype] | None = None

    # Metadata.

    @property
    def units(self) -> str | None:
        """Units of the values, or `None` if unknown."""
        return self.attrs.get("units")

    @property
    def long_name(self) -> str | None:
        """Descriptive name, or `None` if unknown.

        >>> spile.open(spile.sample("sdf"))["ex"].long_name
        'Electric Field/Ex'
        """
        return self.attrs.get("long_name")

    @property
    def role(self) -> str:
        """Role of the array: ``field`` (values on a mesh), ``mesh`` (positions of nodes), ``points``
        (values of particles or atoms), ``log`` (a quantity logged per frame), ``trace`` (an
        instrument channel), ``table``, ``text``, ``cell`` (cell vectors) or ``data`` (unknown)."""
        return self._info.role

    @property
    def mesh(self) -> str | None:
        """Path of the mesh of a field, or of the positions of points; otherwise `None`."""
        return self._info.mesh

    @property
    def centring(self) -> str | None:
        """Position of the values of a field on its mesh: ``node``, ``cell``, ``face`` or ``edge``;
        `None` if unknown."""
        return self._info.centring

    @property
    def component(self) -> tuple[str, int] | None:
        """Name of the vector and index of the component (0 is x) for components of a vector;
        otherwise `None`."""
        return self._info.component

    @property
    def point_set(self) -> str | None:
        """Species or other set of points that the values belong to, or `None`."""
        return self._info.point_set

    @property
    def frames(self) -> int | None:
        """Number of frames; `None` for an array without frames."""
        return self._frames

    @property
    def ragged(self) -> bool:
        """Whether elements or frames have different lengths."""
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
                raise KeyError(f"frame {self._at} does not contain {self.path}")
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
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; of a ragged array, its length."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of all elements in memory, in bytes."""
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
        """Element type as stored, in spile notation, such as ``float64-be`` or ``text[32]``."""
        return self._info.dtype

    @property
    def scaling(self) -> tuple[float, float] | None:
        """Linear scaling ``(intercept, slope)``: value = intercept + slope * stored. `None` for
        arrays without scaling."""
        return self._info.scaling

    @property
    def stored(self) -> Array:
        """The array of stored values, without scaling and missing values."""
        return Array(self._handle, self._number, self._at, True)

    @property
    def coords(self) -> dict[str, Array | np.ndarray]:
        """Coordinates. For fields and other arrays, by dimension name; dimensions without
        coordinates are omitted. For values of particles, their positions by axis name.

        Fields of SDF files have the coordinates of sdf-xarray: the cell centres, or the mesh nodes
        where the field has as many points.

        >>> file = spile.open(spile.sample("sdf"))
        >>> file["Electric Field/Ex"].coords["X"]
        <spile.Array 'Grid/Grid/X_mid' (X: 44) float64 [m]>
        >>> list(file["Particles/Px/electron"].coords)
        ['X', 'Y']

        Raises `LimitError` for uniform coordinates of more than 2**26 points; see `grid`.
        """
        points: dict[str, Array | np.ndarray] = dict(self._positions())
        if points:
            return ReadOnlyDict(points)
        for name, coord, length in zip(self._info.dims, self._info.coords, self._info.shape):
            if isinstance(coord, tuple):
                start, step = coord
                if length > MOST_POINTS:
                    hint = "use the attribute grid"
                    message = f"{self.path}: {length} coordinates along {name}"
                    raise LimitError(f"{message}\nhint: {hint}", hint=hint)
                points[name] = read_only(evenly(start, step, length))
            elif coord is not None:
                points[name] = Array(self._handle, coord, self._at)
        return ReadOnlyDict(points)

    @property
    def grid(self) -> dict[str, tuple[float, float]]:
        """``(start, step)`` of the dimensions with uniform coordinates, by dimension name."""
        found = zip(self._info.dims, self._info.coords)
        return ReadOnlyDict((name, coord) for name, coord in found if isinstance(coord, tuple))

    @property
    def below(self) -> Group:
        """The group of arrays below this array in the tree, often empty."""
        from ._tree import Group

        return Group(self._handle, self._number)

    # Values.

    def frame(self, number: int) -> Array:
        """The array in frame `number`, counted from 0; negative numbers count from the end. An array
        without frames is returned unchanged. Raises `IndexError` for other numbers."""
        if self.frames is None:
            return self
        return Array(self._handle, self._number, self._existing_frame(number), self._raw)

    def __getitem__(self, key: Any) -> Any:
        # One frame: the overhead of the general case is measurable for small arrays.
        if type(key) is int and self._frames is not None and 0 <= key < self._frames:
            return self._part((), key, False)
        return self.read(key)

    def read(self, key: Any = (), *, native: bool = False) -> Any:
        """The values selected by `key`, as in NumPy: integers, slices, ``...``, ``None``, lists of
        integers, masks, or a tuple of them. The result has the byte order of the file; with `native`,
        that of the machine. In a file with frames, the result of a frame that does not contain the
        array is `None`.

        >>> field = spile.open(spile.sample("sdf"))["Electric Field/Ex"]
        >>> field[[0, 40, 3], None, -1].shape
        (3, 1)
        """
        if is_advanced(key):
            return self._take(key, native)
        if self._info.ragged:
            return self._elements(key)
        if self.frames is None:
            return self._part(key, self._at, native)
        if isinstance(key, int):
            return self._part((), self._existing_frame(key), native)
        return self._stack(key, native)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            array = self.view()
            return array if dtype is None else array.astype(dtype, copy=False)
        if self.ragged:
            raise TypeError(f"{self.path} is ragged; use its offsets and values")
        array = np.asarray(self.read())
        return array if dtype is None else array.astype(dtype, copy=False)

    def view(self) -> np.ndarray:
        """A read-only view of the values without a copy. The file must have been opened from bytes
        or with ``mmap=True``, and the values must be contiguous, uncompressed and not scaled;
        otherwise `ArgumentError` is raised."""
        changed = self._mapped or self._bool or self._info.numpy is None or self._info.ragged
        if not changed and self.frames is None and self.dtype.itemsize:
            seen = self._handle.open.view(self._number, frame=self._at)
            if seen is not None:
                return seen.view(self.dtype).reshape(self.shape, order=_ORDER[self._info.fortran])
        hint = "open the file with mmap=True, or index the array for a copy"
        raise ArgumentError(f"{self.path}: no view without a copy\nhint: {hint}", hint=hint)

    def __dlpack__(self, **options: Any) -> Any:
        try:
            # Consumers without support for read-only memory get a copy.
            return self.view().__dlpack__(**options)
        except (ArgumentError, BufferError):
            return self.read(native=True).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def stream(self, chunk: int = CHUNK) -> Iterator[Any]:
        """Iterates over chunks of about `chunk` bytes along the slowest dimension.

        >>> field = spile.open(spile.sample("sdf"))["Electric Field/Ex"]
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
        """Offsets of the elements of a ragged array in `values`, followed by the total length. The
        array is read-only."""
        if self._info.ragged:
            return read_only(self._handle.open.offsets(self._number))
        if self.frames is None:
            raise ArgumentError(f"{self.path} is not ragged")
        rows = np.maximum(self._lengths()[0], 0)
        return read_only(np.concatenate([[0], np.cumsum(rows)]).astype("u8"))

    @property
    def values(self) -> np.ndarray:
        """All values as a read-only NumPy array; the elements of a ragged array are concatenated.
        Indexing, such as ``array[...]``, gives a copy that can be changed."""
        if self._info.ragged:
            return read_only(self._part((), self._at, False))
        if not self.ragged:
            return read_only(np.asarray(self.read()))
        # A scalar of a frame is one row, as `offsets` counts it.
        parts = [
            np.atleast_1d(part) for part in (self[k] for k in range(len(self))) if part is not None
        ]
        return read_only(np.concatenate(parts) if parts else np.empty(0, self.dtype))

    def astype(self, dtype: Any) -> np.ndarray:
        """All values as an array of another type, converted part by part."""
        out = np.empty(self.shape, dtype)
        if self.ndim == 0:
            return np.asarray(self.read()).astype(dtype)
        fortran = self._info.fortran and self.frames is None
        at = 0
        for part in self.stream():
            rows = part.shape[-1 if fortran else 0]
            chosen = slice(at, at + rows)
            out[(..., chosen) if fortran else chosen] = part
            at += rows
        return out

    @property
    def T(self) -> np.ndarray:
        """The values with reversed dimensions."""
        return np.asarray(self.read()).T

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The minimum, as `numpy.min`; NaN if a value is NaN. Without `axis`, values are read in parts.

        >>> field = spile.open(spile.sample("sdf"))["Electric Field/Ex"]
        >>> bool(field.min() == field[...].min())
        True
        """
        return self._reduced("min", {"axis": axis, "out": out, "keepdims": keepdims})

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The maximum, as `numpy.max`; NaN if a value is NaN. Without `axis`, values are read in parts."""
        return self._reduced("max", {"axis": axis, "out": out, "keepdims": keepdims})

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        """The arithmetic mean, as `numpy.mean`; NaN if a value is NaN. Without `axis`, values are read in
        parts."""
        return self._reduced(
            "mean", {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        )

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: int = 0,
        keepdims: bool = False,
    ) -> Any:
        """The standard deviation with `ddof` degrees of freedom less than values [default: 0], as
        `numpy.std`; NaN if a value is NaN. Without `axis`, values are read in parts."""
        return self._reduced(
            "std", {"axis": axis, "dtype": dtype, "out": out, "ddof": ddof, "keepdims": keepdims}
        )

    def to_xarray(self) -> xarray.DataArray:
        """The array as a lazy `xarray.DataArray`, with the dimensions and coordinates that it has in
        `Group.to_xarray`.

        >>> spile.open(spile.sample("sdf"))["Electric Field/Ex"].to_xarray().dims
        ('X_Grid_mid', 'Y_Grid_mid')
        """
        from ._xarray import data_array

        return data_array(self)

    def to_dask(self, chunks: Any = "auto") -> dask.array.Array:
        """A lazy dask array; `chunks` as in `dask.array.from_array`."""
        from ._dask import array

        return array(self, chunks)

    def to_pandas(self) -> pandas.Series:
        """A one-dimensional array as a series. A single coordinate becomes the index."""
        from ._tables import series

        return series(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar array has no length")
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
        _, is_array, children = self._handle.tree
        number = self._handle.open.find(mesh)
        if is_array[number]:
            return {}
        arrays = [Array(self._handle, k, self._at) for k in children.get(number, ()) if is_array[k]]
        return {array.name: array for array in arrays if array._info.role == "mesh"}

    @property
    def _mapped(self) -> bool:
        scaled = self._info.scaling is not None or self._info.has_missing
        return scaled and not self._raw and self._info.dtype[0] not in "ct"

    def _take(self, key: Any, native: bool) -> Any:
        """Reads a key with lists, masks or new axes."""
        if self.ragged:
            (rows,) = key if isinstance(key, tuple) and len(key) == 1 else (key,)
            if not isinstance(rows, (list, np.ndarray)):
                raise IndexError(f"{self.path} is ragged; expected a list of elements")
            chosen = np.arange(len(self))[np.asarray(rows, None if len(rows) else "i8")]
            return [self.read(int(k), native=native) for k in chosen]
        return take(lambda part: self.read(part, native=native), self.shape, key)

    def _reduced(self, name: str, options: dict[str, Any]) -> Any:
        """A reduction by NumPy over all values, in parts if it is one over all dimensions."""
        ddof = options.get("ddof", 0)
        given = {
            k: v for k, v in options.items() if k != "ddof" and v is not None and v is not False
        }
        simple = not given and self.dtype.kind in "biuf" and not self.ragged and self.size > 0
        if simple:
            parts = (np.asarray(part) for part in self.stream())
            return STREAMED[name](parts, ddof, self.dtype)
        if name == "std":
            given["ddof"] = ddof
        return getattr(np, name)(np.asarray(self), **given)

    def _lengths(self) -> tuple[np.ndarray, tuple[int, ...] | None]:
        """Number of rows of each frame, and the common shape of all frames or `None`."""
        if self._rows is None:
            rows, even = self._handle.open.rows(self._number)
            shape = self._info.shape
            same = even and (len(rows) == 0 or ((rows == rows[0]).all() and rows[0] >= 0))
            self._rows = rows, shape if same else None
        return self._rows

    def _part(self, key: Any, frame: int | None, native: bool) -> Any:
        if self._types is None:
            stored = np.dtype(self._info.numpy or "f8")
            physical = self._mapped or self._info.numpy is None
            self._types = physical, stored, stored.newbyteorder("=")
        physical, stored, own = self._types
        file = self._handle.file or self._handle.open
        data = file.read(self._number, key, frame, physical, native, own if native else stored)
        if data is None:
            return None
        if self._bool:
            data = data != 0
        return data if data.ndim else data[()]

    def _elements(self, key: Any) -> Any:
        """Elements of a ragged array, as bytes."""
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
            raise IndexError(f"index {key} is out of bounds for {count} elements")
        return self._part(slice(int(starts[index]), int(starts[index + 1])), self._at, False)

    def _existing_frame(self, number: int) -> int:
        """The number of a frame from 0; negative numbers count from the end."""
        frames = self._info.frames or 0
        frame = number + frames if number < 0 else number
        if not 0 <= frame < frames:
            raise IndexError(f"frame {number} is out of bounds for {frames} frames")
        return frame

    def _stack(self, key: Any, native: bool) -> Any:
        """Reads several frames."""
        parts = key if isinstance(key, tuple) else (key,)
        if Ellipsis in [part if part is Ellipsis else None for part in parts]:
            rank = 1 if self.ragged else len(self.shape)
            at = next(k for k, part in enumerate(parts) if part is Ellipsis)
            fill = (slice(None),) * (rank - len(parts) + 1)
            parts = (*parts[:at], *fill, *parts[at + 1 :])
        first, rest = (parts[0] if parts else slice(None)), parts[1:]
        if not isinstance(first, slice):
            return self._part(rest, self._existing_frame(first.__index__()), native)
        numbers = range(*first.indices(self.frames or 0))
        if self.ragged:
            return [self._part(rest, frame, native) for frame in numbers]
        if not numbers:
            # Shape and type of an empty selection.
            sample = self._part(rest, 0, native) if self.frames else np.empty(0, self.dtype)
            return np.empty((0, *np.shape(sample)), np.asarray(sample).dtype)
        return np.stack([self._part(rest, frame, native) for frame in numbers])
