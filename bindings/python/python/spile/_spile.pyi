"""The compiled half of the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import IO, Any, final

import numpy as np

__version__: str

_Path = str | PathLike[str]
_Progress = Callable[[int, int], object] | None
_Points = None | int | tuple[float, float]
_Block = tuple[str, list[int], np.ndarray]

@final
class File:
    @staticmethod
    def open(
        path: _Path | None,
        data: bytes | IO[bytes] | None = None,
        *,
        derived: bool = False,
        mmap: bool = False,
        max_memory: int | None = None,
    ) -> File: ...
    @staticmethod
    def series(name: _Path, paths: Sequence[_Path], *, max_memory: int | None = None) -> File: ...
    @property
    def format(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def frames(self) -> int | None: ...
    def summary(self) -> dict[str, Any]: ...
    def findings(self) -> list[tuple[str, str, str | None, str]]: ...
    def nodes(self) -> tuple[list[str], list[int], list[bool]]: ...
    def dimensions(
        self,
    ) -> tuple[list[tuple[str, int, _Points]], dict[int, tuple[int, ...]]]: ...
    def find(self, path: str) -> int: ...
    def attrs(self, number: int) -> dict[str, Any]: ...
    def id(self, number: int) -> str | None: ...
    def array(
        self, number: int
    ) -> tuple[
        str,
        str | None,
        tuple[int, ...],
        tuple[str, ...],
        tuple[_Points, ...],
        tuple[float, float] | None,
        int | None,
        bool,
        bool,
    ]: ...
    def shape(self, number: int, frame: int) -> list[int] | None: ...
    def rows(self, number: int) -> tuple[np.ndarray, bool]: ...
    def read(
        self,
        number: int,
        key: Any,
        *,
        frame: int | None = None,
        meant: bool = False,
        native: bool = False,
    ) -> tuple[np.ndarray, tuple[int, ...], bool] | None: ...
    def view(self, number: int, *, frame: int | None = None) -> np.ndarray | None: ...
    def offsets(self, number: int) -> np.ndarray: ...
    def moments(self) -> tuple[list[int | None], list[float | None]]: ...
    def hoomd(self) -> Trajectory: ...

@final
class Trajectory:
    def __len__(self) -> int: ...
    def read(self, frame: int) -> Frame: ...
    def log(self) -> dict[str, Any]: ...

@final
class Frame:
    @property
    def step(self) -> int: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def configuration(self) -> Frame: ...
    @property
    def box(self) -> np.ndarray: ...
    @property
    def particles(self) -> Particles: ...
    @property
    def bonds(self) -> Links: ...
    @property
    def angles(self) -> Links: ...
    @property
    def dihedrals(self) -> Links: ...
    @property
    def impropers(self) -> Links: ...
    @property
    def pairs(self) -> Links: ...
    @property
    def constraints(self) -> Links: ...
    @property
    def constraint_value(self) -> np.ndarray: ...
    @property
    def log(self) -> dict[str, np.ndarray]: ...
    @property
    def state(self) -> dict[str, np.ndarray]: ...

@final
class Particles:
    @property
    def N(self) -> int: ...
    @property
    def types(self) -> list[str]: ...
    @property
    def type_shapes(self) -> list[str]: ...
    @property
    def typeid(self) -> np.ndarray: ...
    @property
    def mass(self) -> np.ndarray: ...
    @property
    def charge(self) -> np.ndarray: ...
    @property
    def diameter(self) -> np.ndarray: ...
    @property
    def body(self) -> np.ndarray: ...
    @property
    def moment_inertia(self) -> np.ndarray: ...
    @property
    def position(self) -> np.ndarray: ...
    @property
    def orientation(self) -> np.ndarray: ...
    @property
    def velocity(self) -> np.ndarray: ...
    @property
    def angmom(self) -> np.ndarray: ...
    @property
    def image(self) -> np.ndarray: ...

@final
class Links:
    @property
    def N(self) -> int: ...
    @property
    def types(self) -> list[str]: ...
    @property
    def typeid(self) -> np.ndarray: ...
    @property
    def group(self) -> np.ndarray: ...

@final
class Sections:
    def __new__(
        cls,
        path: _Path,
        user: bytes,
        *,
        vendor: bytes | None = None,
        level: int = 9,
        overwrite: bool = False,
    ) -> Sections: ...
    def inline(self, user: bytes, data: bytes) -> None: ...
    def block(self, user: bytes, data: bytes, encode: bool) -> None: ...
    def array(self, user: bytes, count: int, size: int, data: bytes, encode: bool) -> None: ...
    def varray(self, user: bytes, sizes: list[int], data: bytes, encode: bool) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...

@final
class Frames:
    def __new__(
        cls,
        path: _Path,
        *,
        application: str,
        double: bool = False,
        append: bool = False,
        overwrite: bool = False,
    ) -> Frames: ...
    def write(
        self,
        step: int,
        dimensions: int,
        box: Sequence[float],
        particles: int,
        types: tuple[list[str] | None, list[str] | None],
        reals: dict[str, np.ndarray],
        typeid: np.ndarray | None,
        signed: dict[str, np.ndarray],
        links: dict[str, tuple[list[str], np.ndarray, np.ndarray, int]],
        constraint_value: np.ndarray | None,
        log: dict[str, tuple[str, int, int, np.ndarray]],
    ) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

def info(file: File) -> str: ...
def check(
    path: _Path | None,
    data: bytes | IO[bytes] | None,
    strict: bool,
    max_memory: int | None,
    progress: _Progress,
) -> str: ...
def diff(
    first: File,
    second: File,
    *,
    atol: float,
    rtol: float,
    ulp: int,
    nan_differs: bool,
    values: bool,
    select: list[str],
    ignore: list[str],
    map: list[tuple[str, str]],
    frames: str | None,
    progress: _Progress,
) -> str: ...
def hash(
    file: File, *, native: bool, select: list[str], frames: str | None, progress: _Progress
) -> str: ...
def convert(
    file: File,
    output: _Path,
    *,
    to: str | None,
    dry_run: bool,
    strict: bool,
    verify: bool,
    overwrite: bool,
    select: list[str],
    frames: str | None,
    slice: list[str],
    progress: _Progress,
) -> str: ...
def salvage(
    path: _Path,
    output: _Path,
    overwrite_output: bool,
    max_memory: int | None,
    progress: _Progress,
) -> str: ...
def formats() -> str: ...
def probe(path: _Path) -> tuple[str, int] | None: ...
def main(words: list[str]) -> int: ...
def write(
    path: _Path,
    nodes: list[Any],
    attrs: dict[str, Any],
    moments: list[tuple[int | None, float | None]] | None,
    *,
    to: str | None,
    overwrite: bool,
    strict: bool,
) -> str: ...
def taf_create(
    path: _Path,
    block: _Block,
    *,
    dtype: str | None,
    grids: list[tuple[float, float]],
    comment: str,
    overwrite_output: bool,
) -> int: ...
def taf_append(path: _Path, block: _Block, safe: bool) -> int: ...
def taf_crop(
    path: _Path,
    dimension: int,
    grid: tuple[float, float] | None,
    index: tuple[int, int] | None,
    output: _Path | None,
    overwrite_output: bool,
) -> list[int]: ...
def taf_permute(
    path: _Path, order: list[int] | None, output: _Path | None, overwrite_output: bool
) -> list[int]: ...
def taf_grid(
    path: _Path, dimension: int, how: str, numbers: list[float]
) -> tuple[float, float]: ...
def taf_comment(path: _Path, text: str, replace: bool) -> None: ...
