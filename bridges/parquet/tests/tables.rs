//! Compressed files, unsupported files, row groups and frames.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{Checker as _, write_file};
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::assert_same_content;
use spile_core::tree::{ROOT, Tree};
use spile_parquet::Parquet;

fn golden(name: &str) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/parquet");
    Source::open(folder.join(name)).unwrap()
}

fn open(source: Source, limits: &Limits) -> Result<Dataset> {
    Dataset::open(&Parquet, source, &limits.into())
}

/// The values of a column, as stored.
fn values(file: &Dataset, path: &str) -> (DType, Vec<u8>) {
    let desc = file.tree().node(file.tree().find(path).unwrap()).array.clone().unwrap();
    let array = file.open_array(&desc).unwrap();
    (desc.dtype, array.read_bytes(&Selection::all(), Axes::Stored).unwrap())
}

#[test]
fn encoded_columns_have_the_values_of_plain_ones() {
    let limits = Limits::default();
    let open = |name: &str| open(golden(name), &limits).unwrap();
    let (plain, packed) = (open("plain.parquet"), open("snappy.parquet"));
    for (_, node, _) in plain.tree().arrays() {
        assert_eq!(values(&plain, &node.path), values(&packed, &node.path), "{}", node.path);
    }
    let gap: Vec<u8> = [1.5, f64::NAN].repeat(10).into_iter().flat_map(f64::to_le_bytes).collect();
    assert_eq!(values(&packed, "gap"), (DType::F64, gap));
}

#[test]
fn every_compression_and_both_page_versions_are_read() {
    let limits = Limits::default();
    let number = |k: i32| (k * k % 37).to_le_bytes();
    let real = |k: i32| if k % 7 == 0 { f64::NAN } else { f64::from(k) / 8.0 }.to_le_bytes();
    let word = |k: i32| {
        let mut word = format!("word {}", k % 90).repeat(k as usize % 5).into_bytes();
        word.resize(28, 0);
        word
    };
    for name in ["zstd.parquet", "gzip.parquet", "lz4.parquet", "second.parquet"] {
        let file = open(golden(name), &limits).unwrap();
        assert_eq!(values(&file, "n"), (DType::I32, (0..500).flat_map(number).collect()));
        assert_eq!(values(&file, "x"), (DType::F64, (0..500).flat_map(real).collect()));
        assert_eq!(values(&file, "word"), (DType::text(28), (0..500).flat_map(word).collect()));
        let ok = (0..500).map(|k| u8::from(k % 3 == 0)).collect::<Vec<_>>();
        assert_eq!(values(&file, "ok").1, ok, "{name}");
    }
}

#[test]
fn brotli_and_delta_have_the_values_of_plain_columns() {
    let limits = Limits::default();
    let plain = open(golden("plain.parquet"), &limits).unwrap();
    for (name, columns) in [("brotli.parquet", &["id", "x"][..]), ("delta.parquet", &["id"])] {
        let file = open(golden(name), &limits).unwrap();
        for column in columns {
            assert_eq!(values(&file, column), values(&plain, column), "{name}");
        }
    }
}

#[test]
fn pages_and_row_groups_form_one_array() {
    let limits = Limits::default();
    let files =
        ["plain.parquet", "groups.parquet"].map(|name| open(golden(name), &limits).unwrap());
    let mut seen = 0;
    for (_, node, desc) in files[1].tree().arrays() {
        let read = |file: &Dataset| {
            let own =
                file.tree().node(file.tree().find(&node.path).unwrap()).array.clone().unwrap();
            assert_eq!(own.dtype, desc.dtype);
            let array = file.open_array(&own).unwrap();
            array.read_bytes(&Selection::all(), Axes::Stored).unwrap()
        };
        assert_eq!(read(&files[0]), read(&files[1]), "{}", node.path);
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn opaque_bytes_keep_trailing_zeros() {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    let bytes = [1, 0, 0, 0, 0, 0, 9, 8, 0];
    let layout = Layout::Inline(Arc::from(bytes), Order::C);
    let array = ArrayDesc::new(DType::opaque(3), Shape::new([3]), layout);
    tree.add_array(ROOT, "raw", array).unwrap();
    let content = Dataset::new(Source::memory([]), tree);
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("raw.parquet");
    write_file(&Parquet, &content, &path, Overwrite::Never).unwrap();
    let back = open(Source::open(&path).unwrap(), &limits).unwrap();
    assert_same_content(&content, &back);
}

fn inline<T: Copy>(values: &[T], bytes: impl Fn(T) -> Vec<u8>) -> Arc<[u8]> {
    values.iter().flat_map(|v| bytes(*v)).collect::<Vec<u8>>().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn frames_of_any_length_round_trip(lengths in proptest::collection::vec(0_u64..5, 1..12), small in any::<bool>()) {
        let limits = Limits::default();
        let limits = if small { limits.with_memory(1 << 16) } else { limits };
        let mut tree = Tree::new(&limits);
        // Without rows the array does not exist in the frame.
        let cells = |size: u64, width: u64, seed: u64| {
            let cell = |(k, rows): (usize, &u64)| {
                let bytes: Vec<u8> = (0..rows * width * size).map(|b| (b * 37 + k as u64 + seed) as u8).collect();
                let lengths = if width == 1 { vec![*rows] } else { vec![*rows, width] };
                let layout = Layout::Inline(bytes.into(), Order::C);
                (*rows > 0).then(|| FrameCell { shape: Shape::new(lengths), layout })
            };
            Layout::PerFrame(Arc::new(Cells(lengths.iter().enumerate().map(cell).collect())))
        };
        let first = lengths.iter().copied().find(|n| *n > 0).unwrap_or(0);
        let mut v = ArrayDesc::new(DType::F32, Shape::new([first, 3]), cells(4, 3, 1));
        v.dims = vec!["particle".into(), "axis".into()];
        let id = tree.add_array(ROOT, "v", v).unwrap();
        tree.node_mut(id).attrs.push("units", "m/s");
        tree.add_array(ROOT, "kind", ArrayDesc::new(DType::U8, Shape::new([first]), cells(1, 1, 2))).unwrap();
        let moments = (0..lengths.len() as u64).map(|k| (Some(10 * k), Some(k as f64 / 8.0)));
        tree.set_frames(Arc::new(Moments(moments.collect())));
        let content = Dataset::new(Source::memory([]), tree);
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x.parquet");
        write_file(&Parquet, &content, &path, Overwrite::Never).unwrap();
        let back = open(Source::open(&path).unwrap(), &limits).unwrap();
        assert_same_content(&content, &back);
    }
}

#[test]
fn metadata_round_trips() {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    tree.node_mut(ROOT).attrs.push("title", "a run");
    let group = tree.add_group(ROOT, "log").unwrap();
    let layout =
        Layout::Inline(inline(&[1.5_f64, 2.5, f64::NAN], |v| v.to_le_bytes().to_vec()), Order::C);
    let mut energy = ArrayDesc::new(DType::F64, Shape::new([3]), layout);
    energy.coords = vec![Coord::Uniform { start: 0.0, step: 0.5 }];
    energy.dims = vec!["t".into()];
    let id = tree.add_array(group, "energy", energy).unwrap();
    tree.node_mut(id).attrs.push("units", "J");
    for (name, dtype) in [
        ("a", DType::I16),
        ("b", DType::U8),
        ("c", "bool8".parse().unwrap()),
        ("d", DType::text(4)),
    ] {
        let bytes: Vec<u8> = (0..3 * dtype.size())
            .map(|k| if name == "c" { (k % 2) as u8 } else { 60 + k as u8 })
            .collect();
        tree.add_array(
            ROOT,
            name,
            ArrayDesc::new(dtype, Shape::new([3]), Layout::Inline(bytes.into(), Order::C)),
        )
        .unwrap();
    }
    let grid: Vec<u8> = (0..12_u32).flat_map(u32::to_le_bytes).collect();
    tree.add_array(
        ROOT,
        "grid",
        ArrayDesc::new(DType::U32, Shape::new([3, 2, 2]), Layout::Inline(grid.into(), Order::C)),
    )
    .unwrap();
    let content = Dataset::new(Source::memory([]), tree);
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.parquet");
    write_file(&Parquet, &content, &path, Overwrite::Never).unwrap();
    let back = open(Source::open(&path).unwrap(), &limits).unwrap();
    assert_same_content(&content, &back);
    assert!(
        Parquet.check(&Source::open(&path).unwrap(), &limits, true).unwrap().findings.is_empty()
    );

    // Scaled numbers are written as physical values.
    let mut tree = content.tree().clone();
    if let Some(array) = &mut tree.node_mut(id).array {
        array.map = Some(Linear::new(1.0, 2.0));
    }
    let mapped = Dataset::new(Source::memory([]), tree);
    write_file(&Parquet, &mapped, &path, Overwrite::Replace).unwrap();
    let back = open(Source::open(&path).unwrap(), &limits).unwrap();
    let node = back.tree().node(back.tree().find("log/energy").unwrap());
    let array = back.open_array(node.array.as_ref().unwrap()).unwrap();
    assert_eq!(array.read_f64(&"0:2".parse().unwrap(), Axes::Stored).unwrap(), [4.0, 6.0]);
}
