"""Operations on TAF files, as in ``spile taf``. Dimensions and indices count from 1, as in the TAF
specification. Files are changed in place unless `output` is given.

>>> from spile import taf
>>> path = here / "ramp.taf"
>>> taf.create(path, np.arange(12.0).reshape(4, 3), grids=[(0.0, 0.5)])
0
>>> taf.append(path, np.full((4, 1), 7.0))
0
>>> taf.crop(path, 1, index=(2, 3))
(2, 4)
>>> spile.open(path)["data"][...]
array([[3., 4., 5., 7.],
       [6., 7., 8., 7.]])
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _spile
from ._create import block

__all__ = ["append", "comment", "create", "crop", "grid", "permute", "transpose"]


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


def append(path: str | os.PathLike[str], array: Any, *, safe: bool = False) -> int:
    """Appends along the last dimension; with `safe`, atomically through a new file. Returns the number
    of clipped values."""
    return _spile.taf_append(os.fspath(path), block(array), safe)


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


def grid(
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


def comment(path: str | os.PathLike[str], text: str, *, replace: bool = False) -> None:
    """Appends a line to the comments, or replaces them with `replace`."""
    _spile.taf_comment(os.fspath(path), text, replace)
