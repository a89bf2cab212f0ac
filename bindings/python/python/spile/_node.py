"""An open file and its nodes, as groups and arrays share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from . import _spile


class Handle:
    """The compiled file and its tree, shared by all groups and arrays."""

    __slots__ = ("_tree", "file", "how", "name")

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
        """Paths, whether arrays, and numbers of children; asked for in one call."""
        if self._tree is None:
            paths, parents, arrays = self.open.nodes()
            children: dict[int, list[int]] = {}
            for number in range(1, len(paths)):
                children.setdefault(parents[number], []).append(number)
            self._tree = paths, arrays, children
        return self._tree

    def steps_and_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps and times of all frames."""
        steps, times = self.open.steps_and_times()
        whole = [-1 if step is None else step for step in steps]
        # Steps are 64 bits without a sign, which hardly anybody needs.
        wide = any(step > np.iinfo("i8").max for step in whole)
        numbers = (
            np.array([max(step, 0) for step in whole], "u8") if wide else np.array(whole, "i8")
        )
        return numbers, np.array([np.nan if time is None else time for time in times], "f8")


class Node:
    """A group or an array: what is known of both."""

    __slots__ = ("_handle", "_number")

    def __init__(self, handle: Handle, number: int) -> None:
        self._handle = handle
        self._number = number

    @property
    def path(self) -> str:
        """The whole path; empty for the file itself."""
        return self._handle.tree[0][self._number]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def id(self) -> str | None:
        """The format's own name, where that differs."""
        return self._handle.open.id(self._number)

    @property
    def attrs(self) -> dict[str, Any]:
        """What is said about it, as a new dictionary."""
        return self._handle.open.attrs(self._number)
