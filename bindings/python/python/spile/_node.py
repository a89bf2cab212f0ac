"""Common base of groups and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from . import _spile


class ReadOnlyDict(dict[str, Any]):
    """A dictionary that cannot be changed: it is a copy of what the file contains."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("files are read-only; change a copy: dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    update = setdefault = pop = popitem = clear = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnlyDict, (dict(self),)


def read_only(array: np.ndarray) -> np.ndarray:
    """`array`, made read-only, because changes of a copy would be lost."""
    array.flags.writeable = False
    return array


class Handle:
    """An open file and its tree, shared by all its groups and arrays. `how` is the function that
    opens the file again, with its arguments, for pickling."""

    __slots__ = ("__weakref__", "_tree", "file", "how", "name")

    def __init__(self, file: _spile.File | None, name: str, how: tuple[Any, Any]) -> None:
        self.file = file
        self.name = name
        self.how = how
        self._tree: tuple[list[str], list[bool], dict[int, list[int]]] | None = None

    @property
    def open(self) -> _spile.File:
        if self.file is None:
            raise ValueError(f"{self.name} is closed")
        return self.file

    @property
    def tree(self) -> tuple[list[str], list[bool], dict[int, list[int]]]:
        """Paths of all nodes, whether they are arrays, and the numbers of their children."""
        if self._tree is None:
            paths, parents, arrays = self.open.nodes()
            children: dict[int, list[int]] = {}
            for number in range(1, len(paths)):
                children.setdefault(parents[number], []).append(number)
            self._tree = paths, arrays, children
        return self._tree

    def steps_and_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps (-1 where unknown) and times (NaN where unknown) of all frames."""
        steps, times = self.open.steps_and_times()
        whole = [-1 if step is None else step for step in steps]
        # Steps are unsigned; signed integers are returned unless a step exceeds their range.
        wide = any(step > np.iinfo("i8").max for step in whole)
        numbers = (
            np.array([max(step, 0) for step in whole], "u8") if wide else np.array(whole, "i8")
        )
        moments = np.array([np.nan if time is None else time for time in times], "f8")
        return read_only(numbers), read_only(moments)


class Node:
    """A group or an array."""

    __slots__ = ("_handle", "_number")

    def __init__(self, handle: Handle, number: int) -> None:
        self._handle = handle
        self._number = number

    @property
    def path(self) -> str:
        """Path from the root; empty for the file itself."""
        return self._handle.tree[0][self._number]

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def id(self) -> str | None:
        """Native identifier, such as the id of an SDF block, or `None`."""
        return self._handle.open.id(self._number)

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes, as a read-only dictionary."""
        return ReadOnlyDict(self._handle.open.attrs(self._number))
