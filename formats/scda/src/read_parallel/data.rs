//! Reads sizes and elements of one rank.

use rayon::prelude::*;
use spile_core::comm::gather_numbers;
use spile_core::error::{Error, Result};
use spile_core::layout::Codec as _;

use super::{Cursor, Share};
use crate::buffers::Slots;
use crate::codec::Convention;
use crate::wire::{ENTRIES_AT_ONCE, ENTRY, check_entries, parse_entries};

/// Bytes read at once if they are not read directly into the caller's buffer.
const AT_ONCE: usize = 1 << 20;

/// Maximum bytes of several compressed elements that are read at once.
const ENCODED_AT_ONCE: u64 = 4 << 20;

impl Cursor<'_> {
    /// Reads this rank's stored sizes and determines where its elements begin.
    pub(super) fn read_share(&mut self, counts: &[u64]) -> Result<()> {
        let mine = counts[self.comm.rank()];
        let allowed = self.limits.allow(mine.saturating_mul(8), "the table of element sizes");
        let mut sizes = Vec::with_capacity(self.agree(allowed)? / 8);
        let sum = self.add_sizes(counts, |part| sizes.extend_from_slice(part))?;
        let (before, total) = self.gather_sizes(sum)?;
        let counts = counts.to_vec();
        if let Some(open) = &mut self.open {
            open.share = Some(Share { counts, sizes, decoded: None, before, total });
        }
        Ok(())
    }

    /// Stored bytes of the ranks before this one and of all ranks, without keeping the sizes.
    pub(super) fn sum_sizes(&self, counts: &[u64]) -> Result<(u64, u64)> {
        let sum = self.add_sizes(counts, |_| ())?;
        self.gather_sizes(sum)
    }

    /// Sum of this rank's stored sizes; `each` receives them in order.
    fn add_sizes(&self, counts: &[u64], mut each: impl FnMut(&[u64])) -> Result<u64> {
        let rank = self.comm.rank();
        let (table, number) =
            self.current().map(|open| (open.headers.data.end(), open.headers.data.count))?;
        let fits = check_entries(number, table, self.file.len());
        fits.map_err(|e| e.with_path(&self.path))?;
        let at = table + counts[..rank].iter().sum::<u64>() * ENTRY;
        let mut sum = Some(0_u64);
        self.for_entries(at, counts, b'E', |part| {
            let add = |sum: u64, size: &u64| sum.checked_add(*size);
            sum = sum.and_then(|sum| part.iter().try_fold(sum, add));
            each(part);
        })?;
        self.agree(sum.filter(|sum| *sum < 1 << 62).ok_or_else(|| too_large(table)))
    }

    /// Bytes of the ranks before this one and of all ranks, from the sum of each rank.
    fn gather_sizes(&self, sum: u64) -> Result<(u64, u64)> {
        let sums = gather_numbers(self.comm, sum)?;
        let total = sums.iter().try_fold(0_u64, |total, sum| total.checked_add(*sum));
        let data = &self.current()?.headers.data;
        let checked = total.ok_or_else(|| too_large(data.end())).and_then(|total| {
            data.section_end(self.file.len(), total)?;
            Ok(total)
        });
        let total = checked.map_err(|e| e.with_path(&self.path))?;
        Ok((sums[..self.comm.rank()].iter().sum(), total))
    }

    /// The values of this rank's count entries, the first of which is at `at`. `counts` is the number of
    /// entries of each rank.
    pub(super) fn read_entries(&self, at: u64, counts: &[u64], letter: u8) -> Result<Vec<u64>> {
        let mine = counts[self.comm.rank()];
        let allowed = self.limits.allow(mine.saturating_mul(8), "the table of element sizes");
        let mut values = Vec::with_capacity(self.agree(allowed)? / 8);
        self.for_entries(at, counts, letter, |part| values.extend_from_slice(part))?;
        Ok(values)
    }

    /// Calls `each` with the values of this rank's count entries, part by part.
    fn for_entries(
        &self,
        at: u64,
        counts: &[u64],
        letter: u8,
        mut each: impl FnMut(&[u64]),
    ) -> Result<()> {
        let per_round = AT_ONCE / ENTRY as usize;
        let mut left = counts[self.comm.rank()];
        let rounds = counts.iter().max().unwrap_or(&0).div_ceil(per_round as u64);
        let mut bytes = vec![0; left.min(per_round as u64) as usize * ENTRY as usize];
        let mut values = vec![0; left.min(per_round as u64) as usize];
        let mut parsed = Ok(());
        for round in 0..rounds {
            let number = left.min(per_round as u64) as usize;
            left -= number as u64;
            let (part, bytes) = (&mut values[..number], &mut bytes[..number * ENTRY as usize]);
            let at = at + round * AT_ONCE as u64;
            self.file.read_at_all(at, bytes)?;
            let pieces = bytes.par_chunks(ENTRIES_AT_ONCE * ENTRY as usize).enumerate();
            let done = pieces.zip(part.par_chunks_mut(ENTRIES_AT_ONCE)).try_for_each(
                |((k, bytes), values)| {
                    parse_entries(bytes, letter, at + (k * ENTRIES_AT_ONCE) as u64 * ENTRY, values)
                },
            );
            parsed = parsed.and(done);
            each(part);
        }
        self.agree(parsed)
    }

    /// Fills the buffers of this rank with the bytes at `at`.
    pub(super) fn read_elements(&self, mut at: u64, into: Option<Slots<'_, '_>>) -> Result<()> {
        let (contiguous, separate): (&mut [u8], &mut [&mut [u8]]) = match into {
            None => (&mut [], &mut []),
            Some(Slots::Contiguous(bytes)) => (bytes, &mut []),
            Some(Slots::Indirect(slots)) => (&mut [], slots),
        };
        self.file.read_at_all(at, contiguous)?;
        // Separate slots are filled through a buffer. All ranks take part in every round.
        let mut left: usize = separate.iter().map(|slot| slot.len()).sum();
        let rounds = gather_numbers(self.comm, left.div_ceil(AT_ONCE) as u64)?;
        let mut buffer = vec![0; left.min(AT_ONCE)];
        let mut slots = separate.iter_mut();
        let mut slot: &mut [u8] = &mut [];
        for _ in 0..rounds.into_iter().max().unwrap_or(0) {
            let mut bytes = &mut buffer[..left.min(AT_ONCE)];
            self.file.read_at_all(at, bytes)?;
            at += bytes.len() as u64;
            left -= bytes.len();
            while !bytes.is_empty() {
                let taken = slot.len().min(bytes.len());
                let (now, later) = std::mem::take(&mut slot).split_at_mut(taken);
                let (from, rest) = bytes.split_at_mut(taken);
                now.copy_from_slice(from);
                (slot, bytes) = (later, rest);
                if slot.is_empty() {
                    let Some(next) = slots.next() else { break };
                    slot = next;
                }
            }
        }
        Ok(())
    }

    /// Decodes the elements of this rank into its buffers, on all threads.
    pub(super) fn decode_elements(
        &self,
        sizes: impl Iterator<Item = u64>,
        mut into: Option<Slots<'_, '_>>,
    ) -> Result<()> {
        let open = self.current()?;
        let share =
            open.share.as_ref().ok_or_else(|| Error::argument("the sizes have not been read"))?;
        let mut at = open.headers.data.data() + share.before;
        let stored = if into.is_some() { &share.sizes[..] } else { &[] };
        let mut slots = into.as_mut().map_or_else(Vec::new, |slots| slots.split(sizes));
        let batches = batches(stored);
        let largest = batches.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let allowed = self.limits.allow(largest, "a batch of compressed elements");
        let mut buffer = vec![0; self.agree(allowed)?];
        let rounds = gather_numbers(self.comm, batches.len() as u64)?;
        let (mut stored, mut slots) = (stored, slots.as_mut_slice());
        let mut decoded = Ok(());
        for round in 0..rounds.into_iter().max().unwrap_or(0) as usize {
            let (number, bytes) = batches.get(round).copied().unwrap_or((0, 0));
            let mut left = &mut buffer[..bytes as usize];
            self.file.read_at_all(at, left)?;
            let (sizes, more) = stored.split_at(number);
            let (targets, rest) = slots.split_at_mut(number);
            (stored, slots) = (more, rest);
            let mut elements = Vec::with_capacity(number);
            for (size, target) in sizes.iter().zip(targets) {
                let (element, rest) = left.split_at_mut(*size as usize);
                elements.push((at, &*element, target));
                (at, left) = (at + size, rest);
            }
            let done =
                elements.into_par_iter().with_min_len(8).try_for_each(|(at, element, target)| {
                    Convention.decode(element, target).map_err(|e| e.at(at))
                });
            decoded = decoded.and(done);
        }
        self.agree(decoded)
    }
}

/// Groups elements of these sizes into batches that are read at once: number and bytes of each batch.
fn batches(sizes: &[u64]) -> Vec<(usize, u64)> {
    let mut batches: Vec<(usize, u64)> = Vec::new();
    for size in sizes {
        match batches.last_mut() {
            Some((number, bytes)) if *bytes + size <= ENCODED_AT_ONCE => {
                *number += 1;
                *bytes += size;
            }
            _ => batches.push((1, *size)),
        }
    }
    batches
}

fn too_large(at: u64) -> Error {
    Error::malformed("scda-006", "the sum of the sizes exceeds the maximum file size").at(at)
}
