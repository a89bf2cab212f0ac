//! Meaning of the arrays of a file.

use std::path::Path;

use spile_core::semantics::{Centring, Component, Role};
use spile_core::{Array, Dataset, OpenOptions};
use spile_sdf::Sdf;

#[path = "support/opened.rs"]
mod opened;

fn open(name: &str) -> Dataset {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf");
    Dataset::open_path(&Sdf, folder.join(name), &OpenOptions::default()).unwrap()
}

fn mesh(array: &Array) -> Option<String> {
    let tree = array.dataset().tree();
    array.semantics().mesh.map(|id| tree.node(id).path.clone())
}

fn component(array: &Array) -> Option<(&str, u8)> {
    let component = array.semantics().component.as_ref();
    component.map(|Component { vector, index }| (vector.as_str(), *index))
}

#[test]
fn fields_know_their_mesh_centring_and_vector() {
    let file = open("epoch3d_0000.sdf");
    let cases = [
        ("Electric Field/Ex", Centring::Face(0), ("E", 0)),
        ("Electric Field/Ez", Centring::Face(2), ("E", 2)),
        ("Magnetic Field/Bz", Centring::Edge(2), ("B", 2)),
    ];
    for (path, centring, vector) in cases {
        let array = file.array(path).unwrap();
        assert_eq!(array.semantics().role, Role::Field);
        assert_eq!(mesh(&array).as_deref(), Some("Grid/Grid"));
        assert_eq!((array.semantics().centring, component(&array)), (Some(centring), Some(vector)));
        assert_eq!((array.long_name(), array.units().is_some()), (Some(path), true));
    }
    let axis = file.array("Grid/Grid/X").unwrap();
    assert_eq!((axis.semantics().role, axis.long_name()), (Role::Mesh, None));

    let file = open("epoch1d_single_subsets_0002.sdf");
    let array = |path: &str| file.array(path).unwrap();
    let density = array("Derived/Number_Density/electron");
    assert_eq!((density.semantics().centring, component(&density)), (Some(Centring::Cell), None));
    // As many values as nodes.
    let distribution = open("epoch1d_normal_0003.sdf").array("dist_fn/x_px/electron").unwrap();
    assert_eq!(distribution.semantics().centring, Some(Centring::Node));
    let reduced = array("Electric Field/Ey/Reduced_r_skip");
    assert_eq!(component(&reduced), Some(("E/Reduced_r_skip", 1)));
}

#[test]
fn particles_know_their_species_and_positions() {
    let file = open("epoch1d_normal_0003.sdf");
    let array = |path: &str| file.array(path).unwrap();
    let momentum = array("Particles/Py/electron");
    let semantics = momentum.semantics();
    assert_eq!((semantics.role, semantics.point_set.as_deref()), (Role::Points, Some("electron")));
    assert_eq!(mesh(&momentum).as_deref(), Some("Grid/Particles/electron"));
    assert_eq!(component(&momentum), Some(("P", 1)));
    let position = array("Grid/Particles/electron/X");
    let semantics = position.semantics();
    assert_eq!((semantics.role, semantics.point_set.as_deref()), (Role::Mesh, Some("electron")));
}

#[test]
fn stations_are_tables_decks_are_text_and_tensors_are_vectors() {
    let station = open("drv_station.sdf").array("Stations/Station 1/Pressure").unwrap();
    assert_eq!(station.semantics().role, Role::Table);
    let file = open("drv_all_blocks.sdf");
    let text = file.arrays().filter(|(_, _, desc)| desc.semantics().role == Role::Text);
    assert!(text.count() >= 2);
    let tensor = file.arrays().filter(|(_, _, desc)| desc.semantics().component.is_some());
    assert!(tensor.count() >= 2);
}

#[test]
fn computed_fields_have_a_meaning_of_their_own() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf");
    let path = path.join("epoch2d_restart_cpml_deck.sdf");
    let file = opened::derived(&path, spile_core::Limits::default());
    let map = file.array("CPUs/Original rank_map").unwrap();
    assert_eq!(
        (map.semantics().role, map.semantics().centring),
        (Role::Field, Some(Centring::Cell))
    );
    assert_eq!(mesh(&map).as_deref(), Some("CPUs/Original rank_grid"));
    let layer = file.array("Surface Values/boundary_x_min/Derived/Number_Density");
    assert!(layer.is_err() || mesh(&layer.unwrap()).is_none());
}
