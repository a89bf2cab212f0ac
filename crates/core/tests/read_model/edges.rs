//! Cases that random tests do not reach: huge empty arrays, inconsistent tables, elements of size 0.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::toys::Xor;

fn open(bytes: &[u8], dtype: DType, shape: &[u64], layout: Layout) -> Result<Array> {
    let limits = Limits::default();
    let desc = ArrayDesc::new(dtype, Shape::new(shape), layout);
    Dataset::new(Source::memory(bytes), Tree::new(&limits)).open_array(&desc)
}

fn plain(offset: u64, len: u64) -> Layout {
    Layout::Plain { extents: Extents::one(offset, len), order: Order::C }
}

#[test]
fn an_empty_array_may_have_huge_lengths() {
    for shape in [[1 << 40, 1 << 40, 0], [0, u64::MAX, u64::MAX], [u64::MAX, 0, 1]] {
        let array = open(&[], DType::F64, &shape, plain(0, 0)).unwrap();
        for axes in [Axes::Stored, Axes::Order(Order::F), Axes::Slowest(&[1, 2, 0])] {
            let selected = array.select(&Selection::all(), axes).unwrap();
            assert_eq!(selected.count(), 0);
            assert!(array.read_bytes(&Selection::all(), axes).unwrap().is_empty());
            assert_eq!(selected.fold(|| 7, |_, _, _| panic!(), |a, _| a).unwrap(), 7);
        }
    }
    // An empty selection of a nonempty array.
    let huge = open(&[], DType::U8, &[1 << 30, 1 << 30], Layout::Fill([1].into())).unwrap();
    assert!(huge.read_bytes(&"5:5, :".parse().unwrap(), Axes::Stored).unwrap().is_empty());
}

#[test]
fn an_array_larger_than_any_file_is_rejected() {
    let fill = || Layout::Fill([1].into());
    let error = open(&[], DType::U8, &[1 << 63], fill()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let largest = open(&[], DType::U8, &[(1 << 63) - 1], fill()).unwrap();
    let last = Selection(vec![Slice::Range { start: Some(-3), stop: None, step: 1 }]);
    assert_eq!(largest.read_bytes(&last, Axes::Stored).unwrap(), [1, 1, 1]);
    let backwards = Selection(vec![Slice::Range { start: None, stop: None, step: -(1 << 62) }]);
    assert_eq!(largest.read_bytes(&backwards, Axes::Stored).unwrap(), [1, 1]);
    let all = Selection(vec![Slice::range(0, u64::MAX)]);
    let error = largest.select(&all, Axes::Stored).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn fill_values_are_limited_by_the_length_of_the_file() {
    let file = vec![0; 1 << 20];
    let fill = || Layout::Fill([1].into());
    let selected = |file: &[u8], length: u64| {
        open(file, DType::U8, &[length], fill()).unwrap().all().map(|all| all.count()).ok()
    };
    assert_eq!(selected(&[], 4 << 30), Some(4 << 30));
    assert_eq!(selected(&[], (4 << 30) + 1), None);
    assert_eq!(selected(&file, 8 << 30), Some(8 << 30));
    assert_eq!(selected(&file, (8 << 30) + 1), None);
}

#[test]
fn elements_of_size_0_need_one_block_for_any_count() {
    let array = open(&[], DType::text(0), &[1 << 20, 1 << 40], plain(0, 0)).unwrap();
    for axes in [Axes::Stored, Axes::Order(Order::F)] {
        let selected = array.select(&"::3, ::-2".parse().unwrap(), axes).unwrap();
        let mut blocks = 0;
        selected
            .stream(|block, bytes| {
                blocks += 1;
                assert_eq!((block.first, bytes.len()), (0, 0));
                assert_eq!(block.count, 349_526 << 39);
                Ok(())
            })
            .unwrap();
        assert_eq!(blocks, 1);
    }
}

#[test]
fn a_layout_with_too_few_bytes_is_an_error_with_its_offset() {
    let error = open(&[0; 100], DType::F64, &[5], plain(60, 39)).err().unwrap();
    assert_eq!((error.code(), error.offset()), ("core-short", Some(60)));
    // The range is long enough, the file is too short.
    let array = open(&[0; 100], DType::F64, &[5], plain(70, 40)).unwrap();
    let error = array.read_bytes(&Selection::all(), Axes::Stored).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(100)));
    assert!(open(&[], DType::F64, &[5], Layout::Inline([0; 39].into(), Order::C)).is_err());
    for element in [&[][..], &[0; 7], &[0; 9]] {
        assert!(open(&[], DType::F64, &[5], Layout::Fill(element.into())).is_err());
    }
}

#[test]
fn inconsistent_tables_of_encoded_elements_are_errors() {
    let stored = Xor::encode(&[1, 2, 3, 4]);
    let open = |starts: &[u64], decoded: &[u64], len: u64| {
        let layout = Layout::Encoded {
            starts: starts.into(),
            decoded: decoded.into(),
            data: Extents::one(0, len),
            codec: Arc::new(Xor::default()),
            order: Order::C,
        };
        open(&stored, DType::U8, &[4], layout)
    };
    let all = Selection::all();
    assert_eq!(
        open(&[0, 8], &[0, 4], 8).unwrap().read_bytes(&all, Axes::Stored).unwrap(),
        [1, 2, 3, 4]
    );
    for (starts, decoded) in [
        (&[0, 8][..], &[0, 2, 4][..]),
        (&[0, 5, 2, 8], &[0, 1, 2, 4]),
        (&[0, 2, 5, 8], &[0, 6, 2, 4]),
        (&[0, 9], &[0, 4]),
        (&[1, 8], &[0, 4]),
        (&[], &[]),
    ] {
        let error = open(starts, decoded, 8).err().unwrap();
        assert_eq!((error.code(), error.offset()), ("core-layout", Some(0)));
    }
    // More than the file has: no memory is allocated.
    let long = open(&[0, 1 << 28], &[0, 4], 1 << 28).unwrap();
    assert_eq!(long.read_bytes(&all, Axes::Stored).unwrap_err().kind(), ErrorKind::Truncated);
    // The decoded length does not match the shape: read as bytes.
    let bytes = open(&[0, 8], &[0, 3], 8).unwrap();
    assert_eq!((bytes.dtype(), bytes.shape().lengths()), (DType::opaque(1), &[3][..]));
    assert!(bytes.read_bytes(&all, Axes::Stored).is_err());
}

#[test]
fn numbers_are_scaled_and_in_the_requested_order() {
    let big: DType = "int16-be".parse().unwrap();
    let mut desc = ArrayDesc::new(big, Shape::new([2, 2]), plain(0, 8));
    desc.map = Some(Linear::new(0.5, 2.0));
    let limits = Limits::default();
    let source = Source::memory([0, 1, 0, 2, 0xff, 0xff, 1, 0]);
    let array = Dataset::new(source.clone(), Tree::new(&limits)).open_array(&desc).unwrap();
    let read = |text: &str, axes| array.read_f64(&text.parse().unwrap(), axes).unwrap();
    assert_eq!(read("", Axes::Order(Order::F)), [2.5, -1.5, 4.5, 512.5]);
    assert_eq!(read("::-1, 1", Axes::Stored), [512.5, 4.5]);
    for wrong in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert!(array.select(&Selection::all(), Axes::Slowest(wrong)).is_err());
    }
}
