"""The tables of this folder, as pyarrow writes them: python3 make.py"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

random = np.random.default_rng(4)
table = pa.table({
    "id": pa.array(range(20), pa.int64()),
    "x": random.normal(size=20),
    "f4": pa.array(random.normal(size=20).astype("f4")),
    "small": pa.array(range(-10, 10), pa.int8()),
    "word": pa.array(["größe", ""] * 10),
    "ok": pa.array([True, False, True, True] * 5),
    "u": pa.array([2**64 - 1] * 20, pa.uint64()),
    "gap": pa.array([1.5, None] * 10),
})
plain = {"compression": "none", "use_dictionary": False}
pq.write_table(table, "plain.parquet", **plain)
pq.write_table(table.drop_columns("gap"), "groups.parquet", row_group_size=7, data_page_size=16,
               store_schema=False, write_statistics=False, **plain)
# The defaults of pandas: snappy and dictionaries, and values that are missing.
pq.write_table(table, "snappy.parquet")
# Pages of both versions, dictionaries that are given up half-way, several groups.
long = pa.table({
    "n": pa.array([k * k % 37 for k in range(500)], pa.int32()),
    "x": pa.array([None if k % 7 == 0 else k / 8 for k in range(500)]),
    "word": pa.array([f"word {k % 90}" * (k % 5) for k in range(500)]),
    "ok": pa.array([k % 3 == 0 for k in range(500)]),
})
few = {"row_group_size": 200, "data_page_size": 256, "dictionary_pagesize_limit": 600}
for compression in ["zstd", "gzip", "lz4"]:
    pq.write_table(long, f"{compression}.parquet", compression=compression, **few)
pq.write_table(long, "second.parquet", compression="snappy", data_page_version="2.0", **few)
pq.write_table(table.select(["id", "x"]), "brotli.parquet", compression="brotli")
pq.write_table(table.select(["id"]), "delta.parquet", use_dictionary=False,
               column_encoding={"id": "DELTA_BINARY_PACKED"})
pq.write_table(table.slice(0, 0), "empty.parquet", **plain)
