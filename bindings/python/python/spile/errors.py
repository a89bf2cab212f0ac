"""Exceptions.

Every class also derives from a built-in exception, so that for example ``except FileNotFoundError``
works. The attributes ``path``, ``format``, ``object``, ``frame`` and ``offset`` (in bytes) give the
location, ``code`` the rule that was violated, and ``hint`` a suggestion; each can be `None`.

>>> import spile
>>> try:
...     spile.open(b"unknown content")
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
    """Base class of all exceptions of spile."""

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
    """Restores a pickled exception."""
    error = kind(message)
    error.__dict__.update(place)
    return error


class IoError(SpileError, OSError):
    """An I/O error of the operating system, for example missing permission or a full disk."""


class MissingError(IoError, FileNotFoundError):
    """The file does not exist."""


class NotThisFormatError(SpileError, ValueError):
    """The file format is not recognised, or not the expected one."""


class MalformedError(SpileError, ValueError):
    """The content violates the specification of the format."""


class TruncatedError(SpileError, EOFError):
    """The file ends before the end of its content."""


class UnsupportedError(SpileError, NotImplementedError):
    """Valid, but not supported by this version."""


class LimitError(SpileError, MemoryError):
    """The operation exceeds a limit such as ``max_memory``."""


class ArgumentError(SpileError, ValueError, IndexError):
    """An invalid argument, for example an unknown name or an index out of bounds."""


class ExistsError(SpileError, FileExistsError):
    """The output file already exists and ``overwrite`` is not set."""
