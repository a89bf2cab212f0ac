//! Surfaces of grids and obstacles, compared with those found by a loop over all cells.

use std::collections::BTreeSet;
use std::path::Path;

use spile_core::Dataset;
use spile_core::OpenOptions;
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{BlockType, Mesh, Meta, PlainVariable, Sdf, Stitched, write_file};

#[path = "support/blocks.rs"]
mod blocks;
use blocks::{doubles, mesh};
#[path = "support/opened.rs"]
mod opened;
use opened::derived as open;

const CELLS: [usize; 3] = [4, 5, 3];
const X: [f64; 5] = [0.0, 1.0, 3.0, 6.0, 10.0];
const Y: [f64; 6] = [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0];
const Z: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// Number of the obstacle of a cell: 1 is a bar along x inside the grid, 2 a corner of the grid.
fn solid(i: usize, j: usize, k: usize) -> i32 {
    match (i, j, k) {
        (1..=2, 2, 1) => 1,
        (3, 4, 2) => 2,
        _ => 0,
    }
}

fn cells() -> impl Iterator<Item = [usize; 3]> {
    let [nx, ny, nz] = CELLS;
    (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])))
}

fn density(cell: [usize; 3]) -> f64 {
    let [i, j, k] = cell;
    (100 * i + 10 * j + k) as f64
}

fn variable(dims: &[u64], stagger: i32) -> Meta {
    Meta::PlainVariable(PlainVariable {
        mult: 2.0,
        units: "1/m^3".into(),
        mesh_id: "grid".into(),
        dims: dims.to_vec(),
        stagger,
    })
}

fn write(path: &Path, order: ByteOrder, obstacles: bool) {
    let header = FileHeader { order, ..FileHeader::default() };
    write_file(path, &header, Overwrite::Never, |file| {
        let nodes: Vec<u8> =
            X.iter().chain(&Y).chain(&Z).flat_map(|v: &f64| v.to_le_bytes()).collect();
        let meta = Meta::Mesh(Mesh { mults: vec![1.0, 10.0, 1.0], ..mesh(&[5, 6, 4]) });
        let (variable_type, real) = (BlockType::PlainVariable, DataType::Real8);
        file.block("grid", "Grid", BlockType::PlainMesh, real, &meta, &nodes)?;
        let dims = CELLS.map(|n| n as u64);
        let data: Vec<u8> = cells().flat_map(|cell| density(cell).to_le_bytes()).collect();
        let name = "Derived/Number_Density";
        file.block("ne", name, variable_type, real, &variable(&dims, 0), &data)?;
        // Staggered fields have no values on surfaces, as in the C library.
        file.block("ex", "Ex", variable_type, real, &variable(&dims, 1), &doubles(60))?;
        if obstacles {
            let numbers = cells().map(|[i, j, k]| solid(i, j, k));
            let numbers: Vec<u8> = numbers.flat_map(i32::to_le_bytes).collect();
            let kind = DataType::Integer4;
            let Meta::PlainVariable(mut own) = variable(&dims, 0) else { unreachable!() };
            own.mult = 1.0;
            let own = Meta::PlainVariable(own);
            file.block("obst", "Obstacles", variable_type, kind, &own, &numbers)?;
            let group = Stitched {
                mesh_id: "obst".into(),
                material_id: "ne".into(),
                names: vec!["Bar".into(), "Corner".into()],
                ..Stitched::default()
            };
            let kind = BlockType::StitchedObstacleGroup;
            let group = Meta::Stitched(group);
            file.block("ob", "Ob", kind, DataType::Other, &group, &[])?;
        }
        Ok(())
    })
    .unwrap();
}

fn values(view: &Dataset, name: &str) -> (Vec<u64>, Vec<f64>) {
    let array = view.array(name).unwrap();
    let values = array.read_f64(&":".parse().unwrap(), Axes::Order(Order::C));
    let values =
        values.or_else(|_| array.read_f64(&":, :".parse().unwrap(), Axes::Order(Order::C)));
    (array.shape().lengths().to_vec(), values.unwrap())
}

/// Unordered corners and value of a face.
type Face = (BTreeSet<[i64; 3]>, i64);

/// The faces of a surface in the tree.
fn found(view: &Dataset, surface: &str) -> Vec<Face> {
    let (_, points) = values(view, &format!("{surface}/vertices"));
    let (shape, corners) = values(view, &format!("{surface}/faces"));
    let (_, field) = values(view, &format!("{surface}/Derived/Number_Density"));
    assert_eq!(shape, [field.len() as u64, 4]);
    let point = |n: &f64| {
        let at = *n as usize * 3;
        [points[at], points[at + 1], points[at + 2]].map(|v| (v * 100.0) as i64)
    };
    let faces = corners.chunks(4).map(|corners| corners.iter().map(point).collect());
    let all: Vec<Face> = faces.zip(field.iter().map(|v| *v as i64)).collect();
    let used: BTreeSet<i64> = corners.iter().map(|n| *n as i64).collect();
    assert_eq!(used.len(), points.len() / 3, "every vertex is used and unique");
    all
}

/// The lower or upper face of `cell` in a direction, with twice its density.
fn face(cell: [usize; 3], direction: usize, upper: bool, value: f64) -> Face {
    let mut corners = BTreeSet::new();
    for corner in 0..8_usize {
        let bits = [0, 1, 2].map(|d| corner >> d & 1);
        if (bits[direction] == 1) == upper {
            let at = [0, 1, 2].map(|d| cell[d] + bits[d]);
            let point = [X[at[0]], Y[at[1]] * 10.0, Z[at[2]]];
            corners.insert(point.map(|v| (v * 100.0) as i64));
        }
    }
    (corners, (2.0 * value) as i64)
}

#[test]
fn faces_separate_obstacles_and_free_cells_and_have_the_values_of_the_free_cells() {
    let temp = tempfile::tempdir().unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let path = temp.path().join(format!("{order:?}.sdf"));
        write(&path, order, true);
        let view = open(&path, Limits::default());
        assert!(view.warnings().is_empty(), "{:?}", view.warnings());
        for (number, name, count) in [(1, "Bar", 10), (2, "Corner", 3)] {
            let mut expected = Vec::new();
            for cell in cells().filter(|[i, j, k]| solid(*i, *j, *k) == 0) {
                for direction in 0..3 {
                    for upper in [false, true] {
                        let mut next = cell;
                        next[direction] = match upper {
                            true => cell[direction] + 1,
                            false if cell[direction] == 0 => continue,
                            false => cell[direction] - 1,
                        };
                        if next[direction] < CELLS[direction]
                            && solid(next[0], next[1], next[2]) == number
                        {
                            expected.push(face(cell, direction, upper, density(cell)));
                        }
                    }
                }
            }
            let mut faces = found(&view, &format!("Surface Values/{name}"));
            assert_eq!(faces.len(), count);
            faces.sort();
            expected.sort();
            assert_eq!(faces, expected);
            let by_id = values(&view, &format!("obmsh{name}/ne"));
            assert_eq!(by_id.0, [count as u64]);
        }
        // The surface of the grid without the three faces of the solid corner.
        let mut expected = Vec::new();
        for cell in cells().filter(|[i, j, k]| solid(*i, *j, *k) == 0) {
            for direction in 0..3 {
                for upper in [false, true] {
                    let end = if upper { CELLS[direction] - 1 } else { 0 };
                    if cell[direction] == end {
                        expected.push(face(cell, direction, upper, density(cell)));
                    }
                }
            }
        }
        let mut faces = found(&view, "Surface Values/boundary");
        assert_eq!(faces.len(), 2 * (4 * 5 + 5 * 3 + 4 * 3) - 3);
        faces.sort();
        expected.sort();
        assert_eq!(faces, expected);
    }
}

#[test]
fn sides_are_layers_of_fields_with_the_remaining_coordinates() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("sides.sdf");
    write(&path, ByteOrder::Big, false);
    let view = open(&path, Limits::default());
    for (direction, letter) in ["x", "y", "z"].into_iter().enumerate() {
        for (end, at) in [("min", 0), ("max", CELLS[direction] - 1)] {
            let (shape, found) = values(&view, &format!("boundary_{letter}_{end}/ne"));
            let left = [0, 1, 2].into_iter().filter(|d| *d != direction).collect::<Vec<_>>();
            assert_eq!(shape, [CELLS[left[0]] as u64, CELLS[left[1]] as u64]);
            let mut expected = Vec::new();
            for a in 0..CELLS[left[0]] {
                for b in 0..CELLS[left[1]] {
                    let mut cell = [at; 3];
                    (cell[left[0]], cell[left[1]]) = (a, b);
                    expected.push(2.0 * density(cell));
                }
            }
            assert_eq!(found, expected, "{letter} {end}");
            let path = format!("Surface Values/boundary_{letter}_{end}/Derived/Number_Density");
            let desc = view.tree().node(view.tree().find(&path).unwrap()).array.clone().unwrap();
            assert_eq!(desc.dims, left.iter().map(|d| ["X", "Y", "Z"][*d]).collect::<Vec<_>>());
        }
    }
    let names = view.tree().iter().filter(|(_, n)| n.path.contains("boundary") && n.name == "Ex");
    assert_eq!(names.count(), 0);
    assert_eq!(found(&view, "Surface Values/boundary").len(), 2 * (4 * 5 + 5 * 3 + 4 * 3));
}

#[test]
fn surfaces_over_the_memory_limit_are_omitted_and_reported() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("budget.sdf");
    write(&path, ByteOrder::Little, true);
    let view = open(&path, Limits::default().with_memory(96 << 10));
    let findings: Vec<_> = view.warnings().iter().map(|f| (f.code, f.object.as_deref())).collect();
    assert_eq!(findings, [("sdf-047", Some("boundary"))]);
    assert_eq!(values(&view, "Surface Values/Bar/Derived/Number_Density").0, [10]);
    assert!(view.tree().at("Surface Values/boundary_x_min").is_some());
}

#[test]
fn a_boundary_under_any_memory_limit_has_no_faces_of_obstacle_cells() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("limits.sdf");
    write(&path, ByteOrder::Little, true);
    let options = |memory| OpenOptions::with_limits(memory).with_derived(true);
    let all = found(&open(&path, Limits::default()), "Surface Values/boundary");
    let (mut present, mut alone) = (0, 0);
    for kib in 1..300 {
        let options = options(Limits::default().with_memory(kib << 10));
        let Ok(view) = Dataset::open(&Sdf, Source::open(&path).unwrap(), &options) else {
            continue;
        };
        if view.tree().at("Surface Values/boundary/faces").is_some() {
            let (shape, _) = values(&view, "Surface Values/boundary/faces");
            assert_eq!(shape, [all.len() as u64, 4], "{kib} KiB");
            present += 1;
            alone += u32::from(view.tree().at("Surface Values/Bar").is_none());
        }
    }
    assert!(present > 10, "{present} {alone}");
}

#[test]
fn a_wrong_byte_never_panics_with_surfaces() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("original.sdf");
    write(&path, ByteOrder::Little, true);
    let original = std::fs::read(&path).unwrap();
    let limits = Limits::default().with_memory(4 << 20);
    let mut opened = 0;
    for at in 0..original.len() {
        for value in [0, 0xff] {
            let mut bytes = original.clone();
            bytes[at] = value;
            let options = OpenOptions::with_limits(limits).with_derived(true);
            let Ok(view) = Dataset::open(&Sdf, Source::memory(bytes), &options) else { continue };
            opened += 1;
            for (id, ..) in view.arrays() {
                // The result does not matter.
                let array = view.array_at(id);
                let _ = array.and_then(|array| array.read_f64(&Selection::all(), Axes::Stored));
            }
        }
    }
    assert!(opened > 100, "{opened}");
}
