//! Reads sizes and elements of one rank.

use rayon::prelude::*;
use spile_core::comm::agree_max;
use spile_core::layout::Codec as _;
use spile_core::{Error, Result};

use super::{Cursor, Share};
use crate::buffers::{ENCODED_AT_ONCE, Slots, split};
use crate::codec::Convention;
use crate::wire::{ENTRIES_AT_ONCE, ENTRY, check_entries, parse_entries};

/// Bytes of count entries that are read at once.
const AT_ONCE: usize = 1 << 20;

/// Bytes of elements that are read at once if they are not read directly into the caller's buffer.
const AT_ONCE_COLLECTIVE: usize = 16 << 20;

impl Cursor<'_> {
    /// Reads this rank's stored sizes and determines where its elements begin.
    pub(super) fn read_share(&mut self, counts: &[u64]) -> Result<()> {
        let mut sizes = self.size_table(counts)?;
        let (before, total) = self.sum_sizes(counts, |part| sizes.extend_from_slice(part))?;
        let counts = counts.to_vec();
        if let Some(open) = &mut self.open {
            open.share = Some(Share { counts, sizes, decoded: None, before, total });
        }
        Ok(())
    }

    /// An empty table for the sizes of this rank's elements.
    fn size_table(&self, counts: &[u64]) -> Result<Vec<u64>> {
        let bytes = counts[self.comm.rank()].saturating_mul(8);
        let allowed = self.limits.allow(bytes, "the table of element sizes");
        Ok(Vec::with_capacity(self.agree(allowed)? / 8))
    }

    /// Stored bytes of the ranks before this one and of all ranks; `each` receives this rank's sizes in
    /// order.
    pub(super) fn sum_sizes(
        &self,
        counts: &[u64],
        mut each: impl FnMut(&[u64]),
    ) -> Result<(u64, u64)> {
        let (rank, data) = (self.comm.rank(), &self.current()?.headers.data);
        let table = data.end();
        let fits = check_entries(data.count, table, self.file.len());
        fits.map_err(|e| e.with_path(&self.path))?;
        let at = table + counts[..rank].iter().sum::<u64>() * ENTRY;
        let too_large = || {
            let message = "the sum of the sizes exceeds the maximum file size";
            Error::malformed("scda-006", message).at(table)
        };
        let add = |sum: u64, size: &u64| sum.checked_add(*size);
        let mut sum = Some(0_u64);
        self.for_entries(at, counts, b'E', |part| {
            sum = sum.and_then(|sum| part.iter().try_fold(sum, add));
            each(part);
        })?;
        let sum = self.agree(sum.filter(|sum| *sum < 1 << 62).ok_or_else(too_large))?;
        let before = self.comm.sum_before(sum)?;
        // The largest sum is that of all ranks.
        let mut total = [before.saturating_add(sum)];
        agree_max(self.comm, Ok(()), &mut total)?;
        let fits = data.section_end(self.file.len(), total[0]);
        fits.map_err(|e| e.with_path(&self.path))?;
        Ok((before, total[0]))
    }

    /// The values of this rank's count entries, the first of which is at `at`. `counts` is the number of
    /// entries of each rank.
    pub(super) fn read_entries(&self, at: u64, counts: &[u64], letter: u8) -> Result<Vec<u64>> {
        let mut values = self.size_table(counts)?;
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
            let read = self.file.read(at, bytes, AT_ONCE as u64);
            let pieces = bytes.par_chunks(ENTRIES_AT_ONCE * ENTRY as usize).enumerate();
            let done = pieces.zip(part.par_chunks_mut(ENTRIES_AT_ONCE)).try_for_each(
                |((k, bytes), values)| {
                    parse_entries(bytes, letter, at + (k * ENTRIES_AT_ONCE) as u64 * ENTRY, values)
                },
            );
            parsed = parsed.and(read).and(done);
            each(part);
        }
        self.agree(parsed)
    }

    /// Fills the buffers of this rank with the bytes at `at`. `longest` is the maximum bytes of a rank in one
    /// buffer, and in one buffer per element.
    pub(super) fn read_elements(
        &self,
        mut at: u64,
        into: Option<Slots<'_, '_>>,
        longest: [u64; 2],
    ) -> Result<()> {
        let (contiguous, separate): (&mut [u8], &mut [&mut [u8]]) = match into {
            None => (&mut [], &mut []),
            Some(Slots::Contiguous(bytes)) => (bytes, &mut []),
            Some(Slots::Indirect(slots)) => (&mut [], slots),
        };
        let mut result = self.file.read(at, contiguous, longest[0]);
        // Separate slots are filled through a buffer. All ranks take part in every round.
        let mut left: usize = separate.iter().map(|slot| slot.len()).sum();
        let mut buffer = vec![0; left.min(AT_ONCE_COLLECTIVE)];
        let mut slots = separate.iter_mut();
        let mut slot: &mut [u8] = &mut [];
        for _ in 0..longest[1].div_ceil(AT_ONCE_COLLECTIVE as u64) {
            let mut bytes = &mut buffer[..left.min(AT_ONCE_COLLECTIVE)];
            result = result.and(self.file.read(at, bytes, AT_ONCE_COLLECTIVE as u64));
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
        self.agree(result)
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
        let batches = split(stored.iter().copied(), usize::MAX, ENCODED_AT_ONCE);
        let largest = batches.iter().map(|batch| batch.bytes).max().unwrap_or(0);
        let allowed = self.limits.allow(largest, "a batch of compressed elements");
        let mut most = [batches.len() as u64, largest];
        let allowed = allowed.map_err(|e| e.with_path(&self.path));
        let mut buffer = vec![0; agree_max(self.comm, allowed, &mut most)?];
        let [rounds, longest] = most;
        let (mut stored, mut slots) = (stored, slots.as_mut_slice());
        let mut decoded = Ok(());
        for round in 0..rounds as usize {
            let batch = batches.get(round);
            let (number, bytes) = batch.map_or((0, 0), |batch| (batch.number, batch.bytes));
            let mut left = &mut buffer[..bytes as usize];
            let read = self.file.read(at, left, longest);
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
            decoded = decoded.and(read).and(done);
        }
        self.agree(decoded)
    }
}
