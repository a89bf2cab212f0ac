"""Columns of all flat types of Arrow, and their comparison with arrays of spile."""

import decimal
import itertools
import math
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute

ROWS = 300


def columns():
    """Arrays of all flat types, each without and with missing values."""
    random = np.random.default_rng(3)
    ints = lambda code: random.integers(np.iinfo(code).min // 2, np.iinfo(code).max // 2, ROWS, dtype=code)
    days = random.integers(0, 20000, ROWS)
    stamps = random.integers(0, 2_000_000_000_000, ROWS)
    plain = {code: ints(code) for code in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]}
    plain = {name: pa.array(values) for name, values in plain.items()}
    plain["f2"] = pa.array(random.normal(size=ROWS).astype("f2"))
    plain["f4"] = pa.array(random.normal(size=ROWS).astype("f4"))
    plain["f8"] = pa.array(random.normal(size=ROWS))
    plain["ok"] = pa.array(days % 3 == 0)
    plain["word"] = pa.array([f"größe {k % 41}" * (k % 4) for k in days])
    plain["bytes"] = pa.array([uuid.UUID(int=int(k)).bytes for k in days], pa.binary(16))
    plain["binary"] = pa.array([uuid.UUID(int=int(k)).bytes for k in days], pa.binary())
    plain["date"] = pa.array(days.astype("i4")).cast(pa.date32())
    for unit, zone in itertools.product(["ms", "us", "ns"], [None, "Europe/Berlin"]):
        scale = {"ms": 1, "us": 1000, "ns": 1_000_000}[unit]
        plain[f"when_{unit}_{zone}".replace("/", "-")] = pa.array(stamps * scale, pa.timestamp(unit, zone))
    plain["time_ms"] = pa.array(days.astype("i4")).cast(pa.time32("ms"))
    for unit in ["us", "ns"]:
        plain[f"time_{unit}"] = pa.array(days * 1000).cast(pa.time64(unit))
    for precision, scale in [(5, 2), (9, 0), (15, 7), (18, 4), (30, 10)]:
        numbers = [decimal.Decimal(int(k)).scaleb(-scale) for k in days * (1 if precision == 5 else 1001)]
        if precision == 5:
            numbers = [decimal.Decimal(int(k) % 999).scaleb(-2) for k in days]
        plain[f"decimal_{precision}"] = pa.array(numbers, pa.decimal128(precision, scale))
    # Missing values are every fifth row, and a long run.
    gaps = pa.array([k % 5 == 0 or 100 < k < 200 for k in range(ROWS)])
    null = {f"{name}_null": pa.compute.if_else(gaps, pa.scalar(None, a.type), a) for name, a in plain.items()}
    return {**plain, **null, "nothing": pa.nulls(ROWS)}


def expected(column):
    """The numbers of a column of pyarrow as spile returns them, with None for missing values."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        column, kind = column.cast(kind.storage_type), kind.storage_type
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return column.cast(width).to_pylist()
    if pa.types.is_decimal(kind):
        return [None if value is None else float(value) for value in column.to_pylist()]
    if pa.types.is_boolean(kind):
        return [None if value is None else int(value) for value in column.to_pylist()]
    return column.to_pylist()


def compare(file, name, own, column):
    """The values of an array are those of a column of pyarrow."""
    values = expected(column)
    scale = column.type.scale if pa.types.is_decimal(column.type) else 0
    if scale and own.dtype == "i8":
        values = [None if v is None else int(v.scaleb(scale)) for v in column.to_pylist()]
    assert len(own) == len(values), (file, name)
    for got, value in zip(own.tolist(), values):
        if value is None:
            zero = isinstance(got, bytes) and not got.strip(b"\0")
            equal = zero or got in (-2**63, 2**64 - 1) or (isinstance(got, float) and math.isnan(got))
        elif isinstance(value, str):
            equal = got.decode() == value
        elif isinstance(value, bytes):
            equal = got.ljust(len(value), b"\0") == value
        else:
            equal = got == value
        assert equal, (file, name, got, value)
