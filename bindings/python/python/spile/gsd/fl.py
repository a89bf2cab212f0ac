"""Frames and chunks of GSD files, with the names of ``gsd.fl``.

>>> from spile.gsd import fl
>>> with fl.open(here / "a.gsd", "w", "mine", "none", [1, 0]) as file:
...     file.write_chunk("data", np.array([1, 2, 3]))
...     file.end_frame()
>>> with fl.open(here / "a.gsd", "r") as file:
...     file.read_chunk(0, "data")
array([1, 2, 3])
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from pickle import PickleError
from typing import Any

import numpy as np

from .. import _spile
from ..errors import ArgumentError, ExistsError, IoError, LimitError, SpileError

__all__ = ["GSDArgumentError", "GSDError", "GSDFile", "open"]

#: Bytes of the names of application and schema, and of chunk names before version 2.0.
_NAME = 63


class GSDError(SpileError, RuntimeError):
    """The file is not a GSD file, is damaged, or does not allow the operation."""


class GSDArgumentError(ArgumentError, GSDError):
    """An argument is invalid, or the mode of the file does not allow the operation."""


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Raises errors of the library as `RuntimeError`, as in gsd."""
    try:
        yield
    except SpileError as error:
        raise _as_gsd(error) from None


def _as_gsd(error: SpileError) -> SpileError:
    if isinstance(error, (IoError, ExistsError, LimitError)):
        return error
    place = {name: value for name, value in vars(error).items() if name != "message"}
    kind = GSDArgumentError if isinstance(error, ArgumentError) else GSDError
    return kind(error.message, **place)


def _cut(text: str) -> str:
    """The text, truncated to the length that a header can store."""
    return text.encode()[:_NAME].decode(errors="ignore")


def open(
    name: str | os.PathLike[str],
    mode: str,
    application: str | None = None,
    schema: str | None = None,
    schema_version: Sequence[int] | None = None,
    *,
    commit_frames: int | None = None,
    commit_seconds: float | None = None,
) -> GSDFile:
    """Opens a file. `mode` is ``r`` (read), ``r+`` (read and append), ``w`` (create or replace), ``x``
    (create, fails if the file exists) or ``a`` (append, creates the file if necessary). New files need
    `application`, `schema` and `schema_version`. If `schema` is given, the file must have it.

    Completed frames are written by `GSDFile.flush` and `GSDFile.close`, and automatically after
    `commit_frames` frames, or at the end of the first frame after `commit_seconds` seconds.
    """
    return GSDFile(
        name,
        mode,
        application,
        schema,
        schema_version,
        commit_frames=commit_frames,
        commit_seconds=commit_seconds,
    )


class GSDFile:
    """An open GSD file; see `open`. Reading sees committed frames only."""

    __slots__ = ("__weakref__", "_about", "_inner", "_mode", "_name")

    def __init__(
        self,
        name: str | os.PathLike[str],
        mode: str,
        application: str | None = None,
        schema: str | None = None,
        schema_version: Sequence[int] | None = None,
        *,
        commit_frames: int | None = None,
        commit_seconds: float | None = None,
    ) -> None:
        self._name = os.fspath(name)
        self._mode = mode
        if mode not in ("r", "r+", "w", "x", "a"):
            raise ValueError(f"expected mode r, r+, w, x or a, found {mode!r}")
        with _translated():
            if mode in ("w", "x") or (mode == "a" and not os.path.exists(self._name)):
                if application is None or schema is None or schema_version is None:
                    raise ValueError("a new file needs application, schema and schema_version")
                major, minor = schema_version
                self._inner = _spile.GsdFile.create(
                    self._name,
                    mode == "w",
                    _cut(application),
                    _cut(schema),
                    int(major) << 16 | int(minor),
                )
            else:
                self._inner = _spile.GsdFile.open(self._name, mode != "r")
            self._about = self._inner.about()
            if schema is not None and self.schema != _cut(schema):
                self._inner.close()
                raise GSDError(f"{self._name}: expected schema {schema!r}, found {self.schema!r}")
            if commit_frames is not None or commit_seconds is not None:
                self._inner.set_commit(commit_frames, commit_seconds)

    @classmethod
    def _of(cls, inner: _spile.GsdFile, name: str) -> GSDFile:
        """A file that is already open for reading."""
        self = cls.__new__(cls)
        self._name, self._mode, self._inner, self._about = name, "r", inner, inner.about()
        return self

    @property
    def name(self) -> str:
        """Path of the file."""
        return self._name

    @property
    def mode(self) -> str:
        """Mode in which the file was opened."""
        return self._mode

    @property
    def gsd_version(self) -> tuple[int, int]:
        """Version of the format."""
        return self._about[0] >> 16, self._about[0] & 0xFFFF

    @property
    def application(self) -> str:
        """Program that created the file."""
        return self._about[1]

    @property
    def schema(self) -> str:
        """Name of the schema."""
        return self._about[2]

    @property
    def schema_version(self) -> tuple[int, int]:
        """Version of the schema."""
        return self._about[3] >> 16, self._about[3] & 0xFFFF

    @property
    def nframes(self) -> int:
        """Number of committed frames."""
        return self._inner.frames

    @property
    def maximum_write_buffer_size(self) -> int:
        """Bytes of data that are kept in memory before they are written."""
        with _translated():
            return self._inner.buffers()[0]

    @maximum_write_buffer_size.setter
    def maximum_write_buffer_size(self, size: int) -> None:
        with _translated():
            self._inner.set_buffers(size, self._inner.buffers()[1])

    @property
    def index_entries_to_buffer(self) -> int:
        """Number of index entries of completed frames that are kept in memory before they are
        committed."""
        with _translated():
            return self._inner.buffers()[1]

    @index_entries_to_buffer.setter
    def index_entries_to_buffer(self, number: int) -> None:
        with _translated():
            self._inner.set_buffers(self._inner.buffers()[0], number)

    def write_chunk(self, name: str, data: Any) -> None:
        """Adds a chunk to the current frame. `data` is a string or array-like with at most two
        dimensions. Before version 2.0, names are truncated to 63 bytes."""
        if self._about[0] < 2 << 16 and len(name.encode()) > _NAME:
            name = _cut(name)
            message = f"a chunk name is truncated to {name!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        try:
            if isinstance(data, str):
                self._inner.write_text(name, data)
            else:
                self._inner.write_chunk(name, _contiguous(name, data))
        except SpileError as error:
            raise _as_gsd(error) from None

    def end_frame(self) -> None:
        """Completes the current frame. It is not written before the next commit, see `open`."""
        with _translated():
            self._inner.end_frame()

    def flush(self) -> None:
        """Commits the completed frames and waits for the disk."""
        with _translated():
            self._inner.commit(True)

    def refresh(self) -> None:
        """Shows frames that another process has committed since the file was opened."""
        with _translated():
            self._inner.refresh()

    def truncate(self) -> None:
        """Removes all frames."""
        with _translated():
            self._inner.truncate()

    def upgrade(self) -> None:
        """Converts the file to version 2.1 in place. All chunks must be flushed."""
        with _translated():
            self._inner.upgrade()
            self._about = self._inner.about()

    def chunk_exists(self, frame: int, name: str) -> bool:
        """Whether a frame contains a chunk."""
        with _translated():
            return self._inner.chunk_exists(frame, name)

    def read_chunk(self, frame: int, name: str) -> Any:
        """Reads a chunk: an array, with one dimension if the chunk has one column, or a string. Raises
        `KeyError` if the frame does not contain it."""
        try:
            found = self._inner.read_chunk(frame, name)
        except SpileError as error:
            raise _as_gsd(error) from None
        if found is None:
            raise KeyError(f"frame {frame} / chunk {name} not found in: {self._name}")
        return found

    def find_matching_chunk_names(self, match: str) -> list[str]:
        """Names of chunks that start with `match`, in the order of the name list."""
        with _translated():
            return self._inner.names(match)

    def close(self) -> None:
        """Commits the completed frames and closes the file."""
        with _translated():
            self._inner.close()

    def __enter__(self) -> GSDFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._mode != "r" or not self._name:
            raise PickleError("only files that are open for reading by path can be pickled")
        return GSDFile, (self._name, self._mode)

    def __repr__(self) -> str:
        return f"<spile.gsd.fl.GSDFile {self._name!r}, mode {self._mode!r}>"


def _contiguous(name: str, data: Any) -> np.ndarray:
    """A C-contiguous little-endian array with one or two dimensions."""
    array = np.ascontiguousarray(data)
    if array.ndim > 2:
        raise GSDArgumentError(f"{name}: expected at most two dimensions, found {array.ndim}")
    if array.dtype.kind not in "iuf" or array.dtype.itemsize not in (1, 2, 4, 8):
        raise GSDArgumentError(f"{name}: GSD has no elements of type {array.dtype}")
    if isinstance(data, np.ma.MaskedArray) and data.mask.any():
        raise GSDArgumentError(f"{name}: GSD has no masked values")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array
