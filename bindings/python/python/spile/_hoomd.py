"""Trajectories in the HOOMD schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from . import _spile

__all__ = ["Frame", "Trajectory"]


class Frame:
    """A frame in the HOOMD schema, or its particles, bonds, ... Values are read at the first access;
    they can be changed and replaced, and `FrameWriter.append` writes the changed values. The file does
    not change. Names outside the schema raise `AttributeError`.

    >>> frame = spile.open(spile.sample("gsd")).hoomd[0]
    >>> frame.particles.position[:, 2] = 0
    >>> frame.particles.position[:, 2].max()
    np.float32(0.0)
    """

    def __init__(self, inner: Any) -> None:
        self.__dict__["_inner"] = inner

    def __getattr__(self, name: str) -> Any:
        if name == "configuration":
            return self
        value = getattr(self.__dict__["_inner"], name)
        if hasattr(value, "N"):
            value = Frame(value)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self.__dict__["_inner"], name):
            raise AttributeError(f"the HOOMD schema has no {name!r} here")
        self.__dict__[name] = value

    def __dir__(self) -> list[str]:
        return [name for name in dir(self.__dict__["_inner"]) if not name.startswith("_")]


class Trajectory(Sequence[Any]):
    """The frames of a GSD file in the HOOMD schema, with the names of ``gsd.hoomd``:
    ``frame.particles.position``, ``frame.bonds.group``, ``frame.box``, ``frame.log``. Values missing in
    a frame are those of frame 0 or the defaults of the schema.

    >>> trajectory = spile.open(spile.sample("gsd")).hoomd
    >>> trajectory[2].particles.N, sorted(trajectory.log())[0]
    (20, 'configuration/step')
    """

    __slots__ = ("_inner", "_length")

    def __init__(self, inner: _spile.Trajectory) -> None:
        self._inner = inner
        self._length = len(inner)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [Frame(self._inner.read(k)) for k in range(*index.indices(self._length))]
        frame = index + self._length if index < 0 else index
        if not 0 <= frame < self._length:
            raise IndexError(f"frame {index} is out of bounds for {self._length} frames")
        return Frame(self._inner.read(frame))

    def log(self) -> dict[str, np.ndarray]:
        """Steps and logged quantities of all frames by name, as in ``gsd.hoomd.read_log``. Missing
        values are NaN for floating-point quantities, otherwise 0."""
        columns = {}
        for name, column in self._inner.log().items():
            if not isinstance(column, tuple):
                columns[name] = column
                continue
            values, missing = column
            if missing and values.dtype.kind == "f":
                values[missing] = np.nan
            columns[name] = values
        return columns

    def to_pandas(self) -> pandas.DataFrame:
        """Logged scalar quantities as a data frame, one row per frame; the index is the step."""
        import pandas as pd

        columns = self._columns()
        index = pd.Index(columns.pop("step"), name="step")
        return pd.DataFrame(columns, index=index)

    def to_arrow(self) -> pyarrow.Table:
        """Steps and logged scalar quantities as an Arrow table, one row per frame."""
        from ._tables import arrow

        return arrow(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        """Steps and logged scalar quantities."""
        found = self.log()
        single = {name.removeprefix("log/"): v for name, v in found.items() if v.ndim == 1}
        return {"step": single.pop("configuration/step"), **single}

    def __repr__(self) -> str:
        return f"<spile.Trajectory: {self._length} frames>"
