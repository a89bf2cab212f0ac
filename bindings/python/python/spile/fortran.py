"""Any Fortran unformatted file: records as arrays of given types, as in ``spile records``.

>>> import struct
>>> path = here / "run.dat"
>>> def record(data):
...     return struct.pack("i", len(data)) + data + struct.pack("i", len(data))
>>> _ = path.write_bytes(record(struct.pack("i", 3)) + record(np.arange(6.0).tobytes()))
>>> file = spile.fortran.open(path, "i4=n; f8*2*n=x")
>>> file["n"][...], file["x"].shape, file["x"][1, :]
(np.int32(3), (2, 3), array([1., 3., 5.]))
"""

from __future__ import annotations

import os
from typing import Any

from ._open import source
from ._spile import File as _File
from ._tree import File

__all__ = ["open"]


def open(
    file: Any,
    as_: str | None = None,
    *,
    endian: str | None = None,
    marker: int | None = None,
    max_memory: int | None = None,
) -> File:
    """Opens a Fortran unformatted file with the types of its records.

    Parameters
    ----------
    file : path, bytes or file-like
        As for `spile.open`.
    as_ : str
        Types of the records. Records are separated by ``;`` and the fields of a record by ``,``; the
        last
        record describes all further ones. A field is ``TYPE*COUNT=NAME`` with the types of NumPy
        without byte
        order, and ``l4`` for logicals. A count is a number, the name of a preceding integer, or empty
        for the
        rest of the record; several counts are dimensions, first index fastest: ``"f8"``, ``"i4,f8*3"``,
        ``"i4=n; f8*3*n=x"``. Without types, records are arrays of bytes.
    endian : {"little", "big"}
        Byte order; detected by default.
    marker : {4, 8}
        Size of the record markers in bytes; detected by default.

    Returns
    -------
    File
        Fields with a name are arrays of the root. Others are ``record.1``, ``record.2``, ..., or
        ``record.1/field.2`` in a record of several fields. Records split into sub-records are joined.
    """
    if endian not in (None, "little", "big"):
        raise ValueError(f"endian: expected 'little' or 'big', found {endian!r}")
    if marker not in (None, 4, 8):
        raise ValueError(f"marker: expected 4 or 8, found {marker!r}")
    path, data = source(file)
    options = {"endian": endian, "marker": marker, "max_memory": max_memory}
    big = None if endian is None else endian == "big"
    handle = _File.records(path, data, as_, big=big, marker=marker, max_memory=max_memory)
    name = path if path is not None else getattr(file, "name", None) or "bytes"
    if path is not None:
        data = None
        path = path if "://" in path else os.path.abspath(path)
    return File(handle, str(name), (_reopened, (path, data, as_, tuple(options.items()))))


def _reopened(path: str | None, data: Any, as_: str | None, options: tuple[Any, ...]) -> File:
    return open(data if path is None else path, as_, **dict(options))
