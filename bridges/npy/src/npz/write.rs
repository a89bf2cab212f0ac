//! Any tree as an archive. Members are stored, so that they can be mapped and read in place.

use std::sync::{Mutex, PoisonError};

use flate2::Crc;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::sink::Sink;

use super::ENDING;
use super::zip::{self, Member};
use crate::write::Saved;

/// The member that says what NumPy has no place for.
pub(super) const DESCRIPTION: &str = "spile.json";

pub(super) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let (source, tree) = (content.source(), content.tree());
    let mut archive = Archive { sink, members: Vec::new(), end: 0 };
    for (_, node, desc) in tree.arrays() {
        let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
        let array = Array::open(source, tree, desc, limits).map_err(place)?;
        archive.array(&node.path, &array).map_err(place)?;
    }
    archive.finish()
}

/// An archive in the making.
struct Archive<'a> {
    sink: &'a mut Sink,
    members: Vec<Member>,
    end: u64,
}

impl Archive<'_> {
    fn array(&mut self, path: &str, array: &Array) -> Result<()> {
        let saved = Saved::stored(array)?;
        let name = format!("{path}{ENDING}");
        let member = Member::stored(&name, saved.len()?, self.end)?;
        let sink = &*self.sink;
        sink.write_all_at(member.data, &saved.header)?;
        // Blocks are written on all threads; their sums are put together in the order of the file.
        let sums = Mutex::new(vec![(0, sum(&saved.header))]);
        saved.blocks(|at, bytes| {
            let part = (at, sum(bytes));
            sums.lock().unwrap_or_else(PoisonError::into_inner).push(part);
            sink.write_all_at(member.data + at, bytes)
        })?;
        let mut sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        sums.sort_by_key(|(at, _)| *at);
        let mut whole = Crc::new();
        sums.iter().for_each(|(_, part)| whole.combine(part));
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
        self.end = member.data + member.size;
        self.members.push(member);
        Ok(())
    }

    fn finish(self) -> Result<()> {
        self.sink.write_all_at(self.end, &zip::directory(&self.members, self.end))
    }
}

fn sum(bytes: &[u8]) -> Crc {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum
}
