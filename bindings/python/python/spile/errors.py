"""What goes wrong, by whose fault it is.

Every class also is one of Python's own, so that ``except FileNotFoundError`` does what it says.
The place is in attributes: ``path``, ``format``, ``object``, ``frame``, ``offset`` (byte of the
file), ``code`` (the rule that was broken) and ``hint`` (a way out).

>>> import spile
>>> try:
...     spile.open(b"not a cask")
... except spile.errors.NotThisFormatError as error:
...     print(error.code)
core-unknown
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArgumentError",
    "ExistsError",
    "IoError",
    "LimitError",
    "MalformedError",
    "MissingError",
    "NotThisFormatError",
    "SpileError",
    "TruncatedError",
    "UnsupportedError",
]


class SpileError(Exception):
    """Any failure of spile."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        path: str | None = None,
        format: str | None = None,
        object: str | None = None,
        frame: int | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.path = path
        self.format = format
        self.object = object
        self.frame = frame
        self.offset = offset
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.message, self.__dict__.copy())


def _again(kind: type[SpileError], message: str, place: dict[str, Any]) -> SpileError:
    error = kind(message)
    error.__dict__.update(place)
    return error


class IoError(SpileError, OSError):
    """The operating system refused: no permission, full disk."""


class MissingError(IoError, FileNotFoundError):
    """There is no such file."""


class NotThisFormatError(SpileError, ValueError):
    """The bytes are of some other format."""


class MalformedError(SpileError, ValueError):
    """The bytes break a rule of their format."""


class TruncatedError(SpileError, EOFError):
    """The bytes end before the structure they promise."""


class UnsupportedError(SpileError, NotImplementedError):
    """Legal, but not something this version can do."""


class LimitError(SpileError, MemoryError):
    """Legal, but larger than the caller allowed."""


class ArgumentError(SpileError, ValueError, IndexError):
    """The caller asked for something that makes no sense, or is not there."""


class ExistsError(SpileError, FileExistsError):
    """The target exists and the caller did not say to replace it."""
