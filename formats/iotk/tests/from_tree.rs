//! Datasets of other formats, written as IOTK files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, FormatWriter as _, LossKind, write_file};
use spile_core::frames::{FrameAxis, FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::semantics::Role;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::{assert_same_content, differences, files};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_iotk::{File, Iotk, Style, Target, Writer};

fn limits() -> Limits {
    Limits::default()
}

fn open(path: impl AsRef<Path>) -> Dataset {
    Dataset::open_path(&Iotk, path, &(&limits()).into()).unwrap()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk").join(name)
}

/// A dataset of another format, in memory.
fn foreign(arrays: &[(&str, ArrayDesc)]) -> Dataset {
    let mut tree = Tree::new(&limits());
    let group = tree.add_group(ROOT, "g").unwrap();
    // Names with another meaning in IOTK.
    let attrs = [("type", "real".into()), ("", Value::UInt(1)), ("a b", Value::UInt(2))];
    tree.node_mut(group).attrs = attrs.into();
    for (name, desc) in arrays {
        let node = tree.add_array(group, name, desc.clone()).unwrap();
        tree.node_mut(node).attrs.push("size", "large");
    }
    Dataset::new(Source::memory([]), tree)
}

fn inline(dtype: DType, lengths: &[u64], bytes: &[u8], order: Order) -> ArrayDesc {
    ArrayDesc::new(dtype, Shape::new(lengths), Layout::Inline(bytes.into(), order))
}

#[test]
fn trees_of_other_formats_keep_their_values() {
    let half = DType::new(Kind::Float, 2, ByteOrder::Little).unwrap();
    let mut mapped = inline(DType::I16, &[2], &[1, 0, 2, 0], Order::C);
    mapped.map = Some(Linear::new(0.5, 2.0));
    let high: Vec<u8> = [u32::MAX, 7].iter().flat_map(|n| n.to_le_bytes()).collect();
    let rows: Vec<u8> = (0..6_i32).flat_map(i32::to_le_bytes).collect();
    let content = foreign(&[
        ("u8", inline(DType::U8, &[3], &[0, 127, 255], Order::C)),
        ("u32", inline(DType::U32, &[2], &high, Order::C)),
        ("u64", inline(DType::U64, &[1], &(i64::MAX as u64).to_le_bytes(), Order::C)),
        ("half", inline(half, &[2], &[0x00, 0x3c, 0xff, 0x7b], Order::C)),
        ("mapped", mapped),
        ("opaque", inline(DType::opaque(3), &[2], b"abcdef", Order::C)),
        // Row-major in the source, column-major in the file.
        ("rows", inline(DType::I32, &[2, 3], &rows, Order::C)),
    ]);
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.dat", "a.xml"] {
        let path = folder.path().join(name);
        write_file(&Iotk, &content, &path, Overwrite::Never).unwrap();
        let file = open(&path);
        let report = Iotk.check(file.source(), &limits(), false).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let array = |path: &str| file.array(path).unwrap();
        let read =
            |path: &str| array(path).read_f64(&Selection::all(), Axes::Order(Order::C)).unwrap();
        assert_eq!(read("g/u8"), [0.0, 127.0, 255.0], "{name}");
        assert_eq!(read("g/u32"), [f64::from(u32::MAX), 7.0]);
        let native = File::open(&path, &limits()).unwrap();
        assert_eq!(native.read::<i64>("g/u64/integer").unwrap(), Some(vec![i64::MAX]));
        assert_eq!(read("g/half"), [1.0, 65504.0]);
        assert_eq!(read("g/mapped"), [2.5, 4.5]);
        assert_eq!(read("g/rows"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            (array("g/opaque").dtype(), array("g/opaque").shape().lengths()),
            (DType::opaque(3), &[2][..])
        );
        assert_eq!(
            array("g/opaque").read_bytes(&Selection::all(), Axes::Stored).unwrap(),
            b"abcdef"
        );
        let attrs = |path: &str| file.tree().node(file.tree().find(path).unwrap()).attrs.clone();
        let names: Vec<String> = attrs("g").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["type_", "_", "a_b"]);
        assert_eq!(attrs("g/u8"), Attrs::from([("size_", "large".into())]));
        // Again, from an IOTK file.
        let again = folder.path().join(format!("again-{name}"));
        write_file(&Iotk, &file, &again, Overwrite::Never).unwrap();
        assert_same_content(&file, &open(&again));
    }
    let refused = |desc| {
        let path = folder.path().join("no.dat");
        write_file(&Iotk, &foreign(&[("x", desc)]), &path, Overwrite::Never).unwrap_err()
    };
    let error = refused(inline(DType::U64, &[1], &u64::MAX.to_le_bytes(), Order::C));
    assert!(error.to_string().contains("does not fit"), "{error}");
    let error = refused(inline(DType::U8, &[1; 8], &[1], Order::C));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "iotk-017"));
    // From a slice in memory.
    let mut writer = Writer::new(Vec::new(), Target::Text, Style::Exact).unwrap();
    writer.dat_slice("x", &Attrs::new(), &[200_u8, 3]).unwrap();
    let bytes = writer.finish().unwrap();
    let file = File::from_source(Source::memory(bytes), &limits()).unwrap();
    assert_eq!(file.read::<u8>("x").unwrap(), Some(vec![200, 3]));
}

/// Writes `content`, reads it and compares: every difference is a declared loss and every declared loss
/// is a difference. Returns the losses.
fn declared(content: &Dataset, name: &str) -> Vec<(String, LossKind, Option<String>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let losses = Iotk.losses(content, &path).unwrap();
    let more = write_file(&Iotk, content, &path, Overwrite::Never).unwrap();
    assert!(more.is_empty(), "{more:?}");
    let found = differences(content, &open(&path)).unwrap();
    let kind = |kind: LossKind| match kind {
        LossKind::Array | LossKind::Group | LossKind::Name => "missing",
        LossKind::Attribute => "attributes",
        LossKind::Type => "element type",
        LossKind::Shape => "shape",
        LossKind::Dimensions => "dimensions",
        LossKind::Coordinates => "coordinates",
        LossKind::Scaling => "scaling",
        LossKind::Meaning => "semantics",
        LossKind::Frames => "frames",
        _ => "values",
    };
    let at = |path: &str| if path.is_empty() { "the file".to_string() } else { path.to_string() };
    let expected: BTreeSet<String> = losses
        .iter()
        .map(|loss| match loss.kind {
            LossKind::Frames => "frames".to_string(),
            kind_of => format!("{}: {}", at(&loss.path), kind(kind_of)),
        })
        .collect();
    let changed = |path: &str| expected.contains(&format!("{path}: element type"));
    let scaled = |path: &str| expected.contains(&format!("{path}: scaling"));
    for difference in &found {
        let (path, what) = difference.split_once(": ").unwrap_or((difference, ""));
        let values = what.starts_with("values") && (changed(path) || scaled(path));
        // The new name of a renamed node.
        let covered = values
            || what == "new"
            || (difference.contains("frames became") && expected.contains("frames"))
            || expected.iter().any(|loss| difference.starts_with(loss.as_str()));
        assert!(covered, "{name}: not declared: {difference}\n{losses:?}");
    }
    for loss in &expected {
        // What else changes in a renamed node is not compared.
        let renamed = loss.split_once(": ").is_some_and(|(path, _)| {
            found.iter().any(|difference| *difference == format!("{path}: missing"))
        });
        let real = found.iter().any(|difference| {
            renamed
                || difference.starts_with(loss.as_str())
                || (loss == "frames" && difference.contains("frames became"))
        });
        assert!(real, "{name}: declared, but kept: {loss}\n{found:?}");
    }
    losses.into_iter().map(|loss| (loss.path, loss.kind, loss.name)).collect()
}

#[test]
fn golden_files_are_written_without_losses() {
    for path in files(golden("golden")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Values were lost when these texts were written.
        if ["types.xml", "special.xml", "raw.xml"].contains(&name) {
            continue;
        }
        for target in ["a.xml", "a.dat"] {
            // The padding of 80-bit numbers is undefined.
            if target == "a.xml" && ["types.dat", "special.dat"].contains(&name) {
                continue;
            }
            assert_eq!(declared(&open(&path), target), [], "{name} to {target}");
        }
    }
    for name in ["data-file.xml", "charge-density.dat", "K00001/evc.dat", "K00001/eigenval.xml"] {
        assert_eq!(declared(&open(golden("qe54_si/si.save").join(name)), "a.xml"), [], "{name}");
    }
    // Assembled arrays of the linked files are assembled again, but for the names of dimensions of plane waves.
    let losses = declared(&open(golden("qe54_si/si.save")), "a.dat");
    let is_dimension = |(path, kind, _): &(String, LossKind, Option<String>)| {
        path.starts_with("wavefunctions/") && *kind == LossKind::Dimensions
    };
    assert!(losses.iter().all(is_dimension), "{losses:?}");
}

#[test]
fn the_losses_of_foreign_content_are_those_found_after_writing() {
    let numbers: Vec<u8> = (0..6_i32).flat_map(i32::to_le_bytes).collect();
    let reals: Vec<u8> = [1.0_f64, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut tree = Tree::new(&limits());
    tree.node_mut(ROOT).attrs = Attrs::from([
        ("run", Value::Int(42)),
        ("version", "2.5".into()),
        ("binary", "maybe".into()),
        ("file_version", "3.1".into()),
        ("flag", Value::Bool(true)),
    ]);
    let empty = tree.add_group(ROOT, "nothing inside").unwrap();
    tree.node_mut(empty).attrs =
        Attrs::from([("kept", "text".into()), ("type", "integer".into()), ("n", Value::UInt(3))]);
    let group = tree.add_group(ROOT, "g").unwrap();
    let x = tree.add_array(group, "x", inline(DType::F64, &[3], &reals, Order::C)).unwrap();
    let mut desc = inline(DType::I32, &[2, 3], &numbers, Order::C);
    desc.dims = vec!["row".into(), "x".into()];
    desc.coords = vec![Coord::Uniform { start: 0.0, step: 0.5 }, Coord::Node(x)];
    desc.semantics_mut().role = Role::Field;
    desc.semantics_mut().mesh = Some(x);
    let field = tree.add_array(group, "field", desc).unwrap();
    tree.node_mut(field).attrs = Attrs::from([
        ("units", "V".into()),
        ("size", Value::Int(1)),
        ("list", Value::List(vec![])),
    ]);
    let mut scaled = inline(DType::I32, &[6], &numbers, Order::C);
    scaled.map = Some(Linear::new(1.0, 0.5));
    tree.add_array(group, "scaled", scaled).unwrap();
    tree.add_array(group, "unsigned", inline(DType::U8, &[3], &[1, 2, 255], Order::C)).unwrap();
    tree.add_array(group, "opaque", inline(DType::opaque(3), &[1], b"abc", Order::C)).unwrap();
    tree.add_array(group, "real", inline(DType::F64, &[3], &reals, Order::C)).unwrap();
    // An array below an array, and a selected part of an assembled one.
    tree.add_array(x, "below", inline(DType::F64, &[3], &reals, Order::C)).unwrap();
    let bands = tree.add_array(ROOT, "bands", inline(DType::F64, &[3], &reals, Order::C)).unwrap();
    tree.node_mut(bands).attrs.push("assembled_from", "nowhere");
    let content = Dataset::new(Source::memory([]), tree);
    for name in ["a.xml", "a.dat"] {
        let losses = declared(&content, name);
        let has = |path: &str, kind: LossKind, name: Option<&str>| {
            let loss = (path.to_string(), kind, name.map(Into::into));
            assert!(losses.contains(&loss), "{loss:?} is not among {losses:?}");
        };
        has("", LossKind::Attribute, Some("version"));
        has("", LossKind::Attribute, Some("flag"));
        has("nothing inside", LossKind::Name, None);
        has("g/field", LossKind::Attribute, Some("size"));
        has("g/field", LossKind::Coordinates, None);
        has("g/field", LossKind::Dimensions, None);
        has("g/field", LossKind::Meaning, None);
        has("g/scaled", LossKind::Scaling, None);
        has("g/unsigned", LossKind::Type, None);
        has("g/real", LossKind::Name, None);
        has("g/x/below", LossKind::Array, None);
        let kept = [("", "run"), ("", "file_version"), ("g/field", "units")];
        for (path, name) in kept {
            let lost =
                losses.iter().any(|(at, _, lost)| at == path && lost.as_deref() == Some(name));
            assert!(!lost, "{path} {name}");
        }
        assert!(losses.iter().all(|(path, ..)| path != "bands" && path != "g/opaque"));
    }
}

struct Steps;

impl FrameAxis for Steps {
    fn len(&self) -> u64 {
        2
    }

    fn step(&self, frame: u64) -> spile_core::Result<Option<u64>> {
        Ok(Some(frame))
    }

    fn time(&self, _: u64) -> spile_core::Result<Option<f64>> {
        Ok(None)
    }
}

impl FrameTable for Steps {
    fn len(&self) -> u64 {
        2
    }

    fn cell(&self, _: u64) -> spile_core::Result<Option<FrameCell>> {
        Ok(None)
    }
}

#[test]
fn what_cannot_be_written_fails_the_same_before_writing() {
    let folder = tempfile::tempdir().unwrap();
    let mut frames = Tree::new(&limits());
    frames.set_frames(Arc::new(Steps));
    frames.add_array(ROOT, "x", inline(DType::U8, &[1], &[1], Order::C)).unwrap();
    let content = Dataset::new(Source::memory([]), frames.clone());
    assert!(declared(&content, "a.dat").iter().any(|(_, kind, _)| *kind == LossKind::Frames));
    let per_frame = ArrayDesc::new(DType::U8, Shape::new([1]), Layout::PerFrame(Arc::new(Steps)));
    frames.add_array(ROOT, "y", per_frame).unwrap();
    let mut long = Tree::new(&limits());
    let node: NodeId = long.add_group(ROOT, "g").unwrap();
    long.node_mut(node).attrs.push("long", "x".repeat(9 << 20));
    let deep = inline(DType::U8, &[1; 8], &[1], Order::C);
    for (content, code) in [
        (Dataset::new(Source::memory([]), frames), "iotk-017"),
        (Dataset::new(Source::memory([]), long), "iotk-016"),
        (foreign(&[("deep", deep)]), "iotk-017"),
    ] {
        let path = folder.path().join("no.dat");
        let planned = Iotk.losses(&content, &path).unwrap_err();
        let written = write_file(&Iotk, &content, &path, Overwrite::Never).unwrap_err();
        assert_eq!((planned.code(), planned.message()), (code, written.message()));
    }
}

#[test]
fn a_flattened_dataset_is_restored_completely() {
    let folder = tempfile::tempdir().unwrap();
    let mut scaled = inline(DType::I16, &[2], &[1, 0, 2, 0], Order::C);
    scaled.map = Some(Linear::new(0.5, 2.0));
    scaled.dims = vec!["time".into()];
    let opaque = inline(DType::opaque(3), &[1, 2], b"abcdef", Order::C);
    let foreign = foreign(&[("two words", scaled), ("opaque", opaque)]);
    for (k, content) in [foreign, open(golden("qe54_si/si.save"))].iter().enumerate() {
        let flat = spile_interchange::flatten(content, &Iotk.capabilities().unwrap()).unwrap();
        for extension in ["xml", "dat"] {
            let path = folder.path().join(format!("{k}.{extension}"));
            write_file(&Iotk, &flat, &path, Overwrite::Never).unwrap();
            let again = open(&path);
            assert!(again.warnings().is_empty(), "{:?}", again.warnings());
            assert_same_content(content, &again);
        }
    }
}
