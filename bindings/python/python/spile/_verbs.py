"""The verbs of the command line, with its words and options.

Results are dictionaries as ``spile VERB --json`` prints them (``docs/json.md``). ``progress`` is
called now and then with the bytes read so far and the bytes of the file; what it raises stops the
work, and so does Ctrl-C.
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

#: Called with the bytes read so far and the bytes of the file.
Progress = Callable[[int, int], object]


def _opened(file: Any, max_memory: int | None = None, derived: bool = False) -> _spile.File:
    """The compiled file of something that is open, or can be opened."""
    if not isinstance(file, File):
        file = open(file, max_memory=max_memory, derived=derived)
    return file._handle.open


def _words(patterns: str | Iterable[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _frames(frames: int | str | builtins.slice | None) -> str | None:
    """``5``, ``"0:100:10"`` or a slice."""
    if isinstance(frames, builtins.slice):
        ends = (frames.start, frames.stop, frames.step)
        return ":".join("" if end is None else str(end) for end in ends)
    return None if frames is None else str(frames)


def info(file: Any, *, derived: bool = False, max_memory: int | None = None) -> dict[str, Any]:
    """What a person wants to know first.

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
    """Looks for everything that is wrong with a file: ``ok``, and the ``findings``.

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
    """How two files differ, of whatever formats: an empty list of ``differences`` if they do not.

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
            select=_words(select),
            ignore=_words(ignore),
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
    """Sums (SHA-256) of the content, whatever its format (``digest``), and of each array; with
    `native`, of the format's own objects.

    >>> len(spile.hash(golden("taf/good/type_flt64_mapped.taf"))["digest"])
    64
    """
    return json.loads(
        _spile.hash(
            _opened(file, max_memory),
            native=native,
            select=_words(select),
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
    """Writes a file as another format, told by the ending of `output` or by `to`. What that cannot
    hold is in ``lost``; with `strict` it is an error. The new file appears whole or not at all.

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
            select=_words(select),
            frames=_frames(frames),
            slice=_words(slice),
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
    """Saves what can be read of a damaged file into a sound one: what was ``kept``, what ``lost``.
    Without `output` that is NAME-salvaged beside the old one.

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
    """The formats that spile knows, and how far.

    >>> [row["name"] for row in spile.formats()][:5]
    ['scda', 'sdf', 'taf', 'gsd', 'iotk']
    """
    return json.loads(_spile.formats())
