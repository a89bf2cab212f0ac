//! How the elements of a rank, and their sizes, come into its memory.

use rayon::prelude::*;
use spile_core::comm::gather_numbers;
use spile_core::error::{Error, Result};
use spile_core::layout::Codec as _;

use super::{Cursor, Share};
use crate::codec::Convention;
use crate::elements::Slots;
use crate::wire::{ENTRIES_AT_ONCE, ENTRY, entries_fit, parse_entries};

/// Bytes that are read at once where they are not read straight into the caller's memory.
const AT_ONCE: usize = 1 << 20;

/// Bytes of encoded elements that are read at once, if they are several.
const ENCODED_AT_ONCE: u64 = 4 << 20;

impl Cursor<'_> {
    /// Reads this rank's stored sizes and learns from the others where its elements begin.
    pub(super) fn share(&mut self, counts: Vec<u64>) -> Result<()> {
        let rank = self.comm.rank();
        let (table, number) = self.current().map(|open| (open.holder.end, open.holder.count))?;
        let fits = entries_fit(number, table, self.file.len());
        fits.map_err(|e| e.with_path(&self.path))?;
        let at = table + counts[..rank].iter().sum::<u64>() * ENTRY;
        let sizes = self.read_entries(at, counts[rank], &counts, b'E')?;
        let too_many = || {
            Error::malformed("scda-006", "the sizes add up to more than any file holds").at(table)
        };
        let sum = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
        let sum = self.settle(sum.filter(|sum| *sum < 1 << 62).ok_or_else(too_many))?;
        let sums = gather_numbers(self.comm, sum)?;
        let total = sums.iter().try_fold(0_u64, |total, sum| total.checked_add(*sum));
        let total = total.ok_or_else(too_many).map_err(|e| e.with_path(&self.path))?;
        let before = sums[..rank].iter().sum();
        if let Some(open) = &mut self.open {
            let end = open.holder.section_end(self.file.len(), open.elements(), total);
            end.map_err(|e| e.with_path(&self.path))?;
            open.share = Some(Share { counts, sizes, decoded: None, before, total });
        }
        Ok(())
    }

    /// `mine` count entries from byte `at` on; `counts` are those of every rank.
    pub(super) fn read_entries(
        &self,
        at: u64,
        mine: u64,
        counts: &[u64],
        letter: u8,
    ) -> Result<Vec<u64>> {
        let room = self.limits.allow(mine.saturating_mul(8), "the sizes of the elements");
        let mut values = vec![0; self.settle(room)? / 8];
        let per_round = AT_ONCE / ENTRY as usize;
        let rounds = counts.iter().max().unwrap_or(&0).div_ceil(per_round as u64);
        let mut bytes = vec![0; values.len().min(per_round) * ENTRY as usize];
        let mut parsed = Ok(());
        let mut parts = values.chunks_mut(per_round);
        for round in 0..rounds {
            let part = parts.next().unwrap_or_default();
            let at = at + round * AT_ONCE as u64;
            let bytes = &mut bytes[..part.len() * ENTRY as usize];
            self.file.read_at_all(at, bytes)?;
            let pieces = bytes.par_chunks(ENTRIES_AT_ONCE * ENTRY as usize).enumerate();
            let done = pieces.zip(part.par_chunks_mut(ENTRIES_AT_ONCE)).try_for_each(
                |((k, bytes), values)| {
                    parse_entries(bytes, letter, at + (k * ENTRIES_AT_ONCE) as u64 * ENTRY, values)
                },
            );
            parsed = parsed.and(done);
        }
        self.settle(parsed)?;
        Ok(values)
    }

    /// Fills this rank's memory, if it gave any, with the bytes from `at` on.
    pub(super) fn read_elements(&self, mut at: u64, into: Option<Slots<'_, '_>>) -> Result<()> {
        let (together, apart): (&mut [u8], &mut [&mut [u8]]) = match into {
            None => (&mut [], &mut []),
            Some(Slots::Contiguous(bytes)) => (bytes, &mut []),
            Some(Slots::Indirect(slots)) => (&mut [], slots),
        };
        self.file.read_at_all(at, together)?;
        // Slots that lie apart are filled from a buffer, in as many rounds as any rank needs.
        let mut left: usize = apart.iter().map(|slot| slot.len()).sum();
        let rounds = gather_numbers(self.comm, left.div_ceil(AT_ONCE) as u64)?;
        let mut buffer = vec![0; left.min(AT_ONCE)];
        let mut slots = apart.iter_mut();
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

    /// Decodes this rank's elements on all its threads, if it gave memory for them.
    pub(super) fn decode_elements(
        &self,
        sizes: impl Iterator<Item = u64>,
        mut into: Option<Slots<'_, '_>>,
    ) -> Result<()> {
        let open = self.current()?;
        let share = open.share.as_ref().ok_or_else(|| Error::argument("no sizes were read"))?;
        let mut at = open.elements() + share.before;
        let stored = if into.is_some() { &share.sizes[..] } else { &[] };
        let mut slots = into.as_mut().map_or_else(Vec::new, |slots| slots.split(sizes));
        let batches = batches(stored);
        let largest = batches.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let room = self.limits.allow(largest, "compressed elements");
        let mut buffer = vec![0; self.settle(room)?];
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
        self.settle(decoded)
    }
}

/// Cuts elements of these sizes into batches that are read at once: number and bytes.
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
