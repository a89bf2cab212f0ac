"""VTK: pyvista (the VTK library) and meshio read the files of spile with the same values, and spile theirs."""

import itertools
import json
import pathlib
import subprocess
import tempfile

import gsd.hoomd
import h5py
import meshio
import numpy as np
import pyvista
import vtk
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
            theirs, names = np.asarray(grid.cell_data[field]), [field]
            if theirs.ndim == 2:
                group = {"E": "Electric Field", "B": "Magnetic Field"}[field]
                names = [f"{group}/{field}{axis}" for axis in "xyz"]
            mine = np.stack([values(dump, name) for name in names], -1).reshape(theirs.shape)
            assert np.array_equal(mine.astype(theirs.dtype), theirs), field
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
        with gsd.hoomd.open(str(run)) as trajectory:
            positions = [frame.particles.position for frame in trajectory]
        assert len(positions) == len(reader.time_values), run
        for k, time in enumerate(reader.time_values):
            reader.set_active_time_value(time)
            points = reader.read()[0].points
            assert np.array_equal(positions[k], points, equal_nan=True), (run, k)
        if len(positions) > 1:
            return len(positions)
    raise AssertionError("no collection was written")


def blocks(folder):
    """One block per mesh and species; vectors, units, scalars and times have their values."""
    dump, out = GOLDEN / "sdf" / "epoch3d_0001.sdf", folder / "all.vtm"
    spile("-q", "convert", dump, out, "--verify")
    found = pyvista.read(out)
    assert found.keys() == ["Grid", "electron"], found.keys()
    grid, electron = found["Grid"], found["electron"]
    for axis, mine in zip("XYZ", (grid.x, grid.y, grid.z)):
        assert np.array_equal(values(dump, f"Grid/Grid/{axis}"), mine)
    assert grid.cell_data["E"].shape == (grid.n_cells, 3) and "Electric Field/Ex" not in grid.cell_data
    for k, axis in enumerate("xyz"):
        assert np.array_equal(grid.cell_data["E"][:, k], values(dump, f"Electric Field/E{axis}")), axis
        assert np.array_equal(electron.points[:, k], values(dump, f"Grid/Particles/electron/{axis.upper()}"))
    # Two components are no vector.
    assert "P" not in electron.point_data
    assert np.array_equal(electron.point_data["Particles/Py/electron"], values(dump, "Particles/Py/electron"))
    units = dict(zip(grid.field_data["names"], grid.field_data["units"]))
    assert units["E"] == "V/m" and units["Grid/Grid/X"] == "m", units
    assert np.array_equal(found.field_data["Wall-time"], values(dump, "Wall-time"))
    # Subsets, reduced grids and distribution functions are meshes of their own.
    dump, out = GOLDEN / "sdf" / "epoch2d_4ranks_id4_0001.sdf", folder / "many.vtm"
    spile("-q", "convert", dump, out, "--verify")
    found = pyvista.read(out)
    names = {"Grid", "slab", "Reduced_every3", "px_py/electron", "xy_en/electron"}
    species = {"p1", "electron", "Carbon_ions_with_a_long_name"}
    assert set(found.keys()) == names | species, found.keys()
    assert found["xy_en/electron"].dimensions[2] == len(values(dump, "Grid/xy_en/electron/energy"))
    assert found["p1"].point_data["p1/P"].shape == (found["p1"].n_points, 3)
    return len(found.keys())


def vtkhdf(folder):
    """VTKHDF: all meshes and species in one file; a uniform mesh is an image."""
    dump, out = GOLDEN / "sdf" / "epoch3d_0001.sdf", folder / "all.vtkhdf"
    spile("-q", "convert", dump, out, "--verify")
    found = pyvista.read(out)
    assert found.keys() == ["Grid", "electron"], found.keys()
    grid, electron = found["Grid"], found["electron"]
    assert isinstance(grid, pyvista.ImageData) and isinstance(electron, pyvista.PolyData)
    for axis, mine in zip("XYZ", (grid.origin[k] + grid.spacing[k] * np.arange(n) for k, n in enumerate(grid.dimensions))):
        theirs = values(dump, f"Grid/Grid/{axis}")
        assert np.allclose(theirs, mine, rtol=0, atol=1e-6 * np.ptp(theirs)), axis
        assert np.array_equal(found.field_data[f"Grid_Grid_{axis}"], theirs)
    assert grid.cell_data["E"].shape == (grid.n_cells, 3) and "Electric Field_Ex" not in grid.cell_data
    for k, axis in enumerate("xyz"):
        assert np.array_equal(grid.cell_data["E"][:, k], values(dump, f"Electric Field/E{axis}")), axis
        assert np.array_equal(electron.points[:, k], values(dump, f"Grid/Particles/electron/{axis.upper()}"))
    assert np.array_equal(electron.point_data["Particles_Py_electron"], values(dump, "Particles/Py/electron"))
    assert electron.n_verts == electron.n_points
    with h5py.File(out) as file:
        assert file["VTKHDF/Grid/CellData/E"].attrs["units"] == "V/m"
        assert file["VTKHDF/Grid/CellData/E"].shape == (*reversed([n - 1 for n in grid.dimensions]), 3)
    # Axes that are not uniform.
    dump, out = GOLDEN / "sdf" / "drv_all_blocks.sdf", folder / "blocks.vtkhdf"
    spile("-q", "convert", dump, out)
    axes = {name: block for name, block in zip(pyvista.read(out).keys(), pyvista.read(out)) if name == "Grid_3d"}
    for axis in "XYZ":
        assert np.array_equal(getattr(axes["Grid_3d"], axis.lower()), values(dump, f"Grid/3d/{axis}")), axis
    # Planes and lines, one mesh without blocks, other kinds of grids and cells.
    dump, out = GOLDEN / "sdf" / "epoch2d_4ranks_id4_0001.sdf", folder / "plane.vtkhdf"
    spile("-q", "convert", dump, out, "--select", "Electric Field/*", "--select", "Grid/Grid*")
    plane = pyvista.read(out)
    assert isinstance(plane, pyvista.ImageData) and plane.dimensions[2] == 1
    assert len(plane.cell_data) > 0
    for name in plane.cell_data.keys():
        assert np.array_equal(plane.cell_data[name], values(dump, name.replace("_", "/", 1))), name
    count = 2
    for name, kind in [("lines_raw.vtr", pyvista.RectilinearGrid), ("curved.vts", pyvista.StructuredGrid),
                       ("image_raw.vti", pyvista.ImageData)]:
        source, out = GOLDEN / "vtk" / name, folder / f"{name}.vtkhdf"
        spile("-q", "convert", source, out, "--verify")
        mine, theirs = pyvista.read(out), pyvista.read(source)
        assert isinstance(mine, kind) and np.array_equal(mine.points, theirs.points), name
        for section in "point_data", "cell_data":
            # Names in HDF5 have no slashes.
            pairs = {key.replace("/", "_"): key for key in getattr(theirs, section).keys()}
            assert set(getattr(mine, section).keys()) == set(pairs), (name, getattr(mine, section).keys())
            for key, old in pairs.items():
                assert np.array_equal(getattr(mine, section)[key], getattr(theirs, section)[old]), (name, key)
        count += 1
    return count


def steps_of(path):
    """The time of each step and its blocks, by the reader of ParaView."""
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    assert reader.GetHasTemporalData()
    with h5py.File(path) as file:
        times = file["VTKHDF/Steps/Values"][()]
    assert len(times) == reader.GetNumberOfSteps()
    for step, time in enumerate(times):
        reader.SetStep(step)
        reader.Modified()
        reader.Update()
        yield time, pyvista.wrap(reader.GetOutputDataObject(0)).copy()


def vtkhdf_steps(folder):
    """VTKHDF with time steps: particles whose number changes, meshes that do not move, species and grids together."""
    count = 0
    for name in "hoomd_varying_N", "hoomd_many_frames":
        source, out = GOLDEN / "gsd" / "py-5.0.1" / f"{name}.gsd", folder / f"{name}.vtkhdf"
        spile("-q", "convert", source, out, "--verify")
        with gsd.hoomd.open(source) as trajectory:
            frames = list(steps_of(out))
            assert len(frames) == len(trajectory), name
            for (time, points), frame in zip(frames, trajectory):
                particles = frame.particles
                assert time == frame.configuration.step
                assert points.n_points == points.n_verts == particles.N, (name, points)
                assert np.array_equal(points.points, particles.position.reshape(-1, 3)), name
                assert np.array_equal(points.verts.reshape(-1, 2)[:, 1], np.arange(particles.N)), name
                if name == "hoomd_varying_N" and particles.N:
                    assert np.array_equal(points.point_data["particles_typeid"], particles.typeid), name
                count += 1
    run, out = folder / "run", folder / "run.vtkhdf"
    run.mkdir()
    dumps = sorted(GOLDEN.glob("sdf/epoch2d_4ranks_id4_000*.sdf")) or sorted(GOLDEN.glob("sdf/epoch1d_normal_000*.sdf"))
    for dump in dumps:
        (run / dump.name).symlink_to(dump)
    spile("-q", "convert", run, out, "--verify")
    for (time, blocks), dump in zip(steps_of(out), dumps, strict=True):
        assert np.isclose(time, json.loads(spile("info", "--json", dump))["summary"]["time"], rtol=1e-12)
        grid = blocks["Grid"]
        names = [name for name in grid.cell_data.keys() if grid.cell_data[name].ndim == 1]
        assert len(names) > 1, grid.cell_data.keys()
        with h5py.File(out) as file:
            paths = {name: file[f"VTKHDF/Grid/CellData/{name}"].attrs["Path"] for name in names}
        for name, path in paths.items():
            assert np.array_equal(grid.cell_data[name], values(dump, path).astype(grid.cell_data[name].dtype)), (dump, name)
        electron = blocks["electron"]
        found = electron.points[:, 0]
        assert np.array_equal(found, values(dump, "Grid/Particles/electron/X").astype(found.dtype))
        momentum = electron.point_data["Particles_Px_electron"]
        assert np.array_equal(momentum, values(dump, "Particles/Px/electron").astype(momentum.dtype))
        count += 1
    # Files of others: several arrays, chunks, static points, and the number of steps of an array of its own.
    foreign_steps(folder / "foreign.vtkhdf")
    for frame in range(3):
        found = json.loads(spile("cat", "--json", folder / "foreign.vtkhdf", "CellData/e", "--frame", frame))["values"]
        assert np.array_equal(found, (np.arange(36.0) * 2).reshape(3, 1, 3, 4)[frame]), found
    assert "static" in spile("ls", folder / "foreign.vtkhdf").decode()
    return count


def foreign_steps(path):
    """An image with time steps, as h5py writes it."""
    with h5py.File(path, "w") as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = [2, 2]
        root.attrs.create("Type", np.bytes_("ImageData"))
        for name, numbers in [("WholeExtent", [0, 4, 0, 3, 0, 1]), ("Origin", [0.0] * 3), ("Spacing", [1.0] * 3),
                              ("Direction", np.eye(3).ravel())]:
            root.attrs[name] = numbers
        steps = root.create_group("Steps")
        steps.attrs["NSteps"] = 3
        steps["Values"] = [0.0, 0.5, 1.5]
        data = (np.arange(36.0) * 2).reshape(3, 1, 3, 4)
        root.create_dataset("CellData/e", data=data, chunks=(2, 1, 2, 4), compression="gzip")
        steps["CellDataOffsets/e"] = [0, 1, 2]
        root["PointData/static"] = np.arange(40.0).reshape(1, 2, 4, 5)
        steps["PointDataOffsets/static"] = [0, 0, 0]


def crystal(folder):
    """The density of a skewed crystal cell is at its true positions, and so are the atoms."""
    save, out = GOLDEN / "iotk" / "qe54_si" / "si.save", folder / "si.vts"
    spile("-q", "convert", save, out)
    grid = pyvista.read(out)
    cell = np.asarray(json.loads(spile("cat", "--json", save, "cell"))["values"])
    cell = cell.reshape(3, 3)
    n1, n2, n3 = grid.dimensions
    k, j, i = np.meshgrid(np.arange(n3) / n3, np.arange(n2) / n2, np.arange(n1) / n1, indexing="ij")
    points = np.stack([i, j, k], -1).reshape(-1, 3) @ cell
    assert np.allclose(grid.points, points, rtol=0, atol=1e-12)
    assert np.array_equal(grid.point_data["density"], values(save, "density"))
    spile("-q", "convert", save, folder / "si.vtm")
    assert {"density", "atoms"} <= set(pyvista.read(folder / "si.vtm").keys())
    return len(points)


def moving_window(folder):
    """Frames of a moving window have their own coordinates and times; species come and go."""
    run = GOLDEN.parent.parent.parent / "shared" / "real" / "sdf" / "s3d"
    if not run.is_dir():
        return 0
    out = folder / "window.pvd"
    spile("-q", "convert", run, out)
    reader, firsts = pyvista.get_reader(out), []
    dumps = sorted(run.glob("*.sdf"))
    assert len(reader.time_values) == len(dumps)
    for dump, time in zip(dumps, reader.time_values):
        assert time == json.loads(spile("info", "--json", dump))["summary"]["time"]
        reader.set_active_time_value(time)
        frame = reader.read()[0]
        grid = frame["Grid"]
        for axis, mine in zip("XYZ", (grid.x, grid.y, grid.z)):
            assert np.array_equal(values(dump, f"Grid/Grid/{axis}"), mine), (dump, axis)
        assert np.array_equal(grid.cell_data["Electric Field/Ey"], values(dump, "Electric Field/Ey"))
        assert frame["elec"].n_points == len(values(dump, "Grid/Particles/elec/X"))
        assert ("subset_box/elec" in frame.keys()) == has(dump, "Grid/Particles/subset_box/elec/X")
        firsts.append(grid.x[0])
    assert len(set(firsts)) > 3, firsts
    return len(dumps)


def foreign(folder):
    """Files of the writers of VTK with all of their options: values, or a refusal with the reason."""
    image = pyvista.ImageData(dimensions=(4, 3, 2), spacing=(0.5, 1, 2), origin=(1, 2, 3))
    image.point_data["a"] = np.linspace(-1, 1, 24)
    image.cell_data["v"] = np.arange(18, dtype="f4").reshape(6, 3)
    lines = pyvista.RectilinearGrid(np.array([0.0, 1, 4]), np.array([0.0, 2]), np.array([-1.0, 0, 5]))
    lines.point_data["a"] = np.arange(18, dtype="i8")
    curved = pyvista.StructuredGrid(*np.meshgrid(np.arange(3.0), np.arange(2.0), np.arange(2.0), indexing="ij"))
    curved.point_data["a"] = np.arange(12.0)
    mesh, sphere = image.cast_to_unstructured_grid(), pyvista.Sphere(theta_resolution=5, phi_resolution=5)
    sphere.point_data["a"] = np.arange(sphere.n_points, dtype="u1")
    kinds = [
        (image, "vti", vtk.vtkXMLImageDataWriter),
        (lines, "vtr", vtk.vtkXMLRectilinearGridWriter),
        (curved, "vts", vtk.vtkXMLStructuredGridWriter),
        (mesh, "vtu", vtk.vtkXMLUnstructuredGridWriter),
        (sphere, "vtp", vtk.vtkXMLPolyDataWriter),
    ]
    count = 0
    for number, (data, ending, make) in enumerate(kinds):
        for mode, compressor, header, order, encode in itertools.product(
            (0, 1, 2), ("None", "ZLib", "LZ4", "LZMA"), (32, 64), (0, 1), (False, True)
        ):
            writer, path = make(), folder / f"foreign{number}.{ending}"
            writer.SetFileName(str(path))
            writer.SetInputData(data)
            writer.SetDataMode(mode)
            writer.SetCompressorType(["None", "ZLib", "LZ4", "LZMA"].index(compressor))
            (writer.SetHeaderTypeToUInt32 if header == 32 else writer.SetHeaderTypeToUInt64)()
            (writer.SetByteOrderToLittleEndian if order else writer.SetByteOrderToBigEndian)()
            writer.SetEncodeAppendedData(encode)
            writer.Write()
            assert np.array_equal(values(path, "PointData/a"), data.point_data["a"]), (ending, mode, compressor)
            count += 1
    # Multiblock and parallel files: blocks and pieces are groups.
    many = pyvista.MultiBlock({"first": image, "inner": pyvista.MultiBlock({"x": sphere}), "empty": None})
    many.save(folder / "foreign.vtm")
    assert np.array_equal(values(folder / "foreign.vtm", "first/PointData/a"), image.point_data["a"])
    assert np.array_equal(values(folder / "foreign.vtm", "inner/x/PointData/a"), sphere.point_data["a"])
    writer = vtk.vtkXMLPImageDataWriter()
    writer.SetFileName(str(folder / "foreign.pvti"))
    writer.SetInputData(image)
    writer.SetNumberOfPieces(2)
    writer.SetStartPiece(0)
    writer.SetEndPiece(1)
    writer.Write()
    parts = [values(folder / "foreign.pvti", f"Piece{k}/PointData/a") for k in range(2)]
    assert set(np.concatenate(parts)) == set(image.point_data["a"])
    # The older format.
    mesh.save(folder / "foreign.vtk")
    assert np.array_equal(values(folder / "foreign.vtk", "PointData/a"), mesh.point_data["a"])
    return count + 4


def replaced(folder):
    """A refused replacement leaves the old collection complete."""
    dump, out = GOLDEN / "sdf" / "epoch3d_0001.sdf", folder / "keep.vtm"
    spile("-q", "convert", dump, out)
    before = sorted((path, path.read_bytes()) for path in (folder / "keep").rglob("*"))
    other = GOLDEN / "sdf" / "epoch2d_4ranks_id4_0001.sdf"
    (folder / "keep" / "mine.txt").write_text("not of the collection")
    args = [SPILE, "-q", "convert", str(other), str(out), "--overwrite"]
    assert subprocess.run(args, capture_output=True, check=False).returncode != 0
    (folder / "keep" / "mine.txt").unlink()
    assert before == sorted((path, path.read_bytes()) for path in (folder / "keep").rglob("*"))
    spile("-q", "convert", other, out, "--overwrite")
    assert "slab" in pyvista.read(out).keys()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return 1


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    counts = [fields(folder), particles(folder), image(folder), series(folder)]
    print(f"{counts[0]} fields, {counts[1]} arrays of particles, {counts[2]} of images, {counts[3]} frames agree")
    print(f"{vtkhdf(folder)} VTKHDF files, {vtkhdf_steps(folder)} time steps")
    counts = [blocks(folder), crystal(folder), moving_window(folder), foreign(folder), replaced(folder)]
    print(f"{counts[0]} blocks, {counts[1]} points of a crystal, {counts[2]} frames of a window, {counts[3]} foreign files")


main()
