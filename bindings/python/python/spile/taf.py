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

import os

from . import _spile
from ._create import block

__all__ = ["append", "comment", "create", "crop", "grid", "permute", "transpose"]


def create(path, array, *, dtype=None, grids=(), comment="", overwrite=False):
    """Makes a file of `array`, whose first index runs along the first dimension. `dtype` is a type of
    the format (``flt32``, ``int16``, ...); whole numbers that it cannot hold are mapped onto its
    range. `grids` has ``(start, step)`` of the first dimensions. Gives the number of clipped values.
    """
    grids = [(float(start), float(step)) for start, step in grids]
    return _spile.taf_create(
        os.fspath(path),
        block(array),
        dtype=dtype,
        grids=grids,
        comment=comment,
        overwrite_output=overwrite,
    )


def append(path, array, *, safe=False):
    """Adds along the last dimension; with `safe` through a new file instead of in place. Gives the
    number of clipped values."""
    return _spile.taf_append(os.fspath(path), block(array), safe)


def crop(path, dimension, *, grid=None, index=None, output=None, overwrite=False):
    """Keeps what lies within ``grid=(from, to)``, ``index=(first, last)`` or both. Gives the new
    shape."""
    return tuple(_spile.taf_crop(os.fspath(path), dimension, grid, index, output, overwrite))


def permute(path, order, *, output=None, overwrite=False):
    """Puts the dimensions into another order. Gives the new shape."""
    return tuple(_spile.taf_permute(os.fspath(path), list(order), output, overwrite))


def transpose(path, *, output=None, overwrite=False):
    """Swaps the dimensions of an array of two. Gives the new shape."""
    return tuple(_spile.taf_permute(os.fspath(path), None, output, overwrite))


def grid(path, dimension, **how):
    """Changes the grid of a dimension: one of ``shift=``, ``scale=``, ``start=``, ``step=`` or
    ``span=(from, to)``. Gives the new ``(start, step)``."""
    if len(how) != 1:
        raise TypeError("name one change of the grid: shift, scale, start, step or span")
    ((word, value),) = how.items()
    numbers = [float(x) for x in (value if isinstance(value, (tuple, list)) else [value])]
    return _spile.taf_grid(os.fspath(path), dimension, word, numbers)


def comment(path, text, *, replace=False):
    """Adds a line to the comments, or replaces all of them."""
    _spile.taf_comment(os.fspath(path), text, replace)
