"""The tables of this folder, as pandas and Python's own module write them: python3 make.py"""

import csv

import numpy as np
import pandas as pd

table = pd.DataFrame({
    "id": np.arange(5),
    "x (m)": [0.1, -2.5e-300, np.inf, np.nan, 1e22],
    "big": np.array([1, 2, 3, 2**64 - 1, 0], dtype="u8"),
    "name, or so": ["plain", "with \"quotes\"", "two\nlines", "größe", ""],
    "gap": [1, None, 3, 4, 5],
})
table.to_csv("pandas.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
table[:0].to_csv("empty.csv", index=False, quoting=csv.QUOTE_ALL)
table[["x (m)"]].to_csv("crlf.csv", index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")

frames = pd.DataFrame({
    "frame": [0, 0, 1, 2, 2],
    "step": [0, 0, 10, 20, 20],
    "time": [0.0, 0.0, 0.5, 1.0, 1.0],
    "position[0] (nm) {float32}": np.float32([0.1, 0.2, 0.3, 0.4, 0.5]),
    "position[1] (nm) {float32}": np.float32([1, 2, 3, 4, 5]),
    "energy": [1.5, 2.5, None, 3.5, 4.5],
})
frames.to_csv("frames.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
