"""Writing of frames of the HOOMD schema."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import ArgumentError, SpileError
from . import fl
from ._frame import PARTS, Field, Frame, shaped, whole
from ._schema import ARRAYS, BOX, DEFAULTS, default_types

__all__ = ["Appending"]

#: The chunks with the number of members and with their types.
_CHUNKS = {part: (f"{part}/N", f"{part}/types") for part in PARTS}


class Appending:
    """A file that frames are appended to, and the values that frames share with frame 0 or take from the
    schema."""

    def __init__(self, file: fl.GSDFile, precision: str) -> None:
        self._file = file
        self._inner = file._inner
        self._precision = precision
        self._real = "f8" if precision == "double" else "f4"
        self._forget()

    def _forget(self) -> None:
        """Nothing is known of frame 0."""
        #: Chunks of frame 0, in the file or given to `append`.
        self._first: dict[str, Any] | None = None
        self._first_frame: Frame | None = None
        #: Arrays of defaults by chunk name, with the number of rows.
        self._default_arrays: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return self._inner.frames

    def _chunks_of_first(self) -> dict[str, Any]:
        """The chunks of frame 0, read-only."""
        if self._first is None:
            if len(self) == 0:
                return {}
            chunks = self._inner.read_frame(0)
            for chunk in chunks.values():
                if isinstance(chunk, np.ndarray):
                    chunk.flags.writeable = False
            self._first = chunks
        return self._first

    def _defaults(self, chunk: str, field: Field, rows: int, real: str = "f4") -> np.ndarray:
        """A read-only array of defaults."""
        known = self._default_arrays.get(chunk)
        dtype = real if field.dtype == "f4" else field.dtype
        if known is None or len(known) != rows or known.dtype != dtype:
            shape = (rows, field.columns) if field.columns else (rows,)
            known = np.zeros(shape, dtype)
            if field.default != 0:
                known[...] = field.default
            known.flags.writeable = False
            self._default_arrays[chunk] = known
        return known

    def append(self, frame: Any) -> None:
        """Appends a frame. Values that are `None` are not written: readers take them from frame 0 or
        from the defaults, and so are those equal to them. Logged quantities, states and chunks outside
        the schema are always written. On failure nothing is appended."""
        self._append(frame, False)

    def _append(self, frame: Any, defaults: bool) -> None:
        """With `defaults`, values that are `None` are the defaults of the schema."""
        inner = self._inner
        is_first = self._first is None and len(self) == 0
        first = self._chunks_of_first()
        written: dict[str, Any] = {}

        def write(chunk: str, data: np.ndarray, unless: np.ndarray | None) -> None:
            if inner.write_chunk(chunk, data, unless):
                written[chunk] = data

        def write_free(chunk: str, value: Any) -> None:
            if isinstance(value, str):
                inner.write_text(chunk, value)
            else:
                value = fl._contiguous(chunk, value)
                inner.write_chunk(chunk, value)
            written[chunk] = value

        try:
            self._write_configuration(frame.configuration, first, write, defaults)
            for part in PARTS:
                self._write_part(part, getattr(frame, part), first, write, defaults)
            for prefix, values in (
                ("log/", frame.log),
                ("state/", getattr(frame, "state", None) or {}),
                ("", getattr(frame, "chunks", None) or {}),
            ):
                for name, value in values.items():
                    write_free(prefix + name, value)
            if not written:
                # A last frame without chunks would not be part of the file.
                step = "configuration/step"
                write(step, first.get(step, DEFAULTS[step]), None)
            inner.end_frame()
        except BaseException as error:
            if inner.is_open and self._file.mode != "r":
                inner.discard_frame()
            raise fl._as_gsd(error) if isinstance(error, SpileError) else error from None
        if is_first:
            # The arrays belong to the caller, who may change them.
            self._first = {
                name: value.copy() if isinstance(value, np.ndarray) else value
                for name, value in written.items()
            }
            inner.commit(False)

    def _write_configuration(self, about: Any, first: Any, write: Any, defaults: bool) -> None:
        for name, dtype in (("step", "u8"), ("dimensions", "u1")):
            value = getattr(about, name)
            chunk = f"configuration/{name}"
            if value is None and defaults:
                value = DEFAULTS[chunk][0]
            if value is not None:
                array = np.array([whole(chunk, value)], dtype)
                write(chunk, array, first.get(chunk, DEFAULTS[chunk]))
        box = BOX.default if about.box is None and defaults else about.box
        if box is not None:
            box = shaped("configuration/box", box, self._real, 6, 0)
            default = np.array(BOX.default, self._real)
            write("configuration/box", box, first.get("configuration/box", default))

    def _write_part(self, part: str, data: Any, first: Any, write: Any, defaults: bool) -> None:
        count, types_chunk = _CHUNKS[part]
        known = int(first.get(count, DEFAULTS[count])[0])
        rows = known if data.N is None else whole(count, data.N)
        same = rows == known
        if not same:
            write(count, np.array([rows], "u4"), None)
        if part != "constraints":
            types = data.types
            if types is None and defaults and types_chunk in first:
                types = default_types(part)
            if types is not None:
                if len(set(types)) != len(types):
                    raise ValueError(f"{part}: type names must be unique, found {list(types)}")
                self._write_strings(types_chunk, types, default_types(part), first, write)
        if part == "particles":
            shapes = data.type_shapes
            if shapes is None and defaults and "particles/type_shapes" in first:
                shapes = [{}]
            if shapes is not None:
                shapes = [s if isinstance(s, str) else json.dumps(s) for s in shapes]
                self._write_strings("particles/type_shapes", shapes, ["{}"], first, write)
        for name, chunk, field in ARRAYS[part]:
            value = getattr(data, name)
            expected = first.get(chunk) if same else None
            if value is None:
                if not defaults or expected is None:
                    continue
                value = self._defaults(chunk, field, rows, self._real)
            dtype = self._real if field.dtype == "f4" else field.dtype
            array = shaped(chunk, value, dtype, rows, field.columns)
            if expected is None:
                expected = self._defaults(chunk, field, rows, self._real)
            write(chunk, array, expected)

    def _write_strings(
        self, chunk: str, strings: Any, default: Any, first: Any, write: Any
    ) -> None:
        if isinstance(strings, str) or not all(isinstance(text, str) for text in strings):
            raise ArgumentError(f"{chunk}: expected a list of strings, found {strings!r}")
        if chunk not in first and list(strings) == default:
            return
        encoded = [text.encode() for text in strings]
        if any(b"\0" in text for text in encoded):
            raise ValueError(f"{chunk}: a name contains NUL")
        # At least two columns: a chunk with one column has no rows of text for readers.
        width = max(map(len, encoded), default=1) + 1
        width = max(width, 2)
        table = np.array(encoded, f"S{width}").view("i1").reshape(len(encoded), width)
        write(chunk, table, first.get(chunk))
