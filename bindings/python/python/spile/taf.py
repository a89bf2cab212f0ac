"""Operations on TAF files, as in ``spile taf``. Dimensions and indices count from 1, as in the TAF
specification. Files are changed in place unless `output` is given.

>>> from spile import taf
>>> path = here / "ramp.taf"
>>> taf.create(path, np.arange(12.0).reshape(4, 3), grids=[(0.0, 0.5)])
0
>>> taf.append(path, np.full((4, 1), 7.0))
Appended(dimension=2, shape=(4, 4), clipped=0)
>>> taf.crop(path, 1, index=(2, 3))
(2, 4)
>>> spile.open(path)["data"][...]
array([[3., 4., 5., 7.],
       [6., 7., 8., 7.]])
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from . import _spile
from ._create import block
from ._open import open
from .errors import SpileError

__all__ = [
    "add_comment",
    "adjust",
    "append",
    "backup",
    "comment",
    "convert",
    "create",
    "crop",
    "export",
    "grid",
    "map",
    "permute",
    "plot",
    "probe",
    "read",
    "replace",
    "set_comment",
    "summarize",
    "transpose",
]


class Appended(NamedTuple):
    """Result of `append`: the dimension that is longer now, counted from 1, the new shape, and the
    number of clipped values."""

    dimension: int
    shape: tuple[int, ...]
    clipped: int


class Rows(NamedTuple):
    """Result of `read`: the grid of dimension 1, and the elements."""

    grid: np.ndarray
    values: np.ndarray


@dataclasses.dataclass(frozen=True)
class Header:
    """Header and comments of a file."""

    version: tuple[int, int]
    #: Element type of TAF, such as ``flt32``.
    dtype: str
    shape: tuple[int, ...]
    #: Intercept and slope of the map from stored numbers to values; `None` if there is none.
    map: tuple[float, float] | None
    #: Start and step of the grid of each dimension.
    grids: tuple[tuple[float, float], ...]
    #: Byte offset of the elements, in Fortran order and little-endian.
    offset: int
    #: Byte offset of the comments.
    comment_offset: int
    comments: str


@dataclasses.dataclass(frozen=True)
class Summary:
    """Statistics of the finite values of a column, or of all elements."""

    #: Number of the column, counted from 1; `None` for all elements.
    column: int | None
    count: int
    finite: int
    min: float
    max: float
    mean: float
    std: float


def probe(path: str | os.PathLike[str]) -> Header:
    """Reads header and comments, and no elements."""
    version, dtype, shape, scaling, grids, offsets, comments = _spile.taf_probe(os.fspath(path))
    text = comments.decode("utf-8", "replace")
    return Header(version, dtype, tuple(shape), scaling, tuple(grids), *offsets, text)


def read(
    path: str | os.PathLike[str],
    *,
    grid: tuple[float, float] | None = None,
    index: tuple[int, int] | None = None,
) -> Rows:
    """Reads the grid of dimension 1 and the elements, between the coordinates ``grid=(from, to)``, the
    indices ``index=(first, last)``, or both; the ends are included."""
    header = probe(path)
    start, step = header.grids[0]
    first, last = index or (1, header.shape[0])
    points = start + step * np.arange(first - 1, min(last, header.shape[0]))
    part = slice(first - 1, last)
    if grid is not None:
        # The points between the ends are next to each other.
        (inside,) = np.nonzero((points >= grid[0]) & (points <= grid[1]))
        points = points[inside]
        part = slice(first - 1 + inside[0], first + inside[-1]) if inside.size else slice(0, 0)
    with open(path) as file:
        array = next(a for a in file.arrays().values() if tuple(a.shape) == header.shape)
        return Rows(points, np.asarray(array[part]))


def summarize(path: str | os.PathLike[str]) -> list[Summary]:
    """Statistics of all elements, and of each column if there are several."""
    rows = _spile.taf_summarize(os.fspath(path))
    return [Summary(column or None, *row) for column, row in enumerate(rows)]


def map(path: str | os.PathLike[str]) -> np.memmap:
    """The stored elements as a memory map; ``probe(path).map`` has intercept and slope of the values."""
    header = probe(path)
    kinds = {"u": "u", "i": "i", "f": "f", "b": "u"}
    bits = int("".join(c for c in header.dtype if c.isdigit()))
    stored = np.dtype(f"<{kinds[header.dtype[0]]}{bits // 8}")
    return np.memmap(path, stored, "r", header.offset, header.shape, "F")


def export(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> str | None:
    """Grid, columns and comments of a two-dimensional array as text. Returns the text, or writes it to
    `output`."""
    text = _spile.taf_export(os.fspath(path))
    if output is None:
        return text.decode("utf-8", "replace")
    with builtins.open(output, "wb" if overwrite else "xb") as file:
        file.write(text)
    return None


def plot(
    path: str | os.PathLike[str], output: str | os.PathLike[str], *options: str
) -> pathlib.Path:
    """Draws the columns to an SVG or PNG file and returns its path. `options` are those of
    ``spile plot``, for example ``"--overwrite"``."""
    _run("plot", os.fspath(path), "-o", os.fspath(output), *options)
    return pathlib.Path(output)


def convert(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    stack: bool = False,
    overwrite: bool = False,
) -> list[pathlib.Path]:
    """Converts the arrays of a file of any format to TAF files; with `stack`, its channels to the
    columns of one. Returns the written files, by default NAME.taf next to the input."""
    options = [*(["--stack"] if stack else []), *(["--overwrite"] if overwrite else [])]
    if output is not None:
        options += ["-o", os.fspath(output)]
    return [
        pathlib.Path(done["file"]) for done in _run("convert", os.fspath(path), "--json", *options)
    ]


def _run(*arguments: str) -> list[dict[str, Any]]:
    """Runs ``spile taf`` with these arguments. Returns the documents that it prints."""
    command = [sys.executable, "-m", "spile", "taf", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SpileError(done.stderr.strip().removeprefix("error: "))
    return [json.loads(line) for line in done.stdout.splitlines()]


def backup(path: str | os.PathLike[str]) -> pathlib.Path:
    """Copies a file to NAME-backup-K.taf in the same folder. Returns the path of the copy."""
    return pathlib.Path(_spile.taf_backup(os.fspath(path)))


def replace(path: str | os.PathLike[str], array: Any) -> int:
    """Replaces the elements by those of an array of the same shape; type, map, grids and comments are
    kept. Returns the number of clipped values."""
    return _spile.taf_replace(os.fspath(path), block(array))


def create(
    path: str | os.PathLike[str],
    array: Any,
    *,
    dtype: str | None = None,
    grids: Iterable[tuple[float, float]] = (),
    comment: str = "",
    overwrite: bool = False,
) -> int:
    """Creates a file from `array`. `dtype` is a TAF type (``flt32``, ``int16``, ...); values outside
    the range of an integer type are scaled to it. `grids` are ``(start, step)`` of the first
    dimensions. Returns the number of clipped values.
    """
    spaced = [(float(start), float(step)) for start, step in grids]
    return _spile.taf_create(
        os.fspath(path),
        block(array),
        dtype=dtype,
        grids=spaced,
        comment=comment,
        overwrite_output=overwrite,
    )


def append(
    path: str | os.PathLike[str], array: Any, *, dimension: int | None = None, safe: bool = False
) -> Appended:
    """Appends along `dimension`, by default the last: samples of an N x 1 trace along dimension 1,
    columns along dimension 2. With `safe` the file is copied whatever its size."""
    along, shape, clipped = _spile.taf_append(os.fspath(path), block(array), dimension, safe)
    return Appended(along, tuple(shape), clipped)


def crop(
    path: str | os.PathLike[str],
    dimension: int,
    *,
    grid: tuple[float, float] | None = None,
    index: tuple[int, int] | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> tuple[int, ...]:
    """Crops along one dimension to the coordinates ``grid=(from, to)``, the indices
    ``index=(first, last)``, or both; the ends are included. Returns the new shape."""
    return tuple(_spile.taf_crop(os.fspath(path), dimension, grid, index, output, overwrite))


def permute(
    path: str | os.PathLike[str],
    order: Iterable[int],
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> tuple[int, ...]:
    """Permutes the dimensions: `order` lists the old dimensions in their new order. Returns the new
    shape."""
    return tuple(_spile.taf_permute(os.fspath(path), list(order), output, overwrite))


def transpose(
    path: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> tuple[int, ...]:
    """Transposes a two-dimensional array. Returns the new shape."""
    return tuple(_spile.taf_permute(os.fspath(path), None, output, overwrite))


def adjust(
    path: str | os.PathLike[str],
    dimension: int,
    *,
    shift: float | None = None,
    scale: float | None = None,
    start: float | None = None,
    step: float | None = None,
    span: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Changes the grid of a dimension with one of ``shift=``, ``scale=``, ``start=``, ``step=`` or
    ``span=(from, to)``. Returns the new ``(start, step)``."""
    words = {"shift": shift, "scale": scale, "start": start, "step": step, "span": span}
    given = [(word, value) for word, value in words.items() if value is not None]
    if len(given) != 1:
        raise TypeError("expected one of shift=, scale=, start=, step= and span=")
    ((word, value),) = given
    numbers = [float(x) for x in (value if isinstance(value, (tuple, list)) else [value])]
    return _spile.taf_grid(os.fspath(path), dimension, word, numbers)


#: The name of `adjust` before.
grid = adjust


def add_comment(path: str | os.PathLike[str], text: str) -> None:
    """Appends a line to the comments."""
    _spile.taf_comment(os.fspath(path), text, False)


def set_comment(path: str | os.PathLike[str], text: str) -> None:
    """Replaces the comments; an empty text removes them."""
    _spile.taf_comment(os.fspath(path), text, True)


def comment(path: str | os.PathLike[str], text: str, *, replace: bool = False) -> None:
    """Appends a line to the comments, or replaces them with `replace`."""
    _spile.taf_comment(os.fspath(path), text, replace)
