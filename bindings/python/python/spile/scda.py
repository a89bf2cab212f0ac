"""scda files in parallel programs: `open` reads and writes sections, `Checkpoint` and `Restart` named
fields.

The first argument is an mpi4py communicator, or `None` for one process. All methods are collective:
every rank calls them in the same order. An invalid argument of one rank raises the same exception on all
ranks. The bytes of a file do not depend on the number of ranks, and are those that the Rust and C
interfaces write.

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

Under ``mpirun`` the communicator is for example ``mpi4py.MPI.COMM_WORLD``, and each rank passes and gets
its own elements, which are the first dimension of the arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._ranks import (
    Base,
    Path,
    element_size,
    elements,
    split,
    to_block,
    to_bytes,
    to_number,
    to_numbers,
    to_value,
    values_each,
)
from .errors import ArgumentError

__all__ = ["Checkpoint", "Field", "File", "Restart", "Section", "open", "split"]

#: Options for writing.
OPTIONS = {"vendor", "level", "breaks", "index", "checksums"}


class Section(NamedTuple):
    """Header of a section: its type (I, B, A or V) and user string, the number of elements `N`, the
    bytes `E` of a block or of each element of an A section, and whether its data are decoded."""

    type: str
    user: bytes
    N: int
    E: int
    decoded: bool


@dataclass(frozen=True)
class Field:
    """A field of a checkpoint. `shape` is that of one element, or of one item if the elements have
    different numbers of items (`ragged`)."""

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    count: int
    ragged: bool
    compressed: bool
    dims: tuple[str, ...]
    attrs: dict[str, Any]


class File(Base):
    """A file of sections, see `open`. Iteration reads the headers of all sections; data that are not
    read are skipped."""

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

        def checked() -> None:
            if mode not in ("r", "w", "x"):
                raise ArgumentError(f"expected the mode 'r', 'w' or 'x', found {mode!r}")
            if mode == "r" and (options or user):
                raise ArgumentError("user string and options are for writing")
            if unknown := options.keys() - OPTIONS:
                raise ArgumentError(f"unknown options: {', '.join(sorted(unknown))}")

        self._started(lambda: self._checked(checked))
        if mode == "r":
            self.vendor, self.user = self._open(path, max_memory)
        else:
            self._create(path, user, mode == "w", **options)

    def write_inline(self, data: bytes | None, user: bytes | str = b"", root: int = 0) -> None:
        """Writes an I section: 32 bytes of rank `root`."""
        own = data if self.rank == root else None
        self._file.inline(
            *self._checked(lambda: (to_bytes(user), to_number(root, "root"), to_block(own)))
        )

    def write_block(
        self,
        data: bytes | None,
        user: bytes | str = b"",
        root: int = 0,
        encode: bool = False,
        size: int | None = None,
    ) -> None:
        """Writes a B section of the bytes of rank `root`. Other ranks pass `None` and the size in bytes,
        or let it be sent to them."""

        def checked() -> tuple[bytes, int, int | None, bytes | None]:
            own = to_block(data if self.rank == root else None)
            given = None if size is None else to_number(size, "size")
            return to_bytes(user), to_number(root, "root"), given, own

        name, rank, given, own = self._checked(checked)
        if given is None:
            given = max(self._file.gather(0 if own is None else len(own)))
        self._file.block(name, rank, given, own, bool(encode))

    def write_array(
        self,
        data: Any,
        user: bytes | str = b"",
        encode: bool = False,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Writes an A section. The first dimension of `data` are the elements of this rank. `counts` is
        the number of elements of every rank; without it the numbers are gathered."""
        name, own, given = self._checked(
            lambda: (to_bytes(user), elements(data), self._given(counts))
        )
        every = self._counts(len(own), given)
        self._file.array(name, every, element_size(own), own, bool(encode))

    def write_varray(
        self,
        sizes: Any,
        data: Any,
        user: bytes | str = b"",
        encode: bool = False,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Writes a V section: the sizes in bytes of this rank's elements, and their bytes one after the
        other."""

        def checked() -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray | None]:
            own = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray) else data
            return to_bytes(user), to_numbers(sizes, "sizes"), elements(own), self._given(counts)

        name, lengths, own, given = self._checked(checked)
        every = self._counts(len(lengths), given)
        self._file.varray(name, every, lengths.tolist(), own, bool(encode))

    def next(self, decode: bool = True) -> Section | None:
        """Reads the header of the next section; `None` at the end of the file."""
        header = self._file.next(bool(decode))
        self._section = None if header is None else Section(*header)
        return self._section

    def __iter__(self) -> Iterator[Section]:
        while (section := self.next()) is not None:
            yield section

    def read_inline(self, root: int = 0) -> bytes | None:
        """The 32 bytes of an I section on rank `root`, `None` on the others."""
        return self._file.read_inline(self._checked(lambda: to_number(root, "root")))

    def read_block(self, root: int = 0) -> bytes | None:
        """The bytes of a B section on rank `root`, `None` on the others."""
        return self._file.read_block(self._checked(lambda: to_number(root, "root")))

    def read_array(self, dtype: Any = None, counts: Sequence[int] | None = None) -> np.ndarray:
        """This rank's elements of an A section: bytes of shape (number, E), or values of `dtype`.
        `counts` is the number of elements of every rank; by default they are split evenly."""

        def checked() -> tuple[list[int], tuple[int, ...], np.dtype[Any]]:
            section = self._current()
            every = self._partition(section.N, counts)
            kind = np.dtype(np.uint8 if dtype is None else dtype)
            each = values_each(section.E, kind)
            shape = (each,) if dtype is None or each != 1 else ()
            return every, shape, kind

        every, shape, kind = self._checked(checked)
        data = self._file.read_array(every)
        return data.view(kind).reshape(every[self.rank], *shape)

    def read_varray(
        self, dtype: Any = np.uint8, counts: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sizes in bytes of this rank's elements of a V section, and their bytes as values of
        `dtype`."""
        every, kind = self._checked(
            lambda: (self._partition(self._current().N, counts), np.dtype(dtype))
        )
        sizes, data = self._file.read_varray(every)
        # The elements of one rank may be no values of the type.
        return sizes, self._checked(lambda: data.view(kind))

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

    With the mode ``"w"`` a file is created, which replaces an existing one when it is closed; with
    ``"x"`` the file must not exist. `user` is the user string of the file. `hints` are those of an
    ``MPI_Info``, such as ``{"striping_factor": "16"}``. Options for writing: `vendor`, `level`
    (compression, 0 to 12), `breaks` (``"unix"``, ``"mime"``), `index` and `checksums`. `max_memory`
    limits the data that a rank reads at once, in bytes.

    >>> with open(None, here / "a.scda", "w", "an example") as file:
    ...     file.write_array(np.arange(4, dtype=np.int32), "numbers")
    >>> with open(None, here / "a.scda") as file:
    ...     for section in file:
    ...         print(section.type, section.user, file.read_array(np.int32))
    A b'numbers' [0 1 2 3]
    """
    return File(comm, path, mode, user, hints, max_memory, options)


class Checkpoint(Base):
    """Writes values and fields by name. `name` and `version` identify the program and the meaning of its
    fields. Options as for `open`."""

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

        def checked() -> dict[str, Any]:
            if unknown := options.keys() - OPTIONS:
                raise ArgumentError(f"unknown options: {', '.join(sorted(unknown))}")
            return {"name": str(name), "version": to_number(version, "version")}

        about = self._started(lambda: self._checked(checked))
        self._create(path, name, overwrite, **options)
        self._file.group("", about)

    def value(self, name: str, value: Any) -> None:
        """Writes a number, string or list that is the same on every rank. In a name with slashes the
        part before the last one is the group."""

        def checked() -> tuple[str, dict[str, Any]]:
            group, _, last = name.rpartition("/")
            if not last:
                raise ArgumentError("the name of a value is empty")
            return group, {last: to_value(value)}

        self._file.group(*self._checked(checked))

    def attrs(self, group: str, attrs: Mapping[str, Any]) -> None:
        """Writes attributes of a group, or of the file if `group` is empty."""
        own = self._checked(lambda: {str(name): to_value(value) for name, value in attrs.items()})
        self._file.group(group, own)

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
        """Writes a field. The first dimension of `data` are the elements of this rank. `dims` are the
        names of all dimensions. `counts` is the number of elements of every rank; without it the numbers
        are gathered."""
        self._write(name, None, data, version, attrs, dims, compress, counts)

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
        """Writes a field whose elements have different numbers of items: `lengths` of this rank's
        elements, and their items one after the other as the first dimension of `data`."""
        self._write(name, lengths, data, version, attrs, dims, compress, counts)

    def _write(
        self,
        name: str,
        lengths: Any,
        data: Any,
        version: int | None,
        attrs: Mapping[str, Any] | None,
        dims: Sequence[str],
        compress: bool,
        counts: Sequence[int] | None,
    ) -> None:
        """Writes a field; `lengths` are `None` if the elements are of equal size."""

        def checked() -> tuple[Any, ...]:
            described: dict[str, Any] = {}
            if version is not None:
                described["version"] = to_number(version, "version")
            described.update({str(key): to_value(value) for key, value in (attrs or {}).items()})
            numbers = None if lengths is None else to_numbers(lengths, "lengths").tolist()
            names, own = [str(dim) for dim in dims], elements(data)
            if own.dtype.kind not in "iufcbSV":
                raise ArgumentError(f"{own.dtype} cannot be stored in a field")
            return str(name), names, described, own, numbers, self._given(counts)

        path, names, described, own, numbers, given = self._checked(checked)
        every = self._counts(len(own if numbers is None else numbers), given)
        dtype, shape = own.dtype.str, list(own.shape[1:])
        self._file.field(path, dtype, shape, names, described, bool(compress), every, own, numbers)


class Restart(Base):
    """Reads a checkpoint on any number of ranks. Fails if `name` or `version` are given and differ from
    the file. Fields are verified if the file has checksums."""

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

            def checked() -> None:
                for what, expected, found in [
                    ("name", name, self.name),
                    ("version", version, self.version),
                ]:
                    if expected is not None and expected != found:
                        message = f"expected a checkpoint of {what} {expected!r}, found {found!r}"
                        raise ArgumentError(message, path=os.fspath(path))

            self._checked(checked)
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
        """This rank's elements of a field. `counts` is the number of elements of every rank; by default
        they are split evenly."""
        field, every = self._checked(lambda: self._find(name, version, False, counts))
        data, _ = self._file.read_field(name, every)
        return _values(data, field).reshape(every[self.rank], *field.shape)

    def read_ragged(
        self, name: str, *, version: int | None = None, counts: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of items of this rank's elements of a ragged field, and their items."""
        field, every = self._checked(lambda: self._find(name, version, True, counts))
        data, sizes = self._file.read_field(name, every)
        assert sizes is not None
        values = _values(data, field).reshape(-1, *field.shape)
        item = values.dtype.itemsize * int(np.prod(field.shape, dtype=np.int64))
        return sizes // max(item, 1), values

    def _find(
        self, name: str, version: int | None, ragged: bool, counts: Sequence[int] | None
    ) -> tuple[Field, list[int]]:
        """A field, and the number of its elements of every rank."""
        field = self.fields.get(name)
        if field is None:
            raise ArgumentError(
                f"no field named {name!r}", hint=f"fields: {', '.join(self.fields)}"
            )
        found = field.attrs.get("version")
        if version is not None and version != found:
            raise ArgumentError(f"{name!r}: expected version {version}, found {found}")
        if field.ragged != ragged:
            what, hint = ("a", "use read_ragged") if field.ragged else ("not a", "use read")
            raise ArgumentError(f"{name!r} is {what} ragged field", hint=hint)
        if field.dtype is None:
            raise ArgumentError(f"{name!r} has a type that NumPy lacks")
        return field, self._partition(field.count, counts)


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
    assert field.dtype is not None
    if field.dtype.itemsize == 0:
        return np.zeros(field.count, field.dtype)
    values = data.view(field.dtype)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
