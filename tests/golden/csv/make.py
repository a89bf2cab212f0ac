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

# Frames without element types in the names.
plain = frames.rename(columns=lambda name: name.removesuffix(" {float32}"))
plain = plain.astype({name: "f8" for name in plain.columns if name.startswith("position")})
plain.to_csv("frames_plain.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)

# Defaults of pandas: an index without a name, names without quotes, True and False.
table["ok"] = table["id"] > 1
table[["x (m)", "ok", "gap"]].to_csv("index.csv")

# Excel with a German locale: byte order mark, semicolons, decimal commas, CRLF.
table[["id", "gap", "name, or so"]].to_csv("excel.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig",
                                           lineterminator="\r\n")

# An instrument: comments, names, units.
with open("instrument.csv", "w") as file:
    file.write("# made by an instrument, serial \"7\n# range 2\nt,U,I\ns,mV,A\n")
    for k in range(5):
        file.write(f"{0.5 * k},{k * k},{-k}e-3\n")
