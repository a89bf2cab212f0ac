//! The cost of small reads does not depend on the size of the file.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use spile_core::Dataset;
use spile_core::chunks::{Chunk, Chunks};
use spile_core::dtype::DType;
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::toys::{Table, Xor};

/// 100 elements of 10 x 8 numbers, each encoded separately.
fn hundred_elements() -> (Array, Arc<Xor>) {
    let numbers: Vec<u8> = (0..100 * 80_u32).flat_map(u32::to_le_bytes).collect();
    let data: Vec<u8> = numbers.chunks(320).flat_map(Xor::encode).collect();
    let table = |n: u64| (0..=100).map(|k| k * n).collect();
    let codec = Arc::new(Xor::default());
    let layout = Layout::Encoded {
        starts: table(324),
        decoded: table(320),
        data: Extents::one(0, data.len() as u64),
        codec: codec.clone(),
        order: Order::C,
    };
    let desc = ArrayDesc::new(DType::U32, Shape::new([100, 10, 8]), layout);
    let limits = Limits::default();
    let array = Dataset::new(Source::memory(data), Tree::new(&limits)).open_array(&desc).unwrap();
    (array, codec)
}

#[test]
fn only_selected_elements_are_decoded_and_each_once() {
    let selections =
        [("40:50", 10), ("7", 1), ("7, 3, 5", 1), ("99:89:-1", 10), ("3:5, 4:6", 2), ("5:5", 0)];
    for (text, elements) in selections {
        for axes in [Axes::Stored, Axes::Order(Order::F)] {
            let (array, codec) = hundred_elements();
            array.read_bytes(&text.parse().unwrap(), axes).unwrap();
            assert_eq!(codec.0.load(Ordering::Relaxed), elements, "{text} {axes:?}");
        }
    }
}

#[test]
fn blocks_smaller_than_an_element_decode_it_once() {
    let (array, codec) = hundred_elements();
    let mut blocks = 0;
    let all = array.all().unwrap().with_block_bytes(16);
    all.stream(|_, _| {
        blocks += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(blocks, 2000);
    assert_eq!(codec.0.load(Ordering::Relaxed), 100);
}

#[test]
fn elements_larger_than_the_read_size_of_a_thread_are_decoded_once() {
    // Elements of 3 MiB and 8 bytes, so that no piece of complete MiB ends at an element.
    let len = (3 << 20) + 8;
    let numbers: Vec<u8> = (0..4 * len as u32).map(|k| (k % 251) as u8).collect();
    let data: Vec<u8> = numbers.chunks(len).flat_map(Xor::encode).collect();
    let table = |n: usize| (0..=4).map(|k| k * n as u64).collect();
    let codec = Arc::new(Xor::default());
    let layout = Layout::Encoded {
        starts: table(len + 4),
        decoded: table(len),
        data: Extents::one(0, data.len() as u64),
        codec: codec.clone(),
        order: Order::C,
    };
    let desc = ArrayDesc::new(DType::U64, Shape::new([numbers.len() as u64 / 8]), layout);
    let limits = Limits::default();
    let array = Dataset::new(Source::memory(data), Tree::new(&limits)).open_array(&desc).unwrap();
    let threads = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let all = threads.install(|| array.read_bytes(&Selection::all(), Axes::Stored)).unwrap();
    assert!(all == numbers);
    assert_eq!(codec.0.load(Ordering::Relaxed), 4);
}

#[test]
fn ten_elements_of_a_tebibyte_are_read_in_milliseconds() {
    let file = tempfile::NamedTempFile::new().unwrap();
    if file.as_file().set_len(1 << 40).is_err() {
        // The file system has no sparse files of this size.
        return;
    }
    let far = 700_u64 << 30;
    let numbers: Vec<u8> = (0..1000_u64).flat_map(u64::to_le_bytes).collect();
    file.as_file().write_all_at(&numbers, far).unwrap();
    let shape = Shape::new([1 << 17, 1 << 20]);
    let limits = Limits::default();
    for order in [Order::C, Order::F] {
        let layout = Layout::Plain { extents: Extents::one(0, 1 << 40), order };
        let desc = ArrayDesc::new(DType::U64, shape.clone(), layout);
        let source = Source::open(file.path()).unwrap();
        let array = Dataset::new(source.clone(), Tree::new(&limits)).open_array(&desc).unwrap();
        let (fast, slow) = match order {
            Order::C => (1 << 20, far / 8 / (1 << 20)),
            Order::F => (1 << 17, far / 8 / (1 << 17)),
        };
        assert_eq!(far / 8 % fast, 0);
        let selection_text = |along: &str, across: &str| match order {
            Order::C => format!("{across}, {along}"),
            Order::F => format!("{along}, {across}"),
        };
        let at = slow.to_string();
        let selections = [
            (selection_text("5:15", &at), (5..15).collect::<Vec<_>>()),
            (selection_text("905:5:-100", &at), (1..10).rev().map(|k| k * 100 + 5).collect()),
            // Two elements of every thousandth row.
            (selection_text("3:5", &format!("{slow}:{}:1000", slow + 5000)), {
                let mut expected = vec![0; 10];
                expected[..2].copy_from_slice(&[3, 4]);
                expected
            }),
        ];
        for (text, expected) in selections {
            for axes in [Axes::Stored, Axes::Order(order)] {
                let selection = text.parse().unwrap();
                let bytes = array.read_bytes(&selection, axes).unwrap();
                // The fastest of five: the machine may be busy.
                let once = |_| {
                    let began = Instant::now();
                    array.read_bytes(&selection, axes).unwrap();
                    began.elapsed()
                };
                let taken = (0..5).map(once).min().unwrap();
                let found: Vec<u64> =
                    bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
                assert_eq!(found, expected, "{text} {order:?}");
                assert!(taken < Duration::from_millis(50), "{text}: {taken:?}");
            }
        }
    }
}

/// 50 x 40 x 30 numbers in encoded chunks of 16 x 16 x 16.
fn cube() -> (Source, Arc<Xor>, Chunks) {
    let (shape, edge) = ([50_u64, 40, 30], 16_u64);
    let codec = Arc::new(Xor::default());
    let (mut file, mut table) = (Vec::new(), Vec::new());
    for number in 0..4 * 3 * 2 {
        let corner = [number / 6 * edge, number / 2 % 3 * edge, number % 2 * edge];
        let mut bytes = Vec::new();
        for k in 0..edge * edge * edge {
            let at = [corner[0] + k / 256, corner[1] + k / 16 % 16, corner[2] + k % 16];
            bytes.extend(((at[0] * 40 + at[1]) * 30 + at[2]).to_le_bytes());
        }
        let bytes = Xor::encode(&bytes);
        let extents = Extents::one(file.len() as u64, bytes.len() as u64);
        table.push(Some(Chunk { extents, codec: Some(codec.clone() as _) }));
        file.extend(bytes);
    }
    let (table, axes, fill) = (Arc::new(Table(table)), vec![0, 1, 2], [0; 8].into());
    let chunk = Shape::new([edge; 3]);
    (Source::memory(file), codec, Chunks { shape: Shape::new(shape), chunk, axes, table, fill })
}

#[test]
fn a_selection_decodes_each_of_its_chunks_once() {
    let selections = [
        (":", 24),
        ("0", 6),
        ("17, 3, 5", 1),
        (":, :, 29", 12),
        ("15:17, 0, 0", 2),
        ("::-1, ::20, 3", 8),
        ("49:0:-16, 0, 0", 4),
        ("3:3", 0),
    ];
    let limits = Limits::default();
    for (text, chunks) in selections {
        for axes in [Axes::Stored, Axes::Order(Order::F), Axes::Slowest(&[1, 2, 0])] {
            let (source, codec, cube) = cube();
            let layout = Layout::Chunked { chunks: Arc::new(cube), first: 0 };
            let desc = ArrayDesc::new(DType::U64, Shape::new([50, 40, 30]), layout);
            let array = Dataset::new(source.clone(), Tree::new(&limits)).open_array(&desc).unwrap();
            let selected = array.select(&text.parse().unwrap(), axes).unwrap();
            // Small blocks need the same chunks repeatedly.
            let mut bytes = 0;
            let small = selected.with_block_bytes(200);
            small
                .stream(|_, block| {
                    bytes += block.len();
                    Ok(())
                })
                .unwrap();
            assert_eq!(codec.0.load(Ordering::Relaxed), chunks, "{text} {axes:?}");
            assert_eq!(bytes as u64, small.count() * 8);
        }
    }
}

#[test]
fn a_part_along_the_first_dimension_of_chunks_is_an_array() {
    let limits = Limits::default();
    let (source, _, cube) = cube();
    let chunks = Arc::new(cube);
    let open = |shape: &[u64], first: u64| {
        let layout = Layout::Chunked { chunks: chunks.clone(), first };
        let desc = ArrayDesc::new(DType::U64, Shape::new(shape), layout);
        Dataset::new(source.clone(), Tree::new(&limits)).open_array(&desc)
    };
    let number = |a: u64, b: u64, c: u64| ((a * 40 + b) * 30 + c) as f64;
    let one = open(&[40, 30], 37).unwrap();
    let last: Selection = "39, 28:30".parse().unwrap();
    assert_eq!(
        one.read_f64(&last, Axes::Stored).unwrap(),
        [number(37, 39, 28), number(37, 39, 29)]
    );
    let rows = open(&[5, 40, 30], 14).unwrap();
    let column = rows.read_f64(&":, 20, 1".parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(column, [14, 15, 16, 17, 18].map(|a| number(a, 20, 1)));
    let mut bytes = vec![0; 5 * 40 * 30 * 8];
    rows.read_into(&mut bytes).unwrap();
    assert_eq!(bytes[..8], (14 * 1200_u64).to_le_bytes());
    assert_eq!(bytes[bytes.len() - 8..], (18 * 1200 + 1199_u64).to_le_bytes());
    // All elements as one dimension.
    let flat = open(&[50 * 40 * 30], 0).unwrap();
    let some = flat.read_f64(&"1199:59999:29400".parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(some, [1199.0, 30599.0]);
    for (shape, first) in
        [(&[40_u64, 30][..], 50), (&[5, 40, 30], 46), (&[50, 40], 0), (&[7], 0), (&[], 0)]
    {
        assert!(open(shape, first).is_err(), "{shape:?} from {first} on");
    }
}
