"""TDMS: spile reads what nptdms reads, in values, times, properties and time base."""

import json

import numpy as np
from nptdms import TdmsFile
from support import GOLDEN, spile


def values(path, name, dtype):
    rows = json.loads(spile("cat", "--json", path, name))["values"]
    if dtype.kind == "c":
        return np.array([complex(*row) if isinstance(row, list) else complex(row) for row in rows])
    return np.array(rows)


def check(path):
    file = TdmsFile.read(path)
    listed = {row["path"]: row for row in json.loads(spile("ls", "--json", path))["objects"]}
    count = 0
    for group in file.groups():
        for channel in group.channels():
            name = group.name.replace("/", "\u2215") + "/" + channel.name.replace("/", "\u2215")
            expected = channel[:]
            found = values(path, name, np.asarray(expected).dtype)
            if np.asarray(expected).dtype.kind == "M":
                found = found.astype("i8").view("M8[us]")
            if np.asarray(expected).dtype.kind in "fc":
                np.testing.assert_allclose(found.astype(expected.dtype), expected, rtol=1e-14)
            else:
                assert list(found) == list(expected), (path, name, found, expected)
            if "wf_increment" in channel.properties:
                track = channel.time_track()
                coord = listed[name]["coords"][0]
                grid = coord["start"] + coord["step"] * np.arange(len(track))
                np.testing.assert_allclose(grid, track, rtol=1e-12, atol=1e-15)
            count += 1
    return count


def main():
    for name in ["types", "segments", "interleaved", "big_endian", "daqmx"]:
        print(name, check(GOLDEN / f"tdms/{name}.tdms"), "channels equal")


main()
