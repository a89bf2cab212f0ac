"""Operations on TAF files, as ``spile taf`` has them. Dimensions and indices count from one, as in the
format's report; files change in place unless `output` names another.

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
    """Makes a file of `array`, whose first index runs along the first dimension. `dtype` is a type of
    the format (``flt32``, ``int16``, ...); whole numbers that it cannot hold are mapped onto its
    range. `grids` has ``(start, step)`` of the first dimensions. Gives the number of clipped values.
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
    """Adds along the last dimension; with `safe` through a new file instead of in place. Gives the
    number of clipped values."""
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
    """Keeps what lies within ``grid=(from, to)``, ``index=(first, last)`` or both. Gives the new
    shape."""
    return tuple(_spile.taf_crop(os.fspath(path), dimension, grid, index, output, overwrite))


def permute(
    path: str | os.PathLike[str],
    order: Iterable[int],
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> tuple[int, ...]:
    """Puts the dimensions into another order. Gives the new shape."""
    return tuple(_spile.taf_permute(os.fspath(path), list(order), output, overwrite))


def transpose(
    path: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> tuple[int, ...]:
    """Swaps the dimensions of an array of two. Gives the new shape."""
    return tuple(_spile.taf_permute(os.fspath(path), None, output, overwrite))


def grid(
    path: str | os.PathLike[str], dimension: int, **how: float | tuple[float, float]
) -> tuple[float, float]:
    """Changes the grid of a dimension: one of ``shift=``, ``scale=``, ``start=``, ``step=`` or
    ``span=(from, to)``. Gives the new ``(start, step)``."""
    if len(how) != 1:
        raise TypeError("name one change of the grid: shift, scale, start, step or span")
    ((word, value),) = how.items()
    numbers = [float(x) for x in (value if isinstance(value, (tuple, list)) else [value])]
    return _spile.taf_grid(os.fspath(path), dimension, word, numbers)


def comment(path: str | os.PathLike[str], text: str, *, replace: bool = False) -> None:
    """Adds a line to the comments, or replaces all of them."""
    _spile.taf_comment(os.fspath(path), text, replace)
