"""scda files in parallel programs: `open` reads and writes sections, `Checkpoint` and `Restart` named fields.

The first argument is an mpi4py communicator, or `None` for one process. All methods are collective: every rank calls
them in the same order. An invalid argument of one rank raises the same exception on all ranks. The bytes of a file do
not depend on the number of ranks, and are those that the Rust and C interfaces write.

>>> from spile import scda
>>> path = here / "state.scda"
>>> with scda.Checkpoint(None, path, "heat", version=1) as file:
...     file.value("step", 7)
...     file.write("temperature", np.arange(6.0).reshape(3, 2), attrs={"units": "K"})
>>> with scda.Restart(None, path, "heat", version=1) as file:
...     file.value("step"), file.read("temperature")
(7, array([[0., 1.],
       [2., 3.],
       [4., 5.]]))

Under ``mpirun`` the communicator is for example ``mpi4py.MPI.COMM_WORLD``, and each rank passes and gets its own
elements, which are the first dimension of the arrays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _spile
from .errors import ArgumentError, SpileError

__all__ = ["Checkpoint", "Field", "File", "Restart", "Section", "open", "split"]

Path = str | os.PathLike[str]


class Section(NamedTuple):
    """Header of a section: its type (I, B, A or V) and user string, the number of elements `N`, the bytes `E` of a block
    or of each element of an A section, and whether its data are decoded."""

    type: str
    user: bytes
    N: int
    E: int
    decoded: bool


class Field(NamedTuple):
    """A field of a checkpoint. `shape` is that of one element, or of one item if the elements have different numbers of
    items (`ragged`)."""

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    count: int
    ragged: bool
    compressed: bool
    dims: tuple[str, ...]
    attrs: dict[str, Any]


def split(count: int, ranks: int) -> list[int]:
    """Number of elements of each rank if `count` elements are split evenly.

    >>> split(10, 3)
    [4, 3, 3]
    """
    return [count // ranks + (rank < count % ranks) for rank in range(ranks)]


class _Ranks:
    """The MPI calls of a file."""

    def __init__(self, comm: Any, hints: Mapping[str, str] | None) -> None:
        from mpi4py import MPI

        self.mpi = MPI
        # A duplicate keeps messages of spile apart from those of the program.
        self.comm = comm.Dup()
        self.info = MPI.INFO_NULL
        if hints:
            self.info = MPI.Info.Create()
            for name, value in hints.items():
                self.info.Set(name, str(value))

    def free(self) -> None:
        if self.info != self.mpi.INFO_NULL:
            self.info.Free()
        self.comm.Free()

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


class _Base:
    """An open file and its communicator."""

    _file: _spile.ScdaFile

    def __init__(self, comm: Any, hints: Mapping[str, str] | None = None) -> None:
        if comm is not None and not hasattr(comm, "Get_rank"):
            found = type(comm).__name__
            raise ArgumentError(f"expected an mpi4py communicator or None, found {found}")
        #: Rank of this process and number of ranks.
        self.rank = 0 if comm is None else comm.Get_rank()
        self.size = 1 if comm is None else comm.Get_size()
        self._ranks = None if comm is None else _Ranks(comm, hints)

    def _calls(self) -> tuple[_Ranks, int, int] | None:
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
        if breaks not in ("unix", "mime"):
            raise ArgumentError(f"breaks: expected unix or mime, found {breaks!r}")
        self._opened(
            lambda: _spile.ScdaFile.create(
                self._calls(),
                path,
                _bytes(user),
                vendor=None if vendor is None else _bytes(vendor),
                level=level,
                overwrite=overwrite,
                mime=breaks == "mime",
                index=index,
                checksums=checksums,
            )
        )

    def _open(self, path: Path, max_memory: int | None) -> tuple[bytes, bytes]:
        vendor, user = b"", b""

        def opened() -> _spile.ScdaFile:
            nonlocal vendor, user
            file, vendor, user = _spile.ScdaFile.open(self._calls(), path, max_memory)
            return file

        self._opened(opened)
        return vendor, user

    def _opened(self, make: Any) -> None:
        try:
            self._file = make()
        except BaseException:
            # The error is the same on all ranks.
            self._free()
            raise

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
        # An exception of spile is raised on all ranks, so that all of them discard the file. Other ranks of another
        # exception may be anywhere.
        alone = self.size > 1 and not isinstance(error, SpileError)
        self._file.abandon(alone)
        if not alone:
            self._free()

    def _counts(self, mine: int, counts: Sequence[int] | None) -> list[int]:
        """The partition for writing."""
        return self._file.gather(mine) if counts is None else [int(count) for count in counts]

    def _partition(self, count: int, counts: Sequence[int] | None) -> list[int]:
        """The partition for reading."""
        return split(count, self.size) if counts is None else [int(count) for count in counts]


class File(_Base):
    """A file of sections, see `open`. Iteration reads the headers of all sections; data that are not read are
    skipped."""

    #: User and vendor string of the file header.
    user: bytes
    vendor: bytes

    def __init__(
        self,
        comm: Any,
        path: Path,
        mode: str,
        user: bytes | str,
        hints: Mapping[str, str] | None,
        max_memory: int | None,
        options: dict[str, Any],
    ) -> None:
        super().__init__(comm, hints)
        self._section: Section | None = None
        if mode == "r":
            if options or user:
                self._free()
                raise ArgumentError("user string and options are for writing")
            self.vendor, self.user = self._open(path, max_memory)
        elif mode in ("w", "x"):
            self._create(path, user, mode == "w", **options)
        else:
            self._free()
            raise ArgumentError(f"expected the mode 'r', 'w' or 'x', found {mode!r}")

    def write_inline(self, data: bytes | None, user: bytes | str = b"", root: int = 0) -> None:
        """Writes an I section: 32 bytes of rank `root`."""
        self._file.inline(_bytes(user), root, data if self.rank == root else None)

    def write_block(
        self,
        data: bytes | None,
        user: bytes | str = b"",
        root: int = 0,
        encode: bool = False,
        size: int | None = None,
    ) -> None:
        """Writes a B section of the bytes of rank `root`. Other ranks pass `None` and the size in bytes, or let it be
        sent to them."""
        data = data if self.rank == root else None
        if size is None:
            size = max(self._file.gather(0 if data is None else len(data)))
        self._file.block(_bytes(user), root, size, data, encode)

    def write_array(
        self,
        data: Any,
        user: bytes | str = b"",
        encode: bool = False,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Writes an A section. The first dimension of `data` are the elements of this rank. `counts` is the number of
        elements of every rank; without it the numbers are gathered."""
        data = _elements(data)
        counts = self._counts(len(data), counts)
        self._file.array(_bytes(user), counts, _size(data), data, encode)

    def write_varray(
        self,
        sizes: Any,
        data: Any,
        user: bytes | str = b"",
        encode: bool = False,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Writes a V section: the sizes in bytes of this rank's elements, and their bytes one after the other."""
        sizes = [int(size) for size in sizes]
        data = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray) else data
        self._file.varray(
            _bytes(user), self._counts(len(sizes), counts), sizes, _elements(data), encode
        )

    def next(self, decode: bool = True) -> Section | None:
        """Reads the header of the next section; `None` at the end of the file."""
        header = self._file.next(decode)
        self._section = None if header is None else Section(*header)
        return self._section

    def __iter__(self) -> Iterator[Section]:
        while (section := self.next()) is not None:
            yield section

    def read_inline(self, root: int = 0) -> bytes | None:
        """The 32 bytes of an I section on rank `root`, `None` on the others."""
        return self._file.read_inline(root)

    def read_block(self, root: int = 0) -> bytes | None:
        """The bytes of a B section on rank `root`, `None` on the others."""
        return self._file.read_block(root)

    def read_array(self, dtype: Any = None, counts: Sequence[int] | None = None) -> np.ndarray:
        """This rank's elements of an A section: bytes of shape (number, E), or values of `dtype`. `counts` is the number
        of elements of every rank; by default they are split evenly."""
        section = self._current()
        counts = self._partition(section.N, counts)
        data = self._file.read_array(counts)
        if dtype is None:
            return data.reshape(counts[self.rank], section.E)
        dtype = np.dtype(dtype)
        each = _divide(section.E, dtype)
        return data.view(dtype).reshape(
            (counts[self.rank], each) if each != 1 else counts[self.rank]
        )

    def read_varray(
        self, dtype: Any = np.uint8, counts: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sizes in bytes of this rank's elements of a V section, and their bytes as values of `dtype`."""
        sizes, data = self._file.read_varray(self._partition(self._current().N, counts))
        return sizes, data.view(dtype)

    def _current(self) -> Section:
        if self._section is None:
            raise ArgumentError("no section header has been read")
        return self._section


def open(
    comm: Any,
    path: Path,
    mode: str = "r",
    user: bytes | str = b"",
    *,
    hints: Mapping[str, str] | None = None,
    max_memory: int | None = None,
    **options: Any,
) -> File:
    """Opens an scda file on all ranks of an mpi4py communicator, or on one process without (`None`).

    With the mode ``"w"`` a file is created, which replaces an existing one when it is closed; with ``"x"`` the file must
    not exist. `user` is the user string of the file. `hints` are those of an ``MPI_Info``, such as
    ``{"striping_factor": "16"}``. Options for writing: `vendor`, `level` (compression, 0 to 12), `breaks` (``"unix"``,
    ``"mime"``), `index` and `checksums`. `max_memory` limits the data that a rank reads at once, in bytes.

    >>> with open(None, here / "a.scda", "w", "an example") as file:
    ...     file.write_array(np.arange(4, dtype=np.int32), "numbers")
    >>> with open(None, here / "a.scda") as file:
    ...     for section in file:
    ...         print(section.type, section.user, file.read_array(np.int32))
    A b'numbers' [0 1 2 3]
    """
    return File(comm, path, mode, user, hints, max_memory, options)


class Checkpoint(_Base):
    """Writes values and fields by name. `name` and `version` identify the program and the meaning of its fields. Options
    as for `open`."""

    def __init__(
        self,
        comm: Any,
        path: Path,
        name: str,
        version: int = 1,
        *,
        overwrite: bool = True,
        hints: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(comm, hints)
        self._create(path, name, overwrite, **options)
        self._file.group("", {"name": name, "version": _count(version)})

    def value(self, name: str, value: Any) -> None:
        """Writes a number, string or list that is the same on every rank. In a name with slashes the part before the last
        one is the group."""
        group, _, last = name.rpartition("/")
        if not last:
            raise ArgumentError("the name of a value is empty")
        self._file.group(group, {last: _value(value)})

    def attrs(self, group: str, attrs: Mapping[str, Any]) -> None:
        """Writes attributes of a group, or of the file if `group` is empty."""
        self._file.group(group, {name: _value(value) for name, value in attrs.items()})

    def write(
        self,
        name: str,
        data: Any,
        *,
        version: int | None = None,
        attrs: Mapping[str, Any] | None = None,
        dims: Sequence[str] = (),
        compress: bool = False,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Writes a field. The first dimension of `data` are the elements of this rank. `dims` are the names of all
        dimensions. `counts` is the number of elements of every rank; without it the numbers are gathered."""
        data = _elements(data)
        self._write(name, data, data.shape[1:], version, attrs, dims, compress, counts, None)

    def write_ragged(
        self,
        name: str,
        lengths: Any,
        data: Any,
        *,
        version: int | None = None,
        attrs: Mapping[str, Any] | None = None,
        dims: Sequence[str] = (),
        compress: bool = False,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Writes a field whose elements have different numbers of items: `lengths` of this rank's elements, and their
        items one after the other as the first dimension of `data`."""
        data, lengths = _elements(data), [int(length) for length in lengths]
        self._write(name, data, data.shape[1:], version, attrs, dims, compress, counts, lengths)

    def _write(
        self,
        name: str,
        data: np.ndarray,
        shape: tuple[int, ...],
        version: int | None,
        attrs: Mapping[str, Any] | None,
        dims: Sequence[str],
        compress: bool,
        counts: Sequence[int] | None,
        lengths: list[int] | None,
    ) -> None:
        mine = len(data) if lengths is None else len(lengths)
        counts = self._counts(mine, counts)
        own: dict[str, Any] = {} if version is None else {"version": _count(version)}
        own.update({name: _value(value) for name, value in (attrs or {}).items()})
        dtype = data.dtype.str
        self._file.field(name, dtype, list(shape), list(dims), own, compress, counts, data, lengths)


class Restart(_Base):
    """Reads a checkpoint on any number of ranks. Fails if `name` or `version` are given and differ from the file. Fields
    are verified if the file has checksums."""

    #: Name and version of the program that wrote the file; `None` if it has none.
    name: str | None
    version: int | None
    #: The fields by name, in file order.
    fields: dict[str, Field]

    def __init__(
        self,
        comm: Any,
        path: Path,
        name: str | None = None,
        version: int | None = None,
        *,
        hints: Mapping[str, str] | None = None,
        max_memory: int | None = None,
    ) -> None:
        super().__init__(comm, hints)
        self._open(path, max_memory)
        try:
            self.fields = {row[0]: _field(*row) for row in self._file.fields()}
            about = self._file.attrs("")
            self.name, self.version = about.get("name"), about.get("version")
            for what, expected, found in [
                ("name", name, self.name),
                ("version", version, self.version),
            ]:
                if expected is not None and expected != found:
                    message = f"expected a checkpoint of {what} {expected!r}, found {found!r}"
                    raise ArgumentError(message, path=os.fspath(path))
        except BaseException:
            self.close()
            raise

    def attrs(self, group: str = "") -> dict[str, Any]:
        """Attributes of a group, or of the file."""
        return self._file.attrs(group)

    def value(self, name: str) -> Any:
        """A value written by `Checkpoint.value`."""
        group, _, last = name.rpartition("/")
        attrs = self._file.attrs(group)
        if last not in attrs:
            raise ArgumentError(f"no value named {name!r}")
        return attrs[last]

    def read(
        self, name: str, *, version: int | None = None, counts: Sequence[int] | None = None
    ) -> np.ndarray:
        """This rank's elements of a field. `counts` is the number of elements of every rank; by default they are split
        evenly."""
        field = self._find(name, version)
        if field.ragged:
            raise ArgumentError(f"{name!r} is a ragged field", hint="use read_ragged")
        counts = self._partition(field.count, counts)
        data, _ = self._file.read_field(name, counts)
        return _values(data, field).reshape(counts[self.rank], *field.shape)

    def read_ragged(
        self, name: str, *, version: int | None = None, counts: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of items of this rank's elements of a ragged field, and their items."""
        field = self._find(name, version)
        if not field.ragged:
            raise ArgumentError(f"{name!r} is not a ragged field", hint="use read")
        data, sizes = self._file.read_field(name, self._partition(field.count, counts))
        values = _values(data, field).reshape(-1, *field.shape)
        item = values.dtype.itemsize * int(np.prod(field.shape, dtype=np.int64))
        return sizes // max(item, 1), values

    def _find(self, name: str, version: int | None) -> Field:
        field = self.fields.get(name)
        if field is None:
            raise ArgumentError(
                f"no field named {name!r}", hint=f"fields: {', '.join(self.fields)}"
            )
        found = field.attrs.get("version")
        if version is not None and version != found:
            raise ArgumentError(f"{name!r}: expected version {version}, found {found}")
        return field


def _field(
    name: str,
    dtype: str | None,
    shape: list[int],
    section: str,
    count: int,
    compressed: bool,
    dims: list[str],
    attrs: dict[str, Any],
) -> Field:
    kind = None if dtype is None else np.dtype(dtype)
    return Field(name, kind, tuple(shape), count, section == "V", compressed, tuple(dims), attrs)


def _values(data: np.ndarray, field: Field) -> np.ndarray:
    """Stored bytes as values in native byte order."""
    if field.dtype is None:
        raise ArgumentError(f"{field.name!r} has a type that NumPy lacks")
    if field.dtype.itemsize == 0:
        return np.zeros(field.count, field.dtype)
    values = data.view(field.dtype)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _elements(data: Any) -> np.ndarray:
    """An array whose first dimension are elements."""
    data = np.asarray(data)
    if data.ndim == 0:
        raise ArgumentError("expected an array whose first dimension are the elements of this rank")
    if data.dtype.hasobject:
        raise ArgumentError("arrays of Python objects cannot be written")
    return np.ascontiguousarray(data)


def _size(data: np.ndarray) -> int:
    """Bytes of an element."""
    return data.dtype.itemsize * int(np.prod(data.shape[1:], dtype=np.int64))


def _divide(size: int, dtype: np.dtype[Any]) -> int:
    if dtype.itemsize == 0 or size % dtype.itemsize:
        raise ArgumentError(f"elements of {size} bytes are not values of type {dtype}")
    return size // dtype.itemsize


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _count(value: int) -> int:
    value = int(value)
    if value < 0:
        raise ArgumentError(f"expected a version of at least 0, found {value}")
    return value


def _value(value: Any) -> Any:
    """An attribute without NumPy types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    return value
