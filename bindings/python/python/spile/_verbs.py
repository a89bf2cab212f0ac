"""The operations of the command line as functions.

They return the documents of ``spile VERB --json`` (``docs/json.md``) as dictionaries. ``progress`` is
called regularly with the number of bytes read so far and the size of the file; an exception raised by
it, or Ctrl-C, cancels the operation.
"""

from __future__ import annotations

import builtins
import glob
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _spile
from ._open import open, source
from ._tree import File
from .errors import ArgumentError, SpileError

__all__ = ["check", "convert", "diff", "formats", "hash", "info", "salvage", "sample", "stat"]

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

    >>> spile.info(spile.sample("taf"))["format"]
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

    >>> spile.check(spile.sample("truncated"))["ok"]
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

    >>> one = spile.sample("sdf")
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

    >>> len(spile.hash(spile.sample("taf"))["digest"])
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


def stat(
    file: Any,
    *,
    select: str | Iterable[str] = (),
    frames: int | str | builtins.slice | None = None,
    components: bool = False,
    bins: int | None = None,
    derived: bool = False,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Statistics of the physical values of arrays: ``count``, ``min``, ``max``, ``mean``, ``std`` (with
    n - 1) and the numbers of NaN and infinite values, which are excluded. One row per array, or per frame
    with `frames`; `components` adds those of vectors, `bins` a histogram.

    >>> [row["path"] for row in spile.stat(spile.sample("sdf"), select="ex")]
    ['Electric Field/Ex']
    """
    return json.loads(
        _spile.stat(
            _opened(file, max_memory, derived),
            select=_list(select),
            frames=_frames(frames),
            components=components,
            bins=bins,
            progress=progress,
        )
    )


def convert(
    file: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    into: str | os.PathLike[str] | None = None,
    scheduler: Any = None,
    to: str | None = None,
    dry_run: bool = False,
    strict: bool = False,
    verify: bool = False,
    overwrite: bool = False,
    select: str | Iterable[str] = (),
    frames: int | str | builtins.slice | None = None,
    slice: Mapping[str, int | str | builtins.slice] | str | Iterable[str] = (),
    stored: bool = False,
    compress: str | None = None,
    chunks: Mapping[str, int] | None = None,
    shards: Mapping[str, int] | None = None,
    derived: bool = False,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Converts a file to the format given by `to` or by the extension of `output`. Writes are atomic.

    Everything that the format cannot express is listed in ``lost``, as dictionaries with ``path``,
    ``what`` (array, attribute, ...), ``name`` and ``reason``; with `strict` it is an error instead.
    With `verify` the output is compared with the source, and ``differences`` lists what differs.

    Arrays with linear scaling or missing values are written as physical values, by the convention of the
    target (NetCDF and Zarr: ``scale_factor``, ``add_offset``, ``_FillValue``) or as floats; `stored`
    writes the stored numbers. `compress` is a method with an optional level such as ``"zstd:3"`` or
    ``"gzip"``; `chunks` and `shards` are lengths by name of the dimension, for formats that have them.

    >>> done = spile.convert(spile.sample("taf"), here / "t.nc", verify=True)
    >>> done["format"], done["lost"], done["differences"]
    ('netcdf', [], [])

    With `into`, `file` is a list of paths, a pattern or a folder, and each file is written to
    ``into/STEM.EXTENSION`` in the format `to`, in parallel. Files whose output exists are skipped unless
    `overwrite` is set. The result has the numbers ``written``, ``skipped`` and ``failed``, and
    ``files``: the result of each file, with ``error`` (an exception) if it failed.

    >>> run = spile.convert(spile.sample("run"), into=here / "out", to="netcdf")
    >>> run["written"], run["skipped"], run["failed"]
    (3, 0, 0)

    With `scheduler`, a ``dask.distributed.Client`` or an mpi4py communicator, a Zarr store is written by
    its workers or ranks, for runs larger than one machine. The source and the output must have the same
    path on all of them. Each worker opens the source once and writes complete chunks; the result is that
    of one process. If the conversion is interrupted, the same call continues it.
    """
    if isinstance(slice, Mapping):
        slice = [f"{name}={_frames(part)}" for name, part in slice.items()]
    if (output is None) == (into is None):
        raise ArgumentError("specify either output or into")
    if into is not None:
        if scheduler is not None or progress is not None:
            raise ArgumentError("into cannot be combined with scheduler or progress")
        same: dict[str, Any] = {
            "dry_run": dry_run,
            "strict": strict,
            "verify": verify,
            "overwrite": overwrite,
            "select": select,
            "frames": frames,
            "slice": slice,
            "stored": stored,
            "compress": compress,
            "chunks": chunks,
            "shards": shards,
            "derived": derived,
            "max_memory": max_memory,
        }
        return many(file, os.fspath(into), to, same)
    assert output is not None
    if scheduler is not None:
        if dry_run or verify or progress is not None:
            raise ArgumentError("scheduler cannot be combined with dry_run, verify or progress")
        from ._parallel import convert as distributed

        if not isinstance(file, File):
            file = open(file, max_memory=max_memory, derived=derived)
        return distributed(
            file,
            os.fspath(output),
            scheduler,
            {
                "to": to,
                "strict": strict,
                "overwrite_output": overwrite,
                "select": _list(select),
                "frames": _frames(frames),
                "slice": _list(slice),
                "stored": stored,
                "compress": compress,
                "chunks": list((chunks or {}).items()),
                "shards": list((shards or {}).items()),
            },
        )
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
            stored=stored,
            compress=compress,
            chunks=list((chunks or {}).items()),
            shards=list((shards or {}).items()),
            progress=progress,
        )
    )


def many(files: Any, into: str, to: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Converts several files to the folder `into`, in parallel."""
    rows = {row["name"]: row for row in formats()}
    if to is None or to not in rows:
        raise ArgumentError(f"into needs the format to=, one of {', '.join(rows)}")
    extension = rows[to]["extensions"][0]
    jobs = []
    targets: dict[str, str] = {}
    for path, relative in _files(files):
        target = os.path.join(into, f"{os.path.splitext(relative)[0]}.{extension}")
        if target in targets:
            raise ArgumentError(f"{targets[target]} and {path} have the same output {target}")
        targets[target] = path
        jobs.append((path, target))

    def one(job: tuple[str, str]) -> dict[str, Any]:
        path, target = job
        if os.path.lexists(target) and not options["overwrite"]:
            same = os.path.exists(target) and os.path.samefile(path, target)
            if not same:
                return {"file": path, "output": target, "written": False, "skipped": True}
        try:
            if not options["dry_run"]:
                os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            return {"file": path, **convert(path, target, to=to, **options)}
        except (SpileError, OSError) as error:
            return {"file": path, "output": target, "written": False, "error": error}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(one, jobs))
    return {
        "written": sum(row["written"] for row in done),
        "skipped": sum("skipped" in row for row in done),
        "failed": sum("error" in row for row in done),
        "files": done,
    }


def _files(files: Any) -> list[tuple[str, str]]:
    """The files of a list, pattern or folder, with their paths in the output folder."""
    if not isinstance(files, (str, os.PathLike)):
        return [(os.fspath(file), os.path.basename(file)) for file in files]
    pattern = os.fspath(files)
    if not os.path.isdir(pattern):
        paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not paths:
            raise ArgumentError(f"no file matches {pattern!r}")
        return [(path, os.path.basename(path)) for path in paths]
    found = []
    for folder, inner, names in os.walk(pattern):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.startswith(".") and _spile.probe(path) is not None:
                found.append((path, os.path.relpath(path, pattern)))
    if not found:
        raise ArgumentError(f"{pattern} contains no file of a known format")
    return found


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

    >>> saved = spile.salvage(spile.sample("truncated"), here / "saved.sdf")
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


#: Temporary folders of samples, removed at the end of the program.
_folders: list[tempfile.TemporaryDirectory[str]] = []


def sample(name: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Writes a small sample file and returns its path.

    `name` is a format: ``sdf``, ``gsd``, ``taf``, ``scda``, ``iotk``, ``lecroy``, ``tektronix``,
    ``keysight``, ``dig`` or ``columns``. ``run`` is a folder of three EPOCH dumps, ``save`` the data
    folder of a Quantum ESPRESSO calculation, ``varying`` a trajectory whose number of particles
    changes, ``truncated`` a damaged SDF file. `folder` is created if necessary; by default it is a new
    temporary folder, removed at the end of the program. Other files in `folder` are not replaced.

    >>> spile.open(spile.sample("gsd")).frames
    3
    """
    if folder is None:
        _folders.append(tempfile.TemporaryDirectory(prefix="spile-sample-"))
        folder = _folders[-1].name
    return _spile.sample(name, os.fspath(folder))
