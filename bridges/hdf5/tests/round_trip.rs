//! Round trips of any tree through both formats.

use std::sync::Arc;

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::format::{Format, OpenOptions, WriteOptions, Writer, write_file, writer_of};
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::differences;
use spile_core::tree::{ROOT, Tree, Value};

/// Size of the source of all arrays, in bytes.
const BYTES: u64 = 4096;

/// Types that both formats can store; netCDF converts some.
const TYPES: [&str; 16] = [
    "int8",
    "int16-be",
    "uint32",
    "uint64-be",
    "float32",
    "float64-be",
    "float128",
    "x87",
    "complex64",
    "complex128-be",
    "bool8",
    "bool32",
    "text[1]",
    "text[5]",
    "opaque[1]",
    "opaque[7]",
];

fn value() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof!["[a-z ]{0,8}", ".{0,4}", Just("a\0b".to_string()), Just("x".repeat(70_000))];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any::<f64>().prop_map(Value::Float),
        (any::<f64>(), any::<f64>()).prop_map(|(re, im)| Value::Complex(re, im)),
        text.prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..5).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::List))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        "[ .+-]?[A-Z][ ~:.a-z]{0,3} ?",
        "\\PC{1,3}",
        Just("DIMENSION_LIST".to_string()),
        Just("spile".to_string()),
        Just("CLASS".to_string()),
        Just(".".to_string()),
        Just("x".repeat(300)),
    ]
}

#[derive(Clone, Debug)]
struct Plan {
    name: String,
    group: Option<String>,
    dtype: &'static str,
    shape: Vec<u64>,
    order: Order,
    attrs: Vec<(String, Value)>,
    uniform: bool,
    map: bool,
    /// Number of rows in each frame; `None` where the array is missing.
    frames: Option<Vec<Option<u64>>>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let frames = prop::collection::vec(prop::option::weighted(0.8, 0_u64..4), 3);
    (
        (name(), prop::option::of(name()), prop::sample::select(&TYPES[..])),
        prop::collection::vec(0_u64..5, 0..4),
        prop::collection::vec((name(), value()), 0..4),
        (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::weighted(0.3, frames)),
    )
        .prop_map(|((name, group, dtype), shape, attrs, (fortran, uniform, map, frames))| {
            Plan {
                order: if fortran { Order::F } else { Order::C },
                name,
                group,
                dtype,
                shape,
                attrs,
                uniform,
                map,
                frames,
            }
        })
}

fn plain(dtype: DType, shape: &Shape, order: Order) -> Layout {
    let bytes = shape.bytes(dtype.size()).unwrap();
    Layout::Plain { extents: Extents::one(0, bytes), order }
}

fn tree(plans: &[Plan]) -> Tree {
    let mut tree = Tree::new(&Limits::default());
    for plan in plans {
        let parent = match &plan.group {
            Some(group) => tree.add_group(ROOT, group).unwrap(),
            None => ROOT,
        };
        let dtype: DType = plan.dtype.parse().unwrap();
        let shape = Shape::new(plan.shape.clone());
        let mut desc = ArrayDesc::new(dtype, shape.clone(), plain(dtype, &shape, plan.order));
        if let (Some(frames), false) = (&plan.frames, plan.shape.is_empty()) {
            let cell = |rows: &u64| {
                let mut lengths = plan.shape.clone();
                lengths[0] = *rows;
                let shape = Shape::new(lengths);
                let layout = plain(dtype, &shape, Order::C);
                FrameCell { shape, layout }
            };
            let cells: Vec<_> = frames.iter().map(|rows| rows.as_ref().map(cell)).collect();
            if let Some(first) = cells.iter().flatten().next() {
                desc.shape = first.shape.clone();
                desc.layout = Layout::PerFrame(Arc::new(Cells(cells)));
            }
        } else if plan.uniform {
            desc.coords.fill(Coord::Uniform { start: -1.5, step: 0.1 });
        }
        if plan.map && dtype.is_integer() {
            desc.map = Some(Linear::new(0.1, -2.5));
        }
        let id = tree.add_array(parent, &plan.name, desc).unwrap();
        for (name, value) in &plan.attrs {
            let attrs = &mut tree.node_mut(id).attrs;
            if !attrs.contains(name) {
                attrs.push(name.as_str(), value.clone());
            }
        }
    }
    if plans.iter().any(|plan| plan.frames.is_some()) {
        let moments = (0..3).map(|k| (Some(10 * k), Some(0.5 * k as f64))).collect();
        tree.set_frames(Arc::new(Moments(moments)));
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn reading_returns_what_was_written(plans in prop::collection::vec(plan(), 0..5)) {
        let bytes: Vec<u8> = (0..BYTES).map(|k| (k * 37 % 251) as u8).collect();
        let content = Dataset::new(Source::memory(bytes), tree(&plans));
        let folder = tempfile::tempdir().unwrap();
        let formats: [(&'static dyn Format, &str); 2] =
            [(&spile_hdf5::Hdf5, "x.h5"), (&spile_hdf5::NetCdf, "x.nc")];
        for (format, name) in formats {
            let path = folder.path().join(name);
            let Writer::File(writer) = writer_of(format).unwrap() else { unreachable!() };
            prop_assert!(writer.losses(&content, &path).unwrap().is_empty());
            write_file(format, &content, &path, Overwrite::Never).unwrap();
            let back = Dataset::open_path(format, &path, &OpenOptions::default()).unwrap();
            prop_assert!(back.warnings().is_empty(), "{name}: {:?}", back.warnings());
            let prepared = writer_of(format).unwrap().prepare(&content, &WriteOptions::default());
            let lost = differences(&prepared, &back).unwrap();
            prop_assert!(lost.is_empty(), "{name}: {lost:?}");
            let checker = format.abilities().checker.unwrap();
            let report = checker.check(back.source(), back.limits(), true).unwrap();
            prop_assert!(report.findings.is_empty());
        }
    }
}
