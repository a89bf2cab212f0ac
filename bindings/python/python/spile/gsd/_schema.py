"""The HOOMD schema: arrays, defaults, names of types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._frame import PARTS, Field, Frame

BOX = Field("f4", 0, [1, 1, 1, 0, 0, 0])

#: Arrays of each part with their chunk names.
ARRAYS = {
    part: [
        (name, f"{part}/{name}", field) for name, field in getattr(Frame(), part)._fields().items()
    ]
    for part in PARTS
}

#: Values of frames without the chunk.
DEFAULTS: dict[str, Any] = {
    "configuration/step": np.array([0], "u8"),
    "configuration/dimensions": np.array([3], "u1"),
    **{f"{part}/N": np.array([0], "u4") for part in PARTS},
}

#: Chunks of the schema.
SCHEMA = {
    *DEFAULTS,
    "configuration/box",
    "particles/type_shapes",
    *(f"{part}/types" for part in PARTS),
    *(chunk for arrays in ARRAYS.values() for _, chunk, _ in arrays),
}


def default_types(part: str) -> list[str]:
    """Types of a part in frames without them."""
    return ["A"] if part == "particles" else []


def strings(table: np.ndarray) -> list[str]:
    """The rows of a table of characters, each up to its first NUL."""
    rows = table if table.ndim == 2 else table.reshape(len(table), 1)
    return [bytes(row).split(b"\0", 1)[0].decode() for row in rows]


def texts(values: np.ndarray) -> np.ndarray:
    """One string per row of characters."""
    rows = np.ascontiguousarray(values).view(f"S{values.shape[1]}").reshape(-1)
    decoded = [row.decode(errors="replace") for row in rows.tolist()]
    if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):
        return np.array(decoded, np.dtypes.StringDType())
    return np.array(decoded, object)
