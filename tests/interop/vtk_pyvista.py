"""VTK: pyvista (the VTK library) and meshio read the files of spile with the same values, and spile theirs."""

import json
import pathlib
import subprocess
import tempfile

import meshio
import numpy as np
import pyvista
from support import GOLDEN, SPILE, spile


def values(path, name, *args):
    """The scaled values of an array, first index fastest."""
    found = json.loads(spile("cat", "--json", path, name, *args))["values"]
    return np.asarray(found, dtype="f8").ravel("F")


def fields(folder):
    """EPOCH grids: fields are cell data."""
    count = 0
    for name in "epoch1d_normal_0001", "epoch2d_4ranks_id4_0001", "epoch3d_0001":
        dump, out = GOLDEN / "sdf" / f"{name}.sdf", folder / f"{name}.vtr"
        patterns = ["Derived*", "*tric Field", "Magnetic Field", "Grid/Grid*"]
        spile("-q", "convert", dump, out, *[arg for pattern in patterns for arg in ("--select", pattern)])
        grid = pyvista.read(out)
        axes = [values(dump, f"Grid/Grid/{letter}") for letter in "XYZ" if has(dump, f"Grid/Grid/{letter}")]
        for mine, theirs in zip(axes, (grid.x, grid.y, grid.z)):
            assert np.array_equal(mine, theirs), name
        assert len(grid.cell_data) > 0 and grid.n_cells == np.prod([len(a) - 1 for a in axes])
        for field in grid.cell_data.keys():
            theirs = np.asarray(grid.cell_data[field]).ravel()
            assert np.array_equal(values(dump, field).astype(theirs.dtype), theirs), field
            count += 1
    return count


def has(path, name):
    rows = json.loads(spile("ls", "--json", path))["objects"]
    return any(row["path"] == name for row in rows)


def particles(folder):
    """Particles of EPOCH."""
    dump, out = GOLDEN / "sdf" / "epoch2d_4ranks_id4_0001.sdf", folder / "particles.vtu"
    spile("-q", "convert", dump, out, "--select", "Grid/Particles/electron", "--select", "Particles/*/electron")
    mesh, again = pyvista.read(out), meshio.read(out)
    assert mesh.n_points == mesh.n_cells and np.array_equal(mesh.points, again.points)
    names = list(mesh.point_data.keys())
    assert names
    for name in names:
        # JSON has the digits of a float32.
        mine = values(dump, name).astype(mesh.point_data[name].dtype)
        assert np.array_equal(mine, mesh.point_data[name]), name
        assert np.array_equal(again.point_data[name], mesh.point_data[name]), name
    return len(names)


def image(folder):
    """A uniform grid keeps all digits of its origin and spacing."""
    made = pyvista.ImageData(dimensions=(3, 4, 5), origin=(0.1, 1 / 3, -7e-30), spacing=(1e-9, 0.7, 3.0))
    made.point_data["a"] = np.random.default_rng(1).normal(size=60)
    made.cell_data["b"] = np.arange(24, dtype="i4")
    made.save(folder / "theirs.vti")
    spile("-q", "convert", folder / "theirs.vti", folder / "ours.vti", "--verify")
    found = pyvista.read(folder / "ours.vti")
    assert (found.origin, found.spacing, found.dimensions) == (made.origin, made.spacing, made.dimensions)
    for name in "a", "b":
        assert np.array_equal(found[name], made[name]), name
    return 2


def series(folder):
    """Frames of HOOMD as a collection of files."""
    for run in sorted((GOLDEN / "gsd").rglob("*hoomd*.gsd")):
        if not has(run, "particles/position"):
            continue
        out = folder / f"{run.stem}.pvd"
        args = [SPILE, "-q", "convert", str(run), str(out), "--select", "particles/*"]
        if subprocess.run(args, capture_output=True, check=False).returncode != 0:
            continue
        reader = pyvista.get_reader(out)
        frames = 0
        for k, time in enumerate(reader.time_values):
            reader.set_active_time_value(time)
            points = reader.read()[0].points
            theirs = json.loads(spile("cat", "--json", run, "particles/position", "--frame", k))["values"]
            mine = np.asarray(theirs, dtype="f4").reshape(-1, 3)
            assert np.array_equal(mine, points, equal_nan=True), (run, k)
            frames += 1
        if frames > 1:
            return frames
    raise AssertionError("no collection was written")


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    counts = [fields(folder), particles(folder), image(folder), series(folder)]
    print(f"{counts[0]} fields, {counts[1]} arrays of particles, {counts[2]} of images, {counts[3]} frames agree")


main()
