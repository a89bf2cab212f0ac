//! Fields and atoms in cube and XSF files.

#[path = "../../../tests/support/losses.rs"]
#[allow(dead_code)]
mod losses;

use std::path::PathBuf;

use spile_core::semantics::{Centring, Quantity};
use spile_core::{
    ArrayDesc, Coord, DType, Dataset, Format, Layout, Limits, OpenOptions, Order, ROOT, Role,
    Semantics, Shape, Source, Tree,
};
use spile_cube::{Cube, Xsf};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

fn open(format: &dyn Format, path: &std::path::Path) -> Dataset {
    Dataset::open_path(format, path, &OpenOptions::default()).unwrap()
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A density of 2 x 3 x 2 points on a skewed cell in bohr with two atoms, first index fastest.
fn crystal() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let cell = [4.0, 0.0, 0.0, 1.0, 6.0, 0.0, 0.0, 0.5, 8.0];
    let desc = ArrayDesc::inline(DType::F64, Shape::new([3, 3]), bytes(&cell));
    let cell =
        tree.add_array(ROOT, "cell", desc.with_semantics(Semantics::role(Role::Cell))).unwrap();
    tree.push_attr(cell, "units", "bohr").unwrap();
    let mut meaning = Semantics::role(Role::Points);
    (meaning.point_set, meaning.quantity) = (Some("atoms".into()), Some(Quantity::Position));
    let desc =
        ArrayDesc::inline(DType::F64, Shape::new([2, 3]), bytes(&[0.0, 0.0, 0.0, 1.0, 1.5, 2.0]));
    let positions =
        tree.add_array(ROOT, "positions", desc.with_semantics(meaning.clone())).unwrap();
    tree.push_attr(positions, "units", "bohr").unwrap();
    (meaning.mesh, meaning.quantity) = (Some(positions), Some(Quantity::Species));
    let desc = ArrayDesc::inline(DType::text(3), Shape::new([2]), *b"Fe1O  ");
    tree.add_array(ROOT, "species", desc.with_semantics(meaning)).unwrap();
    let values: Vec<f64> = (0..12).map(|k| f64::from(k) / 3.0).collect();
    let layout = Layout::Inline(bytes(&values).into(), Order::F);
    let mut desc = ArrayDesc::new(DType::F64, Shape::new([2, 3, 2]), layout);
    desc.coords = [2.0, 3.0, 2.0].map(|n| Coord::Uniform { start: 0.0, step: 1.0 / n }).to_vec();
    desc.dims = ["a1", "a2", "a3"].map(String::from).to_vec();
    let mut meaning = Semantics::role(Role::Field);
    (meaning.mesh, meaning.centring) = (Some(cell), Some(Centring::Node));
    let id = tree.add_array(ROOT, "density", desc.with_semantics(meaning)).unwrap();
    tree.push_attr(id, "units", "e/Bohr^3").unwrap();
    tree.push_attr(id, "long_name", "electron density").unwrap();
    Dataset::new(Source::memory([]), tree)
}

fn write(format: &dyn Format, name: &str) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join(name);
    let overwrite = spile_core::Overwrite::Never;
    spile_core::format::write_file(format, &crystal(), &path, overwrite).unwrap();
    (temp, path)
}

#[test]
fn a_cube_has_the_points_of_the_field_in_bohr() {
    let (_temp, path) = write(&Cube, "a.cube");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "density [e/Bohr^3]");
    assert_eq!(
        lines[2..6],
        ["2 0.0 0.0 0.0", "2 2.0 0.0 0.0", "3 0.3333333333333333 2.0 0.0", "2 0.0 0.25 4.0"]
    );
    assert_eq!(lines[6..8], ["26 26.0 0.0 0.0 0.0", "8 8.0 1.0 1.5 2.0"]);
    // Third index fastest: 0, 6, 2, 8 of the first plane.
    assert_eq!(lines[8], " 0.0 2.0");
    assert_eq!(lines[9], " 0.6666666666666666 2.6666666666666665");
    let back = open(&Cube, &path);
    let own: Vec<f64> = crystal().array("density").unwrap().read("...").unwrap();
    assert_eq!(back.array("density").unwrap().read::<Vec<f64>>("...").unwrap(), own);
    assert_eq!(back.atoms(0).unwrap().unwrap().species.unwrap().names, ["Fe", "O"]);
    assert_eq!(back.cell(0).unwrap().unwrap().vectors[2], [0.0, 0.5, 8.0]);
}

#[test]
fn a_general_grid_of_xsf_repeats_the_first_points() {
    let (_temp, path) = write(&Xsf, "a.xsf");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\ndensity [e/Bohr^3]\nBEGIN_DATAGRID_3D_density\n3 4 3\n 0.0 0.0 0.0\n"),
        "{text}"
    );
    let grid = text.split("BEGIN_DATAGRID_3D_density").nth(1).unwrap();
    let values: Vec<f64> = grid
        .split("END_DATAGRID")
        .next()
        .unwrap()
        .split_whitespace()
        .skip(15)
        .map(|word| word.parse().unwrap())
        .collect();
    let at = |i: usize, j: usize, k: usize| values[(k * 4 + j) * 3 + i];
    assert_eq!(values.len(), 36);
    assert_eq!([at(0, 0, 0), at(2, 0, 0), at(0, 3, 0), at(2, 3, 2)], [0.0; 4]);
    assert_eq!([at(1, 2, 1), at(1, 2, 0)], [11.0 / 3.0, 5.0 / 3.0]);
    let back = open(&Xsf, &path);
    let own: Vec<f64> = crystal().array("density").unwrap().read("...").unwrap();
    assert_eq!(back.array("density").unwrap().read::<Vec<f64>>("...").unwrap(), own);
    let bohr = 0.529_177_210_544;
    assert_eq!(back.cell(0).unwrap().unwrap().vectors[0], [4.0 * bohr, 0.0, 0.0]);
}

#[test]
fn everything_that_is_not_kept_is_declared() {
    let content = crystal();
    for (format, name) in [(&Cube as &dyn Format, "a.cube"), (&Xsf, "a.xsf")] {
        let writer = spile_core::format::writer_of(format).unwrap();
        let options = spile_core::format::WriteOptions::default();
        let lost = writer.losses(format, &content, name.as_ref(), &options).unwrap();
        let about = |path: &str, word: &str| {
            lost.iter().any(|loss| loss.path == path && format!("{loss:?}").contains(word))
        };
        assert!(about("density", "long_name") && about("species", "Values"), "{lost:?}");
    }
    let empty = Dataset::new(Source::memory([]), Tree::new(&Limits::default()));
    losses::assert_losses_are_declared(&Cube, &empty, "a.cube");
}

#[test]
fn files_of_ase_have_the_values_cell_and_atoms_that_it_wrote() {
    let expected: Vec<f64> = (0..24).map(|k| f64::from(k) / 8.0 - 1.0).collect();
    let cube = open(&Cube, &golden("cube/ase.cube"));
    assert_eq!(cube.array("values").unwrap().read::<Vec<f64>>("...").unwrap(), expected);
    let xsf = open(&Xsf, &golden("xsf/ase.xsf"));
    let [(_, _, field)] =
        &xsf.arrays().filter(|(_, _, desc)| desc.shape.rank() == 3).collect::<Vec<_>>()[..]
    else {
        panic!()
    };
    assert_eq!(xsf.open_array(field).unwrap().read::<Vec<f64>>("...").unwrap(), expected);
    for file in [&cube, &xsf] {
        assert_eq!(file.warnings(), []);
        let atoms = file.atoms(0).unwrap().unwrap();
        assert_eq!(atoms.species.unwrap().names, ["Si", "O"]);
        let cell = file.cell(0).unwrap().unwrap();
        let unit = if cell.units.as_deref() == Some("bohr") { 0.529_177_210_544 } else { 1.0 };
        let near = |a: f64, b: f64| (a * unit - b).abs() < 1e-5;
        assert!(near(cell.vectors[1][0], 0.5) && near(cell.vectors[2][2], 4.0), "{cell:?}");
        let second: Vec<f64> = atoms.positions.read("1, :").unwrap();
        assert!(near(second[0], 0.5) && near(second[2], 1.5), "{second:?}");
    }
    let orbitals = open(&Cube, &golden("cube/orbitals.cube"));
    let values = orbitals.array("values").unwrap();
    assert_eq!(values.shape().lengths(), [2, 1, 2, 2]);
    assert_eq!(values.read::<Vec<f64>>("1, 0, 1, :").unwrap(), [4.0, -4.0]);
}
