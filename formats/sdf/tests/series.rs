//! The dumps of a run as one dataset.

use std::path::Path;

use spile_core::error::ErrorKind;
use spile_core::format::{Folder, Series as _};
use spile_core::layout::{Coord, Layout};
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::sink::Overwrite;
use spile_core::tree::Node;
use spile_core::{Dataset, Limits, OpenOptions};
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{
    BlockType, Mesh, Meta, PlainVariable, PointMesh, PointVariable, Sdf, Stitched, write_file,
};

/// Properties that differ between dumps.
#[derive(Clone, Copy, Debug, Default)]
struct Dump {
    step: i32,
    particles: u64,
    /// Start of the window.
    window: f64,
    /// Single precision.
    single: bool,
    /// Without the field.
    bare: bool,
}

fn bytes(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

fn write(path: &Path, dump: Dump) {
    let header = FileHeader {
        code_name: "Epoch1d".into(),
        step: dump.step,
        time: f64::from(dump.step) * 0.25,
        ..FileHeader::default()
    };
    let mesh = |dims: Vec<u64>| Mesh {
        mults: vec![1.0],
        labels: vec!["X".into()],
        units: vec!["m".into()],
        geometry: 1,
        minval: vec![dump.window],
        maxval: vec![dump.window + 4.0],
        dims,
    };
    let real = DataType::Real8;
    let step = f64::from(dump.step);
    write_file(path, &header, Overwrite::Never, |file| {
        let nodes = bytes((0..5).map(|k| dump.window + f64::from(k)));
        let grid = Meta::Mesh(mesh(vec![5]));
        file.block("grid", "Grid/Grid", BlockType::PlainMesh, real, &grid, &nodes)?;
        let energy = Meta::Constant((step * 10.0).to_le_bytes().to_vec());
        file.block("energy", "Energy", BlockType::Constant, real, &energy, &[])?;
        if !dump.bare {
            let field = Meta::PlainVariable(PlainVariable {
                mult: 2.0,
                units: "V/m".into(),
                mesh_id: "grid".into(),
                dims: vec![4],
                stagger: 0,
            });
            let values = (0..4).map(|k| step + f64::from(k));
            let (datatype, values): (_, Vec<u8>) = if dump.single {
                (DataType::Real4, values.flat_map(|v| (v as f32).to_le_bytes()).collect())
            } else {
                (real, bytes(values))
            };
            let kind = BlockType::PlainVariable;
            file.block("ey", "Field/Ey", kind, datatype, &field, &values)?;
        }
        let species_id = String::from("e");
        let positions = PointMesh { mesh: mesh(vec![]), np: dump.particles, species_id };
        let positions = Meta::PointMesh(positions);
        let x = bytes((0..dump.particles).map(|k| k as f64));
        file.block("grid/e", "Grid/e", BlockType::PointMesh, real, &positions, &x)?;
        let weight = Meta::PointVariable(PointVariable {
            mult: 1.0,
            units: "1".into(),
            mesh_id: "grid/e".into(),
            np: dump.particles,
            species_id: "e".into(),
        });
        let w = bytes((0..dump.particles).map(|k| step + k as f64));
        file.block("w/e", "Weight/e", BlockType::PointVariable, real, &weight, &w)?;
        Ok(())
    })
    .unwrap();
}

fn open(folder: &Path) -> Dataset {
    Dataset::open_path(&Sdf, folder, &OpenOptions::default()).unwrap()
}

fn node<'a>(series: &'a Dataset, path: &str) -> &'a Node {
    series.tree().node(series.tree().find(path).unwrap())
}

/// The scaled values of an array in a frame.
fn values(series: &Dataset, path: &str, frame: u64) -> Option<Vec<f64>> {
    let array = series.array_in_frame(series.tree().find(path).unwrap(), frame).unwrap()?;
    Some(array.read_f64(&Selection::all(), Axes::Stored).unwrap())
}

#[test]
fn dumps_are_frames_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    // Names in another order than times.
    for (name, step, particles) in [("e2.sdf", 0, 3), ("e10.SDF", 10, 5), ("e1.sdf", 20, 0)] {
        write(&folder.path().join(name), Dump { step, particles, ..Dump::default() });
    }
    std::fs::write(folder.path().join("notes.txt"), "not a dump").unwrap();
    std::fs::write(folder.path().join(".hidden.sdf"), "not a dump").unwrap();
    std::fs::create_dir(folder.path().join("folder.sdf")).unwrap();
    let series = open(folder.path());
    let axis = series.tree().frames().unwrap();
    let frames: Vec<_> =
        (0..axis.len()).map(|k| (axis.step(k).unwrap(), axis.time(k).unwrap())).collect();
    assert_eq!(frames, [(Some(0), Some(0.0)), (Some(10), Some(2.5)), (Some(20), Some(5.0))]);
    assert!(series.warnings().is_empty(), "{:?}", series.warnings());

    assert_eq!(values(&series, "Energy", 2), Some(vec![200.0]));
    assert_eq!(values(&series, "Field/Ey", 1), Some(vec![20.0, 22.0, 24.0, 26.0]));
    // The number of particles differs.
    for (frame, step, particles) in [(0, 0.0, 3), (1, 10.0, 5), (2, 20.0, 0)] {
        let expected: Vec<f64> = (0..particles).map(|k| step + f64::from(k)).collect();
        assert_eq!(values(&series, "Weight/e", frame), Some(expected));
    }
    // A grid that does not move is stored once. Only attributes equal in all dumps are kept.
    let grid = node(&series, "Grid/Grid/X").array.as_ref().unwrap();
    assert!(matches!(grid.layout, Layout::Plain { .. }), "{:?}", grid.layout);
    assert_eq!(values(&series, "Grid/Grid/X", 2).unwrap()[4], 4.0);
    let names: Vec<&str> = series.tree().attrs().iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"code_name") && !names.contains(&"time") && !names.contains(&"step"));
    let ey = node(&series, "Field/Ey");
    assert_eq!(ey.attrs.get_str("units"), Some("V/m"));
    let Coord::Node(centres) = ey.array.as_ref().unwrap().coords[0] else { panic!("no coords") };
    let shared = &series.tree().node(centres).array.as_ref().unwrap().layout;
    assert!(matches!(shared, Layout::Computed(_)), "{shared:?}");
    let mesh = ey.array.as_ref().unwrap().semantics().mesh.unwrap();
    assert_eq!(series.tree().node(mesh).path, "Grid/Grid");
    let centres = series.tree().node(centres).path.clone();
    assert_eq!(values(&series, &centres, 0), Some(vec![0.5, 1.5, 2.5, 3.5]));
}

#[test]
fn files_with_different_prefixes_are_different_series() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "n0000.sdf",
        "n0001.sdf",
        "n0010.sdf",
        "n2.sdf",
        "r0000.sdf",
        "r0001.sdf",
        "x.sdf",
        "1.sdf",
        "02.sdf",
    ];
    for name in names {
        std::fs::write(folder.path().join(name), []).unwrap();
    }
    let name = |file: &std::path::PathBuf| file.file_name().unwrap().to_str().unwrap().to_string();
    let runs = Sdf.runs(&Folder::open(folder.path()).unwrap());
    let runs: Vec<(String, Vec<String>)> =
        runs.into_iter().map(|run| (run.pattern, run.files.iter().map(name).collect())).collect();
    let expected: [(&str, &[&str]); 4] = [
        ("n*.sdf", &["n0000.sdf", "n0001.sdf", "n2.sdf", "n0010.sdf"]),
        // Equally many files: the first by name.
        ("[0-9]*.sdf", &["1.sdf", "02.sdf"]),
        ("r*.sdf", &["r0000.sdf", "r0001.sdf"]),
        ("x.sdf", &["x.sdf"]),
    ];
    let expected = expected.map(|(pattern, files)| {
        (pattern.to_string(), files.iter().map(ToString::to_string).collect::<Vec<_>>())
    });
    assert_eq!(runs, expected);
}

#[test]
fn the_largest_series_of_a_folder_is_opened_and_the_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, step) in [("n0000.sdf", 0), ("n0001.sdf", 1), ("r0000.sdf", 2)] {
        write(&folder.path().join(name), Dump { step, ..Dump::default() });
    }
    let series = open(folder.path());
    assert_eq!(series.tree().frames().unwrap().len(), 2);
    let [warning] = series.warnings() else { panic!("expected one warning") };
    let expected =
        "the folder has several series; opened n*.sdf (2 files), ignored r0000.sdf (1 file)";
    assert_eq!(warning.message, expected);
}

#[test]
fn an_array_that_some_dumps_lack_keeps_its_path_above_other_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let real = DataType::Real8;
    for (step, total) in [(0, false), (1, true), (2, false)] {
        let header = FileHeader { step, time: f64::from(step), ..FileHeader::default() };
        let path = folder.path().join(format!("{step}.sdf"));
        write_file(&path, &header, Overwrite::Never, |file| {
            let meta = Meta::Array(vec![2]);
            let part = bytes([10.0, 20.0].into_iter());
            file.block("n/e", "Density/e", BlockType::Array, real, &meta, &part)?;
            if total {
                let all = bytes([1.0, 2.0].into_iter());
                file.block("n", "Density", BlockType::Array, real, &meta, &all)?;
            }
            Ok(())
        })
        .unwrap();
    }
    let series = open(folder.path());
    let paths: Vec<&str> = series.tree().iter().map(|(_, node)| node.path.as_str()).collect();
    assert_eq!(paths, ["Density", "Density/e"]);
    let found: Vec<_> = (0..3).map(|k| values(&series, "Density", k)).collect();
    assert_eq!(found, [None, Some(vec![1.0, 2.0]), None]);
    assert!((0..3).all(|k| values(&series, "Density/e", k) == Some(vec![10.0, 20.0])));
    assert_eq!(node(&series, "n").path, "Density");
}

#[test]
fn a_moving_window_has_coordinates_in_every_frame() {
    let folder = tempfile::tempdir().unwrap();
    for step in 0..3 {
        let window = f64::from(step / 2) * 7.0;
        let path = folder.path().join(format!("{step}.sdf"));
        write(&path, Dump { step, window, particles: 1, ..Dump::default() });
    }
    let series = open(folder.path());
    let grid = node(&series, "Grid/Grid/X").array.as_ref().unwrap();
    assert!(matches!(grid.layout, Layout::PerFrame(_)), "{:?}", grid.layout);
    let ey = node(&series, "Field/Ey").array.as_ref().unwrap();
    let Coord::Node(centres) = ey.coords[0] else { panic!("no coords") };
    let centres = series.tree().node(centres).path.clone();
    for (frame, start) in [(0, 0.0), (1, 0.0), (2, 7.0)] {
        assert_eq!(values(&series, "Grid/Grid/X", frame).unwrap()[0], start);
        assert_eq!(values(&series, &centres, frame).unwrap()[0], start + 0.5);
    }
}

#[test]
fn unreadable_dumps_and_arrays_that_change_type_are_omitted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let dump = |step| Dump { step, particles: 2, ..Dump::default() };
    for step in 0..5 {
        let name = format!("{step}.sdf");
        let (bare, single) = (step == 1, step == 3);
        write(&path(&name), Dump { single, bare, ..dump(step) });
    }
    let original = std::fs::read(path("2.sdf")).unwrap();
    std::fs::write(path("2.sdf"), &original[..original.len() / 2]).unwrap();
    std::fs::write(path("5.sdf"), []).unwrap();
    let series = open(folder.path());
    assert_eq!(series.tree().frames().unwrap().len(), 4);
    let findings: Vec<_> =
        series.warnings().iter().map(|f| (f.severity, f.object.as_deref().unwrap())).collect();
    assert_eq!(
        findings,
        [
            (Severity::Error, "2.sdf"),
            (Severity::Warning, "\"Field/Ey\""),
            (Severity::Error, "5.sdf")
        ]
    );
    assert!(series.warnings()[0].message.contains("unexpected end of file"));
    assert!(series.warnings()[1].message.contains("3.sdf: expected float64, found float32"));
    // Steps 0, 1, 3 and 4 remain; the field is missing in step 1 and has another type in step 3.
    assert_eq!(values(&series, "Field/Ey", 0).unwrap()[0], 0.0);
    assert_eq!(values(&series, "Field/Ey", 1), None);
    assert_eq!(values(&series, "Field/Ey", 2), None);
    assert_eq!(values(&series, "Field/Ey", 3).unwrap()[0], 8.0);
    assert_eq!(values(&series, "Energy", 2), Some(vec![30.0]));
}

#[test]
fn a_folder_with_only_unreadable_dumps_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions::default();
    let list = || Folder::open(folder.path()).unwrap();
    assert!(Dataset::open_folder(&Sdf, &list(), &options).unwrap().is_none());
    std::fs::write(folder.path().join("0000.sdf"), b"SDF1 and nothing").unwrap();
    let error = Dataset::open_folder(&Sdf, &list(), &options).err().unwrap();
    assert!(error.path().unwrap().ends_with("0000.sdf"), "{error}");
    assert_ne!(error.kind(), ErrorKind::Io);
}

#[test]
fn reading_a_dump_that_was_replaced_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.sdf");
    write(&path, Dump { particles: 2, ..Dump::default() });
    let series = open(folder.path());
    std::fs::remove_file(&path).unwrap();
    write(&path, Dump { step: 9, particles: 9, ..Dump::default() });
    let array = series.frame(0).unwrap().array("Weight/e").unwrap();
    let error = array.read_bytes(&Selection::all(), Axes::Stored).unwrap_err();
    assert_eq!(error.code(), "core-changed");
}

#[test]
fn the_memory_of_a_series_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    for step in 0..40 {
        write(&folder.path().join(format!("{step}.sdf")), Dump { step, ..Dump::default() });
    }
    let limits = Limits::default().with_memory(20_000);
    let error = Dataset::open_path(&Sdf, folder.path(), &(&limits).into()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

/// Writes a dump of arrays with identifier, name and one value each, and stitched blocks with name and
/// members.
fn write_arrays(path: &Path, step: i32, arrays: &[(&str, &str, f64)], groups: &[(&str, &[&str])]) {
    let header = FileHeader { step, time: f64::from(step), ..FileHeader::default() };
    write_file(path, &header, Overwrite::Never, |file| {
        for (id, name, value) in arrays {
            let (kind, meta) = (BlockType::Array, Meta::Array(vec![1]));
            let data = value.to_le_bytes();
            file.block(id, name, kind, DataType::Real8, &meta, &data)?;
        }
        for (name, parts) in groups {
            let ids = parts.iter().map(ToString::to_string).collect();
            let meta = Meta::Stitched(Stitched { ids, ..Stitched::default() });
            let kind = BlockType::Stitched;
            file.block(name, name, kind, DataType::Other, &meta, &[])?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_array_in_one_dump_and_a_group_in_another_are_both_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // EPOCH writes the density of a species, of all, or both.
    write_arrays(&path("0.sdf"), 0, &[("n/e", "Density/electron", 1.0)], &[]);
    write_arrays(&path("1.sdf"), 1, &[("n", "Density", 2.0)], &[]);
    let series = open(folder.path());
    assert!(series.warnings().is_empty(), "{:?}", series.warnings());
    assert_eq!(values(&series, "Density/electron", 0), Some(vec![1.0]));
    assert_eq!(values(&series, "Density/electron", 1), None);
    assert_eq!(values(&series, "n", 0), None);
    assert_eq!(values(&series, "n", 1), Some(vec![2.0]));
}

#[test]
fn an_array_and_the_array_below_it_keep_their_paths_in_a_series() {
    let folder = tempfile::tempdir().unwrap();
    for step in 0..2 {
        let value = f64::from(step);
        let arrays = [("n/e", "Density/electron", value), ("n", "Density", 10.0 + value)];
        write_arrays(&folder.path().join(format!("{step}.sdf")), step, &arrays, &[]);
    }
    let series = open(folder.path());
    assert!(series.warnings().is_empty(), "{:?}", series.warnings());
    for frame in 0..2 {
        let value = frame as f64;
        assert_eq!(values(&series, "Density/electron", frame), Some(vec![value]));
        assert_eq!(values(&series, "Density", frame), Some(vec![10.0 + value]));
    }
    assert_eq!(series.tree().len(), 2);
}

#[test]
fn different_blocks_with_the_same_name_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_arrays(&path("0.sdf"), 0, &[("a", "N", 1.0), ("b", "N", 2.0)], &[]);
    write_arrays(&path("1.sdf"), 1, &[("b", "N", 2.0)], &[]);
    let series = open(folder.path());
    let [finding] = series.warnings() else { panic!("{:?}", series.warnings()) };
    assert_eq!((finding.severity, finding.object.as_deref()), (Severity::Warning, Some("\"N\"")));
    assert_eq!(node(&series, "N").id, None);
}

#[test]
fn members_that_differ_between_dumps_are_read_from_each_dump() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let arrays = [("ax", "A/x", 1.0), ("bx", "B/x", 2.0)];
    write_arrays(&path("0.sdf"), 0, &arrays, &[("G", &["ax"])]);
    write_arrays(&path("1.sdf"), 1, &arrays, &[("G", &["bx"])]);
    let series = open(folder.path());
    assert_eq!(values(&series, "G/x", 0), Some(vec![1.0]));
    assert_eq!(values(&series, "G/x", 1), Some(vec![2.0]));
}
