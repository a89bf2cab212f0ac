"""Trajectories of the HOOMD schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from . import _spile

__all__ = ["Trajectory"]


class Trajectory(Sequence[Any]):
    """The frames of a GSD file, each with everything filled in, in the words of ``gsd.hoomd``:
    ``frame.particles.position``, ``frame.bonds.group``, ``frame.box``, ``frame.log``.

    >>> trajectory = spile.open(golden("gsd/py-5.0.1/hoomd_many_frames.gsd")).hoomd
    >>> trajectory[3].particles.N, sorted(trajectory.log())[0]
    (4, 'configuration/step')
    """

    __slots__ = ("_inner", "_length")

    def __init__(self, inner: _spile.Trajectory) -> None:
        self._inner = inner
        self._length = len(inner)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._inner.read(k) for k in range(*index.indices(self._length))]
        frame = index + self._length if index < 0 else index
        if not 0 <= frame < self._length:
            raise IndexError(f"there is no frame {index}; the file has {self._length}")
        return self._inner.read(frame)

    def log(self) -> dict[str, np.ndarray]:
        """Steps and all logged quantities over all frames, by name, as ``gsd.hoomd.read_log`` gives
        them. Where frames have no value, real numbers are NaN and others zero."""
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
        """Steps and logged single values as a table; rows are frames."""
        import pandas as pd

        columns = self._columns()
        index = pd.Index(columns.pop("step"), name="step")
        return pd.DataFrame(columns, index=index)

    def to_arrow(self) -> pyarrow.Table:
        """The same as a table of Arrow."""
        from ._tables import arrow

        return arrow(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        """Steps and logged single values."""
        found = self.log()
        single = {name.removeprefix("log/"): v for name, v in found.items() if v.ndim == 1}
        return {"step": single.pop("configuration/step"), **single}

    def __repr__(self) -> str:
        return f"<spile trajectory of {self._length} frames>"
