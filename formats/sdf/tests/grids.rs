//! Positions and averages of staggered fields, and files of which a part is missing.

use std::path::Path;

use spile_core::format::Salvager as _;
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::sink::{Overwrite, Sink};
use spile_core::{Dataset, ErrorKind, Limits, OpenOptions, Source};
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{BlockType, File, Mesh, Meta, PlainVariable, Sdf, write_file};

#[allow(dead_code)] // Its numbers.
#[path = "support/blocks.rs"]
mod blocks;
#[path = "support/opened.rs"]
mod opened;
use opened::derived;

fn bytes(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_le_bytes).collect()
}

/// A dump of EPOCH with 7 cells of width 2 from 10 on, a field at the upper faces, and every third value of it; with the
/// mesh of the grid if `full`.
fn write(path: &Path, full: bool, revision: u32) {
    let header = FileHeader {
        code_name: "Epoch1d".into(),
        restart: true,
        revision,
        ..FileHeader::default()
    };
    let mesh = |minval: f64, maxval: f64, nodes: u64| {
        let one = blocks::mesh(&[nodes]);
        Meta::Mesh(Mesh { minval: vec![minval], maxval: vec![maxval], ..one })
    };
    let field = |mesh: &str, cells: u64| {
        Meta::PlainVariable(PlainVariable {
            mult: 1.0,
            units: "V/m".into(),
            mesh_id: mesh.into(),
            dims: vec![cells],
            stagger: 1,
        })
    };
    let real = DataType::Real8;
    write_file(path, &header, Overwrite::Never, |file| {
        let (grid, variable) = (BlockType::PlainMesh, BlockType::PlainVariable);
        if full {
            let nodes = bytes((0..8).map(|k| 10.0 + 2.0 * f64::from(k)));
            file.block("grid", "Grid/Grid", grid, real, &mesh(10.0, 24.0, 8), &nodes)?;
            let values = bytes((0..7).map(|k| f64::from(k * k)));
            file.block("ex", "Electric Field/Ex", variable, real, &field("grid", 7), &values)?;
        }
        // Cells 0, 3 and 6; the nodes are one and a half cells away from their centres.
        let nodes = bytes([8.0, 14.0, 20.0, 26.0]);
        file.block("grid/r_s", "Grid/Reduced_s", grid, real, &mesh(8.0, 26.0, 4), &nodes)?;
        let values = bytes([0.0, 9.0, 36.0]);
        let name = "Electric Field/Ex/Reduced_s";
        file.block("ex/r_s", name, variable, real, &field("grid/r_s", 3), &values)?;
        Ok(())
    })
    .unwrap();
}

fn values(dataset: &Dataset, name: &str) -> Vec<f64> {
    let array = dataset.array(name).unwrap();
    array.read_f64(&":".parse().unwrap(), Axes::Stored).unwrap()
}

#[test]
fn staggered_values_of_a_reduced_mesh_are_at_the_faces_of_the_grid() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.sdf");
    write(&path, true, 4);
    let dump = derived(&path, Limits::default());
    assert_eq!(values(&dump, "Grid/Grid/X_face"), [12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0]);
    assert_eq!(values(&dump, "Grid/Reduced_s/X_mid"), [11.0, 17.0, 23.0]);
    assert_eq!(values(&dump, "Grid/Reduced_s/X_face"), [12.0, 18.0, 24.0]);
    // Neighbours of a reduced mesh are not neighbours.
    assert!(dump.array("Electric Field/Ex/Reduced_s_centred").is_err());
    let path = temp.path().join("b.sdf");
    write(&path, false, 4);
    let alone = derived(&path, Limits::default());
    assert!(alone.array("Grid/Reduced_s/X_face").is_err());
    assert_eq!(values(&alone, "Grid/Reduced_s/X_mid"), [11.0, 17.0, 23.0]);
}

#[test]
fn values_at_upper_faces_are_averaged_to_cell_centres() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.sdf");
    write(&path, true, 4);
    let dump = derived(&path, Limits::default());
    let centred = values(&dump, "Electric Field/Ex_centred");
    assert!(centred[0].is_nan());
    assert_eq!(centred[1..], [0.5, 2.5, 6.5, 12.5, 20.5, 30.5]);
    let array = dump.array("Electric Field/Ex_centred").unwrap();
    let part: Vec<f64> = array.read("3:5").unwrap();
    assert_eq!(part, [6.5, 12.5]);
    let component = dump.tree().find("Electric Field/Ex_centred").unwrap();
    let component = dump.tree().array(component).unwrap().semantics().component.clone().unwrap();
    assert_eq!((component.vector.as_str(), component.index), ("E_centred", 0));
}

#[test]
fn vectors_of_averages_have_the_components_that_are_stored_at_cell_centres() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.sdf");
    let header = FileHeader { code_name: "Epoch1d".into(), ..FileHeader::default() };
    let mesh = blocks::mesh(&[4]);
    let field = |stagger: i32| {
        Meta::PlainVariable(PlainVariable {
            mult: 1.0,
            units: "V/m".into(),
            mesh_id: "grid".into(),
            dims: vec![3],
            stagger,
        })
    };
    write_file(&path, &header, Overwrite::Never, |file| {
        let (real, variable) = (DataType::Real8, BlockType::PlainVariable);
        let nodes = bytes([0.0, 1.0, 2.0, 3.0]);
        file.block("grid", "Grid/Grid", BlockType::PlainMesh, real, &Meta::Mesh(mesh), &nodes)?;
        for (name, stagger) in [("Ex", 1), ("Ey", 0), ("Ez", 0)] {
            let values = bytes([1.0, 2.0, 4.0]);
            let id = name.to_lowercase();
            file.block(&id, &format!("E/{name}"), variable, real, &field(stagger), &values)?;
        }
        let values = bytes([5.0, 6.0, 7.0]);
        file.block("bz", "B/Bz", variable, real, &field(0), &values)?;
        Ok(())
    })
    .unwrap();
    let dump = derived(&path, Limits::default());
    assert_eq!(values(&dump, "E/Ex_centred")[1..], [1.5, 3.0]);
    let component = |name: &str| {
        let id = dump.tree().find(name).unwrap();
        dump.tree().array(id).unwrap().semantics().component.clone().unwrap()
    };
    let vector = component("E/Ex_centred").vector;
    assert!(vector.ends_with("E_centred"), "{vector}");
    for (index, name) in (1_u8..).zip(["E/Ey_centred", "E/Ez_centred"]) {
        assert_eq!(values(&dump, name), [1.0, 2.0, 4.0]);
        assert_eq!((component(name).vector, component(name).index), (vector.clone(), index));
    }
    assert!(dump.array("B/Bz_centred").is_err());
}

#[test]
fn a_truncated_dump_is_read_up_to_its_end_and_salvaged_without_restart_flag() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.sdf");
    write(&path, true, 4);
    let whole = std::fs::read(&path).unwrap();
    let file = File::open(&path, &Limits::default()).unwrap();
    let last = file.find("ex/r_s").next().unwrap().header.data_location as usize;
    let short = &whole[..last + 8];
    std::fs::write(&path, short).unwrap();
    let dump = Dataset::open_path(&Sdf, &path, &OpenOptions::default()).unwrap();
    assert_eq!(values(&dump, "ex"), [0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0]);
    assert!(dump.array("ex/r_s").is_err());
    let found: Vec<_> = dump.warnings().iter().map(|f| (f.severity, f.code)).collect();
    assert_eq!(found[0], (Severity::Warning, "sdf-008"));
    assert!(found[1..].iter().all(|f| *f == (Severity::Error, "sdf-051")) && found.len() > 1);
    // Series take complete dumps only.
    let mut options = OpenOptions::default();
    options.require_complete = true;
    let refused = Dataset::open_path(&Sdf, &path, &options);
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Truncated);

    for (bytes, restart) in [(&whole[..], true), (short, false)] {
        let target = temp.path().join(format!("{restart}.sdf"));
        let mut sink = Sink::create(&target, Overwrite::Never).unwrap();
        let source = Source::memory(bytes.to_vec());
        let salvage = Sdf.salvage(&source, &mut sink, &Limits::default()).unwrap();
        sink.commit().unwrap();
        assert_eq!(File::open(&target, &Limits::default()).unwrap().header().restart, restart);
        let cleared = salvage.lost.iter().any(|lost| lost.starts_with("restart flag"));
        assert_eq!(cleared, !restart);
    }
}

#[test]
fn a_newer_revision_is_a_warning() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.sdf");
    write(&path, true, 4);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[12] = 9;
    let dump = Dataset::open(&Sdf, Source::memory(bytes), &OpenOptions::default()).unwrap();
    let codes: Vec<_> = dump.warnings().iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["sdf-020"]);
}
