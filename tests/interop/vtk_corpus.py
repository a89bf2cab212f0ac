"""VTK: files of the writers of VTK and meshio with every option. Each array has the values that VTK reads, or is
reported with the reason."""

import itertools
import json
import pathlib
import subprocess
import tempfile
import warnings

import h5py
import meshio
import numpy as np
import pyvista
import vtk
from support import SPILE, spile
from vtk.util.numpy_support import vtk_to_numpy
from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase

warnings.simplefilter("ignore")
STRUCTURED = (pyvista.ImageData, pyvista.RectilinearGrid, pyvista.StructuredGrid)
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
COUNT = {"files": 0, "arrays": 0}
TIMES = [0.5, 1.5, 4.0]


def decorate(data):
    """Arrays of all types and meanings of VTK."""
    rng = np.random.default_rng(3)
    for side, count in ((data.point_data, data.n_points), (data.cell_data, data.n_cells)):
        if count == 0:
            continue
        for kind in TYPES:
            side[f"{kind} % é"] = (rng.random(count) * 100).astype(kind)
        side["vector"] = rng.random((count, 3)).astype("f4")
        side["tensor"] = rng.random((count, 9))
        side["several"] = rng.integers(0, 9, (count, 4)).astype("i2")
        side["colors"] = rng.integers(0, 256, (count, 3)).astype("u1")
        side["vtkGhostType"] = np.zeros(count, dtype="u1")
        # VTK reads -inf in text as inf.
        side["special"] = np.resize([np.nan, np.inf, -1e308, -0.0, 1e-310, 0.1], count)
        array = side.VTKObject.GetArray("vector")
        for k, name in enumerate(["along x", "", "z"]):
            array.SetComponentName(k, name)
        array.GetInformation().Set(vtk.vtkDataArray.UNITS_LABEL(), "m/s")
        bits = vtk.vtkBitArray()
        bits.SetName("bits")
        for k in range(count):
            bits.InsertNextValue(k % 3 == 0)
        side.VTKObject.AddArray(bits)
        ids = vtk.vtkIdTypeArray()
        ids.SetName("ids")
        for k in range(count):
            ids.InsertNextValue(k * 2)
        side.VTKObject.SetGlobalIds(ids)
        normals = vtk.vtkFloatArray()
        normals.SetName("normals")
        normals.SetNumberOfComponents(3)
        for k in range(count):
            normals.InsertNextTuple3(1, k, 0)
        side.VTKObject.SetNormals(normals)
    data.field_data["TimeValue"] = np.array([0.25])
    data.field_data["text"] = ["a b", "c\nx", "", "100 %"]
    if data.n_points:
        data.point_data["labels"] = [f"p{k}" for k in range(data.n_points)]
    data.field_data["table"] = np.arange(6, dtype="i8").reshape(3, 2)
    return data


def datasets():
    """One dataset per type, with cells of all kinds, and without any."""
    x, y, z = np.array([0.0, 1, 4]), np.array([0.0, 2]), np.array([-1.0, 0, 5])
    yield "image", pyvista.ImageData(dimensions=(4, 3, 2), spacing=(0.5, 1, 2), origin=(1, 2, 3))
    yield "plane", pyvista.ImageData(dimensions=(4, 1, 3), spacing=(0.5, 1, 2))
    yield "lines", pyvista.RectilinearGrid(x, y, z)
    yield "curved", pyvista.StructuredGrid(*np.meshgrid(x, y, z, indexing="ij"))
    sphere = pyvista.Sphere(theta_resolution=5, phi_resolution=5)
    yield "surface", sphere
    yield "strips", sphere.strip()
    mixed = pyvista.PolyData(np.random.default_rng(1).random((6, 3)), lines=[3, 0, 1, 2, 2, 4, 5], verts=[1, 3])
    yield "wires", mixed
    cells = [4, 0, 1, 2, 3, 8, 0, 1, 2, 3, 4, 5, 6, 7, 1, 4]
    kinds = [pyvista.CellType.TETRA, pyvista.CellType.HEXAHEDRON, pyvista.CellType.VERTEX]
    yield "mesh", pyvista.UnstructuredGrid(cells, kinds, np.random.default_rng(2).random((8, 3)))
    faces = [4, 3, 0, 1, 2, 3, 0, 1, 3, 3, 0, 2, 3, 3, 1, 2, 3]
    cells = [len(faces), *faces, 4, 0, 1, 2, 3]
    kinds = [pyvista.CellType.POLYHEDRON, pyvista.CellType.TETRA]
    yield "polyhedra", pyvista.UnstructuredGrid(cells, kinds, np.random.default_rng(2).random((4, 3)))
    yield "nothing", pyvista.UnstructuredGrid()
    yield "no points", pyvista.PolyData()


def flat(array, structured, order="F"):
    return array.ravel(order if structured else "C")


def same(mine, theirs, where):
    theirs = np.asarray(theirs)
    assert mine.size == theirs.size, (where, mine.shape, theirs.shape)
    assert np.array_equal(mine.astype(theirs.dtype), theirs.ravel(), equal_nan=theirs.dtype.kind == "f"), (
        where, mine, theirs.ravel())
    COUNT["arrays"] += 1


def compare(path, data, prefix="", file=None):
    """All arrays of the file at `path` with those that VTK read from it."""
    COUNT["files"] += 1
    if file is None:
        out = path.with_name("out.h5")
        spile("-q", "convert", path, out, "--overwrite", codes=(0, 3))
        with h5py.File(out) as file:
            compare_in(path, data, prefix, file)
    else:
        compare_in(path, data, prefix, file)


def texts(path, name, array, file, structured, order):
    theirs = [array.GetValue(k).encode() for k in range(array.GetNumberOfValues())]
    assert name in file, (path, name)
    own = flat(file[name][()], structured, order)
    assert own.tolist() == theirs, (path, name, own, theirs)
    COUNT["arrays"] += 1


def compare_in(path, data, prefix, file):
    structured = isinstance(data, STRUCTURED)
    # The slowest index is first.
    order = "C" if path.suffix == ".vtkhdf" else "F"
    sides = [("PointData", data.GetPointData()), ("CellData", data.GetCellData()), ("FieldData", data.GetFieldData())]
    for section, side in sides:
        for k in range(side.GetNumberOfArrays()):
            array = side.GetAbstractArray(k)
            name = f"{prefix}{section}/{array.GetName()}"
            if array.GetNumberOfValues() == 0:
                continue
            if name in ("FieldData/names", "FieldData/units", "FieldData/long_names"):
                # The table that spile adds to files that it writes.
                continue
            if isinstance(array, vtk.vtkStringArray):
                structured_data = structured and section != "FieldData"
                texts(path, name, array, file, structured_data, order)
                continue
            if isinstance(array, vtk.vtkBitArray) and path.suffix != ".vtk":
                assert name not in file
                continue
            assert name in file, (path, name, list(file.get(prefix + section, [])))
            if isinstance(array, vtk.vtkBitArray):
                theirs = np.array([array.GetValue(i) for i in range(array.GetNumberOfValues())])
            else:
                theirs = vtk_to_numpy(array)
            same(flat(file[name][()], structured and section != "FieldData", order), theirs, (path, name))
            if array.GetName() == "vector" and section != "FieldData" and path.suffix != ".meshio":
                assert file[name].attrs.get("units", "m/s") == "m/s"
    if isinstance(data, pyvista.ImageData) and "PointData" in file.get(prefix or "/", {}):
        one = next(file[prefix + "PointData"][name] for name in file[prefix + "PointData"] if "%" in name)
        start = np.array(data.origin) + np.array(data.extent[::2]) * np.array(data.spacing)
        for axis, dim in enumerate(one.dims):
            if len(dim):
                length, axis = one.shape[axis], axis if order == "F" else 2 - axis
                theirs = start[axis] + np.arange(length) * data.spacing[axis]
                assert np.allclose(dim[0][()], theirs, rtol=1e-14, atol=0), (path, axis)
    elif isinstance(data, pyvista.RectilinearGrid):
        for axis, theirs in zip("xyz", (data.x, data.y, data.z)):
            if f"{prefix}Coordinates/{axis}" in file:
                same(file[f"{prefix}Coordinates/{axis}"][()], theirs, (path, axis))
    elif data.n_points:
        same(flat(file[prefix + "Points"][()], structured, order), data.points, (path, "points"))
    sections = []
    if path.name == "polyhedra.vtk":
        assert "Cells" not in file
    elif isinstance(data, pyvista.UnstructuredGrid) and data.n_cells:
        sections = [("Cells", data.GetCells())]
        same(file[f"{prefix}Cells/types"][()], data.celltypes, (path, "types"))
    elif isinstance(data, pyvista.PolyData):
        sections = [("Verts", data.GetVerts()), ("Lines", data.GetLines()), ("Polys", data.GetPolys())]
        sections.append(("Strips", data.GetStrips()))
    for section, cells in sections:
        if cells.GetNumberOfCells():
            links = vtk_to_numpy(cells.GetConnectivityArray())
            same(file[f"{prefix}{section}/connectivity"][()], links, (path, section))
            same(file[f"{prefix}{section}/offsets"][()], vtk_to_numpy(cells.GetOffsetsArray())[1:], (path, section))


def reported(path):
    """Messages about arrays that cannot be read, by path."""
    found = json.loads(spile("check", "--json", path, codes=(0, 1)))
    found = found[0] if isinstance(found, list) else found
    found = found["files"][0] if "files" in found else found
    found = found.get("check", found)
    return {f["object"].strip('"'): f["message"] for f in found["findings"] if f.get("object")}


def xml(folder):
    """All dataset types; for one of them all encodings."""
    writers = {
        pyvista.ImageData: ("vti", vtk.vtkXMLImageDataWriter),
        pyvista.RectilinearGrid: ("vtr", vtk.vtkXMLRectilinearGridWriter),
        pyvista.StructuredGrid: ("vts", vtk.vtkXMLStructuredGridWriter),
        pyvista.UnstructuredGrid: ("vtu", vtk.vtkXMLUnstructuredGridWriter),
        pyvista.PolyData: ("vtp", vtk.vtkXMLPolyDataWriter),
    }
    for name, data in datasets():
        decorate(data)
        ending, make = writers[type(data)]
        options = itertools.product((0, 1, 2), (0, 1, 2, 3), (32, 64), (0, 1), (False, True))
        if name not in ("image", "mesh"):
            options = [(0, 0, 32, 1, False), (1, 1, 64, 0, False), (2, 3, 64, 1, False)]
        for mode, compressor, header, order, encode in options:
            if (mode == 0 and (compressor or encode)) or (encode and mode == 1) or (name == "mesh" and order):
                continue
            writer, path = make(), folder / f"{name}.{ending}"
            writer.SetFileName(str(path))
            writer.SetInputData(data)
            writer.SetDataMode(mode)
            writer.SetCompressorType(compressor)
            writer.SetBlockSize(128)
            (writer.SetHeaderTypeToUInt32 if header == 32 else writer.SetHeaderTypeToUInt64)()
            (writer.SetByteOrderToLittleEndian if order else writer.SetByteOrderToBigEndian)()
            writer.SetEncodeAppendedData(encode)
            assert writer.Write() == 1
            compare(path, pyvista.read(path))
        if data.n_points:
            # Written again: VTK reads the same.
            spile("-q", "convert", path, folder / f"again.{ending}", "--overwrite", codes=(0, 3))
            again = pyvista.read(folder / f"again.{ending}")
            compare(path, again)
            assert again.n_cells == data.n_cells and len(again.cell_data.keys()) >= len(data.cell_data.keys()) - 1, name
        found = reported(path)
        assert set(found) <= {"PointData/bits", "CellData/bits"}, found
        assert all("data type" in message for message in found.values()), found


def legacy(folder):
    """Legacy files of both versions, in text and binary, of VTK and meshio."""
    for name, data in datasets():
        decorate(data)
        path = folder / f"{name}.vtk"
        for binary, version in itertools.product((1, 2), (42, 51)):
            writer = vtk.vtkDataSetWriter()
            writer.SetFileName(str(path))
            writer.SetInputData(data)
            writer.SetFileType(binary)
            writer.SetFileVersion(version)
            assert writer.Write() == 1
            read = pyvista.read(path)
            compare(path, read)
        found = set(reported(path))
        assert found == ({"Cells/connectivity", "Cells/offsets", "Cells/types"} if name == "polyhedra" else set()), found


def of_meshio(folder):
    """Files of meshio."""
    points = np.random.default_rng(4).random((8, 3))
    cells = [("tetra", np.array([[0, 1, 2, 3], [4, 5, 6, 7]])), ("triangle", np.array([[0, 1, 2]]))]
    point_data = {"a": np.arange(8.0), "v": np.random.default_rng(5).random((8, 3))}
    mesh = meshio.Mesh(points, cells, point_data, {"c": [np.arange(2), np.array([7])]})
    for name, kind, options in [
        ("a.vtu", "vtu", {"binary": False}), ("b.vtu", "vtu", {"compression": "zlib"}),
        ("c.vtu", "vtu", {"compression": "lzma"}), ("d.vtu", "vtu", {"compression": None}),
        ("a.vtk", "vtk42", {"binary": True}), ("b.vtk", "vtk42", {"binary": False}),
        ("c.vtk", "vtk51", {"binary": True}), ("d.vtk", "vtk51", {"binary": False}),
    ]:
        path = folder / name
        meshio.write(path, mesh, kind, **options)
        compare(path, pyvista.read(path))


def vtkhdf(folder):
    """VTKHDF files of VTK: grids with coordinates, meshes with cells, blocks."""
    for name, data in datasets():
        # vtkHDFWriter has no polyhedra, bits and texts, and writes no cell data of planes.
        if name in ("plane", "polyhedra", "nothing", "no points"):
            continue
        decorate(data)
        for side in (data.GetPointData(), data.GetCellData()):
            side.RemoveArray("bits")
            side.RemoveArray("labels")
        data.field_data.clear()
        path = folder / f"{name}.vtkhdf"
        writer = vtk.vtkHDFWriter()
        writer.SetFileName(str(path))
        writer.SetInputData(data)
        assert writer.Write() == 1
        compare(path, pyvista.read(path))
        # The tree is that of an XML file, so that it is written as one.
        ending = {"UnstructuredGrid": "vtu", "PolyData": "vtp", "ImageData": "vti", "RectilinearGrid": "vtr"}
        if type(data).__name__ in ending:
            out = folder / f"of_{name}.{ending[type(data).__name__]}"
            spile("-q", "convert", path, out)
            found = pyvista.read(out)
            assert np.allclose(found.points, data.points, rtol=1e-14, atol=0), name
            assert found.n_cells == data.n_cells, name
            for section in "point_data", "cell_data":
                theirs, mine = getattr(data, section), getattr(found, section)
                assert set(mine.keys()) == set(theirs.keys()), (out, mine.keys())
                for key in theirs.keys():
                    same(np.asarray(mine[key]).ravel(), np.asarray(theirs[key]), (out, key))


class Moving(VTKPythonAlgorithmBase):
    """A source with three time steps, whose points and cells change."""

    def __init__(self, kind):
        super().__init__(nInputPorts=0, nOutputPorts=1, outputType=kind)
        self.kind = kind

    def at(self, time):
        made = pyvista.Sphere(theta_resolution=3 + int(2 * time), phi_resolution=5)
        made = made if self.kind == "vtkPolyData" else made.cast_to_unstructured_grid()
        made.point_data["value"] = time + np.arange(made.n_points)
        made.cell_data["number"] = np.arange(made.n_cells) * int(2 * time)
        return made

    def RequestInformation(self, request, inputs, outputs):
        outputs.GetInformationObject(0).Set(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS(), TIMES, len(TIMES))
        outputs.GetInformationObject(0).Set(vtk.vtkStreamingDemandDrivenPipeline.TIME_RANGE(), [TIMES[0], TIMES[-1]], 2)
        return 1

    def RequestData(self, request, inputs, outputs):
        info = outputs.GetInformationObject(0)
        time = info.Get(vtk.vtkStreamingDemandDrivenPipeline.UPDATE_TIME_STEP()) or TIMES[0]
        out = info.Get(vtk.vtkDataObject.DATA_OBJECT())
        out.ShallowCopy(self.at(time))
        out.GetInformation().Set(vtk.vtkDataObject.DATA_TIME_STEP(), time)
        return 1


def steps(folder):
    """Time steps in VTKHDF files of VTK are frames."""
    for kind in ("vtkPolyData", "vtkUnstructuredGrid"):
        source, path = Moving(kind), folder / f"steps_{kind}.vtkhdf"
        writer = vtk.vtkHDFWriter()
        writer.SetFileName(str(path))
        writer.SetInputConnection(source.GetOutputPort())
        writer.SetWriteAllTimeSteps(True)
        assert writer.Write() == 1
        COUNT["files"] += 1
        for frame, time in enumerate(TIMES):
            data = source.at(time)
            cells = data.GetPolys() if kind == "vtkPolyData" else data.GetCells()
            section = "Polys" if kind == "vtkPolyData" else "Cells"
            for name, theirs in {
                "PointData/value": data.point_data["value"], "CellData/number": data.cell_data["number"], "Points": data.points,
                f"{section}/connectivity": vtk_to_numpy(cells.GetConnectivityArray()),
                f"{section}/offsets": vtk_to_numpy(cells.GetOffsetsArray())[1:],
            }.items():
                found = json.loads(spile("cat", path, name, "--frame", frame, "--json"))
                same(np.ravel(np.array(found["values"])), theirs, (path, name, frame))
        shown = json.loads(spile("info", path, "--json"))
        assert shown["frames"]["count"] == len(TIMES), shown


def empty(folder):
    """Arrays without elements do not keep VTK from reading the others."""
    np.savez(folder / "empty.npz", b=np.arange(4.0), z=np.zeros((3, 0, 2)), e=np.zeros(0))
    spile("-q", "convert", folder / "empty.npz", folder / "empty.vtkhdf")
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(folder / "empty.vtkhdf"))
    reader.Update()
    assert reader.GetErrorCode() == 0
    read = pyvista.wrap(reader.GetOutput())
    assert {name: read[name].n_points for name in read.keys()} == {"b": 4, "z": 0, "e": 0}
    assert np.array_equal(read["b"].point_data["b"], np.arange(4.0))


def joined(folder):
    """Parallel files, nested blocks and collections."""
    image = decorate(pyvista.ImageData(dimensions=(5, 3, 4), spacing=(0.5, 1, 2)))
    lines = decorate(image.cast_to_rectilinear_grid())
    curved, mesh = decorate(image.cast_to_structured_grid()), decorate(image.cast_to_unstructured_grid())
    surface = decorate(pyvista.Sphere(theta_resolution=6, phi_resolution=6))
    for data, ending, make in [
        (image, "vti", vtk.vtkXMLPImageDataWriter), (lines, "vtr", vtk.vtkXMLPRectilinearGridWriter),
        (curved, "vts", vtk.vtkXMLPStructuredGridWriter), (mesh, "vtu", vtk.vtkXMLPUnstructuredGridWriter),
        (surface, "vtp", vtk.vtkXMLPPolyDataWriter),
    ]:
        writer, path = make(), folder / f"parallel_{ending}.p{ending}"
        writer.SetFileName(str(path))
        writer.SetInputData(data)
        writer.SetNumberOfPieces(3)
        writer.SetStartPiece(0)
        writer.SetEndPiece(2)
        assert writer.Write() == 1
        out = folder / "out.h5"
        spile("-q", "convert", path, out, "--overwrite", codes=(0, 3))
        with h5py.File(out) as file:
            for k in range(3):
                piece = folder / f"parallel_{ending}_{k}.{ending}"
                piece = piece if piece.exists() else folder / f"parallel_{ending}" / piece.name
                if piece.exists():
                    compare(path, pyvista.read(piece), f"Piece{k}/", file)
    inner = pyvista.MultiBlock({"deep": surface, "none": None, "again": pyvista.MultiBlock({"x": lines})})
    path = folder / "nested.vtm"
    pyvista.MultiBlock({"first": image, "inner": inner}).save(path)
    out = folder / "out.h5"
    spile("-q", "convert", path, out, "--overwrite", codes=(0, 3))
    with h5py.File(out) as file:
        for name, data in [("first", image), ("inner/deep", surface), ("inner/again/x", lines)]:
            compare(path, data, name + "/", file)
    # A collection with two parts per time.
    entries = []
    for time, part in itertools.product((0.5, 1.5), (0, 1)):
        name = f"part_{time}_{part}.vtp"
        made = surface.copy()
        made.point_data["value"] = np.full(made.n_points, 10 * time + part)
        made.save(folder / name)
        entries.append(f'<DataSet timestep="{time}" part="{part}" file="{name}"/>')
    path = folder / "parts.pvd"
    path.write_text(f'<VTKFile type="Collection"><Collection>{"".join(entries)}</Collection></VTKFile>')
    done = subprocess.run([SPILE, "ls", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "several files at one time are not supported" in done.stderr, done


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    for part in (xml, legacy, vtkhdf, steps, empty, of_meshio, joined):
        part(folder)
    print(f"{COUNT['arrays']} arrays of {COUNT['files']} files agree")


main()
