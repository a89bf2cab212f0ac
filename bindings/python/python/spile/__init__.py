"""Opens the files that simulations and instruments leave behind.

>>> import spile
>>> file = spile.open(golden("sdf/epoch3d_0001.sdf"))
>>> file["Electric Field/Ex"][2:4, ..., -1].shape
(2, 10)

`open` gives a lazy mapping of groups and arrays; nothing but metadata is read before an array is
indexed. The verbs of the command line are functions of the same names: `info`, `check`, `diff`,
`hash`, `convert`, `salvage`. `create` writes. ``xarray.open_dataset(path, engine="spile")`` works
when xarray is installed; NumPy is all that spile itself needs.
"""

from . import errors
from ._array import Array
from ._create import create
from ._open import open, open_series
from ._spile import __version__
from ._tree import File, Group
from ._verbs import check, convert, diff, formats, hash, info, salvage
from .errors import SpileError

__all__ = [
    "Array",
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
    "hash",
    "info",
    "open",
    "open_series",
    "salvage",
    "taf",
]


def __getattr__(name):
    if name == "taf":
        import importlib

        return importlib.import_module(".taf", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
