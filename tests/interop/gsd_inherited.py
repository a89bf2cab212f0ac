"""Exports of HOOMD trajectories show in every frame what gsd.hoomd shows: values inherited from frame 0 and defaults."""

import os
import tempfile

import gsd.hoomd
import h5py
import numpy as np
import pandas
import pyarrow.feather
import pyarrow.parquet
import pyvista
import xarray
from support import spile

FIELDS = ["typeid", "mass", "charge", "orientation", "velocity", "image", "position"]


def write(path, counts):
    """A trajectory that writes few chunks after frame 0; `counts` are the particles of the frames."""
    random = np.random.default_rng(5)
    with gsd.hoomd.open(path, "w") as file:
        for k, count in enumerate(counts):
            frame = gsd.hoomd.Frame()
            frame.configuration.step = 10 * k
            frame.particles.N = count
            frame.particles.position = random.uniform(-2, 2, (count, 3))
            if k == 0:
                frame.configuration.box = [5, 6, 7, 0, 0, 0]
                frame.particles.types = ["A", "B"]
                frame.particles.typeid = np.arange(count) % 2
                frame.particles.mass = random.uniform(1, 2, count)
                frame.particles.charge = random.uniform(-1, 1, count)
                frame.particles.orientation = random.uniform(-1, 1, (count, 4))
            if k == 2:
                frame.particles.mass = random.uniform(1, 2, count)
                frame.particles.velocity = random.uniform(-1, 1, (count, 3))
                frame.particles.image = random.integers(-3, 3, (count, 3))
            if k == 3:
                frame.particles.orientation = random.uniform(-1, 1, (count, 4))
            file.append(frame)


def truth(path):
    """For each frame the values that gsd.hoomd shows."""
    frames = []
    with gsd.hoomd.open(path) as file:
        for frame in file:
            values = {name: np.array(getattr(frame.particles, name)) for name in FIELDS}
            frames.append(values | {"N": frame.particles.N, "box": frame.configuration.box})
    return frames


def check_stacked(read, frames, name):
    """`read` returns an array of frames, or of all rows, by path."""
    uniform = len({frame["N"] for frame in frames}) == 1
    for field in FIELDS:
        found = np.asarray(read(f"particles/{field}"))
        if uniform:
            expected = np.stack([frame[field] for frame in frames])
        else:
            expected = np.concatenate([frame[field] for frame in frames])
        assert found.shape == expected.shape, (name, field, found.shape, expected.shape)
        assert np.array_equal(found, expected), (name, field)
    boxes = np.asarray(read("configuration/box"))
    assert np.array_equal(boxes, [frame["box"] for frame in frames]), name


def check_table(table, frames, name):
    columns = {"position": ["x", "y", "z"], "velocity": ["vx", "vy", "vz"]}
    assert set(table["frame"]) == {k for k, frame in enumerate(frames) if frame["N"]}, name
    for k, frame in enumerate(frames):
        rows = table[table["frame"] == k]
        assert len(rows) == frame["N"], (name, k, len(rows))
        for field in FIELDS:
            expected = frame[field].reshape(frame["N"], int(np.prod(frame[field].shape[1:])))
            parts = [f"particles/{field}[{n}]" for n in range(expected.shape[1])]
            parts = columns.get(field, parts if expected.shape[1] > 1 else [f"particles/{field}"])
            found = rows[parts].to_numpy(dtype=expected.dtype)
            assert np.array_equal(found, expected), (name, k, field)


def check(source):
    frames = truth(source)
    for target in ["t.h5", "t.npz", "t.nc", "t.zarr"]:
        spile("convert", source, target, "--overwrite", "--verify")
        # The frames of the original are restored.
        spile("convert", target, "back.gsd", "--overwrite")
        spile("diff", source, "back.gsd")
    with h5py.File("t.h5") as file:
        check_stacked(lambda path: file[path][()], frames, "h5")
    with np.load("t.npz") as file:
        check_stacked(lambda path: file[path], frames, "npz")
    for target in ["t.nc", "t.zarr"]:
        with xarray.open_dataset(target) as data:
            check_stacked(lambda path, data=data: data[path.replace("/", "_")], frames, target)
    spile("convert", source, "t.csv", "--overwrite")
    check_table(pandas.read_csv("t.csv"), frames, "csv")
    spile("convert", source, "t.parquet", "--overwrite", "--verify")
    check_table(pyarrow.parquet.read_table("t.parquet").to_pandas(), frames, "parquet")
    spile("convert", source, "t.arrow", "--overwrite", "--verify")
    check_table(pyarrow.feather.read_table("t.arrow").to_pandas(), frames, "arrow")
    spile("convert", source, "t.pvd", "--overwrite")
    reader = pyvista.get_reader("t.pvd")
    assert len(reader.time_values) == len(frames)
    for k, frame in enumerate(frames):
        reader.set_active_time_point(k)
        [points] = [block for block in reader.read() if block is not None]
        assert points.n_points == frame["N"], ("pvd", k)
        for field in FIELDS[:-1]:
            assert np.array_equal(points[f"particles/{field}"], frame[field]), ("pvd", k, field)
    # A part of the frames, in the same format.
    for part in ["2:", "1:4", "3:", "1::2"]:
        spile("convert", source, "part.gsd", "--frames", part, "--overwrite")
        chosen = frames[slice(*(int(n) if n else None for n in part.split(":")))]
        found = truth("part.gsd")
        assert len(found) == len(chosen), part
        for k, (own, expected) in enumerate(zip(found, chosen)):
            for field, values in expected.items():
                assert np.array_equal(own[field], values), (part, k, field)


def main():
    os.chdir(tempfile.mkdtemp())
    write("same.gsd", [6] * 5)
    check("same.gsd")
    write("varying.gsd", [6, 4, 6, 5, 6, 4])
    check("varying.gsd")
    write("empty.gsd", [3, 0, 3, 2, 0])
    check("empty.gsd")


if __name__ == "__main__":
    main()
