//! Communicators of parallel jobs, and shared files.
//!
//! A [`Comm`] has the subset of MPI that the parallel algorithms use. [`Serial`] has one rank;
//! [`Threads`] runs ranks as threads of this process; [`Ranks`] uses a [`Transport`] such as MPI. Calls
//! are collective: every rank makes the same calls in the same order. [`agree`] turns an error of one
//! rank into an error of all ranks, so that none waits for a rank that has failed.

mod threads;
mod transport;

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

    /// Returns the bytes of all ranks, by rank. Lengths may differ.
    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>>;

    /// Returns the bytes of rank `root` on every rank; `mine` is ignored on the others.
    fn broadcast(&self, root: usize, mine: &[u8]) -> Result<Vec<u8>>;

    /// Creates a file that all ranks write; it becomes visible when it is [finished](SharedSink::finish).
    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>>;

    /// Opens a file that all ranks read.
    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>>;
}

/// A file written by all ranks. Every call is collective and fails on all ranks or on none.
pub trait SharedSink {
    /// Writes the bytes of each rank, possibly none, at its offset.
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Writes the parts of each rank at their offsets; their number may differ between ranks. No part of any
    /// rank extends past `end`.
    fn write_parts(&self, end: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()>;

    /// Makes the file visible at its path.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A file read by all ranks.
pub trait SharedSource {
    /// Length in bytes when it was opened, the same on every rank.
    fn len(&self) -> u64;

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills the buffer of each rank, possibly empty, from its offset. Collective; fails on all ranks or on
    /// none.
    fn read_at_all(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// Returns `mine` if all ranks succeeded; otherwise the error of the lowest rank that failed, on every
/// rank. Collective.
pub fn agree<T>(comm: &dyn Comm, mine: Result<T>) -> Result<T> {
    let message = match &mine {
        Ok(_) => Vec::new(),
        Err(error) => error.to_bytes(),
    };
    let all = comm.allgather(&message)?;
    match all.iter().position(|message| !message.is_empty()) {
        None => mine,
        // The local error has its source, which is not serialised.
        Some(rank) if rank == comm.rank() => mine,
        Some(rank) => Err(Error::from_bytes(&all[rank])),
    }
}

/// [`agree`] for calls whose `arguments` must be the same on every rank; fails on all ranks if they differ.
pub fn agree_alike<T>(comm: &dyn Comm, mine: Result<T>, arguments: impl Hash) -> Result<T> {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    let mine = agree(comm, mine)?;
    let hashes = gather_numbers(comm, hasher.finish())?;
    if hashes.iter().all(|hash| *hash == hashes[0]) {
        return Ok(mine);
    }
    Err(Error::argument("the ranks of the job passed different arguments to the same call"))
}

/// Returns the number of rank `root` on every rank. Collective.
fn broadcast_number(comm: &dyn Comm, root: usize, mine: u64) -> Result<u64> {
    let bytes = comm.broadcast(root, &mine.to_le_bytes())?;
    Ok(bytes.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw)))
}

/// Returns the numbers of all ranks, by rank. Collective.
pub fn gather_numbers(comm: &dyn Comm, mine: u64) -> Result<Vec<u64>> {
    let all = comm.allgather(&mine.to_le_bytes())?;
    let number = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    Ok(all.iter().map(number).collect())
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

    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>> {
        Ok(Arc::new(vec![mine.to_vec()]))
    }

    fn broadcast(&self, _root: usize, mine: &[u8]) -> Result<Vec<u8>> {
        Ok(mine.to_vec())
    }

    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>> {
        Ok(Box::new(Sink::create(path, overwrite)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>> {
        Ok(Box::new(Source::open(path)?))
    }
}

impl SharedSink for Sink {
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_all_at(offset, bytes)
    }

    fn write_parts(&self, _: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        for (offset, bytes) in parts {
            self.write_all_at(offset, bytes)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.commit()
    }
}

/// A sink that its owner commits.
impl SharedSink for &Sink {
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_all_at(offset, bytes)
    }

    fn write_parts(&self, end: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        Sink::write_parts(self, end, parts)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl SharedSource for Source {
    fn len(&self) -> u64 {
        self.len()
    }

    fn read_at_all(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_exact_at(offset, buffer)
    }
}
