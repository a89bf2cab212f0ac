"""Indexing with lists, masks and new axes, as in NumPy, with reads of the rows that are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

#: Rows that are this close are read at once.
GAP = 64


def is_advanced(key: Any) -> bool:
    """Whether a key has lists, masks or new axes."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(
        part is None or isinstance(part, (list, np.ndarray, bool, np.bool_)) for part in parts
    )


def take(read: Callable[[tuple[Any, ...]], np.ndarray], shape: tuple[int, ...], key: Any) -> Any:
    """The elements of an array of this shape that NumPy's `key` selects. `read` reads slices.

    Of dimensions with a list or a mask only the rows that are used are read; every dimension is read as
    slices, and NumPy selects from the result.
    """
    parts = _expanded(key if isinstance(key, tuple) else (key,), len(shape))
    #: Slices to read, or sorted rows, of each dimension; and the key for what was read.
    wanted: list[Any] = []
    local: list[Any] = []
    for part in parts:
        if part is None:
            local.append(None)
            continue
        length = shape[len(wanted)]
        if isinstance(part, slice):
            wanted.append(part)
            local.append(slice(None))
        elif isinstance(part, _Mask):
            if part.length != length:
                raise IndexError(
                    f"mask of length {part.length} for dimension {len(wanted)} of length {length}"
                )
            rows, places = np.unique(part.rows, return_inverse=True)
            wanted.append(rows)
            local.append(places.reshape(part.rows.shape))
        elif isinstance(part, np.ndarray):
            rows, places = np.unique(_rows(part, length, len(wanted)), return_inverse=True)
            wanted.append(rows)
            local.append(places.reshape(part.shape))
        else:
            row = int(_rows(np.asarray(part.__index__()), length, len(wanted)))
            wanted.append(slice(row, row + 1))
            local.append(0)
    return _block(read, wanted)[tuple(local)]


class _Mask(NamedTuple):
    """One dimension of a mask: the rows that it selects, and its length."""

    rows: np.ndarray
    length: int


def _expanded(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """One part for each dimension: ``...`` is replaced, masks are lists of indices."""
    out: list[Any] = []
    for part in parts:
        if isinstance(part, (list, np.ndarray)):
            rows = np.asarray(part)
            if rows.dtype == bool:
                if not rows.ndim:
                    raise IndexError("a single boolean is not an index; use a mask of the shape")
                out.extend(map(_Mask, rows.nonzero(), rows.shape))
                continue
            if rows.size and rows.dtype.kind not in "iu":
                raise IndexError(f"expected integers or booleans, found {rows.dtype}")
            out.append(rows.astype("i8"))
        elif isinstance(part, (bool, np.bool_)):
            raise IndexError("a single boolean is not an index; use a mask of the shape")
        else:
            out.append(part)
    used = sum(part is not None and part is not Ellipsis for part in out)
    if used > rank:
        raise IndexError(f"too many indices: {used} for {rank} dimensions")
    fill = [slice(None)] * (rank - used)
    at = next((k for k, part in enumerate(out) if part is Ellipsis), None)
    if at is None:
        return out + fill
    return out[:at] + fill + [part for part in out[at + 1 :] if part is not Ellipsis]


def _rows(rows: np.ndarray, length: int, axis: int) -> np.ndarray:
    """Row numbers from 0. Raises `IndexError` for others."""
    counted = np.where(rows < 0, rows + length, rows)
    wrong = (counted < 0) | (counted >= length)
    if wrong.any():
        first = np.atleast_1d(rows)[np.atleast_1d(wrong)][0]
        raise IndexError(f"index {first} is out of bounds for axis {axis} with size {length}")
    return counted


def _block(read: Callable[[tuple[Any, ...]], np.ndarray], wanted: list[Any]) -> np.ndarray:
    """The elements at slices and sorted rows of each dimension."""
    for axis, rows in enumerate(wanted):
        if not isinstance(rows, np.ndarray):
            continue
        if not rows.size:
            return _block(read, [*wanted[:axis], slice(0, 0), *wanted[axis + 1 :]])
        runs = np.split(rows, np.flatnonzero(np.diff(rows) > GAP) + 1)
        blocks = []
        for run in runs:
            part = slice(int(run[0]), int(run[-1]) + 1)
            block = _block(read, [*wanted[:axis], part, *wanted[axis + 1 :]])
            blocks.append(np.take(block, run - run[0], axis))
        return np.concatenate(blocks, axis)
    return np.asarray(read(tuple(wanted)))
