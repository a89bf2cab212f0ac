//! Arithmetic of boxes: a run of the output as boxes, an axis of a box as pieces of chunks.

use crate::read::Block;
use crate::select::Span;

/// What an axis of a box wants of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The chunk's place on the grid.
    pub(super) chunk: u64,
    /// The lowest index in the chunk, how many there are, and how far apart.
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) step: u64,
    /// Where the lowest index goes on this axis of the box.
    pub(super) place: u64,
    /// Higher indices go before it.
    pub(super) backwards: bool,
}

/// The pieces for elements `low` to `low + length` of `span`, whose indices count from `begin` in the
/// chunks of `chunk` elements. No overflow: all indices are inside an array.
pub(super) fn pieces(span: Span, begin: u64, low: u64, length: u64, chunk: u64) -> Vec<Piece> {
    let index = |k: u64| begin + span.start.wrapping_add_signed(span.step * k as i64);
    let step = span.step.unsigned_abs().max(1);
    let backwards = span.step < 0;
    let mut found = Vec::new();
    let mut k = low;
    let end = low + length;
    while k < end {
        let at = index(k);
        // Elements until the chunk ends, in the direction of the walk.
        let room = if backwards { at % chunk } else { chunk - 1 - at % chunk };
        let count = (room / step + 1).min(end - k);
        let lowest = if backwards { k + count - 1 } else { k };
        found.push(Piece {
            chunk: at / chunk,
            first: index(lowest) % chunk,
            count,
            step,
            place: lowest - low,
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
    /// Elements of the run before it.
    pub(super) place: u64,
}

/// Cuts a run of elements of an array of `counts` (slowest first) into boxes, at most two for each
/// dimension.
pub(super) fn boxes(counts: &[u64], run: Block) -> Vec<Cut> {
    let mut found = Vec::new();
    let rank = counts.len();
    // Elements of one index of each dimension.
    let mut inner = vec![1_u64; rank];
    for k in (1..rank).rev() {
        inner[k - 1] = inner[k].saturating_mul(counts[k]);
    }
    let (mut at, end) = (run.first, run.first + run.count);
    while at < end {
        let fits = |k: &usize| at.is_multiple_of(inner[*k]) && end - at >= inner[*k];
        // The last dimension always fits; without dimensions there is one element.
        let Some(cut) = (0..rank).find(fits) else {
            found.push(Cut { lows: Vec::new(), lengths: Vec::new(), place: 0 });
            break;
        };
        let mut lows: Vec<u64> = (0..rank).map(|k| at / inner[k] % counts[k]).collect();
        let mut lengths = vec![1; rank];
        lengths[cut] = ((end - at) / inner[cut]).min(counts[cut] - lows[cut]);
        for k in cut + 1..rank {
            (lows[k], lengths[k]) = (0, counts[k]);
        }
        let (place, elements) = (at - run.first, lengths[cut] * inner[cut]);
        found.push(Cut { lows, lengths, place });
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
                for Cut { lows, lengths, place } in cuts {
                    assert_eq!(next, first + place);
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
    fn pieces_hold_every_index_once_in_its_chunk() {
        for (start, step, count) in [(0, 1, 20), (3, 2, 8), (19, -1, 20), (18, -3, 6), (5, 7, 2)] {
            let span = Span { start, step, count, dropped: false };
            for low in 0..count {
                for length in 1..=count - low {
                    let mut found = vec![None; length as usize];
                    for piece in pieces(span, 2, low, length, 6) {
                        for k in 0..piece.count {
                            let inside = piece.first + k * piece.step;
                            assert!(inside < 6);
                            let place =
                                if piece.backwards { piece.place - k } else { piece.place + k };
                            let slot = &mut found[place as usize];
                            assert!(slot.is_none());
                            *slot = Some(piece.chunk * 6 + inside);
                        }
                    }
                    for (k, index) in found.into_iter().enumerate() {
                        let wanted = start as i64 + step * (low as i64 + k as i64) + 2;
                        assert_eq!(index, Some(wanted as u64));
                    }
                }
            }
        }
    }
}
