//! Parts of dimensions are the same elements as a selection of the whole array, wherever they lie.

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::layout::{ArrayDesc, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree};
use spile_core::wire::ByteOrder;
use spile_ops::Pick;
use spile_ops::subset::subset;

fn file(source: Source, array: ArrayDesc) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    tree.add_array(ROOT, "a", array).unwrap();
    Dataset::new(source, tree)
}

fn array(content: &Dataset) -> (ArrayDesc, Array) {
    let tree = content.tree();
    let desc = tree.node(tree.at("a").unwrap()).array.clone().unwrap();
    let array = content.array("a").unwrap();
    (desc, array)
}

/// Lengths and, for each, a part of it.
fn parts() -> impl Strategy<Value = Vec<(u64, String)>> {
    let some = (1..24_u64).prop_flat_map(|len| {
        let n = len as i64;
        (Just(len), -n..n, -n..=n, prop_oneof![Just(1_i64), Just(1), -3..-1_i64, 2..4_i64])
    });
    let some = some.prop_map(|(len, start, stop, step)| (len, format!("{start}:{stop}:{step}")));
    let all = (1..24_u64).prop_map(|len| (len, ":".to_string()));
    let text = prop_oneof![some, all];
    prop::collection::vec(text, 1..4)
}

proptest! {
    #[test]
    fn a_part_is_what_a_selection_reads(
        parts in parts(),
        fortran: bool,
        big: bool,
        cut in 0..40_u64,
    ) {
        let shape = Shape::new(parts.iter().map(|(len, _)| *len).collect::<Vec<_>>());
        let bytes = shape.bytes(4).unwrap();
        // The second half lies before the first.
        let cut = cut.min(bytes);
        let halves = vec![
            Extent { offset: bytes - cut, len: cut },
            Extent { offset: 0, len: bytes - cut },
        ];
        let order = if fortran { Order::F } else { Order::C };
        let dtype = DType::I32.with_order(if big { ByteOrder::Big } else { ByteOrder::Little });
        let layout = Layout::Plain { extents: Extents::several(halves).unwrap(), order };
        let source = Source::memory((0..bytes).map(|k| k as u8).collect::<Vec<_>>());
        let whole = file(source, ArrayDesc::new(dtype, shape, layout));
        let slices: Vec<String> =
            parts.iter().enumerate().map(|(k, (_, part))| format!("dim{}={part}", k + 1)).collect();
        let pick = Pick::default().with_slices(&slices).unwrap();
        let part = subset(&whole, &pick).unwrap();
        let wanted = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(", ");
        let selection: Selection = wanted.parse().unwrap();
        for order in [Order::C, Order::F] {
            let wanted = array(&whole).1.read_bytes(&selection, Axes::Order(order)).unwrap();
            let found = array(&part).1.read_bytes(&Selection::all(), Axes::Order(order)).unwrap();
            prop_assert_eq!(found, wanted);
        }
    }
}

#[test]
fn a_part_of_a_large_array_takes_no_memory() {
    let temp = tempfile::NamedTempFile::new().unwrap();
    let bytes = 10_000_000_000;
    temp.as_file().set_len(bytes).unwrap();
    let limits = Limits::default().with_memory(16 << 20);
    for (order, slice) in
        [(Order::C, "dim1=5:90"), (Order::F, "dim1=5:9000"), (Order::C, "dim1=::3")]
    {
        let shape = Shape::new([10_000, 125, 1000]);
        let layout = Layout::Plain { extents: Extents::one(0, bytes), order };
        let source = Source::open(temp.path()).unwrap();
        let whole = file(source, ArrayDesc::new(DType::F64, shape, layout)).with_limits(limits);
        let pick = Pick::default().with_slices(&[slice.to_string()]).unwrap();
        let part = subset(&whole, &pick).unwrap();
        let (desc, _) = array(&part);
        assert!(matches!(desc.layout, Layout::Plain { .. }), "{slice}: {:?}", desc.layout);
    }
    // Every third element of each run: they would have to be held.
    let layout = Layout::Plain { extents: Extents::one(0, bytes), order: Order::C };
    let shape = Shape::new([10_000, 125, 1000]);
    let whole = file(Source::open(temp.path()).unwrap(), ArrayDesc::new(DType::F64, shape, layout));
    let whole = whole.with_limits(limits);
    let pick = Pick::default().with_slices(&["dim3=::3".to_string()]).unwrap();
    let refused = subset(&whole, &pick).err().unwrap().to_string();
    assert!(refused.contains("exceed the memory limit"), "{refused}");
}

#[test]
fn lengths_and_steps_beyond_any_file_are_no_panic() {
    let cut = |shape: &[u64], slices: &[&str]| {
        let layout = Layout::Plain { extents: Extents::one(0, 96), order: Order::C };
        let source = Source::memory([0; 96]);
        let whole = file(source, ArrayDesc::new(DType::F64, Shape::new(shape), layout));
        let slices: Vec<String> = slices.iter().map(ToString::to_string).collect();
        let pick = Pick::default().with_slices(&slices).unwrap();
        subset(&whole, &pick).map(|part| array(&part).1.shape().clone())
    };
    assert!(cut(&[1 << 40, 1 << 40], &["dim1=5:9", "dim2=0:3"]).is_err());
    let far = "dim1=0:4:4611686018427387904";
    assert_eq!(cut(&[4, 3], &[far, "dim2=0:2"]).unwrap(), Shape::new([1, 2]));
}
