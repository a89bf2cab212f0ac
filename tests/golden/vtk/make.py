"""The golden files: small grids, points and meshes by VTK itself (through pyvista) and by meshio, in every
way in which they write numbers. pip install pyvista meshio; python make.py
"""

import json
import pathlib

import meshio
import numpy as np
import pyvista
import vtk

HERE = pathlib.Path(__file__).resolve().parent


def save(data, writer, name, mode, header="UInt64", compress=False, big=False, encode=False):
    out = getattr(vtk, writer)()
    out.SetFileName(str(HERE / name))
    out.SetInputData(data)
    {"ascii": out.SetDataModeToAscii, "binary": out.SetDataModeToBinary, "appended": out.SetDataModeToAppended}[mode]()
    (out.SetHeaderTypeToUInt64 if header == "UInt64" else out.SetHeaderTypeToUInt32)()
    out.SetCompressor(vtk.vtkZLibDataCompressor() if compress else None)
    out.SetBlockSize(64)
    (out.SetByteOrderToBigEndian if big else out.SetByteOrderToLittleEndian)()
    out.SetEncodeAppendedData(encode)
    assert out.Write() == 1


def save_legacy(data, name, binary, version):
    out = vtk.vtkDataSetWriter()
    out.SetFileName(str(HERE / name))
    out.SetInputData(data)
    out.SetFileType(2 if binary else 1)
    out.SetFileVersion(version)
    assert out.Write() == 1


def fill(data):
    points, cells = data.n_points, data.n_cells
    data.point_data["temperature"] = np.linspace(-1.5, 300.25, points)
    data.point_data["velocity"] = (np.arange(points * 3, dtype="f4") / 7).reshape(points, 3)
    data.point_data["number"] = np.arange(points, dtype="i2") - 5
    data.cell_data["material"] = np.arange(cells, dtype="u1")
    data.cell_data["energy"] = np.arange(cells, dtype="f8") ** 2
    data.field_data["TimeValue"] = np.array([0.125])
    data.field_data["table"] = np.arange(6, dtype="i8").reshape(3, 2)
    return data


image = fill(pyvista.ImageData(dimensions=(4, 3, 2), origin=(0.1, -2.0, 5.0), spacing=(0.3, 0.5, 1e-9)))
for name, words in {
    "image_ascii.vti": dict(mode="ascii"),
    "image_base64.vti": dict(mode="binary"),
    "image_base64_zlib32.vti": dict(mode="binary", header="UInt32", compress=True),
    "image_raw.vti": dict(mode="appended"),
    "image_raw_zlib.vti": dict(mode="appended", compress=True),
    "image_appended_base64.vti": dict(mode="appended", encode=True, header="UInt32"),
    "image_appended_base64_zlib.vti": dict(mode="appended", encode=True, compress=True),
    "image_raw_big.vti": dict(mode="appended", big=True),
    "image_base64_zlib_big.vti": dict(mode="binary", big=True, compress=True),
}.items():
    save(image, "vtkXMLImageDataWriter", name, **words)
flat = pyvista.ImageData(dimensions=(5, 3, 1), spacing=(2.0, 3.0, 1.0))
flat.point_data["height"] = np.arange(15.0)
save(flat, "vtkXMLImageDataWriter", "image_flat.vti", "appended")

x, y, z = np.array([0.0, 1.0, 3.0, 7.0]), np.array([-1.0, 0.0, 4.0]), np.array([1.0, 1.5], "f8")
lines = fill(pyvista.RectilinearGrid(x, y, z))
save(lines, "vtkXMLRectilinearGridWriter", "lines_raw.vtr", "appended")
save(lines, "vtkXMLRectilinearGridWriter", "lines_ascii.vtr", "ascii")
save(lines, "vtkXMLRectilinearGridWriter", "lines_zlib_big.vtr", "appended", compress=True, big=True)
save(fill(lines.cast_to_structured_grid()), "vtkXMLStructuredGridWriter", "curved.vts", "appended")

cloud = pyvista.PolyData(np.arange(30.0).reshape(10, 3) ** 1.5)
save(fill(cloud), "vtkXMLPolyDataWriter", "cloud.vtp", "appended")
save(fill(pyvista.Cube().clean()), "vtkXMLPolyDataWriter", "cube_base64.vtp", "binary", compress=True)
mesh = fill(pyvista.UnstructuredGrid(image.cast_to_unstructured_grid()))
save(mesh, "vtkXMLUnstructuredGridWriter", "mesh_raw.vtu", "appended")
save(mesh, "vtkXMLUnstructuredGridWriter", "mesh_zlib.vtu", "appended", compress=True)

triangles = meshio.Mesh(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.5]]),
    [("triangle", np.array([[0, 1, 2], [1, 3, 2]]))],
    point_data={"u": np.array([0.5, 1.5, -2.5, 1e300])},
    cell_data={"region": [np.array([3, 4])]},
)
meshio.write(HERE / "meshio_ascii.vtu", triangles, binary=False)
meshio.write(HERE / "meshio_zlib.vtu", triangles, compression="zlib")
meshio.write(HERE / "meshio_plain.vtu", triangles, compression=None)

colored = image.copy()
colors = vtk.vtkUnsignedCharArray()
colors.SetName("colors")
colors.SetNumberOfComponents(3)
bits = vtk.vtkBitArray()
bits.SetName("bits")
for k in range(colored.n_points):
    colors.InsertNextTuple3(k, 2 * k, 255 - k)
    bits.InsertNextValue(k % 3 == 0)
colored.GetPointData().SetScalars(colors)
colored.GetPointData().AddArray(bits)
colored.GetPointData().GetArray("velocity").GetInformation().Set(vtk.vtkDataArray.UNITS_LABEL(), "m/s")
colored.GetPointData().GetArray("velocity").SetComponentName(0, "along x")
save_legacy(colored, "legacy_image_ascii.vtk", False, 51)
save_legacy(colored, "legacy_image_binary.vtk", True, 51)
save_legacy(lines, "legacy_lines.vtk", True, 42)
save_legacy(fill(lines.cast_to_structured_grid()), "legacy_curved.vtk", False, 42)
save_legacy(mesh, "legacy_mesh_42.vtk", True, 42)
save_legacy(mesh, "legacy_mesh_51.vtk", True, 51)
save_legacy(fill(pyvista.Cube().clean()), "legacy_cube_ascii.vtk", False, 42)
meshio.write(HERE / "legacy_meshio.vtk", triangles, "vtk51", binary=False)

# What VTK reads back, for the manifest.
manifest = {}
for path in sorted(HERE.glob("*.vt?")):
    data, found = pyvista.read(path), {}
    for section, arrays in ("PointData", data.point_data), ("CellData", data.cell_data), ("FieldData", data.field_data):
        for name in arrays.keys():
            found[f"{section}/{name}"] = np.asarray(arrays[name]).ravel().astype("f8").tolist()
    found["points"] = np.asarray(data.points).ravel().astype("f8").tolist()
    manifest[path.name] = found
lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in manifest.items()]
(HERE / "manifest.json").write_text("{" + ",\n".join(lines) + "}\n")
print(len(manifest), "files")
