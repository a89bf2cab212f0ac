//! Communicators of parallel jobs, and shared files.
//!
//! A [`Comm`] has the subset of MPI that the parallel algorithms use. [`Serial`] has one rank;
//! [`Threads`] runs ranks as threads of this process; [`Ranks`] uses a [`Transport`] such as MPI. Calls
//! are collective unless they say otherwise: every rank makes the same calls in the same order. [`agree`] turns an error of one
//! rank into an error of all ranks, so that none waits for a rank that has failed.

mod threads;
mod transport;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use crate::{Error, Overwrite, Result, Sink, Source};

pub use threads::Threads;
pub use transport::{Ranks, Transport, address, address_mut};

/// A communicator.
pub trait Comm {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Replaces each value by its maximum over all ranks. The number of values is the same on every rank.
    fn max(&self, values: &mut [u64]) -> Result<()>;

    /// Replaces each value by the exclusive or of the values of all ranks. The number of values is the same on every
    /// rank.
    fn xor(&self, values: &mut [u64]) -> Result<()>;

    /// Returns the sum of the numbers of the ranks before this one; `u64::MAX` if it is larger.
    fn sum_before(&self, mine: u64) -> Result<u64>;

    /// Copies the bytes of rank `root` to all ranks. The length is the same on every rank.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()>;

    /// Returns the bytes of all ranks, by rank. Lengths may differ. The result grows with the number of
    /// ranks.
    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>>;

    /// Creates a file that all ranks write; it becomes visible when it is [finished](SharedSink::finish).
    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>>;

    /// Opens a file that all ranks read.
    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>>;
}

/// A file written by all ranks. Errors of `reserve`, `write` and `write_alone` are those of one rank:
/// callers pass them to [`agree`].
pub trait SharedSink {
    /// Reserves disk space for the bytes before `end`, which is the same on every rank. In some MPI
    /// libraries a collective write that runs out of space on one rank blocks the others. Not collective.
    /// `Ok(false)`: nothing had to be reserved, and the ranks need not agree.
    fn reserve(&self, end: u64) -> Result<bool>;

    /// Writes the parts of this rank, possibly none, one after the other from `offset`. Collective.
    /// `longest` is the same on every rank, and no rank has more bytes.
    fn write(&self, offset: u64, parts: &[&[u8]], longest: u64) -> Result<()>;

    /// Writes the parts of this rank one after the other from `offset`. Not collective.
    fn write_alone(&self, offset: u64, parts: &[&[u8]]) -> Result<()>;

    /// Makes the file visible at its path. Collective; fails on all ranks or on none.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A file read by all ranks. Errors of `read` and `read_at_root` are those of one rank: callers pass them
/// to [`agree`].
pub trait SharedSource {
    /// Length in bytes when it was opened, the same on every rank.
    fn len(&self) -> u64;

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills the buffer of this rank, possibly empty, from `offset`. Collective. `longest` is the same on
    /// every rank, and no buffer has more bytes.
    fn read(&self, offset: u64, buffer: &mut [u8], longest: u64) -> Result<()>;

    /// Fills the buffer on rank 0; does nothing on the others. Not collective.
    fn read_at_root(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// Returns `mine` if all ranks succeeded; otherwise the error of the lowest rank that failed, on every
/// rank. Collective: one reduction, and a broadcast after an error.
pub fn agree<T>(comm: &dyn Comm, mine: Result<T>) -> Result<T> {
    agree_max(comm, mine, &mut [])
}

/// [`agree`] that also replaces each value by its maximum over all ranks, in the same reduction. The values
/// are undefined after an error.
pub fn agree_max<T>(comm: &dyn Comm, mine: Result<T>, values: &mut [u64]) -> Result<T> {
    // The maximum is the lowest rank that failed.
    let failed = if mine.is_ok() { 0 } else { (comm.size() - comm.rank()) as u64 };
    let mut all = [&[failed], &*values].concat();
    comm.max(&mut all)?;
    values.copy_from_slice(&all[1..]);
    if all[0] == 0 {
        return mine;
    }
    let root = comm.size().saturating_sub(all[0] as usize);
    let message = mine.as_ref().err().map_or_else(Vec::new, Error::to_bytes);
    let message = broadcast_message(comm, root, &message)?;
    // The local error has its source, which is not serialised.
    if comm.rank() == root { mine } else { Err(Error::from_bytes(&message)) }
}

/// [`agree`] for calls whose `arguments` must be the same on every rank; fails on all ranks if they differ.
pub fn agree_alike<T>(comm: &dyn Comm, mine: Result<T>, arguments: impl Hash) -> Result<T> {
    agree_call(comm, mine, arguments, [0; 0]).map(|(mine, [])| mine)
}

/// [`agree_alike`] that also returns the maximum over all ranks of each value, in the same reduction.
pub fn agree_call<T, const N: usize>(
    comm: &dyn Comm,
    mine: Result<T>,
    arguments: impl Hash,
    values: [u64; N],
) -> Result<(T, [u64; N])> {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    let hash = hasher.finish();
    // The maximum of the complements is the complement of the minimum.
    let mut all = [&[hash, !hash], &values[..]].concat();
    let mine = agree_max(comm, mine, &mut all)?;
    if all[0] != !all[1] {
        return Err(different_arguments());
    }
    Ok((mine, std::array::from_fn(|k| all[k + 2])))
}

/// The error of a call whose arguments differ between ranks.
pub fn different_arguments() -> Error {
    Error::argument("the ranks of the job passed different arguments to the same call")
}

/// Returns the bytes of rank `root`, whose length only `root` knows, on every rank. Collective.
pub fn broadcast_message(comm: &dyn Comm, root: usize, mine: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = mine.to_vec();
    bytes.resize(broadcast_number(comm, root, mine.len() as u64)? as usize, 0);
    comm.broadcast(root, &mut bytes)?;
    Ok(bytes)
}

/// Returns the number of rank `root` on every rank. Collective.
fn broadcast_number(comm: &dyn Comm, root: usize, mine: u64) -> Result<u64> {
    let mut bytes = mine.to_le_bytes();
    comm.broadcast(root, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns the numbers of all ranks, by rank. Collective.
pub fn gather_numbers(comm: &dyn Comm, mine: u64) -> Result<Vec<u64>> {
    let all = comm.allgather(&mine.to_le_bytes())?;
    let number = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    Ok(all.iter().map(number).collect())
}

/// Writes the bytes of rank `root` at `offset`; other ranks pass bytes of the same length, which are
/// ignored. Collective; fails on all ranks or on none.
pub fn write_at_root(
    comm: &dyn Comm,
    file: &dyn SharedSink,
    root: usize,
    offset: u64,
    bytes: &[u8],
) -> Result<()> {
    let end = offset.saturating_add(bytes.len() as u64);
    let parts = (comm.rank() == root).then_some((offset, bytes));
    write_parts(comm, file, end, parts.into_iter())
}

/// Writes the parts of each rank at their offsets; their number may differ between ranks. `end` is the same
/// on every rank, and no part extends past it. Collective; fails on all ranks or on none.
pub fn write_parts<'a>(
    comm: &dyn Comm,
    file: &dyn SharedSink,
    end: u64,
    mut parts: impl Iterator<Item = (u64, &'a [u8])>,
) -> Result<()> {
    reserve(comm, file, end)?;
    agree(comm, parts.try_for_each(|(offset, bytes)| file.write_alone(offset, &[bytes])))
}

/// [`SharedSink::reserve`] on all ranks. Collective; fails on all ranks or on none.
pub fn reserve(comm: &dyn Comm, file: &dyn SharedSink, end: u64) -> Result<()> {
    match file.reserve(end) {
        Ok(false) => Ok(()),
        reserved => agree(comm, reserved).map(drop),
    }
}

/// A communicator with one rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Comm for Serial {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn max(&self, _values: &mut [u64]) -> Result<()> {
        Ok(())
    }

    fn xor(&self, _values: &mut [u64]) -> Result<()> {
        Ok(())
    }

    fn sum_before(&self, _mine: u64) -> Result<u64> {
        Ok(0)
    }

    fn broadcast(&self, _root: usize, _bytes: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>> {
        Ok(Arc::new(vec![mine.to_vec()]))
    }

    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>> {
        Ok(Box::new(Sink::create(path, overwrite)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>> {
        Ok(Box::new(Source::open(path)?))
    }
}

impl SharedSink for Sink {
    /// One rank without space blocks no other.
    fn reserve(&self, _end: u64) -> Result<bool> {
        Ok(false)
    }

    fn write(&self, offset: u64, parts: &[&[u8]], _longest: u64) -> Result<()> {
        self.write_alone(offset, parts)
    }

    fn write_alone(&self, mut offset: u64, parts: &[&[u8]]) -> Result<()> {
        if total(parts) <= PACKED {
            return self.write_all_at(offset, &pack(parts));
        }
        for part in parts {
            self.write_all_at(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.commit()
    }
}

/// A sink that its owner commits.
impl SharedSink for &Sink {
    fn reserve(&self, end: u64) -> Result<bool> {
        SharedSink::reserve(*self, end)
    }

    fn write(&self, offset: u64, parts: &[&[u8]], longest: u64) -> Result<()> {
        SharedSink::write(*self, offset, parts, longest)
    }

    fn write_alone(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        SharedSink::write_alone(*self, offset, parts)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Parts of at most this number of bytes are copied, so that they are written in one call.
const PACKED: u64 = 1 << 20;

/// Total bytes of the parts.
fn total(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

/// The parts as one slice.
fn pack<'a>(parts: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match parts {
        [] => Cow::Borrowed(&[]),
        [part] => Cow::Borrowed(part),
        parts => Cow::Owned(parts.concat()),
    }
}

impl SharedSource for Source {
    fn len(&self) -> u64 {
        self.len()
    }

    fn read(&self, offset: u64, buffer: &mut [u8], _longest: u64) -> Result<()> {
        self.read_exact_at(offset, buffer)
    }

    fn read_at_root(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_exact_at(offset, buffer)
    }
}
