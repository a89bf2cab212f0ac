//! A small question costs little, whatever the size of the file.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use spile_core::dtype::DType;
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::toys::Xor;

/// 100 elements of 10 x 8 numbers, each element encoded on its own.
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
    let array = Array::open(&Source::memory(data), &Tree::new(&limits), &desc, &limits).unwrap();
    (array, codec)
}

#[test]
fn only_the_elements_of_a_window_are_decoded_and_each_once() {
    let questions =
        [("40:50", 10), ("7", 1), ("7, 3, 5", 1), ("99:89:-1", 10), ("3:5, 4:6", 2), ("5:5", 0)];
    for (text, elements) in questions {
        for axes in [Axes::Stored, Axes::Order(Order::F)] {
            let (array, codec) = hundred_elements();
            array.read(&text.parse().unwrap(), axes).unwrap();
            assert_eq!(codec.0.load(Ordering::Relaxed), elements, "{text} {axes:?}");
        }
    }
}

#[test]
fn blocks_smaller_than_an_element_do_not_decode_it_again() {
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
fn elements_larger_than_what_a_thread_reads_are_decoded_once() {
    // Elements of 3 MiB and a bit, so that no piece of a whole number of MiB ends with one.
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
    let array = Array::open(&Source::memory(data), &Tree::new(&limits), &desc, &limits).unwrap();
    let threads = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let all = threads.install(|| array.read(&Selection::all(), Axes::Stored)).unwrap();
    assert!(all == numbers);
    assert_eq!(codec.0.load(Ordering::Relaxed), 4);
}

#[test]
fn ten_elements_out_of_a_tebibyte_take_no_time() {
    let file = tempfile::NamedTempFile::new().unwrap();
    if file.as_file().set_len(1 << 40).is_err() {
        // A file system without sparse files of that size has nothing to show here.
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
        let array = Array::open(&source, &Tree::new(&limits), &desc, &limits).unwrap();
        let (fast, slow) = match order {
            Order::C => (1 << 20, far / 8 / (1 << 20)),
            Order::F => (1 << 17, far / 8 / (1 << 17)),
        };
        assert_eq!(far / 8 % fast, 0);
        let question = |along: &str, across: &str| match order {
            Order::C => format!("{across}, {along}"),
            Order::F => format!("{along}, {across}"),
        };
        let at = slow.to_string();
        let questions = [
            (question("5:15", &at), (5..15).collect::<Vec<_>>()),
            (question("905:5:-100", &at), (1..10).rev().map(|k| k * 100 + 5).collect()),
            // Two of every thousandth row, each far from the next.
            (question("3:5", &format!("{slow}:{}:1000", slow + 5000)), {
                let mut expected = vec![0; 10];
                expected[..2].copy_from_slice(&[3, 4]);
                expected
            }),
        ];
        for (text, expected) in questions {
            for axes in [Axes::Stored, Axes::Order(order)] {
                let selection = text.parse().unwrap();
                let bytes = array.read(&selection, axes).unwrap();
                // The best of a few: the machine may be busy with something else.
                let once = |_| {
                    let began = Instant::now();
                    array.read(&selection, axes).unwrap();
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
