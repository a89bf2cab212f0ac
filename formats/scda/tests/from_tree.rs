//! Any dataset written as scda reads back as the same tree.

use std::sync::Arc;

use spile_core::comm::Serial;
use spile_core::dtype::DType;
use spile_core::error::{ErrorKind, Result};
use spile_core::format::{Format as _, Object, Reader, Region, write_file};
use spile_core::frames::{FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::assert_same_content;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_scda::{Elements, File, Options, Scda, Writer};

struct TestReader(Source, Tree);

impl Reader for TestReader {
    fn tree(&self) -> &Tree {
        &self.1
    }
    fn source(&self) -> &Source {
        &self.0
    }
    fn summary(&self) -> Attrs {
        Vec::new()
    }
    fn regions(&self, _: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        Ok(())
    }
    fn objects(&self, _: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        Ok(())
    }
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

fn everything() -> TestReader {
    let noise: Vec<u8> =
        (0..3_000_000_u64).map(|k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let mut s = Samples { tree: Tree::new(&Limits::default()), bytes: noise.len() as u64 };
    let root = s.tree.node_mut(ROOT);
    root.attrs.push(("user".into(), "a run".into()));
    root.attrs.push(("count".into(), Value::Int(3)));
    root.attrs.push(("bad".into(), Value::Float(f64::NAN)));
    let group = s.tree.group_at("fields/electric").unwrap();
    s.tree.node_mut(group).attrs.push(("twice".into(), 1_u64.into()));
    s.tree.node_mut(group).attrs.push(("twice".into(), Value::Complex(0.5, f64::INFINITY)));
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
    s.tree.node_mut(mapped).attrs.push(("units".into(), "V".into()));
    // A child of an array, and a long name.
    s.add(line, "below", "uint8", &[1], Layout::Fill([1].into()));
    s.add(ROOT, &"ü".repeat(100), "uint8", &[1], Layout::Fill([1].into()));
    TestReader(Source::memory(noise), s.tree)
}

#[test]
fn every_kind_of_array_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let (tree, limits) = (everything(), Limits::default());
    write_file(&Scda, &tree, &first, Overwrite::Never, &limits).unwrap();
    let file = File::open(&first, &limits).unwrap();
    assert_same_content(&tree, &file);
    assert_eq!(file.header().user, b"a run");
    let report = Scda.check(file.source(), &limits, true).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    let node =
        |name: &str| file.tree().node(file.tree().find(name).unwrap()).array.clone().unwrap();
    assert_eq!(node("ragged numbers").dtype.to_string(), "float32-be");
    assert_eq!(node("as many bytes as elements").ragged(), Some(&[0, 2, 2, 3][..]));
    // Writing the result gives the same bytes.
    write_file(&Scda, &file, &second, Overwrite::Never, &limits).unwrap();
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
}

#[test]
fn large_arrays_are_written_in_limited_memory() {
    let folder = tempfile::tempdir().unwrap();
    let tree = everything();
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    let path = folder.path().join("tight");
    write_file(&Scda, &tree, &path, Overwrite::Never, &limits).unwrap();
    let generous = folder.path().join("generous");
    write_file(&Scda, &tree, &generous, Overwrite::Never, &Limits::default()).unwrap();
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&generous).unwrap());
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
        File::open(&path, &Limits::default()).unwrap()
    });
    assert_same_content(&files[0], &files[1]);
    for file in &files {
        let lists = file.tree().node(file.tree().find("lists").unwrap()).array.clone().unwrap();
        assert_eq!((lists.dtype, lists.ragged()), (DType::opaque(1), Some(&[0, 16, 16, 24][..])));
    }
    let tree = files[1].tree();
    assert_eq!(tree.attrs(), &vec![("step".into(), Value::UInt(7))]);
    let array = tree.node(tree.find("g/x").unwrap()).array.clone().unwrap();
    assert_eq!(
        (array.dtype.to_string(), array.shape.to_string()),
        ("float64-be".into(), "3 x 2".into())
    );
    // Without decoding every raw section is an array.
    let raw = File::from_source(files[0].source().clone(), false, &Limits::default()).unwrap();
    assert_eq!(raw.tree().len(), raw.sections().len());
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
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let desc = ArrayDesc::new(DType::U8, Shape::new([1]), Layout::PerFrame(Arc::new(Frames)));
    tree.add_array(ROOT, "moving", desc).unwrap();
    let path = folder.path().join("frames");
    let reader = TestReader(Source::memory(Vec::new()), tree);
    let error =
        write_file(&Scda, &reader, &path, Overwrite::Never, &Limits::default()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "scda-030"));
    assert!(error.to_string().contains("moving") && !path.exists());
}
