"""Writing: trees of arrays in any format, scda sections, GSD frames."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _spile
from ._array import Array
from ._tree import Group
from .errors import ArgumentError

__all__ = ["FrameWriter", "SectionWriter", "create"]


def create(
    path: str | os.PathLike[str],
    content: Any = None,
    *,
    format: str | None = None,
    attrs: Mapping[str, Any] | None = None,
    coords: Mapping[str, Any] | None = None,
    steps: Any = None,
    times: Any = None,
    overwrite: bool = False,
    strict: bool = False,
    **options: Any,
) -> Any:
    """Writes a new file. Writes are atomic.

    Parameters
    ----------
    path : path
        Output path. Its extension determines the format unless `format` is given.
    content : mapping, optional
        A mapping from names to arrays, to ``(dims, array)`` or ``(dims, array, attrs)`` as in xarray,
        to mappings of the same kind, or to groups and arrays of other files; or an
        ``xarray.Dataset``. Without content, a writer is returned: `SectionWriter` for scda,
        `FrameWriter` for GSD; use it in a ``with`` statement.
    format : str
        Name of the format, see `formats`.
    attrs : mapping
        Attributes of the file.
    coords : mapping
        Coordinates by dimension name: arrays, or ``(start, step)`` for uniform coordinates.
    steps, times : sequence
        Steps and times of the frames. Arrays whose first dimension is ``frame`` are split into frames.
    overwrite : bool
        Replace the file if it exists.
    strict : bool
        Raise `ArgumentError` if the format cannot express something; otherwise it is listed in
        ``lost``.

    Returns
    -------
    dict
        The result of `convert`: ``output``, ``format``, ``arrays``, ``lost`` and others. A writer if
        there is no content.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> done = spile.create(
    ...     here / "field.sdf",
    ...     {"Fields": {"Ex": (("x",), x**2, {"units": "V/m"})}},
    ...     coords={"x": x},
    ... )
    >>> done["format"], spile.open(here / "field.sdf")["Fields/Ex"].units
    ('sdf', 'V/m')

    >>> with spile.create(here / "sections.scda", user="demo") as file:
    ...     file.block(b"some words", user="notes")
    ...     file.array(np.arange(6.0).reshape(3, 2), user="pairs", encode=True)
    >>> list(spile.open(here / "sections.scda"))
    ['notes', 'pairs']
    """
    path = os.fspath(path)
    if content is None:
        return _writer(path, format, overwrite, options)
    if options:
        raise TypeError(f"create() got an unexpected keyword argument {next(iter(options))!r}")
    nodes = _Nodes(coords or {}, steps is not None or times is not None)
    nodes.group("", content)
    moments = nodes.moments(steps, times)
    everything = dict(getattr(content, "attrs", None) or {})
    everything.update(attrs or {})
    done = _spile.write(
        path,
        nodes.rows(),
        _plain_attrs(everything),
        moments,
        to=format,
        overwrite=overwrite,
        strict=strict,
    )
    return json.loads(done)


def _writer(path: str, format: str | None, overwrite: bool, options: dict[str, Any]) -> Any:
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    if (format or ending) in ("scda", "scd"):
        return SectionWriter(path, overwrite=overwrite, **options)
    if (format or ending) == "gsd":
        return FrameWriter(path, overwrite=overwrite, **options)
    raise ArgumentError("content is missing; writers exist for scda and gsd only")


def block(array: Any) -> tuple[str, list[int], np.ndarray]:
    """NumPy type, shape and bytes of an array, little-endian in C order."""
    array = np.asarray(array)
    if array.dtype.kind in "OT" and all(isinstance(item, str) for item in array.flat):
        array = array.astype("U")
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    if array.dtype.hasobject or array.dtype.kind in "mM":
        raise ArgumentError(f"cannot write elements of type {array.dtype}")
    shape = array.shape
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return array.dtype.str.replace("=", "<"), list(shape), array.reshape(-1).view("u1")


def _plain(value: Any) -> Any:
    """A NumPy value or a path as a built-in Python object."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return str(value) if isinstance(value, os.PathLike) else value


def _plain_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as built-in Python objects; dictionaries are JSON text, `None` is not written."""
    plain = {str(name): _plain(value) for name, value in attrs.items()}
    for name, value in plain.items():
        if isinstance(value, dict):
            plain[name] = json.dumps(value, default=str)
        elif value is None:
            warnings.warn(f"attribute {name!r} is None and is not written", stacklevel=2)
    return {name: value for name, value in plain.items() if value is not None}


class _Nodes:
    """The tree to be written, as a list of nodes."""

    def __init__(self, coords: Mapping[str, Any], framed: bool) -> None:
        self.coords: dict[str, str | tuple[float, float]] = {}
        self.framed = framed
        self.frames: int | None = None
        self.nodes: list[tuple[str, Any, Any, dict[str, Any]]] = []
        for name, points in coords.items():
            if isinstance(points, tuple) and len(points) == 2 and np.isscalar(points[0]):
                start, step = points
                self.coords[name] = (float(start), float(step))
            else:
                self.array(name, points, (name,), {})

    def group(self, path: str, content: Any) -> None:
        if hasattr(content, "data_vars") and hasattr(content, "coords"):
            content = dict(content.variables)
        if not isinstance(content, Mapping):
            raise TypeError(f"expected a mapping of arrays, found {type(content).__name__}")
        if path:
            attrs = content.attrs if isinstance(content, Group) else {}
            self.nodes.append((path, None, (), _plain_attrs(attrs)))
        for name, part in content.items():
            self.part(f"{path}/{name}" if path else str(name), part)

    def part(self, path: str, part: Any) -> None:
        if isinstance(part, Mapping):
            self.group(path, part)
        elif isinstance(part, Array):
            self.array(path, part.read(native=True), part.dims, part.attrs)
        elif isinstance(part, tuple) and len(part) in (2, 3):
            dims = (part[0],) if isinstance(part[0], str) else tuple(part[0])
            self.array(path, part[1], dims, part[2] if len(part) == 3 else {})
        elif hasattr(part, "dims") and hasattr(part, "values"):
            if part.dtype.kind in "mM":
                from xarray.conventions import encode_cf_variable

                part = encode_cf_variable(getattr(part, "variable", part))
            self.array(path, part.values, part.dims, part.attrs)
        else:
            self.array(path, part, (), {})

    def array(self, path: str, values: Any, dims: Any, attrs: Mapping[str, Any]) -> None:
        values = np.asarray(values)
        if len(dims) not in (0, values.ndim):
            raise ArgumentError(
                f"{path}: expected {values.ndim} dimension names, found {len(dims)}"
            )
        dims = [str(name) for name in dims]
        if self.framed and dims[:1] == ["frame"]:
            self.frames = len(values)
            blocks: Any = [block(part) for part in values]
            dims = dims[1:]
        else:
            blocks = block(values)
            if len(dims) == 1 and dims[0] == path.rpartition("/")[2]:
                self.coords.setdefault(dims[0], path)
        self.nodes.append((path, blocks, dims, _plain_attrs(attrs)))

    def moments(self, steps: Any, times: Any) -> list[Any] | None:
        if not self.framed:
            return None
        count = len(steps if steps is not None else times)
        if self.frames not in (None, count):
            raise ArgumentError(f"expected {self.frames} steps or times, found {count}")
        steps = [None] * count if steps is None else [int(step) for step in steps]
        times = [None] * count if times is None else [float(time) for time in times]
        return list(zip(steps, times))

    def rows(self) -> list[Any]:
        def points(path: str, name: str) -> Any:
            found = self.coords.get(name)
            return None if found == path else found

        return [
            (path, blocks, list(dims), [points(path, name) for name in dims], attrs)
            for path, blocks, dims, attrs in self.nodes
        ]


def _bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


class SectionWriter:
    """Writes the sections of an scda file. The names are those of the scda specification. Writes are
    atomic: the file appears when the writer is closed, and is discarded after an exception."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        user: str | bytes = "",
        vendor: str | bytes | None = None,
        level: int = 9,
        overwrite: bool = False,
    ) -> None:
        vendor = None if vendor is None else _bytes(vendor)
        self._inner = _spile.Sections(
            os.fspath(path), _bytes(user), vendor=vendor, level=level, overwrite=overwrite
        )

    def inline(self, data: bytes, *, user: str | bytes = "") -> None:
        """Writes an inline section of exactly 32 bytes."""
        self._inner.inline(_bytes(user), _bytes(data))

    def block(self, data: bytes, *, user: str | bytes = "", encode: bool = False) -> None:
        """Writes a block of bytes, compressed with `encode`."""
        self._inner.block(_bytes(user), _bytes(data), encode)

    def array(self, data: Any, *, user: str | bytes = "", encode: bool = False) -> None:
        """Writes an array of elements of equal size: the first dimension of a NumPy array, or a list of
        bytes objects. Compressed with `encode`."""
        if isinstance(data, (list, tuple)):
            parts = [bytes(part) for part in data]
            if len({len(part) for part in parts}) > 1:
                raise ArgumentError("the elements have different sizes; use varray")
            size = len(parts[0]) if parts else 0
            self._inner.array(_bytes(user), len(parts), size, b"".join(parts), encode)
            return
        _, shape, content = block(data)
        count = shape[0] if shape else 1
        size = content.size // count if count else 0
        self._inner.array(_bytes(user), count, size, content.tobytes(), encode)

    def varray(self, data: Any, *, user: str | bytes = "", encode: bool = False) -> None:
        """Writes elements of different sizes: a list of bytes objects or arrays. Compressed with
        `encode`."""
        parts = [
            bytes(part) if isinstance(part, (bytes, bytearray)) else block(part)[2].tobytes()
            for part in data
        ]
        self._inner.varray(_bytes(user), [len(p) for p in parts], b"".join(parts), encode)

    def close(self) -> None:
        """Completes and closes the file."""
        self._inner.close()

    def __enter__(self) -> SectionWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._inner.abandon()


#: Links between particles, and the number of particles of each.
LINKS = {"bonds": 2, "angles": 3, "dihedrals": 4, "impropers": 4, "pairs": 2, "constraints": 2}
_PARTICLES = {
    *(
        "N",
        "types",
        "type_shapes",
        "typeid",
        "mass",
        "charge",
        "diameter",
        "body",
        "moment_inertia",
    ),
    *("position", "orientation", "velocity", "angmom", "image"),
}
_CONFIGURATION = {"step", "dimensions", "box"}
_LINKS = {"N", "types", "typeid", "group"}

#: Keys of the parts of a frame; those of logs and states are free.
_KEYS = {
    "frame": {
        *_CONFIGURATION,
        *LINKS,
        "configuration",
        "particles",
        "constraint_value",
        "log",
        "state",
        "chunks",
    },
    "configuration": _CONFIGURATION,
    "particles": _PARTICLES,
    **{name: _LINKS | ({"value"} if name == "constraints" else set()) for name in LINKS},
}


def _check_keys(part: str, given: Any) -> None:
    """Raises an error for keys outside the schema. Objects such as frames of ``gsd.hoomd`` may have
    other attributes."""
    known = _KEYS.get(part)
    if known is None or not _is_mapping(given):
        return
    for key, value in given.items():
        if key not in known:
            raise ArgumentError(f"{part}: {key!r} is not part of the HOOMD schema")
        _check_keys(key, value)


def _is_mapping(thing: Any) -> bool:
    # The test for a dictionary is much faster than that for the abstract class.
    return isinstance(thing, (dict, Mapping))


def _get(thing: Any, name: str) -> Any:
    if thing is None:
        return None
    return thing.get(name) if _is_mapping(thing) else getattr(thing, name, None)


def _frame(given: Any) -> Any:
    """A frame of `spile.gsd.hoomd` with the values of a dictionary or an object. The number of members
    of each part is that of its arrays, if it is not given."""
    from .gsd.hoomd import Frame

    if isinstance(given, Frame):
        return given
    frame = Frame()
    about = _get(given, "configuration") or given
    for name in ("step", "dimensions", "box"):
        setattr(frame.configuration, name, _get(about, name))
    if frame.configuration.dimensions is None:
        frame.configuration.box = frame.configuration.box
    for part in ("particles", *LINKS):
        data, values = getattr(frame, part), _get(given, part)
        lengths = _get(given, "constraint_value") if part == "constraints" else None
        if values is None and lengths is None:
            continue
        for name in data.__slots__:
            if name not in ("M", "N"):
                setattr(data, name, _get(values, name))
        if lengths is not None and data.value is None:
            data.value = lengths
        count = _get(values, "N")
        if count is None:
            arrays = [getattr(data, name) for name in data._fields()]
            count = next((len(array) for array in arrays if array is not None), 0)
        data.N = count
    for part in ("log", "state", "chunks"):
        getattr(frame, part).update(_get(given, part) or {})
    return frame


class FrameWriter:
    """Writes frames in the HOOMD schema to a GSD file.

    A frame is an object with the names of the schema as attributes or keys: a frame of another file
    (``spile.open(path).hoomd[0]``), a frame of ``gsd.hoomd``, or a dictionary. Missing values are the
    defaults of the schema. Values equal to those of frame 0 are not repeated.

    >>> with spile.create(here / "trajectory.gsd") as file:
    ...     for step in range(3):
    ...         file.append(
    ...             {
    ...                 "step": 10 * step,
    ...                 "box": [8, 8, 8, 0, 0, 0],
    ...                 "particles": {"position": np.full((2, 3), step), "types": ["A", "B"]},
    ...                 "log": {"energy": 0.5 * step},
    ...             }
    ...         )
    >>> trajectory = spile.open(here / "trajectory.gsd").hoomd
    >>> trajectory[2].particles.position[0], trajectory.log()["log/energy"]
    (array([2., 2., 2.], dtype=float32), array([0. , 0.5, 1. ]))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        application: str = "spile",
        double: bool = False,
        append: bool = False,
        overwrite: bool = False,
    ) -> None:
        from .gsd import fl, hoomd

        precision = "double" if double else "single"
        if append:
            # Raises an error if the file does not exist.
            file = fl.GSDFile(path, "r+", schema="hoomd")
        else:
            version = (2, 0) if double else (1, 4)
            file = fl.GSDFile(path, "w" if overwrite else "x", application, "hoomd", version)
        self._inner = hoomd.HOOMDTrajectory(file, precision)

    def append(self, frame: Any) -> None:
        """Appends a frame. Raises `ArgumentError` for keys of dictionaries outside the schema."""
        _check_keys("frame", frame)
        self._inner._append(_frame(frame), True)

    def extend(self, frames: Iterable[Any]) -> None:
        """Appends several frames."""
        for frame in frames:
            self.append(frame)

    def flush(self) -> None:
        """Flushes the frames to disk, so that readers see them."""
        self._inner.flush()

    def close(self) -> None:
        """Completes and closes the file."""
        self._inner.close()

    def __enter__(self) -> FrameWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
