"""The archives of this folder, as NumPy saves them: python3 make.py"""

import io
import zipfile

import numpy as np

random = np.random.default_rng(5)
wave = np.sin(np.linspace(0, 6, 40)).reshape(5, 8)
arrays = {
    "wave": wave,
    "Electric Field/Ex": np.asfortranarray(wave[:3].astype(">f4")),
    "count": np.array(7, "u2"),
    "none": np.zeros((0, 3), "i8"),
    "größe": np.array([1.5, np.nan, -np.inf], "f2"),
    "name": np.array([b"ab", b"cde"]),
    "flags": wave > 0,
    "z": wave[0] + 1j,
    "words": np.array([["größe", "\U0001f600 b"], ["", "x"]]),
    "words be": np.array(["ab", "ç"]).astype(">U2"),
    "when": np.array(["2020-01-02", "1969-12-31"], "M8[ns]"),
    "how long": np.array([5, -3], "m8[s]"),
}
np.savez("stored.npz", **arrays)
np.savez_compressed("deflated.npz", noise=random.integers(0, 255, 300, dtype="u1"), **arrays)
np.savez("empty.npz")
table = np.array([(1, 0.5, b"x"), (2, 1.5, b"yy")], [("id", "<i4"), ("x", "<f8"), ("tag", "S3")])
np.savez("records.npz", table=table, one=table[1])

# Others than NumPy write such: a file before the archive, a comment behind it, members of unknown size.
bytes_of = io.BytesIO()
with zipfile.ZipFile(bytes_of, "w") as archive:
    archive.comment = b"PK\x05\x06 is no end"
    with archive.open("a.npy", "w", force_zip64=True) as member:
        np.save(member, np.arange(5))
    archive.writestr("readme.txt", "not an array")
open("moved.npz", "wb").write(bytes_of.getvalue())


class Pipe(io.RawIOBase):
    """A file that cannot be positioned: sizes and sums follow the members."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        return self.file.write(data)

    def writable(self):
        return True


pipe = Pipe("streamed.npz")
with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
    with archive.open("a.npy", "w") as member:
        np.save(member, wave)
pipe.file.close()
