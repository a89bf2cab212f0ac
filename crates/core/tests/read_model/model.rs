//! A simple reference implementation of selections: lists of indices and element-wise copies.

use spile_core::select::Slice;
use spile_core::shape::Order;

/// Deterministic pseudo-random numbers.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// The indices that Python's `range(*slice.indices(length))` gives.
pub(crate) fn indices(slice: Slice, length: u64) -> Vec<u64> {
    let n = length as i64;
    let (start, stop, step) = match slice {
        Slice::Index(at) => return vec![(if at < 0 { at + n } else { at }) as u64],
        Slice::Range { start, stop, step } => (start, stop, step),
        Slice::Rest => (None, None, 1),
    };
    let (lowest, highest) = if step < 0 { (-1, n - 1) } else { (0, n) };
    let inside = |at: i64| (if at < 0 { at + n } else { at }).max(lowest).min(highest);
    let first = start.map_or(if step < 0 { highest } else { lowest }, inside);
    let end = stop.map_or(if step < 0 { lowest } else { highest }, inside);
    let mut found = Vec::new();
    let mut at = first;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        found.push(at as u64);
        at += step;
    }
    found
}

/// Position of an element in stored order.
fn position(index: &[u64], shape: &[u64], order: Order) -> u64 {
    let mut at = 0;
    match order {
        Order::C => (0..shape.len()).for_each(|k| at = at * shape[k] + index[k]),
        Order::F => (0..shape.len()).rev().for_each(|k| at = at * shape[k] + index[k]),
    }
    at
}

/// Copies the elements whose indices are in `selected`, dimension `axes[0]` slowest.
pub(crate) fn read(
    values: &[u8],
    size: usize,
    shape: &[u64],
    order: Order,
    selected: &[Vec<u64>],
    axes: &[usize],
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut index = vec![0; shape.len()];
    let mut visit = |index: &[u64]| {
        let at = position(index, shape, order) as usize * size;
        out.extend_from_slice(&values[at..at + size]);
    };
    nest(axes, selected, &mut index, &mut visit);
    out
}

fn nest(axes: &[usize], selected: &[Vec<u64>], index: &mut [u64], visit: &mut dyn FnMut(&[u64])) {
    let Some((axis, faster)) = axes.split_first() else {
        return visit(index);
    };
    for at in &selected[*axis] {
        index[*axis] = *at;
        nest(faster, selected, index, visit);
    }
}
