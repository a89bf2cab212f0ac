//! Any selection of small arrays of every layout: the elements are those that the indices name.

use std::sync::Arc;

use spile::chunks::{Chunk, ChunkTable, Chunks};
use spile::dtype::DType;
use spile::layout::{ArrayDesc, Extents, Layout};
use spile::read::Axes;
use spile::shape::Order;
use spile::{Array, Dataset, Result, Selection, Source};

use crate::drive::{LIMITS, use_one_thread};
use spile::shape::Shape;

/// Most elements.
const ELEMENTS: u64 = 4096;

/// Input: rank, lengths, layout, lengths of chunks, order, and a selection as text.
pub fn run(data: &[u8]) {
    use_one_thread();
    let Some((head, rest)) = data.split_first_chunk::<3>() else { return };
    let rank = usize::from(head[0] % 5);
    let Some((lengths, rest)) = rest.split_at_checked(2 * rank) else { return };
    let (lengths, chunk) = lengths.split_at(rank);
    let shape = Shape::new(lengths.iter().map(|n| u64::from(n % 24)).collect::<Vec<_>>());
    let chunk: Vec<u64> = chunk.iter().map(|n| u64::from(n % 9) + 1).collect();
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let Ok(selection) = text.parse::<Selection>() else { return };
    let Some(count) = shape.count().filter(|count| *count <= ELEMENTS) else { return };
    let chunks: u64 = shape.lengths().iter().zip(&chunk).map(|(n, c)| n.div_ceil(*c) * c).product();
    if chunks > 4 * ELEMENTS {
        return;
    }
    // The element at each position in C order is its number, and that of every seventh chunk is 0.
    let Ok(array) = array(&shape, &chunk, head[1]) else { return };
    let Ok(spans) = selection.resolve(&shape) else {
        assert!(array.select(&selection, Axes::Stored).is_err());
        return;
    };
    let mut order: Vec<usize> = (0..rank).collect();
    order.rotate_left(usize::from(head[2]) % rank.max(1));
    let found = array.read_bytes(&selection, Axes::Slowest(&order)).expect("a valid selection");
    let strides = shape.strides(Order::C);
    let mut expected = vec![0_u64];
    for axis in &order {
        let (span, stride) = (spans[*axis], strides[*axis]);
        let index = |k: u64| span.start.wrapping_add_signed(span.step * k as i64);
        let along: Vec<u64> = (0..span.count).map(|k| index(k) * stride).collect();
        expected = expected.iter().flat_map(|at| along.iter().map(move |by| at + by)).collect();
    }
    assert!(expected.iter().all(|k| *k < count.max(1)));
    let expected: Vec<u8> = expected
        .into_iter()
        .filter(|_| count > 0)
        .flat_map(|k| value(k, &shape, &chunk, head[1]).to_le_bytes())
        .collect();
    assert!(found == expected, "{shape} {chunk:?} {selection:?} {order:?}");
}

/// Whether the chunk with this number is missing.
fn is_missing(number: u64) -> bool {
    number % 7 == 3
}

/// The element at position `k` in C order.
fn value(k: u64, shape: &Shape, chunk: &[u64], layout: u8) -> u16 {
    if layout % 3 < 2 {
        return k as u16;
    }
    let (mut rest, mut number, mut stride) = (k, 0, 1);
    for (n, c) in shape.lengths().iter().zip(chunk).rev() {
        number += rest % n / c * stride;
        stride *= n.div_ceil(*c);
        rest /= n;
    }
    if is_missing(number) { 0xffff } else { k as u16 }
}

/// All chunks one after the other.
struct Table {
    bytes: u64,
}

impl ChunkTable for Table {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let extents = Extents::one(number * self.bytes, self.bytes);
        Ok((!is_missing(number)).then_some(Chunk { extents, codec: None }))
    }
}

/// An array whose elements are in C order, in Fortran order or in chunks.
fn array(shape: &Shape, chunk: &[u64], layout: u8) -> Result<Array> {
    let count = shape.count().unwrap_or(0);
    let dtype = DType::U16;
    let (bytes, layout) = match layout % 3 {
        0 => {
            let bytes: Vec<u8> = (0..count).flat_map(|k| (k as u16).to_le_bytes()).collect();
            (bytes, Layout::contiguous(0, 2 * count, Order::C))
        }
        1 => {
            let (c, f) = (shape.strides(Order::C), shape.strides(Order::F));
            let position = |k: u64| -> u64 {
                let lengths = shape.lengths().iter().zip(c.iter().zip(&f));
                lengths.map(|(n, (c, f))| k / f.max(&1) % n.max(&1) * c).sum()
            };
            let bytes = (0..count).flat_map(|k| (position(k) as u16).to_le_bytes()).collect();
            (bytes, Layout::contiguous(0, 2 * count, Order::F))
        }
        _ => {
            let own = Shape::new(chunk);
            let grid: Vec<u64> =
                shape.lengths().iter().zip(chunk).map(|(n, c)| n.div_ceil(*c)).collect();
            let grid = Shape::new(grid);
            let (across, inside) = (grid.strides(Order::C), own.strides(Order::C));
            let strides = shape.strides(Order::C);
            let mut bytes = Vec::new();
            for number in 0..grid.count().unwrap_or(0) {
                for element in 0..own.count().unwrap_or(0) {
                    let mut at = 0;
                    for k in 0..chunk.len() {
                        let corner =
                            number / across[k].max(1) % grid.lengths()[k].max(1) * chunk[k];
                        at += (corner + element / inside[k] % chunk[k]) * strides[k];
                    }
                    bytes.extend((at as u16).to_le_bytes());
                }
            }
            let table = Arc::new(Table { bytes: 2 * own.count().unwrap_or(0) });
            let chunks = Chunks {
                shape: shape.clone(),
                chunk: own,
                axes: Order::C.slowest_first(shape.rank()),
                table,
                fill: [0xff, 0xff].into(),
            };
            (bytes, Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
        }
    };
    let dataset = Dataset::of_bytes(Source::memory(bytes), &LIMITS);
    dataset.open_array(&ArrayDesc::new(dtype, shape.clone(), layout))
}
