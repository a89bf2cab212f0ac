//! Any tree as an archive. Members are stored, so that they can be mapped and read in place.

use std::sync::{Mutex, PoisonError};

use flate2::Crc;
use spile_core::error::{Error, Result};
use spile_core::flat::Flat;
use spile_core::format::Reader;
use spile_core::layout::ArrayDesc;
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::NodeId;
use spile_core::wire::ByteOrder;

use super::ENDING;
use super::zip::{self, Member};
use crate::write::header;

/// The member that says what NumPy has no place for.
pub(super) const DESCRIPTION: &str = "spile.json";

pub(super) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let flat = Flat::new(content, limits)?;
    let mut archive = Archive::new(sink);
    // First, so that the file is known by its beginning even where it has no arrays.
    archive.bytes(DESCRIPTION, flat.description.text(limits)?.as_bytes())?;
    for (id, node, array) in flat.tree().arrays() {
        let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
        if node.path.contains('\0') {
            return Err(place(Error::unsupported("npz-011", "names in archives have no NUL")));
        }
        archive.array(&format!("{}{ENDING}", node.path), &flat, id, array).map_err(place)?;
    }
    archive.finish()
}

/// An archive in the making.
pub(super) struct Archive<'a> {
    sink: &'a mut Sink,
    members: Vec<Member>,
    end: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn new(sink: &'a mut Sink) -> Self {
        Self { sink, members: Vec::new(), end: 0 }
    }

    /// A member of another archive, as it is there.
    pub(super) fn copy(&mut self, source: &Source, member: &Member) -> Result<()> {
        let new = member.moved(self.end)?;
        self.sink.seek(new.data);
        self.sink.copy_from(source, member.data, member.stored)?;
        self.add(new, member.crc)
    }

    fn array(&mut self, name: &str, flat: &Flat<'_>, id: NodeId, array: &ArrayDesc) -> Result<()> {
        let dtype = array.dtype.with_order(ByteOrder::Little);
        // A type that NumPy lacks is bytes there.
        let descr = dtype.numpy().unwrap_or_else(|| format!("|V{}", dtype.size()));
        let fortran = flat.order(id) == Order::F && array.shape.rank() > 1;
        let order = if fortran { Order::F } else { Order::C };
        let header = header(&descr, fortran, array.shape.lengths())?;
        let (before, size) = (header.len() as u64, dtype.size() as u64);
        let bytes = array.shape.bytes(dtype.size())?;
        let member = Member::stored(name, before.saturating_add(bytes), self.end)?;
        let sink = &*self.sink;
        sink.write_all_at(member.data, &header)?;
        // Blocks are written on all threads; their sums are put together in the order of the file.
        let sums = Mutex::new(vec![(0, sum(&header))]);
        flat.for_each(id, order, |first, bytes| {
            let at = before + first * size;
            let part = (at, sum(bytes));
            sums.lock().unwrap_or_else(PoisonError::into_inner).push(part);
            sink.write_all_at(member.data + at, bytes)
        })?;
        let mut sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        sums.sort_by_key(|(at, _)| *at);
        let mut whole = Crc::new();
        for (_, part) in &sums {
            whole.combine(part);
        }
        self.add(member, whole.sum())
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let member = Member::stored(name, bytes.len() as u64, self.end)?;
        self.sink.write_all_at(member.data, bytes)?;
        self.add(member, sum(bytes).sum())
    }

    /// The header comes last: it has the sum.
    fn add(&mut self, mut member: Member, crc: u32) -> Result<()> {
        member.crc = crc;
        self.sink.write_all_at(member.header, &member.local())?;
        self.end = member.data + member.stored;
        self.members.push(member);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<()> {
        self.sink.write_all_at(self.end, &zip::directory(&self.members, self.end))
    }
}

fn sum(bytes: &[u8]) -> Crc {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum
}
