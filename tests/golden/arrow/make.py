"""Tables written by pyarrow and polars. Run in this folder."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather

rows = 20
table = pa.table({
    "id": pa.array(range(rows), pa.int32()),
    "x": pa.array(np.arange(rows) / 8),
    "gap": pa.array([1.5, None] * (rows // 2)),
    "n": pa.array([None if k % 7 == 0 else k for k in range(rows)], pa.int16()),
    "ok": pa.array([k % 3 == 0 for k in range(rows)]),
    "word": pa.array([f"word {k}" * (k % 3) for k in range(rows)]),
    "kind": pa.array(["a", "bb"] * (rows // 2)).dictionary_encode(),
    "when": pa.array(np.arange(rows) * 1000, pa.timestamp("us")),
})
for name, compression in [("plain", "uncompressed"), ("lz4", "lz4"), ("zstd", "zstd")]:
    feather.write_feather(table, f"{name}.arrow", compression=compression, chunksize=8)
pl.from_arrow(table.drop_columns(["kind"])).write_ipc("polars.arrow")
with pa.OSFile("empty.arrow", "wb") as file, pa.ipc.new_file(file, table.schema):
    pass
