//! Writer of archives. Members are stored, so that they can be read in place and memory-mapped.

use std::sync::{Mutex, PoisonError};

use flate2::Crc;
use spile_core::error::Result;
use spile_core::layout::ArrayDesc;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::NodeId;
use spile_core::wire::ByteOrder;
use spile_interchange::Flat;

use super::wire::{Member, encode_directory};
use crate::wire::encode_header;

/// Writer of an archive.
pub(super) struct Archive<'a> {
    sink: &'a mut Sink,
    members: Vec<Member>,
    end: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn new(sink: &'a mut Sink) -> Self {
        Self { sink, members: Vec::new(), end: 0 }
    }

    /// Copies a member of another archive.
    pub(super) fn copy(&mut self, source: &Source, member: &Member) -> Result<()> {
        let new = member.moved(self.end)?;
        self.sink.seek(new.data);
        self.sink.copy_from(source, member.data, member.stored)?;
        self.add(new, member.crc)
    }

    /// Writes an array as a stored member.
    pub(super) fn array(
        &mut self,
        name: &str,
        flat: &Flat,
        id: NodeId,
        array: &ArrayDesc,
    ) -> Result<()> {
        let dtype = array.dtype.with_order(ByteOrder::Little);
        // Types without a NumPy equivalent are written as opaque bytes.
        let descr = dtype.numpy().unwrap_or_else(|| format!("|V{}", dtype.size()));
        let fortran = flat.order(id) == Order::F && array.shape.rank() > 1;
        let order = if fortran { Order::F } else { Order::C };
        let header = encode_header(&descr, fortran, array.shape.lengths())?;
        let (before, size) = (header.len() as u64, dtype.size() as u64);
        let bytes = array.shape.bytes(dtype.size())?;
        let member = Member::stored(name, before.saturating_add(bytes), self.end)?;
        let sink = &*self.sink;
        sink.write_all_at(member.data, &header)?;
        // Blocks are written on all threads; their checksums are combined in file order.
        let sums = Mutex::new(vec![(0, sum(&header))]);
        flat.for_each(id, order, |first, bytes| {
            let at = before + first * size;
            let part = (at, sum(bytes));
            sums.lock().unwrap_or_else(PoisonError::into_inner).push(part);
            sink.write_all_at(member.data + at, bytes)
        })?;
        let mut sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        sums.sort_by_key(|(at, _)| *at);
        let mut total = Crc::new();
        for (_, part) in &sums {
            total.combine(part);
        }
        self.add(member, total.sum())
    }

    /// Writes uniformly spaced points as a stored member.
    pub(super) fn points(&mut self, name: &str, start: f64, step: f64, len: u64) -> Result<()> {
        let header = encode_header("<f8", false, &[len])?;
        let before = header.len() as u64;
        let member = Member::stored(name, before.saturating_add(len.saturating_mul(8)), self.end)?;
        self.sink.write_all_at(member.data, &header)?;
        let mut total = sum(&header);
        for first in (0..len).step_by(1 << 16) {
            let block = first..len.min(first + (1 << 16));
            let points = block.flat_map(|k| (start + k as f64 * step).to_le_bytes());
            let points: Vec<u8> = points.collect();
            total.update(&points);
            self.sink.write_all_at(member.data + before + 8 * first, &points)?;
        }
        self.add(member, total.sum())
    }

    /// Writes bytes as a stored member.
    pub(super) fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let member = Member::stored(name, bytes.len() as u64, self.end)?;
        self.sink.write_all_at(member.data, bytes)?;
        self.add(member, sum(bytes).sum())
    }

    /// Adds a member whose data are written, and writes its header.
    fn add(&mut self, mut member: Member, crc: u32) -> Result<()> {
        member.crc = crc;
        self.sink.write_all_at(member.header, &member.local())?;
        self.end = member.data + member.stored;
        self.members.push(member);
        Ok(())
    }

    /// Writes the directory.
    pub(super) fn finish(self) -> Result<()> {
        self.sink.write_all_at(self.end, &encode_directory(&self.members, self.end))
    }
}

fn sum(bytes: &[u8]) -> Crc {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum
}
