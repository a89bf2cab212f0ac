"""Opening: one file of any kind, or many of one run."""

from __future__ import annotations

import functools
import glob as _glob
import io
import os
import warnings
from collections.abc import Iterable
from typing import Any

from ._spile import File as _File
from ._tree import File
from .errors import ArgumentError, SpileError

__all__ = ["open", "open_series"]


def source(file: Any) -> tuple[str | None, Any]:
    """What the compiled half takes for `file`: a path, or bytes, or a file that can seek."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        return None, bytes(file)
    if isinstance(file, (str, os.PathLike)):
        path = os.fspath(file)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        return (path, _remote(path)) if "://" in path else (path, None)
    if not hasattr(file, "read"):
        raise TypeError(f"spile opens paths, bytes and files, not {type(file).__name__}")
    if isinstance(file.read(0), str):
        raise TypeError("the file gives text; open it in binary mode")
    path = _path_of(file)
    if path is not None:
        return path, None
    if hasattr(file, "seek") and getattr(file, "seekable", lambda: True)():
        return None, file
    return None, bytes(file.read())


def _remote(url: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{url} is opened with the package fsspec: pip install fsspec") from None
    return fsspec.open(url, "rb").open()


def _path_of(file: Any) -> str | None:
    """Where a plain file of this system is: by its path it is read faster, and from many threads."""
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
    """Opens a file in whatever format it is, and reads its metadata.

    Parameters
    ----------
    file : path, bytes or file-like
        A path (also of a folder with the dumps of a run), bytes, an object with ``read``, or an
        address that fsspec knows (``s3://...``). Of the last two only what is needed is read, as
        long as they can ``seek``; leave such an object open and alone while it is in use here.
    derived : bool
        Also show arrays that are computed from others when they are read (SDF).
    mmap : bool
        Map the file, so that `Array.view` needs no copy. Only for files that nobody shortens or
        rewrites meanwhile: the system ends a program that looks behind the end of a file.
    max_memory : int
        Bytes that metadata and buffers may take; 512 MiB unless told.

    Returns
    -------
    File
        A lazy mapping, and a context manager.

    Examples
    --------
    >>> with spile.open(golden("sdf/epoch1d_normal_0001.sdf")) as file:
    ...     file.format, file["Electric Field/Ex"].units
    ('sdf', 'V/m')
    """
    path, data = source(file)
    options: dict[str, Any] = {"derived": derived, "mmap": mmap, "max_memory": max_memory}
    handle = _File.open(path, data, **options)
    name = path if path is not None else getattr(file, "name", None) or "bytes"
    if path is not None:
        data = None
        path = path if "://" in path else os.path.abspath(path)
    return File(handle, str(name), (reopened, (path, data, tuple(options.items()))))


def reopened(path: str | None, data: Any, options: tuple[Any, ...]) -> File:
    """The other end of a pickle: arrays of the same file share it."""
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
    max_memory: int | None = None,
) -> File:
    """Opens many files of one run as one dataset: a file is a frame.

    Frames are in the order of their times. Arrays may come and go and particles may change in
    number; see `Array.frames`.

    Parameters
    ----------
    files : str or list of paths
        A pattern such as ``"run/*.sdf"``, a folder, or paths.
    errors : {"warn", "skip", "raise"}
        What to do about files that cannot be opened: leave them out and warn, leave them out, or
        fail.

    Examples
    --------
    >>> series = spile.open_series(golden("sdf/epoch1d_normal_*.sdf"))
    >>> series.frames, series["Electric Field/Ex"].dims
    (4, ('frame', 'X'))
    """
    if errors not in ("warn", "skip", "raise"):
        raise ArgumentError(f'errors is "warn", "skip" or "raise", not {errors!r}')
    paths = _paths(files)
    if not paths:
        raise ArgumentError(f"no file matches {files!r}")
    return _series(tuple(paths), errors, max_memory)


def _paths(files: Any) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        pattern = os.fspath(files)
        if os.path.isdir(pattern):
            pattern = os.path.join(_glob.escape(pattern), "*.sdf")
        return sorted(os.path.abspath(path) for path in _glob.glob(pattern))
    return [os.path.abspath(os.fspath(path)) for path in files]


def _series(paths: tuple[str, ...], errors: str, max_memory: int | None) -> File:
    folder = os.path.dirname(paths[0])
    handle = _File.series(folder, list(paths), max_memory=max_memory)
    left_out = [row for row in handle.findings() if row[0] == "error"]
    if left_out and errors != "skip":
        words = "; ".join(f"{name}: {message}" for _, _, name, message in left_out)
        if errors == "raise":
            raise SpileError(words, code=left_out[0][1], path=folder)
        warnings.warn(words, stacklevel=3)
    return File(handle, folder, (_series, (paths, "skip", max_memory)))
