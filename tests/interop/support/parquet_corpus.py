"""Tables with every type and option of the Parquet writers of pyarrow, pandas and polars."""

import decimal
import itertools
import math
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

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


def write_all(folder):
    """Writes the tables to `folder`."""
    table = pa.table(columns())
    numbers = ["i4", "i8", "f4", "f8", "i4_null", "f8_null"]
    options = {
        "defaults": {},
        "second": {"data_page_version": "2.0"},
        "plain": {"use_dictionary": False, "compression": "none"},
        "groups": {"row_group_size": 37, "data_page_size": 64},
        "no_statistics": {"write_statistics": False},
        "version1": {"version": "1.0"},
        "dictionary_full": {"dictionary_pagesize_limit": 40},
        "checksums": {"write_page_checksum": True, "write_page_index": True},
        "no_schema": {"store_schema": False},
        "int96": {"use_deprecated_int96_timestamps": True},
        "decimal_integers": {"store_decimal_as_integer": True},
        "compliant": {"use_compliant_nested_type": True, "compression": {"i4": "none", "f8": "gzip"}},
    }
    for name in ["snappy", "gzip", "zstd", "lz4", "brotli"]:
        options[name] = {"compression": name}
    for name, how in options.items():
        pq.write_table(table, f"{folder}/{name}.parquet", **how)
    words = ["word", "word_null", "binary", "bytes", "bytes_null"]
    encodings = {
        "DELTA_BINARY_PACKED": ["i1", "u2", "i4", "i8", "u8", "i4_null", "i8_null", "date", "when_us_None_null"],
        "BYTE_STREAM_SPLIT": [*numbers, "f2", "f2_null", "bytes", "decimal_30"],
        "DELTA_LENGTH_BYTE_ARRAY": ["word", "word_null", "binary"],
        "DELTA_BYTE_ARRAY": words,
        "PLAIN": [*numbers, *words, "ok", "ok_null"],
        "RLE": ["ok", "ok_null"],
    }
    for (name, own), version in itertools.product(encodings.items(), ["1.0", "2.0"]):
        own = {column: name for column in own}
        pq.write_table(table.select(list(own)), f"{folder}/{name}{version}.parquet", use_dictionary=False,
                       column_encoding=own, data_page_version=version, compression="zstd")
    pq.write_table(table.slice(0, 0), f"{folder}/no_rows.parquet")
    with pq.ParquetWriter(f"{folder}/no_groups.parquet", table.schema):
        pass
    pq.write_table(pa.table({}), f"{folder}/no_columns.parquet")
    frame = pl.from_arrow(table.drop_columns(["nothing", "f2", "f2_null"]))
    for name in ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"]:
        frame.write_parquet(f"{folder}/polars_{name}.parquet", compression=name, row_group_size=90)
    frame.to_pandas().to_parquet(f"{folder}/pandas.parquet")
    own = pd.DataFrame({"x": [1.5, None, 3.0], "n": [1, 2, 3]}, index=pd.date_range("2020-01-01", periods=3))
    own.to_parquet(f"{folder}/pandas_index.parquet")
    own.to_parquet(f"{folder}/fastparquet.parquet", engine="fastparquet")
    nested = pa.table({
        "x": [1.5, 2.5, None],
        "list": [[1, 2], [], None],
        "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "point": pa.array([{"x": 1.0, "y": 2}, None, {"x": None, "y": 3}],
                          pa.struct([("x", pa.float64()), ("y", pa.int64())])),
        "n": pa.array([1, 2, 3], pa.int32()),
    })
    pq.write_table(nested, f"{folder}/nested.parquet")
    names = pa.table([[1], [2], [3], [4], [5]], names=["", "/", "a/b", "x y [m]", "v[0]"])
    pq.write_table(names, f"{folder}/names.parquet")


def expected(column):
    """The numbers of a column of pyarrow as spile returns them, with None for missing values."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
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
