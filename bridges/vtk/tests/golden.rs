//! Values of the golden files compared with those that VTK reads.

use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::format::OpenOptions;
use spile_core::layout::Coord;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::testkit::Json;
use spile_core::tree::{Attrs, Value};
use spile_vtk::Vtk;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/vtk")
}

fn open(name: &str) -> Dataset {
    Dataset::open_path(&Vtk, folder().join(name), &OpenOptions::default()).unwrap()
}

fn values(reader: &Dataset, path: &str) -> Vec<f64> {
    let node = reader.tree().node(reader.tree().find(path).unwrap());
    let desc = node.array.as_ref().unwrap();
    let array = reader.open_array(desc).unwrap();
    array.read_f64(&Selection::all(), Axes::Stored).unwrap()
}

/// The coordinates of a dimension.
fn points(reader: &Dataset, coord: &Coord, count: u64) -> Vec<f64> {
    match coord {
        Coord::None => (0..count).map(|k| k as f64).collect(),
        Coord::Uniform { start, step } => (0..count).map(|k| start + k as f64 * step).collect(),
        Coord::Node(id) => values(reader, &reader.tree().node(*id).path),
    }
}

#[test]
fn every_array_has_the_values_that_vtk_reads() {
    let text = std::fs::read_to_string(folder().join("manifest.json")).unwrap();
    let manifest: Json = text.parse().unwrap();
    let mut seen = 0;
    for (file, arrays) in manifest.as_object().unwrap() {
        let reader = open(file);
        for (path, expected) in arrays.as_object().unwrap() {
            let expected: Vec<f64> =
                expected.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            let found = match (path.as_str(), reader.tree().at("Points")) {
                ("points", Some(_)) => values(&reader, "Points"),
                ("points", None) => {
                    // Points of grids, from the coordinates of an array on them.
                    let name = if file.contains("flat") { "height" } else { "number" };
                    let id = reader.tree().find(&format!("PointData/{name}")).unwrap();
                    let desc = reader.tree().node(id).array.clone().unwrap();
                    let mut lines: Vec<Vec<f64>> = desc
                        .coords
                        .iter()
                        .zip(desc.shape.lengths())
                        .map(|(coord, n)| points(&reader, coord, *n))
                        .collect();
                    lines.resize(3, vec![0.0]);
                    let mut all = Vec::new();
                    for z in &lines[2] {
                        for y in &lines[1] {
                            for x in &lines[0] {
                                all.extend([*x, *y, *z]);
                            }
                        }
                    }
                    all
                }
                (path, _) => values(&reader, path),
            };
            // VTK rounds points of images differently.
            let near = |(a, b): (&f64, &f64)| {
                a == b || path == "points" && (a - b).abs() <= 1e-7 * b.abs()
            };
            let same = found.len() == expected.len() && found.iter().zip(&expected).all(near);
            assert!(same, "{file} {path}\n{found:?}\n{expected:?}");
            seen += 1;
        }
    }
    assert!(seen > 120, "{seen}");
}

#[test]
fn arrays_on_points_and_cells_have_coordinates() {
    let reader = open("image_raw.vti");
    let tree = reader.tree();
    let desc = |path: &str| tree.node(tree.find(path).unwrap()).array.clone().unwrap();
    let temperature = desc("PointData/temperature");
    assert_eq!((temperature.shape.lengths(), temperature.dims.len()), (&[4, 3, 2][..], 3));
    assert_eq!(temperature.coords[0], Coord::Uniform { start: 0.1, step: 0.3 });
    let energy = desc("CellData/energy");
    assert_eq!(energy.shape.lengths(), [3, 2, 1]);
    assert_eq!(energy.coords[1], Coord::Uniform { start: -2.0 + 0.25, step: 0.5 });
    assert_eq!(desc("PointData/velocity").dims, ["component", "x", "y", "z"]);
    assert_eq!(*tree.attrs(), Attrs::from([("time", Value::Float(0.125))]));
    for name in ["lines_raw.vtr", "lines_ascii.vtr", "lines_zlib_big.vtr"] {
        let lines = open(name);
        let tree = lines.tree();
        let energy = tree.node(tree.find("CellData/energy").unwrap()).array.clone().unwrap();
        assert_eq!(points(&lines, &energy.coords[0], 3), [0.5, 2.0, 5.0], "{name}");
    }
    let flat = open("image_flat.vti");
    let height = flat.tree().find("PointData/height").unwrap();
    let height = flat.tree().node(height).array.clone().unwrap();
    assert_eq!(height.shape.lengths(), [5, 3]);
}

#[test]
fn legacy_files_have_units_coordinates_and_cells() {
    for name in ["legacy_image_ascii.vtk", "legacy_image_binary.vtk"] {
        let image = open(name);
        assert_eq!(image.array("PointData/velocity").unwrap().units(), Some("m/s"));
        let x = image.array("PointData/number").unwrap().coord("x").unwrap().read().unwrap();
        assert_eq!(x[..2], [0.1, 0.1 + 0.3]);
        assert_eq!(values(&image, "PointData/bits")[..4], [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(*image.tree().attrs(), Attrs::from([("time", Value::Float(0.125))]));
    }
    // Both versions of the list of cells, and the XML file of the same mesh.
    let mesh = open("mesh_raw.vtu");
    for name in ["legacy_mesh_42.vtk", "legacy_mesh_51.vtk"] {
        for array in ["Cells/connectivity", "Cells/offsets", "Cells/types"] {
            assert_eq!(values(&open(name), array), values(&mesh, array), "{name} {array}");
        }
    }
}
