"""Opening files and series of files."""

from __future__ import annotations

import collections
import contextlib
import functools
import glob as _glob
import hashlib
import io
import os
import threading
import warnings
import weakref
from collections.abc import Iterable
from typing import Any

from ._node import Handle
from ._spile import File as _File
from ._tree import File
from .errors import ArgumentError, SpileError

__all__ = ["open", "open_series"]


def source(file: Any) -> tuple[str | None, Any]:
    """Converts `file` to a path, or to bytes or a seekable file object."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        return None, bytes(file)
    if isinstance(file, (str, os.PathLike)):
        path = os.fspath(file)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        return (path, _remote(path)) if "://" in path else (path, None)
    if not hasattr(file, "read"):
        raise TypeError(f"expected a path, bytes or a file object, found {type(file).__name__}")
    if isinstance(file.read(0), str):
        raise TypeError("the file object returns text; open it in binary mode")
    path = _path_of(file)
    if path is not None:
        return path, None
    if hasattr(file, "seek") and getattr(file, "seekable", lambda: True)():
        return None, file
    return None, bytes(file.read())


def _remote(url: str) -> Any:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"opening {url} requires fsspec: pip install fsspec") from None
    system, name = url_to_fs(url)
    try:
        # The blocks are cached by spile, and its requests are planned: reading ahead moves more bytes.
        file = system.open(name, "rb", cache_type="none")
    except TypeError:
        file = system.open(name, "rb")
    # An archive is closed with its file system.
    with contextlib.suppress(AttributeError):
        file._file_system = system
    return file


def _path_of(file: Any) -> str | None:
    """Path of an ordinary file object. Reading by path is faster and allows several threads."""
    if not isinstance(getattr(file, "raw", file), io.FileIO) or file.writable():
        return None
    try:
        same = os.path.samestat(os.fstat(file.fileno()), os.stat(file.name))
    except (OSError, TypeError, ValueError):
        return None
    return os.path.abspath(os.fsdecode(file.name)) if same else None


def open(
    file: Any, *, derived: bool = False, mmap: bool = False, max_memory: int | None = None
) -> File:
    """Opens a file and reads its metadata. The format is detected from the content.

    Parameters
    ----------
    file : path, bytes or file-like
        A path (also of a folder with the files of a run), bytes, a binary file object, or a URL
        supported by fsspec (``s3://...``). Seekable file objects and URLs are read on demand; do not
        close a file object or move its position while it is in use.
    derived : bool
        Include arrays that are computed from others on reading (SDF).
    mmap : bool
        Map the file into memory, as required by `Array.view`. The file must not be truncated or
        modified meanwhile: access beyond the end of a mapped file terminates the process.
    max_memory : int
        Memory limit for metadata and buffers in bytes. The default is 512 MiB.

    Returns
    -------
    File
        A lazy mapping of names to groups and arrays, and a context manager.

    Examples
    --------
    >>> with spile.open(spile.sample("sdf")) as file:
    ...     file.format, file["Electric Field/Ex"].units
    ('sdf', 'V/m')
    """
    path, data = source(file)
    options: dict[str, Any] = {"derived": derived, "mmap": mmap, "max_memory": max_memory}
    handle = _File.open(path, data, **options)
    name = path if path is not None else getattr(file, "name", None) or "bytes"
    incomplete = [row[3] for row in handle.findings() if row[3].startswith("incomplete file")]
    if incomplete:
        warnings.warn(f"{name}: {incomplete[0]}", stacklevel=2)
    if path is not None:
        data = None
        path = path if "://" in path else os.path.abspath(path)
    return File(handle, str(name), (reopened, (path, data, tuple(options.items()))))


def reopened(path: str | None, data: Any, options: tuple[Any, ...]) -> File:
    """Restores a pickled file. Arrays of the same file share one open file."""
    if path is None or "://" in path:
        return open(data if path is None else path, **dict(options))
    about = os.stat(path)
    return _shared(path, options, about.st_mtime_ns, about.st_size)


@functools.lru_cache(maxsize=128)
def _shared(path: str, options: tuple[Any, ...], _changed: int, _size: int) -> File:
    return File(_File.open(path, None, **dict(options)), path, (reopened, (path, None, options)))


def open_series(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    errors: str = "warn",
    derived: bool = False,
    max_memory: int | None = None,
) -> File:
    """Opens the files of a run as one dataset; each file is a frame.

    Frames are sorted by time. Arrays can be missing in some frames, and the number of particles can
    change; see `Array.frames` and `Array.ragged`.

    Parameters
    ----------
    files : str or list of paths
        A glob pattern such as ``"run/normal*.sdf"``, a list of paths, or a folder. Of several series in
        a folder (``normal0000.sdf``, ``r0000.sdf``) the one with the most files is opened.
    errors : {"warn", "skip", "raise"}
        Files that cannot be opened are skipped with a warning, skipped silently, or raise an error.
    derived : bool
        Include arrays that are computed from others on reading (SDF).
    max_memory : int
        Memory limit for metadata and buffers in bytes. The default is 512 MiB.

    Examples
    --------
    >>> series = spile.open_series(spile.sample("run") + "/*.sdf")
    >>> series.frames, series["Electric Field/Ex"].dims
    (3, ('frame', 'X', 'Y'))
    """
    if errors not in ("warn", "skip", "raise"):
        raise ArgumentError(f'errors must be "warn", "skip" or "raise", found {errors!r}')
    paths = _paths(files)
    if not paths:
        raise ArgumentError(f"no file matches {files!r}")
    return _series(tuple(paths), errors, derived, max_memory)


def _paths(files: Any) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        pattern = os.fspath(files)
        if os.path.isdir(pattern):
            return run_of(pattern)
        return sorted(os.path.abspath(path) for path in _glob.glob(pattern))
    return [os.path.abspath(os.fspath(path)) for path in files]


def run_of(folder: str | os.PathLike[str]) -> list[str]:
    """The files of the run in a folder with the most files. Others are named in a warning."""
    runs = _File.runs(folder)
    if len(runs) > 1:
        names = ", ".join(f"{pattern} ({len(files)} files)" for pattern, files in runs[1:9])
        message = f"{os.fspath(folder)} has several series; opened {runs[0][0]}, ignored {names}"
        warnings.warn(message, stacklevel=4)
    return [os.path.abspath(path) for path in runs[0][1]] if runs else []


def _series(paths: tuple[str, ...], errors: str, derived: bool, max_memory: int | None) -> File:
    folder = os.path.dirname(paths[0])
    stamp = _stamp(paths, derived, max_memory)
    handle = _File.series(folder, list(paths), derived=derived, max_memory=max_memory)
    findings = handle.findings()
    arrays = [row for row in findings if row[0] != "error" and row[1] == "core-series"]
    if arrays and errors != "skip":
        warnings.warn("; ".join(f"{row[2]}: {row[3]}" for row in arrays), stacklevel=3)
    skipped = [row for row in findings if row[0] == "error"]
    if skipped and errors != "skip":
        message = "; ".join(f"{name}: {text}" for _, _, name, text in skipped)
        if errors == "raise":
            raise SpileError(message, code=skipped[0][1], path=folder)
        warnings.warn(message, stacklevel=3)
    how = ("\0".join(paths), derived, max_memory, stamp)
    file = File(handle, folder, (_restored, how))
    _OPEN_SERIES[stamp] = file._handle
    return file


#: Open series by their stamp.
_OPEN_SERIES: weakref.WeakValueDictionary[str, Handle] = weakref.WeakValueDictionary()

#: The last restored series. They stay open, because a worker process restores a series for each task.
_RESTORED: collections.deque[Handle] = collections.deque(maxlen=8)

_RESTORING = threading.Lock()


def _stamp(paths: tuple[str, ...], derived: bool, max_memory: int | None) -> str:
    """Identifies the files of a series with their sizes and times of modification."""
    digest = hashlib.sha256(repr((derived, max_memory)).encode())
    for path in paths:
        try:
            about = os.stat(path)
            version = (about.st_mtime_ns, about.st_size, about.st_ino)
        except OSError:
            version = None
        digest.update(f"{path}\0{version}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _restored(paths: str, derived: bool, max_memory: int | None, stamp: str) -> File:
    """Restores a pickled series, whose `paths` are separated by NUL. A process opens it once."""
    with _RESTORING:
        handle = _OPEN_SERIES.get(stamp)
        if handle is None or handle.file is None:
            handle = _series(tuple(paths.split("\0")), "skip", derived, max_memory)._handle
            _OPEN_SERIES[stamp] = handle
            _RESTORED.append(handle)
        # Closing one copy does not close the others.
        copy = File(handle.open, handle.name, handle.how)
        copy._handle._tree = handle.tree
        return copy
