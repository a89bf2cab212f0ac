//! The HOOMD schema, on files of the Python package and of `TrajectoryWriter`.

use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::format::{Checker as _, FormatWriter as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::semantics::{Role, Semantics};
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_gsd::semantics::{Precision, Snapshot, Trajectory, TrajectoryWriter, Values};
use spile_gsd::wire::{About, Type};
use spile_gsd::{File, Gsd, Mode, Version, Writer};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd").join(name)
}

fn open(path: &Path) -> Trajectory {
    Trajectory::new(File::open(path, &Limits::default()).unwrap()).unwrap()
}

fn codes(path: &Path, strict: bool) -> Vec<&'static str> {
    let report = Gsd.check(&Source::open(path).unwrap(), &Limits::default(), strict).unwrap();
    report.findings.iter().map(|f| f.code).collect()
}

#[test]
fn missing_chunks_have_defaults() {
    let file = open(&golden("py-5.0.1/hoomd_defaults.gsd"));
    let frame = file.read(0).unwrap();
    let n = frame.particles.n as usize;
    assert!(n > 0);
    assert_eq!((frame.step, frame.dimensions), (0, 3));
    assert_eq!(frame.particles.types, ["A"]);
    assert_eq!(*frame.particles.mass, vec![1.0; n]);
    assert_eq!(*frame.particles.body, vec![-1; n]);
    assert_eq!(*frame.particles.orientation, [1.0, 0.0, 0.0, 0.0].repeat(n));
    assert_eq!((frame.bonds.n, frame.bonds.group.len()), (0, 0));
    assert!(file.read(file.len().unwrap()).is_err());
}

#[test]
fn the_box_gives_the_cell_vectors_of_every_frame() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let (mode, precision) = (Mode::default(), Precision::Single);
    let mut file = TrajectoryWriter::create(&path, Overwrite::Never, "t", precision, mode).unwrap();
    let mut frame = Snapshot::new(0, 1);
    frame.box_ = [4.0, 2.0, 8.0, 0.5, 0.25, -0.5];
    file.write(&frame).unwrap();
    file.write(&frame).unwrap();
    frame.box_ = [5.0, 2.0, 8.0, 0.0, 0.0, 0.0];
    file.write(&frame).unwrap();
    file.close().unwrap();
    let dataset = Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
    let cell = dataset.cell(0).unwrap().unwrap();
    assert_eq!(cell.vectors, [[4.0, 0.0, 0.0], [1.0, 2.0, 0.0], [2.0, -4.0, 8.0]]);
    // Frame 1 has no box of its own.
    assert!(dataset.frame(1).unwrap().array("configuration/box").is_err());
    assert_eq!(dataset.cell(1).unwrap().unwrap(), cell);
    let last = dataset.cell(2).unwrap().unwrap();
    assert_eq!(last.vectors, [[5.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 8.0]]);
    let stored = dataset.frame(2).unwrap().array("configuration/box").unwrap();
    assert_eq!(stored.shape().lengths(), [6]);
    // It is computed again on reading, so it is neither written nor lost.
    let copy = temp.path().join("b.gsd");
    assert_eq!(Gsd.losses(&dataset, &copy).unwrap(), []);
    let mut sink = Sink::create(&copy, Overwrite::Never).unwrap();
    Gsd.write(&dataset, &mut sink, &spile_core::format::WriteOptions::default()).unwrap();
    sink.commit().unwrap();
    assert!(open(&copy).file().find_matching_names("configuration/cell").is_empty());
    let copy = Dataset::open_path(&Gsd, &copy, &OpenOptions::default()).unwrap();
    assert_eq!(copy.cell(1).unwrap().unwrap(), cell);
}

#[test]
fn a_negative_zero_is_no_default() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let (mode, precision) = (Mode::default(), Precision::Single);
    let mut file = TrajectoryWriter::create(&path, Overwrite::Never, "t", precision, mode).unwrap();
    let mut frame = Snapshot::new(0, 2);
    frame.particles.velocity[4] = -0.0;
    file.write(&frame).unwrap();
    file.close().unwrap();
    let signs = |numbers: &[f64]| -> Vec<bool> {
        numbers.iter().map(|number| number.is_sign_negative()).collect()
    };
    let read = open(&path).read(0).unwrap();
    assert_eq!(signs(&read.particles.velocity), [false, false, false, false, true, false]);
    assert_eq!(open(&path).file().find_matching_names(""), ["particles/velocity", "particles/N"]);
}

#[test]
fn frames_fall_back_to_frame_0_only_with_the_same_number_of_particles() {
    let file = open(&golden("py-5.0.1/hoomd_varying_N.gsd"));
    let frames: Vec<Snapshot> = (0..file.len().unwrap()).map(|k| file.read(k).unwrap()).collect();
    let counts: Vec<u32> = frames.iter().map(|f| f.particles.n).collect();
    assert!(counts.iter().any(|n| *n != counts[0]), "{counts:?}");
    for frame in &frames {
        let n = frame.particles.n as usize;
        assert_eq!(frame.particles.position.len(), 3 * n);
        assert_eq!(frame.particles.typeid.len(), n);
        if frame.particles.n == counts[0] && frame.particles.typeid == frames[0].particles.typeid {
            assert_eq!(frame.particles.types, frames[0].particles.types);
        }
    }
}

#[test]
fn a_logged_quantity_missing_in_frame_0_is_reported() {
    let path = golden("edge/hoomd_log_absent_in_frame0_REFERENCE_KEYERROR_FRAME2.gsd");
    let file = open(&path);
    let there: Vec<bool> = (0..3).map(|k| file.read(k).unwrap().log["E"].is_some()).collect();
    assert_eq!(there, [false, true, false]);
    assert_eq!(codes(&path, false), ["gsd-048"]);
    let log = file.read_log().unwrap();
    assert_eq!(log.columns[0].missing, [0, 2]);
    assert!(
        log.columns[0].first_elements()[0].is_nan() && !log.columns[0].first_elements()[1].is_nan()
    );
    let text = open(&golden("edge/hoomd_string_log_only_frame0_REFERENCE_CRASHES_ON_FRAME1.gsd"));
    let second = text.read(1).unwrap();
    assert_eq!(second.log["cat"], text.read(0).unwrap().log["cat"]);
    assert_eq!(text.read_log().unwrap().columns[0].missing, [0; 0]);
}

#[test]
fn a_strict_check_finds_invalid_values() {
    let path = golden("edge/hoomd_invalid_semantics_accepted.gsd");
    assert_eq!(codes(&path, false), [""; 0]);
    assert_eq!(codes(&path, true), ["gsd-044", "gsd-046", "gsd-047", "gsd-044"]);
    for good in ["hoomd_full", "hoomd_full_double", "hoomd_2d", "hoomd_many_frames"] {
        let found = codes(&golden(&format!("py-5.0.1/{good}.gsd")), false);
        assert_eq!(found, [""; 0], "{good}");
    }
}

#[test]
fn logs_are_read_as_columns() {
    for name in ["hoomd_many_frames", "hoomd_full"] {
        let file = open(&golden(&format!("py-5.0.1/{name}.gsd")));
        let log = file.read_log().unwrap();
        let frames = file.len().unwrap();
        assert_eq!(log.steps.len() as u64, frames);
        assert!(!log.columns.is_empty(), "{name}");
        for frame in 0..frames {
            let snapshot = file.read(frame).unwrap();
            assert_eq!(snapshot.step, log.steps[frame as usize]);
            assert_eq!(snapshot.log.len(), log.columns.len());
            for column in &log.columns {
                assert_eq!(snapshot.log[&column.name], column.values(frame), "{name} {frame}");
            }
        }
    }
}

/// A frame without default values.
fn full(step: u64, n: u32) -> Snapshot {
    let numbers = |count: u32, from: f64| -> Vec<f64> {
        (0..count).map(|k| f64::from(k).mul_add(0.25, from)).collect()
    };
    let mut s = Snapshot {
        step,
        dimensions: 2,
        box_: [9.0, 8.0, 7.0, 0.5, 0.25, 0.125],
        ..Snapshot::default()
    };
    let p = &mut s.particles;
    p.n = n;
    p.types = vec!["A".into(), "long name".into()];
    p.type_shapes = vec!["{\"type\": \"Sphere\"}".into(), "{}".into()];
    p.typeid = (0..n).map(|k| k % 2).collect();
    p.mass = numbers(n, 2.0).into();
    p.charge = numbers(n, -1.0).into();
    p.diameter = numbers(n, 0.5).into();
    p.body = (0..n as i32).map(|k| k - 5).collect();
    p.moment_inertia = numbers(3 * n, 1.0).into();
    p.position = numbers(3 * n, -3.0).into();
    p.orientation = numbers(4 * n, 0.0).into();
    p.velocity = numbers(3 * n, 4.0).into();
    p.angmom = numbers(4 * n, 5.0).into();
    p.image = (0..3 * n as i32).map(|k| -k).collect();
    s.bonds.n = 2;
    s.bonds.types = vec!["b".into()];
    s.bonds.typeid = vec![0, 0].into();
    s.bonds.group = vec![0, 1, 1, 2].into();
    s.dihedrals.n = 1;
    s.dihedrals.types = vec!["d".into(), "e".into()];
    s.dihedrals.typeid = vec![1].into();
    s.dihedrals.group = vec![3, 2, 1, 0].into();
    s.constraints.n = 1;
    s.constraints.group = vec![0, 3].into();
    s.constraint_value = vec![1.5].into();
    let energy = Values { kind: Type::Double, n: 1, m: 1, bytes: 1.5_f64.to_le_bytes().to_vec() };
    s.log.insert("energy".into(), Some(energy));
    s
}

/// A frame of default values.
fn plain(step: u64, n: u32) -> Snapshot {
    let mut s = Snapshot { step, dimensions: 3, ..Snapshot::default() };
    s.box_ = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    let (p, rows) = (&mut s.particles, n as usize);
    p.n = n;
    p.types = vec!["A".into()];
    p.type_shapes = vec!["{}".into()];
    p.typeid = vec![0; rows].into();
    p.mass = vec![1.0; rows].into();
    p.charge = vec![0.0; rows].into();
    p.diameter = vec![1.0; rows].into();
    p.body = vec![-1; rows].into();
    p.moment_inertia = vec![0.0; 3 * rows].into();
    p.position = vec![0.0; 3 * rows].into();
    p.orientation = [1.0, 0.0, 0.0, 0.0].repeat(rows).into();
    p.velocity = vec![0.0; 3 * rows].into();
    p.angmom = vec![0.0; 4 * rows].into();
    p.image = vec![0; 3 * rows].into();
    s
}

#[test]
fn frames_round_trip_and_equal_values_are_not_written_again() {
    let temp = tempfile::tempdir().unwrap();
    for precision in [Precision::Single, Precision::Double] {
        // A default must be written if frame 0 has another value.
        for order in [[0, 1, 2, 3, 1], [1, 0, 3, 2, 0]] {
            let kinds = [full(7, 6), plain(9, 6), full(11, 4), plain(0, 5)];
            let path = temp.path().join("h.gsd");
            let mut file = TrajectoryWriter::create(
                &path,
                Overwrite::Replace,
                "test",
                precision,
                Mode::default(),
            )
            .unwrap();
            for k in &order[..3] {
                file.write(&kinds[*k]).unwrap();
            }
            file.close().unwrap();
            let limits = Limits::default();
            let mut file =
                TrajectoryWriter::append(&path, precision, Mode::default(), &limits).unwrap();
            for k in &order[3..] {
                file.write(&kinds[*k]).unwrap();
            }
            file.close().unwrap();
            let read = open(&path);
            assert_eq!(read.len().unwrap(), 5);
            for (frame, k) in order.iter().enumerate() {
                let mut got = read.read(frame as u64).unwrap();
                let mut want = kinds[*k].clone();
                // A logged quantity falls back to frame 0.
                got.log.clear();
                want.log.clear();
                assert_eq!(got, want, "frame {frame} of {order:?}, {precision:?}");
            }
            let found = codes(&path, false);
            assert!(found.iter().all(|code| *code == "gsd-048"), "{found:?}");
        }
    }
    // An equal frame adds its step and the logged quantities, which are always written.
    let path = temp.path().join("twice.gsd");
    let mode = Mode::default();
    let mut file =
        TrajectoryWriter::create(&path, Overwrite::Never, "test", Precision::Single, mode).unwrap();
    file.write(&full(1, 6)).unwrap();
    file.write(&full(2, 6)).unwrap();
    file.close().unwrap();
    let names: Vec<String> = open(&path)
        .file()
        .frame(1)
        .unwrap()
        .into_iter()
        .map(|chunk| chunk.name.to_string())
        .collect();
    assert_eq!(names, ["configuration/step", "log/energy"]);
}

#[test]
fn a_logged_quantity_of_varying_shape_does_not_hide_the_others() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log.gsd");
    let mode = Mode::default();
    let mut file =
        TrajectoryWriter::create(&path, Overwrite::Never, "test", Precision::Single, mode).unwrap();
    for (step, text) in ["a", "long", "bc"].into_iter().enumerate() {
        let mut frame = plain(step as u64, 2);
        let mut log = |name: &str, kind, n: usize, bytes: Vec<u8>| {
            frame.log.insert(name.into(), Some(Values { kind, n: n as u64, m: 1, bytes }));
        };
        log("energy", Type::Double, 1, (step as f64).to_le_bytes().to_vec());
        log("text", Type::Character, text.len(), text.as_bytes().to_vec());
        log("varying", Type::UInt8, step + 1, vec![0; step + 1]);
        file.write(&frame).unwrap();
    }
    file.close().unwrap();
    let log = open(&path).read_log().unwrap();
    assert_eq!(log.varying, ["varying"]);
    let names: Vec<&str> = log.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["energy", "text"]);
    assert_eq!(log.columns[0].first_elements(), [0.0, 1.0, 2.0]);
    assert_eq!(log.columns[1].shape, (4, 1));
    assert_eq!(log.columns[1].bytes, b"a\0\0\0longbc\0\0");
}

#[test]
fn a_frame_of_the_wrong_size_is_rejected() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.gsd");
    let mode = Mode::default();
    let mut file =
        TrajectoryWriter::create(&path, Overwrite::Never, "test", Precision::Single, mode).unwrap();
    let mut wrong = plain(1, 5);
    wrong.particles.position.pop();
    let error = file.write(&wrong).unwrap_err();
    assert!(error.to_string().contains("expected 5 x 3 numbers, found 14"), "{error}");
    file.write(&plain(1, 5)).unwrap();
    file.close().unwrap();
    assert_eq!(open(&path).len().unwrap(), 1);
}

#[test]
fn dimensions_are_named() {
    let path = golden("py-5.0.1/hoomd_full.gsd");
    let file = Dataset::open_path(&Gsd, path, &OpenOptions::default()).unwrap();
    let tree = file.tree();
    let dims =
        |path: &str| tree.node(tree.find(path).unwrap()).array.as_ref().unwrap().dims.clone();
    assert_eq!(dims("particles/position"), ["particle", "xyz"]);
    assert_eq!(dims("particles/orientation"), ["particle", "quaternion"]);
    assert_eq!(dims("particles/mass"), ["particle"]);
    assert_eq!(dims("angles/group"), ["angle", "member"]);
    assert_eq!(dims("particles/types"), ["type", "letter"]);
    assert_eq!(dims("configuration/box"), ["box_part"]);
}

#[test]
fn arrays_of_the_schema_have_their_meaning() {
    let path = golden("py-5.0.1/hoomd_full.gsd");
    let file = Dataset::open_path(&Gsd, path, &OpenOptions::default()).unwrap();
    let tree = file.tree();
    let positions = tree.find("particles/position").unwrap();
    let meaning = |path: &str| {
        let id = tree.find(path).unwrap_or_else(|e| panic!("{e}"));
        tree.node(id).array.as_ref().unwrap().semantics().clone()
    };
    for path in ["particles/position", "particles/mass", "particles/typeid"] {
        let found = meaning(path);
        assert_eq!((found.role, found.mesh), (Role::Points, Some(positions)), "{path}");
        assert_eq!(found.point_set.as_deref(), Some("particles"), "{path}");
    }
    let bonds = meaning("bonds/group");
    assert_eq!((bonds.role, bonds.point_set.as_deref()), (Role::Points, Some("bonds")));
    assert_eq!(bonds.mesh, None);
    // These have no row for each particle.
    for path in ["particles/N", "particles/types"] {
        let found = meaning(path);
        assert_eq!((found.role, found.mesh), (Role::Data, None), "{path}");
        assert_eq!(found.point_set.as_deref(), Some("particles"), "{path}");
    }
    assert_eq!(meaning("configuration/box"), Semantics::role(Role::Cell));
    assert_eq!(meaning("configuration/step"), Semantics::default());
    let mut logs = 0;
    for (_, node, array) in tree.arrays().filter(|(_, node, _)| node.path.starts_with("log/")) {
        let found = array.semantics();
        let set = ["particles", "bonds"].into_iter().find(|set| node.path.contains(set));
        assert_eq!((found.role, found.point_set.as_deref()), (Role::Log, set), "{}", node.path);
        let mesh = set.filter(|set| *set == "particles").map(|_| positions);
        assert_eq!(found.mesh, mesh, "{}", node.path);
        logs += 1;
    }
    assert!(logs > 0);
}

/// A HOOMD file of single chunks: frame, name, element type, rows, bytes.
fn raw(path: &Path, chunks: &[(u64, &str, Type, u64, &[u8])]) {
    let about = About { application: "t".into(), schema: "hoomd".into(), schema_version: 1 << 16 };
    let (mode, overwrite) = (Mode::default(), Overwrite::Replace);
    let mut file = Writer::create(path, overwrite, Version::V2_1, &about, mode).unwrap();
    for frame in 0..=chunks.last().unwrap().0 {
        for (_, name, kind, rows, bytes) in chunks.iter().filter(|chunk| chunk.0 == frame) {
            file.write_chunk(name, *kind, *rows, 1, bytes).unwrap();
        }
        file.end_frame().unwrap();
    }
    file.close().unwrap();
}

#[test]
fn a_default_that_the_stored_type_cannot_express_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let two = 2_u32.to_le_bytes();
    for (name, kind) in [("mass", Type::Character), ("body", Type::UInt32)] {
        let name = format!("particles/{name}");
        let values = vec![b'1'; 2 * kind.size() as usize];
        let n = ("particles/N", Type::UInt32, 1, &two[..]);
        raw(
            &path,
            &[(0, n.0, n.1, n.2, n.3), (1, &name, kind, 2, &values), (2, n.0, n.1, n.2, n.3)],
        );
        let file = Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
        let id = file.tree().find(&name).unwrap();
        assert!(file.effective_array_in_frame(id, 1).unwrap().is_some());
        let error = file.effective_array_in_frame(id, 2).err().unwrap();
        assert_eq!((error.code(), error.frame()), ("gsd-019", Some(2)), "{error}");
    }
}

#[test]
fn a_number_of_particles_is_an_integer() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    raw(&path, &[(0, "particles/N", Type::Double, 1, &2.7_f64.to_le_bytes())]);
    assert_eq!(open(&path).read(0).unwrap_err().code(), "gsd-040");
}

#[test]
fn a_damaged_frame_number_is_an_error_of_the_log_and_takes_no_memory() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let value = 1.0_f64.to_le_bytes();
    let chunks: Vec<_> = (0..2000).map(|k| (k, "log/E", Type::Double, 1, &value[..])).collect();
    raw(&path, &chunks);
    let original = std::fs::read(&path).unwrap();
    let file = File::open(&path, &Limits::default()).unwrap();
    let index = file.header().index.location as usize;
    for frame in [3_u64, 1 << 40] {
        let mut bytes = original.clone();
        let at = index + 700 * 32;
        bytes[at..at + 8].copy_from_slice(&frame.to_le_bytes());
        let file = File::from_source(&Source::memory(bytes), &Limits::default()).unwrap();
        let log = Trajectory::new(file).and_then(|file| file.read_log());
        assert_eq!(log.unwrap_err().code(), "gsd-012", "frame {frame}");
    }
}
