//! Index arithmetic: splits output blocks into boxes, and the axes of a box into pieces of chunks.

use crate::read::Block;
use crate::select::Span;

/// The part of an axis of a box in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index of the chunk on the grid.
    pub(super) chunk: u64,
    /// Lowest index within the chunk, number of indices, and their distance.
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) step: u64,
    /// Position of the lowest index on this axis of the box.
    pub(super) position: u64,
    /// Higher indices have lower positions.
    pub(super) backwards: bool,
}

/// The pieces of the elements `low..low + length` of `span`, with indices relative to `begin`, in chunks of
/// `chunk` elements. No overflow: all indices are within the array.
pub(super) fn pieces(span: Span, begin: u64, low: u64, length: u64, chunk: u64) -> Vec<Piece> {
    let index = |k: u64| begin + span.start.wrapping_add_signed(span.step * k as i64);
    let step = span.step.unsigned_abs().max(1);
    let backwards = span.step < 0;
    let mut found = Vec::new();
    let mut k = low;
    let end = low + length;
    while k < end {
        let at = index(k);
        // Indices left in the chunk, in the direction of iteration.
        let left = if backwards { at % chunk } else { chunk - 1 - at % chunk };
        let count = (left / step + 1).min(end - k);
        let lowest = if backwards { k + count - 1 } else { k };
        found.push(Piece {
            chunk: at / chunk,
            first: index(lowest) % chunk,
            count,
            step,
            position: lowest - low,
            backwards,
        });
        k += count;
    }
    found
}

/// A box of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) lows: Vec<u64>,
    pub(super) lengths: Vec<u64>,
    /// Number of elements of the run before this box.
    pub(super) position: u64,
}

/// Splits a run of consecutive elements of an array of shape `counts` (slowest first) into boxes, at most
/// two per dimension.
pub(super) fn boxes(counts: &[u64], run: Block) -> Vec<Cut> {
    let mut found = Vec::new();
    let rank = counts.len();
    // Number of elements per index of each dimension.
    let mut inner = vec![1_u64; rank];
    for k in (1..rank).rev() {
        inner[k - 1] = inner[k].saturating_mul(counts[k]);
    }
    let (mut at, end) = (run.first, run.first + run.count);
    while at < end {
        let fits = |k: &usize| at.is_multiple_of(inner[*k]) && end - at >= inner[*k];
        // The last dimension always fits; a scalar has one element.
        let Some(cut) = (0..rank).find(fits) else {
            found.push(Cut { lows: Vec::new(), lengths: Vec::new(), position: 0 });
            break;
        };
        let mut lows: Vec<u64> = (0..rank).map(|k| at / inner[k] % counts[k]).collect();
        let mut lengths = vec![1; rank];
        lengths[cut] = ((end - at) / inner[cut]).min(counts[cut] - lows[cut]);
        for k in cut + 1..rank {
            (lows[k], lengths[k]) = (0, counts[k]);
        }
        let (position, elements) = (at - run.first, lengths[cut] * inner[cut]);
        found.push(Cut { lows, lengths, position });
        at += elements;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_make_up_the_run_in_order() {
        let counts = [3, 4, 5];
        for first in 0..60 {
            for count in 0..=60 - first {
                let mut next = first;
                let cuts = boxes(&counts, Block { first, count });
                assert!(cuts.len() <= 6, "{cuts:?}");
                for Cut { lows, lengths, position } in cuts {
                    assert_eq!(next, first + position);
                    for a in lows[0]..lows[0] + lengths[0] {
                        for b in lows[1]..lows[1] + lengths[1] {
                            for c in lows[2]..lows[2] + lengths[2] {
                                assert_eq!((a * 4 + b) * 5 + c, next);
                                next += 1;
                            }
                        }
                    }
                }
                assert_eq!(next, first + count);
            }
        }
        assert_eq!(boxes(&[], Block { first: 0, count: 1 }).len(), 1);
    }

    #[test]
    fn pieces_contain_every_index_once() {
        for (start, step, count) in [(0, 1, 20), (3, 2, 8), (19, -1, 20), (18, -3, 6), (5, 7, 2)] {
            let span = Span { start, step, count, dropped: false };
            for low in 0..count {
                for length in 1..=count - low {
                    let mut found = vec![None; length as usize];
                    for piece in pieces(span, 2, low, length, 6) {
                        for k in 0..piece.count {
                            let inside = piece.first + k * piece.step;
                            assert!(inside < 6);
                            let position = if piece.backwards {
                                piece.position - k
                            } else {
                                piece.position + k
                            };
                            let slot = &mut found[position as usize];
                            assert!(slot.is_none());
                            *slot = Some(piece.chunk * 6 + inside);
                        }
                    }
                    for (k, index) in found.into_iter().enumerate() {
                        let expected = start as i64 + step * (low as i64 + k as i64) + 2;
                        assert_eq!(index, Some(expected as u64));
                    }
                }
            }
        }
    }
}
