"""Parquet files with every type and option of pyarrow, pandas, polars and fastparquet: each column has the values and
units of pyarrow's reader, or is reported with the reason while the others are read."""

import base64
import decimal
import itertools
import json
import os
import pathlib
import tempfile
import uuid

import fastparquet
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import xarray as xr
from support import spile
from support.tables import ROWS, columns, compare

LISTS, MAPS = "columns of lists are not supported", "columns of maps are not supported"
# File: reason of each column that is not read.
NOT_READ = {}


def pyarrow_options(table):
    """All options of the writer."""
    options = {
        "defaults": {},
        "second": {"data_page_version": "2.0"},
        "plain": {"use_dictionary": False, "compression": "none"},
        "groups": {"row_group_size": 37, "data_page_size": 64},
        "pages": {"max_rows_per_page": 11, "write_page_index": True, "data_page_version": "2.0"},
        "no_statistics": {"write_statistics": False},
        "no_statistics_plain": {"write_statistics": False, "use_dictionary": False, "compression": "none"},
        "version1": {"version": "1.0"},
        "version24": {"version": "2.4"},
        "dictionary_full": {"dictionary_pagesize_limit": 40},
        "some_dictionaries": {"use_dictionary": ["word", "i4_null"], "write_batch_size": 7},
        "checksums": {"write_page_checksum": True, "write_page_index": True},
        "no_schema": {"store_schema": False},
        "int96": {"use_deprecated_int96_timestamps": True},
        "spark": {"flavor": "spark"},
        "decimal_integers": {"store_decimal_as_integer": True},
        "utc": {"write_time_adjusted_to_utc": True},
        "milliseconds": {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
        "split_floats": {"use_byte_stream_split": ["f4", "f8_null", "i2_null"], "use_dictionary": False},
        "content_chunks": {"use_content_defined_chunking": True},
        "sorted": {"sorting_columns": [pq.SortingColumn(0)]},
        "bloom": {"bloom_filter_options": {"i8": {"ndv": 100, "fpp": 0.05}, "word_null": True}},
        "compliant": {"use_compliant_nested_type": True, "compression": {"i4": "none", "f8": "gzip"}},
    }
    for name in ["snappy", "gzip", "zstd", "lz4", "brotli"]:
        options[name] = {"compression": name}
    for level in [1, 19]:
        options[f"zstd{level}"] = {"compression": "zstd", "compression_level": level, "data_page_version": "2.0"}
    for name, how in options.items():
        pq.write_table(table, f"{name}.parquet", **how)
    # A chunk without values has no pages, and the number of rows may not be a multiple of any group.
    pq.write_table(table.slice(0, 0), "no_rows.parquet")
    pq.write_table(table.slice(0, 1), "one_row.parquet")
    with pq.ParquetWriter("no_groups.parquet", table.schema):
        pass
    pq.write_table(pa.table({}), "no_columns.parquet")
    with pq.ParquetWriter("empty_groups.parquet", table.schema) as writer:
        for part in [table.slice(0, 0), table.slice(0, 40), table.slice(0, 0), table.slice(40, 3)]:
            writer.write_table(part)
    all_null = pa.table({name: pa.nulls(ROWS, table[name].type) for name in table.column_names})
    for version in ["1.0", "2.0"]:
        pq.write_table(all_null, f"all_null{version}.parquet", data_page_version=version)


def encodings(table):
    """Every encoding with both versions of data pages, with and without compression."""
    numbers = ["i4", "i8", "f4", "f8", "i4_null", "f8_null"]
    words = ["word", "word_null", "binary", "bytes", "bytes_null"]
    own = {
        "DELTA_BINARY_PACKED": ["i1", "u2", "i4", "i8", "u8", "i4_null", "i8_null", "date", "when_us_None_null", "time_ms"],
        "BYTE_STREAM_SPLIT": [*numbers, "f2", "f2_null", "bytes", "bytes_null", "decimal_30", "u2_null", "date_null"],
        "DELTA_LENGTH_BYTE_ARRAY": ["word", "word_null", "binary", "binary_null"],
        "DELTA_BYTE_ARRAY": [*words, "decimal_30", "f2_null"],
        "PLAIN": [*numbers, *words, "ok", "ok_null"],
        "RLE": ["ok", "ok_null"],
    }
    for (name, names), version, packed in itertools.product(own.items(), ["1.0", "2.0"], ["none", "zstd"]):
        pq.write_table(table.select(names), f"{name}{version}{packed}.parquet", use_dictionary=False, compression=packed,
                       column_encoding=dict.fromkeys(names, name), data_page_version=version, row_group_size=130)
    # Extreme differences, which exceed the type.
    for kind in ["int32", "int64", "uint32", "uint64"]:
        info = np.iinfo(kind)
        ends = np.array([info.min + 1, info.max - 1] * 70 + [0, 1, 2], kind)
        pq.write_table(pa.table({"x": ends}), f"ends_{kind}.parquet", use_dictionary=False,
                       column_encoding={"x": "DELTA_BINARY_PACKED"})


def more_types(table):
    """Types that are stored as others, dictionaries, durations."""
    random = np.random.default_rng(5)
    numbers = random.integers(-99999, 99999, ROWS)
    rows = pa.array([None if k % 7 == 0 else k for k in range(ROWS)])
    plain = {f"duration_{unit}": pa.array(numbers, pa.duration(unit)) for unit in ["s", "ms", "us", "ns"]}
    plain["second"] = pa.array(abs(numbers), pa.timestamp("s"))
    plain["second_zone"] = pa.array(numbers, pa.timestamp("s", "+01:30"))
    plain["time_s"] = pa.array((abs(numbers) % 86400).astype("i4"), pa.time32("s"))
    plain["date64"] = pa.array(numbers * 86_400_000, pa.date64())
    plain["large"] = table["word"].cast(pa.large_string())
    plain["view"] = table["word"].cast(pa.string_view())
    plain["large_binary"] = table["binary"].cast(pa.large_binary())
    plain["uuid"] = pa.array([uuid.UUID(int=int(n) + 10**6).bytes for n in numbers], pa.uuid())
    plain["category"] = table["word"].combine_chunks().dictionary_encode()
    plain["integers"] = table["i8"].combine_chunks().dictionary_encode()
    plain["halves"] = pa.array(np.array([0, -0.0, 6e-8, 65504, np.inf, -np.inf] * (ROWS // 6), "f2"))
    kinds = [(pa.decimal32, 9, 3), (pa.decimal64, 18, 5), (pa.decimal128, 38, 20), (pa.decimal256, 18, 2),
             (pa.decimal256, 38, 0), (pa.decimal256, 60, 30), (pa.decimal128, 12, 12), (pa.decimal128, 9, 0)]
    for kind, precision, scale in kinds:
        values = [decimal.Decimal(int(n)).scaleb(-scale) for n in numbers]
        plain[f"{kind.__name__}_{precision}_{scale}"] = pa.array(values, kind(precision, scale))
    null = {f"{name}_null": a.take(rows) for name, a in plain.items() if name not in ("uuid", "view")}
    more = pa.table({**plain, **null})
    long = {name: "type DECIMAL is not supported" for name in more.column_names if "256_60" in name}
    for name, how in {"more": {}, "more_plain": {"use_dictionary": False, "compression": "none"},
                      "more_v2": {"data_page_version": "2.0", "row_group_size": 100}}.items():
        pq.write_table(more, f"{name}.parquet", **how)
        NOT_READ[name] = long


def nested():
    """Lists and maps are reported; structures are groups; the flat columns around them are read."""
    point = pa.struct([("x", pa.float64()), ("y", pa.int64()), ("tags", pa.list_(pa.string()))])
    table = pa.table({
        "x": [1.5, 2.5, None],
        "list": [[1, 2], [], None],
        "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "deep": pa.array([[[1], []], [], None], pa.list_(pa.list_(pa.int8()))),
        "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
        "points": pa.array([[{"a": 1}], [], None], pa.list_(pa.struct([("a", pa.int8())]))),
        "point": pa.array([{"x": 1.0, "y": 2, "tags": ["a"]}, None, {"x": None, "y": 3, "tags": None}], point),
        "n": pa.array([1, 2, 3], pa.int32()),
    })
    lists = dict.fromkeys(["list", "deep", "fixed", "points", "point/tags"], LISTS)
    for name, how in {"nested": {}, "nested_v2": {"data_page_version": "2.0"}, "nested_plain": {"compression": "none",
                      "use_dictionary": False}, "nested_old": {"use_compliant_nested_type": False}}.items():
        pq.write_table(table, f"{name}.parquet", **how)
        NOT_READ[name] = {**lists, "map": MAPS}
    pl.from_arrow(table.drop_columns(["map"])).write_parquet("polars_nested.parquet")
    NOT_READ["polars_nested"] = lists
    # Nothing else in the file.
    pq.write_table(table.select(["list"]), "only_list.parquet")
    NOT_READ["only_list"] = {"list": LISTS}


def other_writers(table):
    plain = [name for name in table.column_names if name not in ("nothing", "f2", "f2_null")]
    frame = pl.from_arrow(table.select(plain))
    for name in ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"]:
        frame.write_parquet(f"polars_{name}.parquet", compression=name, row_group_size=90)
    frame.write_parquet("polars_pages.parquet", data_page_size=200, statistics="full")
    frame.write_parquet("polars_no_statistics.parquet", statistics=False)
    words = pl.DataFrame({"word": ["a", None, "b", "a"]})
    words.with_columns(
        category=pl.col("word").cast(pl.Categorical), enum=pl.col("word").cast(pl.Enum(["a", "b"])),
        duration=pl.Series([1, None, -5, 0]).cast(pl.Duration("us")), time=pl.Series([1, 2, 3, None]).cast(pl.Time),
        decimal=pl.Series(["1.25", None, "-3.5", "0"]).cast(pl.Decimal(20, 2)), binary=pl.Series([b"a", b"\0", None, b""]),
    ).write_parquet("polars_types.parquet")
    NOT_READ["polars_types"] = {"binary": "values of different lengths that end with zero bytes are not supported"}
    frame.to_pandas().to_parquet("pandas.parquet")
    dates = pd.date_range("2020-01-01", periods=3, tz="Europe/Berlin")
    own = pd.DataFrame({"x": [1.5, None, 3.0], "n": [1, 2, 3], "when": dates.tz_localize(None), "zone": dates,
                        "span": pd.to_timedelta([1, None, 3], unit="s"), "category": pd.Categorical(["a", None, "b"]),
                        "Int64": pd.array([2**60 + 1, None, -3], "Int64"), "boolean": pd.array([True, None, False], "boolean"),
                        "string": pd.array(["ä", None, ""], "string")}, index=dates)
    own.to_parquet("pandas_index.parquet")
    own.set_index([own["n"], own["string"]], drop=False).rename_axis(["a", "b"]).to_parquet("pandas_multi.parquet")
    own.reset_index(drop=True).to_parquet("pandas_range.parquet", compression=None)
    simple = pd.DataFrame({"i": np.arange(50), "x": np.linspace(0, 1, 50), "s": [f"w{k % 3}" for k in range(50)],
                           "t": pd.date_range("2001-01-01", periods=50, freq="h"), "b": np.arange(50) % 2 == 0})
    gaps = simple.assign(x=simple["x"].where(simple["i"] % 3 > 0), s=simple["s"].where(simple["i"] % 4 > 0).astype(object))
    for k, how in enumerate([{}, {"compression": "GZIP"}, {"compression": "ZSTD"}, {"compression": "SNAPPY"}, {"compression": "LZ4"},
                             {"compression": "BROTLI"}, {"times": "int96"}, {"stats": False}, {"has_nulls": False},
                             {"object_encoding": "bytes"}, {"row_group_offsets": [0, 7, 30]}]):
        for name, frame in {"full": simple, "gaps": gaps}.items():
            if name == "gaps" and ("has_nulls" in how or "object_encoding" in how):
                continue
            if how.get("object_encoding") == "bytes":
                frame = frame.assign(s=[word.encode() for word in frame["s"]])
            fastparquet.write(f"fastparquet_{name}{k}.parquet", frame, **how)


class Keys(pe.KmsClient):
    """Keys are their names."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


def encrypted(table):
    """Encrypted metadata are refused; encrypted columns are reported, and the others are read."""
    factory = pe.CryptoFactory(lambda _: Keys())
    table = table.select(["i4", "f8", "word"])
    for name, plain in [("encrypted", False), ("encrypted_columns", True)]:
        how = pe.EncryptionConfiguration(footer_key="footer", column_keys={"column": ["f8"]}, plaintext_footer=plain)
        how = factory.file_encryption_properties(pe.KmsConnectionConfig(), how)
        pq.write_table(table, f"{name}.parquet", encryption_properties=how)
    found = findings("encrypted.parquet", 1)
    assert [(f["code"], f["message"]) for f in found] == [("parquet-006", "encrypted files are not supported")], found
    converted("encrypted_columns.parquet", {"f8": "encrypted columns are not supported"}, table)
    os.remove("encrypted.parquet")
    os.remove("encrypted_columns.parquet")


def damaged():
    """A value that does not match the checksum of its page is reported; no other column is affected."""
    table = pa.table({"a": np.arange(1000.0), "b": np.arange(1000.0) + 5000})
    pq.write_table(table, "damaged.parquet", write_page_checksum=True, use_dictionary=False, compression="none")
    path = pathlib.Path("damaged.parquet")
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(500).tobytes())] ^= 1
    path.write_bytes(content)
    found = findings(path, 1)
    assert [(f["code"], f["object"]) for f in found] == [("parquet-005", '"a"')] and "checksum" in found[0]["message"], found
    path.unlink()


def names():
    """Any name, and names that occur twice: all values are there."""
    table = pa.table([[1], [2], [3], [4], [5], [6], [7], [8], [9]],
                     names=["", "/", "a/b", "x y [m]", "v[0]", "a.b", "größe 温度", "two", "two"])
    pq.write_table(table, "names.parquet")
    own, lost = arrays("names.parquet")
    assert sorted(values.item() for values in own.values()) == list(range(1, 10)) and not lost, (own, lost)
    for name, value in [("a.b", 6), ("größe 温度", 7), ("x y [m]", 4)]:
        assert own[name].tolist() == [value], (name, own)
    os.remove("names.parquet")


def findings(file, code):
    return json.loads(spile("check", file, "--json", codes=(code,)))["findings"]


def arrays(file):
    """Stored arrays, in which integers of 64 bits with missing values keep all digits, and reasons of columns not read."""
    done = json.loads(spile("convert", file, "read.npz", "--stored", "--overwrite", "--json"))
    stored = {name: values for name, values in np.load("read.npz").items() if name != "spile"} if done["written"] else {}
    lost = {item["path"]: item["reason"].removeprefix("cannot be read: ") for item in done["lost"] if item["what"] == "array"}
    return {name: values for name, values in stored.items() if isinstance(values, np.ndarray)}, lost


def flat(table):
    """Structures as columns with paths."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        at = next(k for k, field in enumerate(table.schema) if pa.types.is_struct(field.type))
        name, column = table.column_names[at], table.column(at).combine_chunks()
        table = table.remove_column(at)
        for part in column.type:
            table = table.append_column(f"{name}/{part.name}", pc.struct_field(column, part.name))
    return table


UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def units(kind):
    """Units of a column of pyarrow, and its time zone."""
    if pa.types.is_timestamp(kind):
        return f"{UNITS[kind.unit]} since 1970-01-01", "UTC" if kind.tz else None
    if pa.types.is_date(kind):
        return ("days" if kind.bit_width == 32 else "milliseconds") + " since 1970-01-01", None
    return (UNITS[kind.unit] if pa.types.is_temporal(kind) else None), None


def converted(file, lost, table=None):
    """Columns have the values and units of pyarrow, except those of `lost`, which are reported."""
    table = flat(pq.read_table(file) if table is None else table)
    if table.num_columns == len(lost):
        # Nothing is written.
        assert {f["object"].strip('"'): f["message"] for f in findings(file, 0)} == lost, file
        return
    own, reasons = arrays(file)
    assert reasons == lost, (file, reasons)
    assert set(own) == set(table.column_names) - set(lost), (file, set(own) ^ set(table.column_names))
    shown = {o["path"]: o["attrs"] for o in json.loads(spile("ls", file, "--json"))["objects"]}
    for name in own:
        compare(file, name, own[name], table[name])
        kind = table.schema.field(name).type
        found = shown[name].get("units"), shown[name].get("timezone")
        assert found == units(kind), (file, name, found, units(kind))


def main():
    os.chdir(tempfile.mkdtemp())
    table = pa.table(columns())
    encrypted(table)
    damaged()
    names()
    pyarrow_options(table)
    encodings(table)
    more_types(table)
    nested()
    other_writers(table)
    files = sorted(pathlib.Path().glob("*.parquet"))
    assert len(files) > 90, len(files)
    problems = []
    for file in files:
        try:
            converted(file, NOT_READ.get(file.stem, {}))
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, "\n".join(problems)
    # Missing times are NaT for readers of NetCDF.
    spile("convert", "defaults.parquet", "times.nc", "--select", "when_us_None*", "--select", "date*")
    times, frame = xr.open_dataset("times.nc"), table.to_pandas()
    for name in ["when_us_None", "when_us_None_null", "date", "date_null"]:
        value = pd.to_datetime(frame[name]).to_numpy("M8[us]")
        assert np.array_equal(times[name].to_numpy().astype("M8[us]"), value, equal_nan=True), name


main()
