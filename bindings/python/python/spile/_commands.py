"""Operations that run as commands: merge, index and plot."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from . import _spile
from ._tree import File
from ._verbs import _frames, _list
from .errors import ArgumentError

__all__ = ["Figure", "index", "merge", "plot"]


def _path(file: Any) -> str:
    """The path of a file; the command opens it again."""
    name = file.filename if isinstance(file, File) else os.fspath(file)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if "://" in name or not os.path.exists(name):
        raise ArgumentError(f"{name}: expected a file on disk")
    return os.path.abspath(name)


def _options(options: Mapping[str, Any]) -> list[str]:
    """Options of a command: `None` and `False` are left out, `True` is a flag, lists repeat the option."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words.extend(f"{option}={one}" for one in value)
        else:
            words.append(f"{option}={value}")
    return words


def _lengths(chunks: Mapping[str, int] | None) -> str | None:
    return ",".join(f"{name}={length}" for name, length in chunks.items()) if chunks else None


def merge(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    to: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    compress: str | None = None,
    chunks: Mapping[str, int] | None = None,
    shards: Mapping[str, int] | None = None,
    max_memory: int | None = None,
) -> dict[str, Any]:
    """Combines the files of a run into one file; each file becomes one frame, or its frames are appended
    (GSD). `files` is a pattern, a folder or a list; the other options are those of `convert`.

    >>> done = spile.merge(spile.sample("run") + "/*.sdf", here / "run.nc")
    >>> spile.open(here / "run.nc").frames
    3
    """
    from ._open import _paths

    paths = _paths(files)
    if not paths:
        raise ArgumentError(f"no file matches {files!r}")
    options = {
        "to": to,
        "strict": strict,
        "overwrite": overwrite,
        "compress": compress,
        "chunks": _lengths(chunks),
        "shards": _lengths(shards),
        "max_memory": max_memory,
    }
    words = ["spile", "merge", "--json", "-o", os.fspath(output), *_options(options), "--", *paths]
    return json.loads(_spile.call(words))


def index(
    file: Any,
    output: str | os.PathLike[str],
    *,
    form: str = "json",
    strict: bool = False,
    stored: bool = False,
    overwrite: bool = False,
    select: str | Iterable[str] = (),
    frames: int | str | slice | None = None,
    derived: bool = False,
    max_memory: int | None = None,
) -> dict[str, Any]:
    """Writes an index that lets other programs read the file in place. `form` is ``json`` or ``parquet``
    (Kerchunk references, for zarr and xarray) or ``h5`` (HDF5 with external storage). Arrays that
    cannot be referenced are in ``left_out``.

    >>> spile.index(spile.sample("sdf"), here / "dump.json")["arrays"] > 0
    True
    """
    if form not in ("json", "parquet", "h5"):
        raise ArgumentError(f'form must be "json", "parquet" or "h5", found {form!r}')
    options = {
        "parquet": form == "parquet",
        "h5": form == "h5",
        "strict": strict,
        "stored": stored,
        "overwrite": overwrite,
        "select": _list(select),
        "frames": _frames(frames),
        "derived": derived,
        "max_memory": max_memory,
    }
    words = ["spile", "index", "--json", "-o", os.fspath(output), *_options(options), _path(file)]
    return json.loads(_spile.call(words))


class Figure:
    """A figure in SVG or PNG. Notebooks show it."""

    def __init__(self, data: bytes, kind: str) -> None:
        #: The bytes of the image.
        self.data = data
        #: ``svg`` or ``png``.
        self.kind = kind

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the image. The extension must be that of its `kind`."""
        if not os.fspath(path).endswith(f".{self.kind}"):
            raise ArgumentError(f"expected a file name that ends in .{self.kind}")
        with open(path, "wb") as file:
            file.write(self.data)

    def __repr__(self) -> str:
        return f"<spile.Figure {self.kind}, {len(self.data)} bytes>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.kind == "svg":
            return {"image/svg+xml": self.data.decode()}
        return {"image/png": base64.b64encode(self.data).decode()}


def plot(
    file: Any,
    name: str | None = None,
    second: str | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    kind: str = "svg",
    **options: Any,
) -> Figure:
    """Draws an array, part of an array (``"Ex[:, 20]"``), two arrays against each other, or without a name what
    the file is about.

    `options` are those of ``spile plot`` with underscores, such as ``log=True``, ``x_range="0:1e-6"``,
    ``title="..."`` and ``theme="dark"``. With `output` the figure is written, too; ``kind`` is then that of
    its extension.

    >>> spile.plot(spile.sample("sdf"), "Electric Field/Ex").kind
    'svg'
    """
    if second is not None and name is None:
        raise ArgumentError("second needs name: two arrays are drawn against each other")
    if output is not None:
        kind = os.path.splitext(os.fspath(output))[1][1:].lower()
    if kind not in ("svg", "png"):
        raise ArgumentError(f'expected "svg" or "png", found {kind!r}')
    with tempfile.TemporaryDirectory(prefix="spile-plot-") as folder:
        target = os.path.join(folder, f"figure.{kind}")
        words = ["spile", "plot", "--quiet", "-o", target, *_options(options), _path(file)]
        words += [word for word in (name, second) if word is not None]
        _spile.call(words)
        with open(target, "rb") as made:
            figure = Figure(made.read(), kind)
    if output is not None:
        figure.save(output)
    return figure
