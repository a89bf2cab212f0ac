"""The ranks of parallel scda files, and checks of arguments."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from . import _spile
from .errors import ArgumentError, SpileError

Path = str | os.PathLike[str]
T = TypeVar("T")


def split(count: int, ranks: int) -> list[int]:
    """Number of elements of each rank if `count` elements are split evenly.

    >>> from spile.scda import split
    >>> split(10, 3)
    [4, 3, 3]
    """
    return [count // ranks + (rank < count % ranks) for rank in range(ranks)]


class Ranks:
    """The MPI calls of a file."""

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self.mpi = MPI
        # A duplicate keeps messages of spile apart from those of the program.
        self.comm = comm.Dup()
        self.info = MPI.INFO_NULL

    def set_hints(self, hints: Mapping[str, str]) -> None:
        if not hints:
            return
        self.info = self.mpi.Info.Create()
        for name, value in hints.items():
            self.info.Set(name, str(value))

    def free(self) -> None:
        if self.info != self.mpi.INFO_NULL:
            self.info.Free()
        self.comm.Free()

    def agree(self, error: str | None) -> str | None:
        """The error of the lowest rank that has one."""
        size = self.comm.Get_size()
        first = np.array([size if error is None else self.comm.Get_rank()], np.int64)
        self.comm.Allreduce(self.mpi.IN_PLACE, first, self.mpi.MIN)
        return None if first[0] == size else self.comm.bcast(error, int(first[0]))

    def broadcast(self, data: memoryview, root: int) -> None:
        self.comm.Bcast([data, self.mpi.BYTE], root)

    def max(self, data: memoryview) -> None:
        self.comm.Allreduce(self.mpi.IN_PLACE, [data, self.mpi.UINT64_T], self.mpi.MAX)

    def xor(self, data: memoryview) -> None:
        self.comm.Allreduce(self.mpi.IN_PLACE, [data, self.mpi.UINT64_T], self.mpi.BXOR)

    def sum_before(self, data: memoryview) -> None:
        self.comm.Exscan(self.mpi.IN_PLACE, [data, self.mpi.UINT64_T], self.mpi.SUM)
        if self.comm.Get_rank() == 0:
            # The call leaves the values of rank 0 undefined.
            data[:] = bytes(len(data))

    def allgather(self, mine: bytes) -> bytes:
        every = bytearray(len(mine) * self.comm.Get_size())
        self.comm.Allgather([mine, self.mpi.BYTE], [every, self.mpi.BYTE])
        return bytes(every)

    def open(self, path: Path, write: bool) -> Any:
        mode = self.mpi.MODE_RDONLY
        if write:
            mode = self.mpi.MODE_WRONLY | self.mpi.MODE_CREATE | self.mpi.MODE_EXCL
        return self.mpi.File.Open(self.comm, os.fspath(path), mode, self.info)

    def _transfer(self, call: Any, offset: int, data: memoryview) -> int:
        status = self.mpi.Status()
        call(offset, [data, self.mpi.BYTE], status)
        return status.Get_count(self.mpi.BYTE)

    def write_at_all(self, file: Any, offset: int, data: memoryview) -> int:
        return self._transfer(file.Write_at_all, offset, data)

    def write_at(self, file: Any, offset: int, data: memoryview) -> int:
        return self._transfer(file.Write_at, offset, data)

    def read_at_all(self, file: Any, offset: int, data: memoryview) -> int:
        return self._transfer(file.Read_at_all, offset, data)

    def close(self, file: Any, keep: bool) -> None:
        try:
            if keep:
                file.Sync()
        finally:
            file.Close()


class Base:
    """An open file and its communicator."""

    _file: _spile.ScdaFile

    def __init__(self, comm: Any, hints: Mapping[str, str] | None = None) -> None:
        if comm is not None and not hasattr(comm, "Get_rank"):
            found = type(comm).__name__
            raise ArgumentError(f"expected an mpi4py communicator or None, found {found}")
        #: Rank of this process and number of ranks.
        self.rank = 0 if comm is None else comm.Get_rank()
        self.size = 1 if comm is None else comm.Get_size()
        self._ranks = ranks = None if comm is None else Ranks(comm)
        if ranks is not None:
            self._started(lambda: self._checked(lambda: ranks.set_hints(hints or {})))

    def _calls(self) -> tuple[Ranks, int, int] | None:
        return None if self._ranks is None else (self._ranks, self.rank, self.size)

    def _create(
        self,
        path: Path,
        user: bytes | str,
        overwrite: bool,
        vendor: bytes | str | None = None,
        level: int = 9,
        breaks: str = "unix",
        index: bool = False,
        checksums: bool = False,
    ) -> None:
        def options() -> dict[str, Any]:
            if breaks not in ("unix", "mime"):
                raise ArgumentError(f"breaks: expected unix or mime, found {breaks!r}")
            return {
                "path": os.fspath(path),
                "user": to_bytes(user),
                "vendor": None if vendor is None else to_bytes(vendor),
                # The library reports a level that is too large.
                "level": min(to_number(level, "a compression level"), 99),
                "overwrite": bool(overwrite),
                "mime": breaks == "mime",
                "index": bool(index),
                "checksums": bool(checksums),
            }

        def create() -> _spile.ScdaFile:
            return _spile.ScdaFile.create(self._calls(), **self._checked(options))

        self._file = self._started(create)

    def _open(self, path: Path, max_memory: int | None) -> tuple[bytes, bytes]:
        """Opens a file for reading; returns its vendor and user string."""

        def options() -> tuple[str, int | None]:
            memory = None if max_memory is None else to_number(max_memory, "max_memory")
            return os.fspath(path), memory

        self._file, vendor, user = self._started(
            lambda: _spile.ScdaFile.open(self._calls(), *self._checked(options))
        )
        return vendor, user

    def _started(self, make: Callable[[], T]) -> T:
        """The result of `make`, which raises the same exception on all ranks."""
        try:
            return make()
        except BaseException:
            self._free()
            raise

    def _checked(self, make: Callable[[], T]) -> T:
        """The result of `make`, which does not communicate. An exception on one rank is raised on
        all."""
        error: SpileError | None = None
        try:
            made = make()
        except SpileError as raised:
            error = raised
        except Exception as raised:
            error = ArgumentError(f"{type(raised).__name__}: {raised}")
        if self._ranks is not None:
            message = self._ranks.agree(None if error is None else str(error))
            if error is None and message is not None:
                error = ArgumentError(message)
        if error is not None:
            raise error
        return made

    def _free(self) -> None:
        ranks, self._ranks = self._ranks, None
        if ranks is not None:
            ranks.free()

    def close(self) -> None:
        """Completes the file. A file that was written gets its name now."""
        try:
            self._file.close()
        finally:
            self._free()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
            return
        # An exception of spile is raised on all ranks, so that all of them discard the file. Other ranks
        # of another exception may be anywhere.
        alone = self.size > 1 and not isinstance(error, SpileError)
        self._file.abandon(alone)
        if not alone:
            self._free()

    def _given(self, counts: Sequence[int] | None) -> np.ndarray | None:
        """A partition passed by the caller."""
        return None if counts is None else to_numbers(counts, "counts")

    def _counts(self, mine: int, counts: np.ndarray | None) -> list[int]:
        """The partition for writing."""
        return self._file.gather(mine) if counts is None else counts.tolist()

    def _partition(self, count: int, counts: Sequence[int] | None) -> list[int]:
        """The partition for reading."""
        return split(count, self.size) if counts is None else to_numbers(counts, "counts").tolist()


def elements(data: Any) -> np.ndarray:
    """An array whose first dimension are elements."""
    data = np.asarray(data)
    if data.ndim == 0:
        raise ArgumentError("expected an array whose first dimension are the elements of this rank")
    if data.dtype.hasobject:
        raise ArgumentError("arrays of Python objects cannot be written")
    return np.ascontiguousarray(data)


def element_size(data: np.ndarray) -> int:
    """Bytes of an element."""
    return data.dtype.itemsize * int(np.prod(data.shape[1:], dtype=np.int64))


def values_each(size: int, dtype: np.dtype[Any]) -> int:
    if dtype.itemsize == 0 or size % dtype.itemsize:
        raise ArgumentError(f"elements of {size} bytes are not values of type {dtype}")
    return size // dtype.itemsize


def to_bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else memoryview(text).tobytes()


def to_block(data: Any) -> bytes | None:
    """The bytes of a buffer."""
    return None if data is None else memoryview(data).tobytes()


def to_number(value: Any, what: str) -> int:
    """A number that is not negative."""
    value = operator.index(value)
    if not 0 <= value < 1 << 64:
        raise ArgumentError(f"{what}: expected a number from 0 to 2^64, found {value}")
    return value


def to_numbers(values: Any, what: str) -> np.ndarray:
    """Numbers that are not negative."""
    values = np.asarray(values)
    if values.size == 0:
        return np.zeros(0, np.uint64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ArgumentError(f"{what}: expected a list of integers")
    if values.min() < 0:
        raise ArgumentError(f"{what}: expected numbers of at least 0, found {values.min()}")
    return np.ascontiguousarray(values, np.uint64)


def to_value(value: Any) -> Any:
    """An attribute without NumPy types."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [to_value(item) for item in value]
    # Types and range that the library can store.
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ArgumentError(f"cannot store the attribute {value}")
    if not isinstance(value, bool | int | float | complex | str | bytes):
        kind = type(value).__name__
        hint = "supported are numbers, str, bytes and lists of them"
        raise ArgumentError(f"cannot store an attribute of type {kind}", hint=hint)
    return value
