//! Datasets of other formats written as SDF.

use std::sync::Arc;

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::dtype::{DType, Kind};
use spile_core::error::{ErrorKind, Result};
use spile_core::format::{FormatWriter as _, OpenOptions, write_file};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout, Linear};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{Overwrite, Sink};
use spile_core::testkit::assert_same_content;
use spile_core::tree::Tree;
use spile_core::wire::ByteOrder;
use spile_core::{Dataset, Limits, ROOT, Source};
use spile_sdf::{BlockType, Sdf};

#[path = "support/opened.rs"]
mod opened;
use opened::{Opened, check};

/// A dataset of another format.
struct Other {
    tree: Tree,
}

impl Other {
    fn new() -> Self {
        Self { tree: Tree::new(&Limits::default()) }
    }

    fn add(
        &mut self,
        path: &str,
        dtype: DType,
        shape: &[u64],
        order: Order,
        bytes: Vec<u8>,
    ) -> &mut ArrayDesc {
        let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
        let group = self.tree.group_at(group).unwrap();
        let desc = ArrayDesc::new(dtype, Shape::new(shape), Layout::Inline(bytes.into(), order));
        let id = self.tree.add_array(group, name, desc).unwrap();
        self.tree.node_mut(id).array.as_mut().unwrap()
    }

    fn convert(&self) -> Result<Opened> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sdf");
        let mut sink = Sink::create(&path, Overwrite::Never)?;
        let content = Dataset::new(Source::memory([]), self.tree.clone());
        let losses = Sdf.losses(&content, &path);
        let written = Sdf.write(&content, &mut sink, &spile_core::format::WriteOptions::default());
        // Planning fails with the error of writing.
        assert_eq!(
            losses.err().map(|e| e.to_string()),
            written.as_ref().err().map(ToString::to_string)
        );
        assert_eq!(written?, []);
        sink.commit()?;
        assert_eq!(check(&Source::open(&path)?, true).findings, []);
        Opened::open(&path)
    }
}

#[test]
fn values_and_indices_are_preserved() {
    let mut other = Other::new();
    let shorts: Vec<u8> = (0..6_i16).flat_map(|v| (v - 3).to_le_bytes()).collect();
    other.add("deep/down/shorts", DType::I16, &[2, 3], Order::C, shorts);
    other.add("bytes", DType::U8, &[3], Order::C, vec![0, 128, 255]);
    other.add("one", DType::F64, &[], Order::C, 2.5_f64.to_le_bytes().to_vec());
    other.add("labels", DType::text(4), &[2], Order::C, b"onetwo  ".to_vec());
    other.add("none", DType::F32, &[0, 5], Order::F, Vec::new());
    let file = other.convert().unwrap();
    let read =
        |path: &str, axes| file.array(path).unwrap().read_f64(&Selection::all(), axes).unwrap();
    let c = Axes::Order(Order::C);
    assert_eq!(read("deep/down/shorts", c), [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]);
    assert_eq!(file.array("deep/down/shorts").unwrap().shape().lengths(), [2, 3]);
    assert_eq!(read("bytes", c), [0.0, 128.0, 255.0]);
    assert_eq!(read("one", c), [2.5]);
    assert_eq!(file.find("one").next().unwrap().kind(), BlockType::Constant);
    let labels = file.array("labels").unwrap();
    assert_eq!((labels.dtype(), labels.shape().lengths()), (DType::text(4), &[2][..]));
    assert_eq!(file.array("none").unwrap().shape().lengths(), [0, 5]);
    assert_eq!(file.header().code_name, "spile");
}

#[test]
fn coordinates_become_a_mesh_and_scaling_factors_are_kept() {
    let mut other = Other::new();
    let times: Vec<u8> = [0.0_f64, 0.5, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    other.add("time", DType::F64, &[3], Order::C, times);
    let time = other.tree.find("time").unwrap();
    let desc = other.add("signal", DType::U16, &[3, 2], Order::F, vec![1; 12]);
    desc.coords = vec![Coord::Node(time), Coord::Uniform { start: 10.0, step: 0.25 }];
    desc.dims = vec!["t".into(), "x".into()];
    desc.map = Some(Linear::new(0.0, 0.5));
    let id = other.tree.find("signal").unwrap();
    other.tree.node_mut(id).attrs.push("units", "V");
    let file = other.convert().unwrap();
    let array = file.array("signal").unwrap();
    let values = array.read_f64(&Selection::all(), Axes::Stored).unwrap();
    assert_eq!(values, [128.5; 6]);
    let node = file.tree().node(file.tree().find("signal").unwrap());
    assert_eq!(node.attrs.get_str("units"), Some("V"));
    let points = |axis: usize| {
        let Coord::Node(id) = node.array.as_ref().unwrap().coords[axis] else { panic!() };
        let path = &file.tree().node(id).path;
        file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap()
    };
    assert_eq!((points(0), points(1)), (vec![0.0, 0.5, 2.0], vec![10.0, 10.25]));
}

#[test]
fn arrays_that_sdf_cannot_express_are_refused() {
    let refused = |other: &Other| {
        let error = other.convert().err().unwrap();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "sdf-050"), "{error}");
        assert_eq!(error.object(), Some("\"a\""));
    };
    let mut other = Other::new();
    other.add("a", DType::U64, &[1], Order::C, vec![0; 8]);
    refused(&other);
    let mut other = Other::new();
    let desc = other.add("a", DType::F64, &[1], Order::C, vec![0; 8]);
    desc.map = Some(Linear::new(1.0, 1.0));
    refused(&other);
}

/// Chunks of four elements of two bytes, one after the other.
struct Pairs;

impl ChunkTable for Pairs {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        Ok(Some(Chunk { extents: Extents::one(8 * number, 8), codec: None }))
    }
}

#[test]
fn scattered_elements_are_stored_as_bytes_and_restored() {
    let mut other = Other::new();
    let mut add = |name: &str, dtype: DType, shape: &[u64], layout: Layout| {
        let desc = ArrayDesc::new(dtype, Shape::new(shape), layout);
        other.tree.add_array(ROOT, name, desc).unwrap();
    };
    let big = DType::new(Kind::Int, 2, ByteOrder::Big).unwrap();
    for (name, dtype) in [("little", DType::I16), ("big", big)] {
        let chunks = Chunks {
            shape: Shape::new([3, 5]),
            chunk: Shape::new([2, 2]),
            axes: vec![0, 1],
            table: Arc::new(Pairs),
            fill: [0; 2].into(),
        };
        add(name, dtype, &[3, 5], Layout::Chunked { chunks: Arc::new(chunks), first: 0 });
        for order in [Order::C, Order::F] {
            let extents = Extents::one(0, 5 * 5 + 2);
            let layout = Layout::Rows { extents, stride: 5, order };
            add(&format!("{name}{order:?}"), dtype, &[2, 3], layout);
        }
    }
    // More dimensions than SDF has.
    let (extents, order) = (Extents::one(0, 31 * 3 + 1), Order::F);
    let deep = Layout::Rows { extents, stride: 3, order };
    add("deep", DType::opaque(1), &[2, 2, 2, 2, 2], deep);
    add("fill", DType::I16, &[3], Layout::Fill([7, 1].into()));
    let content = Dataset::new(Source::memory((0..200).collect::<Vec<u8>>()), other.tree);
    let flat = spile_interchange::flatten(&content, &Sdf.capabilities().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sdf");
    write_file(&Sdf, &flat, &path, Overwrite::Never).unwrap();
    let source = Source::open(&path).unwrap();
    assert_same_content(&content, &Dataset::open(&Sdf, source, &OpenOptions::default()).unwrap());
}
