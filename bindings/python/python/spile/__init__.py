"""Reads, writes and converts simulation and instrument files: scda, SDF, TAF, GSD, IOTK and others.

>>> import spile
>>> file = spile.open(spile.sample("sdf"))
>>> file["Electric Field/Ex"][2:4, ..., -1].shape
(2,)

`open` returns a lazy mapping of names to groups and arrays; values are read when an array is indexed.
The functions `info`, `stat`, `check`, `diff`, `hash`, `convert`, `merge`, `index`, `plot` and `salvage`
correspond to the operations of the command line. `create` writes files, `sample` writes small files to try
things with. If xarray is installed, ``xarray.open_dataset(path, engine="spile")`` opens files as datasets.
NumPy is the only dependency.
"""

from . import errors
from ._array import Array
from ._create import create
from ._open import open, open_series
from ._spile import __version__
from ._tree import File, Group
from ._verbs import check, convert, diff, formats, hash, info, salvage, sample, stat
from .errors import SpileError

__all__ = [
    "Array",
    "Figure",
    "File",
    "Group",
    "SpileError",
    "__version__",
    "check",
    "convert",
    "create",
    "diff",
    "errors",
    "formats",
    "gsd",
    "hash",
    "index",
    "info",
    "merge",
    "open",
    "fortran",
    "open_series",
    "open_mfdataset",
    "open_mfdatatree",
    "plot",
    "salvage",
    "sample",
    "scda",
    "sdf",
    "SDFPreprocess",
    "stat",
    "taf",
]

#: Names that need xarray, or that few programs need; they are imported when they are used.
_LAZY = {
    "Figure": "._commands",
    "index": "._commands",
    "merge": "._commands",
    "plot": "._commands",
    "SDFPreprocess": ".sdf",
    "open_mfdataset": ".sdf",
    "open_mfdatatree": ".sdf",
    "fortran": "",
    "gsd": "",
    "scda": "",
    "sdf": "",
    "taf": "",
}


def __getattr__(name):
    import importlib

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name] or f".{name}", __name__)
    return getattr(module, name) if _LAZY[name] else module


def __dir__():
    return sorted(__all__)
