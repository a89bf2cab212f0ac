//! Any dataset written as scda reads back as the same tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spile_core::comm::Serial;
use spile_core::computed::{Computed, Function, store_f64};
use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Checker as _, FormatWriter as _, LossKind, OpenOptions, write_file};
use spile_core::frames::{FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::semantics::{Centring, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::{assert_same_content, differences};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_core::{Array, Dataset};
use spile_interchange::flatten;
use spile_scda::{Elements, File, Options, Scda, Writer};

fn open(path: &Path) -> Dataset {
    Dataset::open_path(&Scda, path, &OpenOptions::default()).unwrap()
}

fn write(content: &Dataset, path: &Path) -> Result<()> {
    write_file(&Scda, content, path, Overwrite::Never).map(|losses| assert_eq!(losses, []))
}

/// A codec that copies bytes.
struct Identity;

impl Codec for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }
    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(stored);
        Ok(())
    }
}

/// A tree of arrays in a file of noise.
struct Samples {
    tree: Tree,
    bytes: u64,
}

impl Samples {
    fn plain(&self, len: u64, order: Order) -> Layout {
        let half = len / 2;
        let parts = vec![
            Extent { offset: 7, len: half },
            Extent { offset: self.bytes / 2, len: len - half },
        ];
        Layout::Plain { extents: Extents::several(parts).unwrap(), order }
    }

    fn encoded(lengths: &[u64]) -> Layout {
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        let data = Extents::one(100, starts[starts.len() - 1]);
        let starts: Arc<[u64]> = starts.into();
        let (decoded, codec) = (starts.clone(), Arc::new(Identity));
        Layout::Encoded { starts, decoded, data, codec, order: Order::C }
    }

    fn add(
        &mut self,
        parent: NodeId,
        name: &str,
        dtype: &str,
        shape: &[u64],
        layout: Layout,
    ) -> NodeId {
        let desc = ArrayDesc::new(dtype.parse().unwrap(), Shape::new(shape), layout);
        self.tree.add_array(parent, name, desc).unwrap()
    }

    fn desc(&mut self, id: NodeId) -> &mut ArrayDesc {
        self.tree.node_mut(id).array.as_mut().unwrap()
    }
}

fn everything() -> Dataset {
    let noise: Vec<u8> =
        (0..3_000_000_u64).map(|k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let mut s = Samples { tree: Tree::new(&Limits::default()), bytes: noise.len() as u64 };
    let root = s.tree.node_mut(ROOT);
    root.attrs.push("user", "a run");
    root.attrs.push("count", Value::Int(3));
    root.attrs.push("bad", Value::Float(f64::NAN));
    let group = s.tree.group_at("fields/electric").unwrap();
    s.tree.node_mut(group).attrs.push("twice", 1_u64);
    s.tree.node_mut(group).attrs.push("twice", Value::Complex(0.5, f64::INFINITY));
    s.tree.group_at("nothing in here").unwrap();

    for (k, dtype) in [
        "float64-be",
        "int16",
        "bool32-be",
        "complex64-be",
        "float128",
        "complex-x87",
        "text[5]",
        "opaque[3]",
    ]
    .iter()
    .enumerate()
    {
        let dtype_size = dtype.parse::<DType>().unwrap().size() as u64;
        let order = if k % 2 == 0 { Order::C } else { Order::F };
        let layout = s.plain(24 * dtype_size, order);
        s.add(group, dtype, dtype, &[2, 3, 4], layout);
    }
    // Larger than the buffer of the writer.
    let long = s.plain(8 * 150_000, Order::F);
    let ex = s.add(group, "ex", "float64-be", &[300, 500], long);
    let long = s.plain(3 * 400_001, Order::C);
    s.add(group, "triples", "opaque[3]", &[400_001], long);

    let one = s.plain(8, Order::C);
    s.add(ROOT, "scalar", "float64", &[], one);
    let none = s.plain(0, Order::C);
    for (name, shape) in [
        ("no rows", &[0, 5][..]),
        ("no columns", &[5, 0]),
        ("huge", &[0, 1 << 40, 1 << 40]),
        ("nothing", &[0]),
    ] {
        s.add(ROOT, name, "int32", shape, none.clone());
    }
    s.add(ROOT, "text[0]", "text[0]", &[4], none);
    s.add(ROOT, "inline", "int32", &[2], Layout::Inline([1, 0, 0, 0, 2, 0, 0, 0].into(), Order::C));
    s.add(ROOT, "fill", "int16", &[1000, 3], Layout::Fill([1, 2].into()));
    let again = s.add(ROOT, "again", "float64", &[300, 500], Layout::Same(ex));
    s.desc(again).dims = vec!["x".into(), "y".into()];

    let ragged = |starts: &[u64], at| Layout::Ragged {
        starts: starts.into(),
        data: Extents::one(at, starts[starts.len() - 1]),
    };
    s.add(ROOT, "ragged", "opaque[1]", &[4], ragged(&[0, 3, 3, 10, 11], 50));
    s.add(ROOT, "ragged numbers", "float32-be", &[3], ragged(&[0, 8, 8, 24], 60));
    s.add(ROOT, "no numbers", "float32", &[3], ragged(&[0, 8, 8, 23], 60));
    s.add(ROOT, "ragged, empty", "opaque[1]", &[0], ragged(&[0], 60));
    let parts = Samples::encoded(&[5, 0, 10, 9]);
    s.add(ROOT, "encoded in parts", "float64", &[3], parts);
    let parts = Samples::encoded(&[300_000, 900_000]);
    s.add(ROOT, "large parts", "float64-be", &[300, 500], parts);
    let parts = Samples::encoded(&[2, 0, 1]);
    s.add(ROOT, "as many bytes as elements", "opaque[1]", &[3], parts);
    let parts = Samples::encoded(&[8, 16, 0, 8]);
    s.add(ROOT, "encoded ragged", "opaque[1]", &[4], parts);

    let grid = s.plain(16, Order::C);
    let mapped = s.add(ROOT, "mapped", "uint8", &[2, 16], grid);
    s.desc(mapped).layout = Layout::Fill([7].into());
    let line = s.add(ROOT, "line", "uint8", &[2], Layout::Fill([9].into()));
    s.desc(mapped).map = Some(Linear::new(0.1, -1e-300));
    s.desc(mapped).coords = vec![Coord::Node(line), Coord::Uniform { start: -0.1, step: 1e-9 }];
    s.tree.node_mut(mapped).attrs.push("units", "V");
    // A child of an array, and a long name.
    s.add(line, "below", "uint8", &[1], Layout::Fill([1].into()));
    s.add(ROOT, &"ü".repeat(100), "uint8", &[1], Layout::Fill([1].into()));
    Dataset::new(Source::memory(noise), s.tree)
}

#[test]
fn every_kind_of_array_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let content = everything();
    assert_eq!(Scda.losses(&content, &first).unwrap(), []);
    write(&content, &first).unwrap();
    let file = open(&first);
    assert_same_content(&content, &file);
    assert_eq!(File::open(&first, &Limits::default()).unwrap().header().user, b"a run");
    let report = Scda.check(file.source(), &Limits::default(), true).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    let node =
        |name: &str| file.tree().node(file.tree().find(name).unwrap()).array.clone().unwrap();
    assert_eq!(node("ragged numbers").dtype.to_string(), "float32-be");
    assert_eq!(node("as many bytes as elements").ragged(), Some(&[0, 2, 2, 3][..]));
    // Writing the result gives the same bytes.
    write(&file, &second).unwrap();
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
}

#[test]
fn large_arrays_are_written_in_limited_memory() {
    let folder = tempfile::tempdir().unwrap();
    let content = everything();
    let (tight, generous) = (folder.path().join("tight"), folder.path().join("generous"));
    write(&content, &generous).unwrap();
    write(&content.with_limits(Limits::default().with_memory(1 << 20)), &tight).unwrap();
    assert!(std::fs::read(&tight).unwrap() == std::fs::read(&generous).unwrap());
}

/// Numbers from 0 on; counts the calls.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Function for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }
    fn memory(&self, count: u64) -> u64 {
        count * 8
    }
    fn compute(&self, _: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let values: Vec<f64> = (0..out.len() / 8).map(|k| (first + k as u64) as f64).collect();
        store_f64(DType::F64, &values, out)
    }
}

#[test]
fn every_piece_of_a_computed_array_is_computed_once() {
    let folder = tempfile::tempdir().unwrap();
    for (piece, calls) in [(400_000, 1), (7_000, 58), (1 << 40, 1)] {
        let function = Arc::new(Counting::default());
        let computed =
            Computed { inputs: Vec::new(), function: function.clone(), piece, order: Order::F };
        let layout = Layout::Computed(Arc::new(computed));
        let mut tree = Tree::new(&Limits::default());
        let desc = ArrayDesc::new(DType::F64, Shape::new([800, 500]), layout);
        tree.add_array(ROOT, "computed", desc).unwrap();
        let content = Dataset::new(Source::memory([]), tree);
        let path = folder.path().join(piece.to_string());
        write(&content, &path).unwrap();
        assert_eq!(function.0.load(Ordering::Relaxed), calls);
        assert_same_content(&content, &open(&path));
    }
}

/// Checks that every difference between `content` and the written file is a declared loss of the same
/// object, and every loss a difference. Returns paths and kinds of the losses.
fn check_losses(content: &Dataset) -> Vec<(String, LossKind)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written");
    let losses = Scda.losses(content, &path).unwrap();
    write(content, &path).unwrap();
    let differences = differences(content, &open(&path)).unwrap();
    let about = |difference: &str, path: &str| difference.starts_with(&format!("{path}: "));
    for difference in &differences {
        assert!(losses.iter().any(|loss| about(difference, &loss.path)), "{difference}");
    }
    for loss in &losses {
        assert!(differences.iter().any(|difference| about(difference, &loss.path)), "{loss:?}");
    }
    losses.into_iter().map(|loss| (loss.path, loss.kind)).collect()
}

#[test]
fn losses_are_the_differences_of_the_written_file() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/scda");
    for path in spile_core::testkit::files(folder) {
        if path.extension().is_some_and(|e| e == "scd") {
            assert_eq!(check_losses(&open(&path)), [], "{}", path.display());
        }
    }
    let mut s = Samples { tree: Tree::new(&Limits::default()), bytes: 0 };
    let x = s.add(ROOT, "x", "uint8", &[3], Layout::Fill([1].into()));
    s.desc(x).semantics_mut().role = Role::Mesh;
    let group = s.tree.group_at("fields").unwrap();
    let ex = s.add(group, "ex", "uint8", &[3], Layout::Fill([1].into()));
    let mut meaning = Semantics::role(Role::Field);
    (meaning.mesh, meaning.centring) = (Some(x), Some(Centring::Node));
    meaning.missing.values.push(255.0);
    *s.desc(ex).semantics_mut() = meaning;
    let scaling = Linear { intercept: 0.1, slope: -3.0, origin: 7.0 };
    s.desc(ex).map = Some(scaling);
    s.desc(ex).coords = vec![Coord::Node(x)];
    s.desc(ex).dims = vec!["x".into()];
    // With its metadata as JSON nothing is lost.
    let content = Dataset::new(Source::memory([]), s.tree.clone());
    let temp = tempfile::tempdir().unwrap();
    let flat = flatten(&content, &Scda.capabilities().unwrap()).unwrap();
    write(&flat, &temp.path().join("flat")).unwrap();
    assert_same_content(&content, &open(&temp.path().join("flat")));
    let starts = [0, 1, 3, 3, 4, 6, 8];
    let layout = Layout::Ragged { starts: starts.into(), data: Extents::one(0, 8) };
    let lists = s.add(ROOT, "lists", "opaque[1]", &[2, 3], layout);
    s.desc(lists).dims[0] = "x".into();
    s.desc(lists).coords[1] = Coord::Node(x);
    let losses = check_losses(&Dataset::new(Source::memory([7; 8]), s.tree));
    let expected = [
        ("x", LossKind::Meaning),
        ("fields/ex", LossKind::Meaning),
        ("lists", LossKind::Shape),
        ("lists", LossKind::Dimensions),
        ("lists", LossKind::Coordinates),
    ];
    assert_eq!(losses, expected.map(|(path, kind)| (path.to_string(), kind)));
}

/// The error of writing `content`, which is also that of its losses. No file is written.
fn refused(content: &Dataset) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refused");
    let error = write(content, &path).unwrap_err();
    let predicted = Scda.losses(content, &path).unwrap_err();
    assert_eq!((predicted.code(), predicted.to_string()), (error.code(), error.to_string()));
    assert!(!path.exists());
    error
}

#[test]
fn attributes_that_json_cannot_describe_are_an_error() {
    let deep = (0..200).fold(Value::Bool(true), |value, _| Value::List(vec![value]));
    for path in ["", "group", "array"] {
        let mut tree = Tree::new(&Limits::default());
        tree.group_at("group").unwrap();
        let desc = ArrayDesc::new(DType::U8, Shape::new([1]), Layout::Fill([1].into()));
        tree.add_array(ROOT, "array", desc).unwrap();
        let id = tree.at(path).unwrap();
        tree.push_attr(id, "deep", deep.clone()).unwrap();
        let error = refused(&Dataset::new(Source::memory([]), tree));
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "scda-031"));
        assert!(error.object().unwrap().contains(path), "{error}");
    }
}

#[test]
fn compressed_fields_are_the_same_tree() {
    let folder = tempfile::tempdir().unwrap();
    let files = [false, true].map(|encode| {
        let path = folder.path().join(encode.to_string());
        let mut file = Writer::create(&Serial, &path, b"", Options::default()).unwrap();
        let mut block = |user: &[u8], text: &str| {
            file.block(user, 0, text.len() as u64, Some(text.as_bytes()), encode).unwrap();
        };
        block(b"spile group 00", r#"{"group":"","attrs":{"step":7}}"#);
        block(
            b"spile field 00",
            r#"{"name":"g/x","dtype":">f8","shape":[2],"attrs":{"units":"m"}}"#,
        );
        let data: Vec<u8> = (0..48).collect();
        file.array(b"g/x", &[3], 16, Elements::Contiguous(&data), encode).unwrap();
        let text = r#"{"name":"lists","dtype":"<i8","shape":[]}"#;
        file.block(b"spile field 00", 0, text.len() as u64, Some(text.as_bytes()), encode).unwrap();
        // The total equals that of one value per element.
        file.varray(b"lists", &[3], &[16, 0, 8], Elements::Contiguous(&data[..24]), encode)
            .unwrap();
        file.close().unwrap();
        open(&path)
    });
    assert_same_content(&files[0], &files[1]);
    for file in &files {
        let lists = file.tree().node(file.tree().find("lists").unwrap()).array.clone().unwrap();
        assert_eq!((lists.dtype, lists.ragged()), (DType::opaque(1), Some(&[0, 16, 16, 24][..])));
    }
    let tree = files[1].tree();
    assert_eq!(tree.attrs(), &Attrs::from([("step", Value::UInt(7))]));
    let array = tree.node(tree.find("g/x").unwrap()).array.clone().unwrap();
    assert_eq!(
        (array.dtype.to_string(), array.shape.to_string()),
        ("float64-be".into(), "3 x 2".into())
    );
}

struct Frames;

impl FrameTable for Frames {
    fn len(&self) -> u64 {
        1
    }
    fn cell(&self, _: u64) -> Result<Option<FrameCell>> {
        Ok(None)
    }
}

#[test]
fn frames_are_an_error_with_the_name_of_the_array() {
    let mut tree = Tree::new(&Limits::default());
    let desc = ArrayDesc::new(DType::U8, Shape::new([1]), Layout::PerFrame(Arc::new(Frames)));
    tree.add_array(ROOT, "moving", desc).unwrap();
    let error = refused(&Dataset::new(Source::memory([]), tree));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "scda-030"));
    assert!(error.to_string().contains("moving"));
}
