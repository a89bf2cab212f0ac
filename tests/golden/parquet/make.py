"""The tables of this folder, as pyarrow writes them: python3 make.py"""

import os

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
os.makedirs("refused", exist_ok=True)
pq.write_table(table.select(["id", "x"]), "refused/snappy.parquet")
pq.write_table(table.slice(0, 0), "empty.parquet", **plain)
