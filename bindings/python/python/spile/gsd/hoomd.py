"""Trajectories in the HOOMD schema, with the names of ``gsd.hoomd``.

>>> import spile.gsd.hoomd as hoomd
>>> frame = hoomd.Frame()
>>> frame.configuration.box = [8, 8, 8, 0, 0, 0]
>>> frame.particles.N = 2
>>> with hoomd.open(here / "b.gsd", "w") as trajectory:
...     for step in range(3):
...         frame.configuration.step = step
...         frame.particles.position = [[0, 0, 0], [step, 0, 0]]
...         trajectory.append(frame)
>>> with hoomd.open(here / "b.gsd", "r") as trajectory:
...     [float(frame.particles.position[1, 0]) for frame in trajectory[1:]]
[1.0, 2.0]
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SpileError
from . import fl
from ._append import Appending
from ._frame import (
    PARTS,
    BondData,
    ConfigurationData,
    ConstraintData,
    Frame,
    ParticleData,
)
from ._schema import ARRAYS, BOX, DEFAULTS, SCHEMA, default_types, strings, texts

if TYPE_CHECKING:
    import MDAnalysis
    import ovito.pipeline
    import pandas
    import pyarrow

__all__ = [
    "BondData",
    "ConfigurationData",
    "ConstraintData",
    "Frame",
    "HOOMDTrajectory",
    "ParticleData",
    "open",
    "read_log",
]


class HOOMDTrajectory(Appending):
    """The frames of a GSD file in the HOOMD schema, see `open`. Frames have the values of frame 0, or
    the defaults of the schema, where they have no own. Those arrays are read-only; the others can be
    changed, and `append` writes the changed values."""

    def __init__(self, file: fl.GSDFile, precision: str = "single") -> None:
        if precision not in ("single", "double"):
            raise ValueError(f"expected precision 'single' or 'double', found {precision!r}")
        if file.schema != "hoomd":
            message = f"{file.name}: expected schema 'hoomd', found {file.schema!r}"
            raise fl.GSDArgumentError(message)
        version = file.schema_version
        if not (1, 0) <= version < (3, 0):
            raise fl.GSDError(f"{file.name}: version {version} of the schema is not supported")
        if version < (2, 0) and precision == "double" and file.mode != "r":
            raise fl.GSDError(f"{file.name}: version {version} of the schema has single precision")
        super().__init__(file, precision)

    @property
    def file(self) -> fl.GSDFile:
        """The file."""
        return self._file

    @property
    def precision(self) -> str:
        """Precision of floating-point numbers that are written: ``single`` or ``double``."""
        return self._precision

    # Reading.

    @property
    def _initial_frame(self) -> Frame | None:
        """Frame 0, shared by all frames without own values."""
        if self._first_frame is None and len(self) > 0:
            self._first_frame = self._build(self._chunks_of_first())
        return self._first_frame

    def _build(self, own: dict[str, Any], first: dict[str, Any] | None = None) -> Frame:
        """The frame with the chunks `own`, completed by those of frame 0."""
        first = {} if first is None else first
        frame = Frame()

        def scalar(chunk: str) -> Any:
            return own.get(chunk, first.get(chunk, DEFAULTS[chunk]))[0]

        about = frame.configuration
        about.step = scalar("configuration/step")
        about.dimensions = scalar("configuration/dimensions")
        box = own.get("configuration/box")
        if box is None:
            box = np.array(first.get("configuration/box", BOX.default), "f4")
        about.box = box
        for part in PARTS:
            data = getattr(frame, part)
            count = f"{part}/N"
            data.N = scalar(count)
            same = first.get(count, DEFAULTS[count])[0] == data.N
            if part != "constraints":
                types = own.get(f"{part}/types", first.get(f"{part}/types"))
                data.types = default_types(part) if types is None else strings(types)
            if part == "particles":
                shapes = own.get("particles/type_shapes", first.get("particles/type_shapes"))
                data.type_shapes = (
                    [{}] if shapes is None else [json.loads(text) for text in strings(shapes)]
                )
            for name, chunk, field in ARRAYS[part]:
                array = own.get(chunk)
                if array is None and same:
                    array = first.get(chunk)
                if array is None:
                    array = self._defaults(chunk, field, int(data.N))
                setattr(data, name, array)
        for chunk, value in first.items():
            if chunk.startswith("log/"):
                frame.log[chunk[4:]] = value
        for chunk, value in own.items():
            if chunk.startswith("log/"):
                frame.log[chunk[4:]] = value
            elif chunk.startswith("state/"):
                frame.state[chunk[6:]] = value
            elif chunk not in SCHEMA:
                frame.chunks[chunk] = value
        return frame

    def _read_frame(self, index: int) -> Frame:
        try:
            own = self._inner.read_frame(index)
            return self._build(own, self._chunks_of_first() if index else None)
        except SpileError as error:
            raise fl._as_gsd(error) from None

    def _read_array(self, index: int, path: str) -> np.ndarray:
        """The array of one chunk of the schema in a frame."""
        own = self._inner.read_chunk(index, path)
        if own is not None:
            return own
        first = self._chunks_of_first()
        if path == "configuration/box":
            return first.get(path, np.array(BOX.default, "f4"))
        part, name = path.split("/")
        count = self._inner.read_chunk(index, f"{part}/N")
        known = first.get(f"{part}/N", DEFAULTS[f"{part}/N"])
        if count is None or count[0] == known[0]:
            if path in first:
                return first[path]
            count = known
        field = next(field for field_name, _, field in ARRAYS[part] if field_name == name)
        return self._defaults(path, field, int(count[0]))

    def __getitem__(self, key: Any) -> Any:
        length = len(self)
        if isinstance(key, slice):
            return _View(self, range(*key.indices(length)))
        if not isinstance(key, (int, np.integer)):
            raise TypeError(f"expected an integer or a slice, found {key!r}")
        index = int(key) + length if key < 0 else int(key)
        if not 0 <= index < length:
            raise IndexError(f"frame {key} is out of bounds for {length} frames")
        return self._read_frame(index)

    def __iter__(self) -> Iterator[Frame]:
        return _Iterator(self, range(len(self)))

    def refresh(self) -> None:
        """Shows frames that another process has committed since the file was opened."""
        self._file.refresh()

    # Writing.

    def extend(self, iterable: Iterable[Any]) -> None:
        """Appends several frames."""
        for frame in iterable:
            self.append(frame)

    def truncate(self) -> None:
        """Removes all frames."""
        self._file.truncate()
        self._forget()

    def flush(self) -> None:
        """Commits all frames and waits for the disk."""
        self._file.flush()

    def close(self) -> None:
        """Commits all frames and closes the file."""
        self._file.close()
        self._forget()

    # Logs.

    def log(self) -> dict[str, np.ndarray]:
        """Steps and logged quantities of all frames by name, see `read_log`."""
        return self._log("*", False)

    def _log(self, pattern: str, scalar_only: bool, strings: bool = True) -> dict[str, np.ndarray]:
        """With `strings`, text is an array of strings, otherwise a table of characters."""
        found, varying = self._inner.log()
        for name in varying:
            if fnmatchcase(f"log/{name}", pattern):
                text = f"left out: log/{name}, whose shape or type changes between frames"
                warnings.warn(text, RuntimeWarning, stacklevel=3)
        columns = {"configuration/step": found.pop("configuration/step")}
        for name, (values, missing) in found.items():
            if not fnmatchcase(name, pattern):
                continue
            if strings and values.dtype.kind == "S" and values.ndim == 2:
                values = texts(values)
            elif missing and values.dtype.kind == "f":
                values[missing] = np.nan
            if not scalar_only or values.ndim == 1:
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
        from .._tables import arrow

        return arrow(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        """Steps and logged scalar quantities."""
        single = {name.removeprefix("log/"): v for name, v in self._log("*", True).items()}
        return {"step": single.pop("configuration/step"), **single}

    # Other packages.

    def to_universe(self) -> MDAnalysis.Universe:
        """An `MDAnalysis.Universe` with the types, masses, charges, bonds and angles of frame 0 and the
        positions and velocities of all frames, which are read on demand. The number of particles must
        not change. Lengths and masses are those of the file; HOOMD files have no units."""
        from ._mdanalysis import universe

        return universe(self)

    def to_ovito(self) -> ovito.pipeline.Pipeline:
        """An OVITO pipeline whose frames are read on demand, with all particle properties, types, the
        cell, bonds and scalar logged quantities (as attributes). The number of particles may change."""
        from ._ovito import pipeline

        return pipeline(self)

    def __enter__(self) -> HOOMDTrajectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        self._file.__reduce__()
        return HOOMDTrajectory, (self._file, self._precision)

    def __repr__(self) -> str:
        return f"<HOOMDTrajectory: {len(self)} frames>"


class _Iterator:
    """Iterates over frames; `iter` starts again."""

    def __init__(self, trajectory: HOOMDTrajectory, indices: range) -> None:
        self._trajectory = trajectory
        self._indices = indices
        self._remaining = iter(indices)

    def __next__(self) -> Frame:
        return self._trajectory[next(self._remaining)]

    def __iter__(self) -> _Iterator:
        return _Iterator(self._trajectory, self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class _View:
    """A selection of the frames of a trajectory."""

    def __init__(self, trajectory: HOOMDTrajectory, indices: range) -> None:
        self._trajectory = trajectory
        self._indices = indices

    def __iter__(self) -> _Iterator:
        return _Iterator(self._trajectory, self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _View(self._trajectory, self._indices[key])
        return self._trajectory[self._indices[key]]


def open(
    name: str | os.PathLike[str],
    mode: str = "r",
    precision: str = "single",
    *,
    commit_frames: int | None = None,
    commit_seconds: float | None = None,
) -> HOOMDTrajectory:
    """Opens a trajectory. `mode` is ``r`` (read), ``r+`` (read and append), ``w`` (create or replace),
    ``x`` (create, fails if the file exists) or ``a`` (append, creates the file if necessary).
    `precision` is that of floating-point numbers that are written, ``single`` or ``double``.

    Frames are written by `HOOMDTrajectory.flush` and `HOOMDTrajectory.close`, and automatically after
    `commit_frames` frames, or at the end of the first frame after `commit_seconds` seconds. New files
    have version 1.4 of the schema, which all readers support, or 2.0 with double precision.
    """
    from .. import __version__

    file = fl.open(
        name,
        mode,
        f"spile {__version__}",
        "hoomd",
        (2, 0) if precision == "double" else (1, 4),
        commit_frames=commit_frames,
        commit_seconds=commit_seconds,
    )
    return HOOMDTrajectory(file, precision)


def read_log(
    name: str | os.PathLike[str], scalar_only: bool = False, glob_pattern: str = "*"
) -> dict[str, np.ndarray]:
    """Steps and logged quantities of all frames by chunk name (``log/...``). The first dimension is the
    frame; single values have no other. `glob_pattern` selects names, `scalar_only` quantities with one
    value per frame.

    Frames without a value have that of frame 0. If frame 0 has none, the value is NaN, or 0 for
    integers. Quantities whose shape changes are left out with a `RuntimeWarning`.
    """
    with open(name) as trajectory:
        columns = trajectory._log(glob_pattern, scalar_only)
        if len(columns) == 1:
            warnings.warn(f"no logged data in {name}", RuntimeWarning, stacklevel=2)
        return columns
