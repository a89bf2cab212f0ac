"""Frames of the HOOMD schema."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import ArgumentError

__all__ = ["BondData", "ConfigurationData", "ConstraintData", "Frame", "ParticleData"]


class Field(NamedTuple):
    """An array with one row per particle or bond."""

    #: NumPy type; floating-point numbers may be stored as ``f8``.
    dtype: str
    #: Columns; 0 for an array with one dimension.
    columns: int
    #: Value of each row in frames without the array.
    default: Any


class _Part:
    """A part of a frame. Attributes outside the schema raise `AttributeError`."""

    __slots__ = ()
    _FIELDS: ClassVar[dict[str, Field]] = {}

    def cast(self) -> dict[str, np.ndarray]:
        """The arrays in the types of the schema; those that are `None` are left out. Raises
        `ValueError` if one has another number of rows than ``N``, or if two types are equal."""
        self._check_types()
        count = getattr(self, "N", None)
        arrays = {}
        for name, field in self._fields().items():
            value = getattr(self, name)
            if value is not None:
                dtype = field.dtype
                if dtype == "f4" and getattr(value, "dtype", np.float64) == np.float64:
                    dtype = "f8"
                rows = len(value) if count is None else whole("N", count)
                arrays[name] = shaped(name, value, dtype, rows, field.columns)
        return arrays

    def validate(self, inplace: bool = False) -> None:
        """Raises `ValueError` if an array has another number of rows than ``N``, or if two types are
        equal. With `inplace`, the values are replaced by arrays in the types of the schema."""
        for name, array in self.cast().items():
            if inplace:
                setattr(self, name, array)

    def _fields(self) -> dict[str, Field]:
        return self._FIELDS

    def _check_types(self) -> None:
        types = getattr(self, "types", None)
        if types is not None and len(set(types)) != len(types):
            raise ValueError(f"type names must be unique, found {list(types)}")

    def __repr__(self) -> str:
        given = [f"N={self.N}"] if hasattr(self, "N") else []
        return f"<{type(self).__name__} {' '.join(given)}>"


def shaped(name: str, value: Any, dtype: Any, rows: int, columns: int) -> np.ndarray:
    """A C-contiguous array with a given number of rows; values that are given in one dimension are divided into
    rows. Raises `ArgumentError` if values would change: fractions and large numbers as integers, complex and
    masked values, rows and columns in another order."""
    try:
        given = np.asarray(value)
        array = np.ascontiguousarray(given, dtype) if given.dtype.kind != "c" else None
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from None
    if array is None or isinstance(value, np.ma.MaskedArray):
        kind = "complex" if array is None else "masked"
        raise ArgumentError(f"{name}: expected real numbers, found a {kind} array")
    if (
        array is not given
        and array.dtype.kind in "iu"
        and array.dtype != given.dtype
        and not np.array_equal(array.reshape(given.shape), given)
    ):
        raise ArgumentError(f"{name}: expected integers that fit {array.dtype}")
    shape = (rows, columns) if columns else (rows,)
    if array.shape == shape:
        return array
    found = [n for n in array.shape if n != 1]
    same = len(found) <= 1 or not array.size or found == [n for n in shape if n != 1]
    if not same or array.size != rows * max(columns, 1):
        raise ArgumentError(f"{name}: expected shape {shape}, found {given.shape}")
    return array.reshape(shape)


def whole(name: str, value: Any) -> int:
    """An integer, also if it is given as a real number."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = np.ravel(value)
    if len(number) != 1 or number[0] != np.floor(number[0]):
        raise ArgumentError(f"{name}: expected an integer, found {value!r}")
    return int(number[0])


class ConfigurationData(_Part):
    """Step, number of dimensions and box."""

    __slots__ = ("_box", "dimensions", "step")

    def __init__(self) -> None:
        self.step: Any = None
        self.dimensions: Any = None
        self._box: Any = None

    @property
    def box(self) -> Any:
        """Lx, Ly, Lz, xy, xz, yz."""
        return self._box

    @box.setter
    def box(self, box: Any) -> None:
        self._box = box
        if box is not None and self.dimensions is None:
            self.dimensions = 2 if box[2] == 0 else 3

    def cast(self) -> dict[str, np.ndarray]:
        """The box as an array."""
        return {} if self._box is None else {"box": shaped("box", self._box, "f4", 6, 0)}


class ParticleData(_Part):
    """The particles: ``N``, ``types``, ``type_shapes`` and one row per particle in the other arrays.
    Arrays that are `None` are those of frame 0, or have the defaults of the schema."""

    _FIELDS: ClassVar[dict[str, Field]] = {
        "typeid": Field("u4", 0, 0),
        "mass": Field("f4", 0, 1),
        "charge": Field("f4", 0, 0),
        "diameter": Field("f4", 0, 1),
        "body": Field("i4", 0, -1),
        "moment_inertia": Field("f4", 3, 0),
        "position": Field("f4", 3, 0),
        "orientation": Field("f4", 4, [1, 0, 0, 0]),
        "velocity": Field("f4", 3, 0),
        "angmom": Field("f4", 4, 0),
        "image": Field("i4", 3, 0),
    }
    __slots__ = ("N", "type_shapes", "types", *_FIELDS)

    def __init__(self) -> None:
        self.N: Any = 0
        self.types: Any = None
        self.type_shapes: Any = None
        for name in self._FIELDS:
            setattr(self, name, None)


class BondData(_Part):
    """Bonds, angles, dihedrals, impropers or pairs of ``M`` particles each."""

    __slots__ = ("M", "N", "group", "typeid", "types")

    def __init__(self, M: int) -> None:
        self.M = M
        self.N: Any = 0
        self.types: Any = None
        self.typeid: Any = None
        self.group: Any = None

    def _fields(self) -> dict[str, Field]:
        return _BOND_FIELDS[self.M]


_BOND_FIELDS = {M: {"typeid": Field("u4", 0, 0), "group": Field("u4", M, 0)} for M in (2, 3, 4)}


class ConstraintData(_Part):
    """Distance constraints of two particles each."""

    _FIELDS: ClassVar[dict[str, Field]] = {
        "value": Field("f4", 0, 0),
        "group": Field("u4", 2, 0),
    }
    __slots__ = ("M", "N", *_FIELDS)

    def __init__(self) -> None:
        self.M = 2
        self.N: Any = 0
        self.value: Any = None
        self.group: Any = None


#: Parts with one row per member, and particles per member.
PARTS = {
    "particles": 0,
    "bonds": 2,
    "angles": 3,
    "dihedrals": 4,
    "impropers": 4,
    "constraints": 2,
    "pairs": 2,
}


class Frame:
    """A frame of the HOOMD schema. ``log`` has the logged quantities, ``state`` the state of
    integrators (``state/...``), and ``chunks`` all other chunks, each by name.

    >>> frame = spile.gsd.hoomd.Frame()
    >>> frame.particles.N = 2
    >>> frame.particles.position = [[0, 0, 0], [1, 0, 0]]
    >>> frame.particles.postion = []
    Traceback (most recent call last):
    AttributeError: 'ParticleData' object has no attribute 'postion'
    """

    __slots__ = (
        "angles",
        "bonds",
        "chunks",
        "configuration",
        "constraints",
        "dihedrals",
        "impropers",
        "log",
        "pairs",
        "particles",
        "state",
    )

    def __init__(self) -> None:
        self.configuration = ConfigurationData()
        self.particles = ParticleData()
        self.bonds = BondData(2)
        self.angles = BondData(3)
        self.dihedrals = BondData(4)
        self.impropers = BondData(4)
        self.constraints = ConstraintData()
        self.pairs = BondData(2)
        self.log: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.chunks: dict[str, Any] = {}

    def validate(self, inplace: bool = False) -> None:
        """Validates all parts, see `ParticleData.validate`."""
        self.configuration.validate(inplace)
        for part in PARTS:
            getattr(self, part).validate(inplace)

    @property
    def step(self) -> Any:
        """The time step, ``configuration.step``."""
        return self.configuration.step

    @step.setter
    def step(self, step: Any) -> None:
        self.configuration.step = step

    @property
    def dimensions(self) -> Any:
        """The number of dimensions, ``configuration.dimensions``."""
        return self.configuration.dimensions

    @dimensions.setter
    def dimensions(self, dimensions: Any) -> None:
        self.configuration.dimensions = dimensions

    @property
    def box(self) -> Any:
        """The box, ``configuration.box``."""
        return self.configuration.box

    @box.setter
    def box(self, box: Any) -> None:
        self.configuration.box = box

    def __repr__(self) -> str:
        return f"<Frame step={self.step} N={self.particles.N}>"
