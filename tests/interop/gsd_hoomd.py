"""GSD: spile and the reference Python package read each other's files."""

import csv
import glob
import hashlib
import io
import json
import os
import shutil
import tempfile

import gsd.fl
import gsd.hoomd
import gsd.pygsd
import numpy as np
from support import GOLDEN, spile

TYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64"]


def chunks(path):
    """The hash of every chunk, by frame and name, as read by the library."""
    found = {}
    with gsd.fl.open(path, "r") as file:
        for frame in range(file.nframes):
            for name in file.find_matching_chunk_names(""):
                if file.chunk_exists(frame, name):
                    data = file.read_chunk(frame, name)
                    raw = data.encode() if isinstance(data, str) else np.ascontiguousarray(data).tobytes()
                    found[frame, name] = hashlib.sha256(raw).hexdigest()
    return found


def ours(path):
    """The hash of every chunk, by frame and name, as read by spile."""
    rows = json.loads(spile("hash", "--native", "--json", path))["objects"]
    return {(row["frame"], row["path"]): row["sha256"] for row in rows}


def same_frames(a, b, frames=None):
    """Asserts that two HOOMD files have the same frames, with defaults filled in."""
    with gsd.hoomd.open(a) as a, gsd.hoomd.open(b) as b:
        frames = range(len(a)) if frames is None else frames
        assert len(b) == len(frames), (len(b), len(frames))
        for there, here in enumerate(frames):
            x, y = a[here], b[there]
            assert x.configuration.step == y.configuration.step
            for group in ["configuration", "particles", "bonds", "angles", "dihedrals", "impropers",
                          "constraints", "pairs"]:
                left, right = getattr(x, group), getattr(y, group)
                for name in [n for n in vars(left) if not n.startswith("_")]:
                    expected, found = getattr(left, name), getattr(right, name)
                    equal = np.array_equal(expected, found) if isinstance(expected, np.ndarray) else expected == found
                    assert equal, (here, group, name, expected, found)
            for name, expected in x.log.items():
                assert np.array_equal(expected, y.log[name]), (here, name)


def trajectory(path, frames, double=False):
    """A HOOMD file with particles, bonds and logs; some frames are incomplete."""
    random = np.random.default_rng(5)
    with gsd.hoomd.open(path, "w") as file:
        for k in range(frames):
            frame = gsd.hoomd.Frame()
            n = 10 if k % 3 else 12
            frame.configuration.step = 100 * k
            frame.configuration.box = [20, 20, 20, 0.1, 0, 0]
            frame.particles.N = n
            frame.particles.types = ["A", "longer"]
            frame.particles.typeid = random.integers(0, 2, n)
            kind = np.float64 if double else np.float32
            frame.particles.position = random.uniform(-8, 8, (n, 3)).astype(kind)
            if k % 2:
                frame.particles.mass = random.uniform(1, 2, n).astype(kind)
                frame.bonds.N = 2
                frame.bonds.types = ["b"]
                frame.bonds.group = [[0, 1], [2, 3]]
            frame.log["energy"] = np.array([random.normal()])
            frame.log["pressure"] = random.normal(size=6)
            file.append(frame)


def main():
    os.chdir(tempfile.mkdtemp())
    random = np.random.default_rng(11)

    # All types, many names, growth of index and name list: written by the library.
    with gsd.fl.open("fl.gsd", "w", application="a", schema="s", schema_version=[1, 2]) as file:
        for frame in range(60):
            for kind in TYPES:
                data = (100 * random.random((frame % 5, 3))).astype(kind)
                file.write_chunk(f"data/{kind}", data)
            file.write_chunk(f"name/{frame}", np.arange(frame + 1))
            file.write_chunk("text", f"frame {frame}")
            file.end_frame()
            if frame % 7 == 0:
                file.flush()
    theirs = chunks("fl.gsd")
    assert theirs and ours("fl.gsd") == theirs
    spile("check", "--strict", "fl.gsd")

    # Written by spile, read by both readers of the package.
    spile("salvage", "fl.gsd", "-o", "saved.gsd")
    assert chunks("saved.gsd") == theirs
    spile("gsd", "trim", "fl.gsd", ":", "-o", "trimmed.gsd")
    assert chunks("trimmed.gsd") == theirs
    with open("trimmed.gsd", "rb") as stream:
        pure = gsd.pygsd.GSDFile(stream)
        assert pure.nframes == 60 and (pure.application, pure.schema) == ("a", "s")
        for frame, name in list(theirs)[::17]:
            data = pure.read_chunk(frame, name)
            raw = data.encode() if isinstance(data, str) else np.ascontiguousarray(data).tobytes()
            assert hashlib.sha256(raw).hexdigest() == theirs[frame, name], (frame, name)
    # Appended to by the library.
    with gsd.fl.open("trimmed.gsd", "r+") as file:
        file.write_chunk("more", np.arange(5))
        file.write_chunk("data/uint8", np.arange(3, dtype=np.uint8))
        file.end_frame()
    assert ours("trimmed.gsd") == chunks("trimmed.gsd") and len(chunks("trimmed.gsd")) == len(theirs) + 2

    # Frames appended by spile to a file of the library, with growth of index and name list.
    for version, folder in [("2.1", "code-v5.0.1"), ("2.0", "code-v2.0.0"), ("1.0", "code-v1.10.0")]:
        shutil.copy(os.path.join(GOLDEN, "gsd", folder, "many_frames_growth.gsd"), "grown.gsd")
        for more in ["many_frames_growth", "names_growth", "index_grow_by_one", "many_frames_growth"]:
            if version != "1.0" or more != "names_growth":
                spile("gsd", "append", "grown.gsd", os.path.join(GOLDEN, "gsd", folder, more + ".gsd"))
        with gsd.fl.open("grown.gsd", "r") as file:
            assert ".".join(map(str, file.gsd_version)) == version
            assert file.nframes >= 150 + 150 + 129 + 150
        assert ours("grown.gsd") == chunks("grown.gsd")
        with gsd.fl.open("grown.gsd", "r+") as file:
            for k in range(300):
                file.write_chunk("late", np.array([k]))
                file.end_frame()
        assert ours("grown.gsd") == chunks("grown.gsd")
        spile("check", "--strict", "grown.gsd")

    # More empty frames than the index has entries: the library refuses its own file, and reads the one of spile.
    sparse = os.path.join(GOLDEN, "gsd", "edge", "200_empty_frames_then_chunk_REFERENCE_CALLS_CORRUPT.gsd")
    try:
        chunks(sparse)
        raise AssertionError("the library reads this file now")
    except RuntimeError:
        pass
    for number, command in enumerate(["gsd upgrade @", "gsd append @ @more", "gsd trim @ : -o @new", "salvage @ -o @new"]):
        names = {"@": f"{number}.gsd", "@more": "more.gsd", "@new": f"{number}-new.gsd"}
        shutil.copy(sparse, names["@"])
        with gsd.fl.open("more.gsd", "w", application="a", schema="s", schema_version=[1, 0]) as file:
            file.write_chunk("more", np.arange(5))
            file.end_frame()
        spile(*[names.get(arg, arg) for arg in command.split()])
        new = names["@new"] if "@new" in command else names["@"]
        assert ours(sparse).items() <= chunks(new).items() and ours(new) == chunks(new), command
        assert b"gsd-018" not in spile("check", new), command

    # Old versions, upgraded by spile.
    old = glob.glob(os.path.join(GOLDEN, "gsd", "code-v1.*", "*.gsd")) + glob.glob(os.path.join(GOLDEN, "gsd", "v0.0.1", "*.gsd"))
    for path in old:
        if "names" in path or "duplicate" in path:
            continue
        shutil.copy(path, "old.gsd")
        before = ours("old.gsd")
        spile("gsd", "upgrade", "old.gsd")
        after = chunks("old.gsd")
        assert {key: value for key, value in after.items() if key in before} == before, path
    assert len(old) > 40

    # HOOMD frames keep their content in other positions.
    for double in [False, True]:
        trajectory("t.gsd", 20, double)
        spile("check", "t.gsd")
        spile("gsd", "trim", "t.gsd", "19:2:-3", "-o", "back.gsd", "--overwrite")
        same_frames("t.gsd", "back.gsd", range(19, 2, -3))
        spile("gsd", "trim", "t.gsd", "5:", "-o", "rest.gsd", "--overwrite")
        same_frames("t.gsd", "rest.gsd", range(5, 20))
        spile("gsd", "trim", "t.gsd", ":5", "-o", "start.gsd", "--overwrite")
        spile("gsd", "merge", "start.gsd", "rest.gsd", "-o", "whole.gsd", "--overwrite")
        same_frames("t.gsd", "whole.gsd")
        spile("gsd", "trim", "t.gsd", ":7", "-o", "grown.gsd", "--overwrite")
        spile("gsd", "trim", "t.gsd", "7:", "-o", "more.gsd", "--overwrite")
        spile("gsd", "append", "grown.gsd", "more.gsd")
        same_frames("t.gsd", "grown.gsd")
        table = list(csv.DictReader(io.StringIO(spile("gsd", "log", "t.gsd", "--csv").decode())))
        log = gsd.hoomd.read_log("t.gsd", scalar_only=False)
        assert [int(row["step"]) for row in table] == list(log["configuration/step"])
        assert [float(row["energy"]) for row in table] == list(log["log/energy"])
        for k in range(6):
            assert [float(row[f"pressure[{k}]"]) for row in table] == list(log["log/pressure"][:, k])

    # A truncated file: the library refuses it, every complete frame is recovered. The last byte is in
    # the unused part of the index; a file of few frames ends with data.
    for frames, left, code in [(20, 20, 0), (5, 4, 3)]:
        trajectory("t.gsd", frames)
        with open("t.gsd", "r+b") as file:
            file.truncate(os.path.getsize("t.gsd") - 1)
        try:
            gsd.hoomd.open("t.gsd")
            raise AssertionError("the library reads a truncated file")
        except RuntimeError:
            pass
        spile("check", "t.gsd", codes=(1,))
        spile("salvage", "t.gsd", "-o", "t-saved.gsd", "--overwrite", codes=(code,))
        with gsd.hoomd.open("t-saved.gsd") as file:
            assert len(file) == left, len(file)


main()
