//! The processes of a parallel job, and the files they share.
//!
//! A [`Comm`] is what a parallel algorithm needs of MPI and no more. [`Serial`] is a job of one;
//! [`Threads`] runs the ranks of a job as threads of this process, for tests and laptops;
//! [`Ranks`] makes a job of anything that has MPI's calls. Calls are collective: every rank makes
//! the same ones in the same order. [`agree`] turns the failure of one rank into the same failure
//! on all of them, so that nobody waits for a rank that gave up.

mod threads;
mod transport;

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sink::{Overwrite, Sink};
use crate::source::Source;

pub use threads::Threads;
pub use transport::{Ranks, Transport, address, address_mut};

/// The ranks of a job.
pub trait Comm {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Every rank gives its bytes and gets those of all, by rank. Lengths may differ.
    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>>;

    /// Every rank gets what `root` gives; what the others give is not looked at.
    fn broadcast(&self, root: usize, mine: &[u8]) -> Result<Vec<u8>>;

    /// Starts a file that all ranks write; it appears when all of them have finished it.
    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>>;

    /// Opens a file that all ranks read.
    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>>;
}

/// A file that all ranks write. Every call is collective, and fails on all ranks or on none.
pub trait SharedSink {
    /// Every rank writes its bytes, possibly none, at its own place.
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Every rank writes parts, each at its own place; how many is its own business. Nothing of
    /// any rank goes past `end`.
    fn write_parts(&self, end: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()>;

    /// Makes the file appear, whole, or fails on every rank.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A file that all ranks read.
pub trait SharedSource {
    /// Its length in bytes when it was opened, the same on every rank.
    fn len(&self) -> u64;

    /// No bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every rank reads its bytes, possibly none, from its own place. Collective; fails on all
    /// ranks or on none.
    fn read_at_all(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// The result if all ranks succeeded; otherwise the failure of the lowest rank that has one, on
/// every rank.
pub fn agree<T>(comm: &dyn Comm, mine: Result<T>) -> Result<T> {
    let told = match &mine {
        Ok(_) => Vec::new(),
        Err(error) => error.to_bytes(),
    };
    let all = comm.allgather(&told)?;
    match all.iter().position(|told| !told.is_empty()) {
        None => mine,
        // Ours may know more than fits a message: the operating system's error, for one.
        Some(rank) if rank == comm.rank() => mine,
        Some(rank) => Err(Error::from_bytes(&all[rank])),
    }
}

/// [`agree`] for calls whose `arguments` have to be the same on every rank: where they are not, it
/// fails on all of them, instead of one waiting for what the others do not do.
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

/// A number of every rank, by rank.
pub fn gather_numbers(comm: &dyn Comm, mine: u64) -> Result<Vec<u64>> {
    let all = comm.allgather(&mine.to_le_bytes())?;
    let number = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    Ok(all.iter().map(number).collect())
}

/// A job of one rank.
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
        Ok(Box::new(SerialSink(Sink::create(path, overwrite)?)))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>> {
        Ok(Box::new(SerialSource(Source::open(path)?)))
    }
}

struct SerialSink(Sink);

impl SharedSink for SerialSink {
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_all_at(offset, bytes)
    }

    fn write_parts(&self, _end: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        for (offset, bytes) in parts {
            self.0.write_all_at(offset, bytes)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.commit()
    }
}

struct SerialSource(Source);

impl SharedSource for SerialSource {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at_all(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}
