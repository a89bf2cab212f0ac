"""The operations of the command line as functions.

They return the documents of ``spile VERB --json`` (``docs/json.md``) as dictionaries. ``progress`` is
called regularly with the number of bytes read so far and the size of the file; an exception raised by
it, or Ctrl-C, cancels the operation.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _spile
from ._open import open, source
from ._tree import File

__all__ = ["check", "convert", "diff", "formats", "hash", "info", "salvage"]

#: Called with the number of bytes read so far and the size of the file.
Progress = Callable[[int, int], object]


def _opened(file: Any, max_memory: int | None = None, derived: bool = False) -> _spile.File:
    """The open file of `file`, which is opened if necessary."""
    if not isinstance(file, File):
        file = open(file, max_memory=max_memory, derived=derived)
    return file._handle.open


def _list(patterns: str | Iterable[str]) -> list[str]:
    """One pattern or several, as a list."""
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _frames(frames: int | str | builtins.slice | None) -> str | None:
    """An index, a slice or a text such as ``"0:100:10"``, as text."""
    if isinstance(frames, builtins.slice):
        ends = (frames.start, frames.stop, frames.step)
        return ":".join("" if end is None else str(end) for end in ends)
    return None if frames is None else str(frames)


def info(file: Any, *, derived: bool = False, max_memory: int | None = None) -> dict[str, Any]:
    """Summary of a file and description of its arrays.

    >>> spile.info(golden("taf/good/type_flt64_mapped.taf"))["format"]
    'taf'
    """
    return json.loads(_spile.info(_opened(file, max_memory, derived)))


def check(
    file: Any,
    *,
    strict: bool = False,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Checks a file against the rules of its format. The result has ``ok`` and a list of ``findings``,
    each with ``severity``, ``code``, ``message`` and the location.

    >>> spile.check(golden("sdf/hand_truncated.sdf"))["ok"]
    False
    """
    path, data = source(file)
    return json.loads(_spile.check(path, data, strict, max_memory, progress))


def diff(
    first: Any,
    second: Any,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    ulp: int = 0,
    nan_differs: bool = False,
    values: bool = False,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    map: Mapping[str, str] | None = None,
    frames: int | str | builtins.slice | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compares two files, which can have different formats. ``differences`` is empty if they are equal
    within the tolerances `atol`, `rtol` and `ulp`.

    >>> one = golden("sdf/epoch1d_normal_0001.sdf")
    >>> spile.diff(one, one)["differences"]
    []
    """
    return json.loads(
        _spile.diff(
            _opened(first, max_memory),
            _opened(second, max_memory),
            atol=atol,
            rtol=rtol,
            ulp=ulp,
            nan_differs=nan_differs,
            values=values,
            select=_list(select),
            ignore=_list(ignore),
            map=list((map or {}).items()),
            frames=_frames(frames),
            progress=progress,
        )
    )


def hash(
    file: Any,
    *,
    native: bool = False,
    select: str | Iterable[str] = (),
    frames: int | str | builtins.slice | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """SHA-256 of the content, independent of the format (``digest``), and of each array (``arrays``);
    with `native`, of the native objects of the format (``objects``).

    >>> len(spile.hash(golden("taf/good/type_flt64_mapped.taf"))["digest"])
    64
    """
    return json.loads(
        _spile.hash(
            _opened(file, max_memory),
            native=native,
            select=_list(select),
            frames=_frames(frames),
            progress=progress,
        )
    )


def convert(
    file: Any,
    output: str | os.PathLike[str],
    *,
    to: str | None = None,
    dry_run: bool = False,
    strict: bool = False,
    verify: bool = False,
    overwrite: bool = False,
    select: str | Iterable[str] = (),
    frames: int | str | builtins.slice | None = None,
    slice: Mapping[str, int | str | builtins.slice] | str | Iterable[str] = (),
    derived: bool = False,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Converts a file to the format given by `to` or by the extension of `output`. Writes are atomic.

    Everything that the format cannot express is listed in ``lost``, as dictionaries with ``path``,
    ``what`` (array, attribute, ...), ``name`` and ``reason``; with `strict` it is an error instead.
    With `verify` the output is compared with the source, and ``differences`` lists what differs.

    >>> done = spile.convert(golden("taf/good/type_flt64_mapped.taf"), here / "t.nc", verify=True)
    >>> done["format"], done["lost"], done["differences"]
    ('netcdf', [], [])
    """
    if isinstance(slice, Mapping):
        slice = [f"{name}={_frames(part)}" for name, part in slice.items()]
    return json.loads(
        _spile.convert(
            _opened(file, max_memory, derived),
            os.fspath(output),
            to=to,
            dry_run=dry_run,
            strict=strict,
            verify=verify,
            overwrite=overwrite,
            select=_list(select),
            frames=_frames(frames),
            slice=_list(slice),
            progress=progress,
        )
    )


def salvage(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Recovers the readable parts of a damaged file into a new file, by default NAME-salvaged in the
    same folder. The result lists what was ``kept`` and what was ``lost``.

    >>> saved = spile.salvage(golden("sdf/hand_truncated.sdf"), here / "saved.sdf")
    >>> spile.check(here / "saved.sdf")["ok"], len(saved["lost"]) > 0
    (True, True)
    """
    path = os.fspath(file)
    if output is None:
        stem, ending = os.path.splitext(path)
        output = f"{stem}-salvaged{ending}"
    done = _spile.salvage(path, os.fspath(output), overwrite, max_memory, progress)
    return json.loads(done)


def formats() -> list[dict[str, Any]]:
    """The supported formats, and whether they can be read, written, checked and salvaged.

    >>> [row["name"] for row in spile.formats()][:5]
    ['scda', 'sdf', 'taf', 'gsd', 'iotk']
    """
    return json.loads(_spile.formats())
