//! Communicators over external collective calls: MPI through its Rust binding, or through callbacks of a
//! C program.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Comm, SharedSink, SharedSource, agree, broadcast_number, gather_numbers};
use crate::{Error, Overwrite, Result, Sink, Source};

/// Largest transfer in bytes; MPI counts are `int`.
const PIECE: usize = 1 << 30;

/// Disk space is reserved in steps of this number of bytes.
const RESERVE: u64 = 1 << 20;

/// MPI calls, collective except for `rank`, `size` and `write_at`. A call may fail on some ranks only;
/// [`Ranks`] makes the ranks agree.
pub trait Transport {
    /// An open file.
    type File;

    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Copies the `bytes` of `root` to all ranks. The length is the same on every rank and not 0.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()>;

    /// Fills `all` with the bytes of all ranks, by rank. `mine` has the same length on every rank, not 0.
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;

    /// Opens an existing file for writing or for reading.
    fn open(&self, path: &Path, write: bool) -> Result<Self::File>;

    /// Writes the bytes of each rank, possibly none, less than 2^31.
    fn write_at_all(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Writes bytes of this rank, less than 2^31. Not collective. Unsupported by default.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()> {
        let _ = (file, offset, bytes);
        Err(Error::unsupported("", "this transport has no independent writes"))
    }

    /// Fills the buffer of each rank, possibly empty, less than 2^31 bytes. Fewer bytes are an error.
    fn read_at_all(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Closes a file; with `keep`, after flushing it to disk.
    fn close(&self, file: Self::File, keep: bool) -> Result<()>;
}

/// The address of a buffer to be filled by a C function. Rust represents the address of an empty slice as
/// 1, which some MPI libraries use for `MPI_IN_PLACE`; this function returns 4096 instead.
pub fn address_mut(bytes: &mut [u8]) -> *mut u8 {
    if bytes.is_empty() { std::ptr::without_provenance_mut(4096) } else { bytes.as_mut_ptr() }
}

/// The address of bytes to be read by a C function. Rust represents the address of an empty slice as 1,
/// which some MPI libraries use for `MPI_IN_PLACE`; this function returns 4096 instead.
pub fn address(bytes: &[u8]) -> *const u8 {
    if bytes.is_empty() { std::ptr::without_provenance(4096) } else { bytes.as_ptr() }
}

/// A communicator over a [`Transport`].
pub struct Ranks<T>(T);

impl<T: Transport> Ranks<T> {
    /// A communicator of all ranks of `transport`.
    pub fn new(transport: T) -> Self {
        Self(transport)
    }

    /// The transport.
    pub fn transport(&self) -> &T {
        &self.0
    }

    fn open_file(&self, name: &Path, shown: &Path, write: bool) -> Result<RanksFile<'_, T>> {
        let path = shown.to_path_buf();
        let (file, opened) = match self.0.open(name, write) {
            Ok(file) => (Some(file), Ok(())),
            Err(error) => (None, Err(error.with_path(&path))),
        };
        match agree(self, opened) {
            Ok(()) => Ok(RanksFile { ranks: self, file, path }),
            Err(error) => {
                // Closing is collective, and some rank has no file to close.
                std::mem::forget(file);
                Err(error)
            }
        }
    }

    /// Transfers `len` bytes of this rank in pieces: `step` is called equally often on all ranks. Fails on all
    /// ranks or on none.
    fn in_pieces(
        &self,
        len: usize,
        mut step: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        let mut result = Ok(());
        loop {
            let part = if result.is_ok() { (len - done).min(PIECE) } else { 0 };
            let moved = step(done, part);
            if result.is_ok() {
                result = moved;
            }
            done += part;
            let state = [u8::from(result.is_ok() && done < len), u8::from(result.is_err())];
            let mut states = vec![0; 2 * self.0.size()];
            self.0.allgather(&state, &mut states)?;
            let states = states.as_chunks::<2>().0;
            if states.iter().any(|state| state[1] != 0) {
                return agree(self, result);
            }
            if states.iter().all(|state| state[0] == 0) {
                return Ok(());
            }
        }
    }
}

impl<T: Transport> Comm for Ranks<T> {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut lengths = vec![0; 8 * self.0.size()];
        self.0.allgather(&(mine.len() as u64).to_le_bytes(), &mut lengths)?;
        let lengths = lengths.as_chunks().0.iter().map(|raw| u64::from_le_bytes(*raw) as usize);
        let lengths: Vec<usize> = lengths.collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(Arc::new(vec![Vec::new(); lengths.len()]));
        }
        // Messages are short: errors and numbers. Padding them to the longest is cheaper than a
        // variable-length gather.
        let mut padded = mine.to_vec();
        padded.resize(longest, 0);
        let mut all = vec![0; longest * lengths.len()];
        self.0.allgather(&padded, &mut all)?;
        let parts = all.chunks(longest).zip(&lengths).map(|(part, len)| part[..*len].to_vec());
        Ok(Arc::new(parts.collect()))
    }

    fn broadcast(&self, root: usize, mine: &[u8]) -> Result<Vec<u8>> {
        let mut len = (mine.len() as u64).to_le_bytes();
        self.0.broadcast(root, &mut len)?;
        let mut bytes = mine.to_vec();
        bytes.resize(u64::from_le_bytes(len) as usize, 0);
        if !bytes.is_empty() {
            self.0.broadcast(root, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// The file has a temporary name `.NAME.XXXXXX.part` until it is finished, so that all processes can
    /// open it.
    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>> {
        let mut sink = None;
        let mut name = Ok(Vec::new());
        if self.rank() == 0 {
            name = Sink::create_named(path, overwrite).map(|(made, name)| {
                sink = Some(made);
                name.into_os_string().into_encoded_bytes()
            });
        }
        let name = self.broadcast(0, &agree(self, name)?)?;
        let file = self.open_file(Path::new(OsStr::from_bytes(&name)), path, true)?;
        Ok(Box::new(RanksSink { file, sink, reserved: Cell::new(0), len: Cell::new(0) }))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>> {
        let mut len = Ok(0);
        if self.rank() == 0 {
            len = Source::open(path).map(|source| source.len());
        }
        let len = broadcast_number(self, 0, agree(self, len)?)?;
        Ok(Box::new(RanksSource { file: self.open_file(path, path, false)?, len }))
    }
}

/// A file opened by all ranks. Dropping it is collective.
struct RanksFile<'a, T: Transport> {
    ranks: &'a Ranks<T>,
    /// `Some` until it is closed.
    file: Option<T::File>,
    /// Path as given by the caller.
    path: PathBuf,
}

impl<T: Transport> RanksFile<'_, T> {
    fn get(&self) -> Result<&T::File> {
        self.file.as_ref().ok_or_else(|| Error::argument("the file is closed"))
    }

    fn close(&mut self, keep: bool) -> Result<()> {
        let file = self.file.take();
        let closed = file.map_or(Ok(()), |file| self.ranks.0.close(file, keep));
        agree(self.ranks, closed.map_err(|e| e.with_path(&self.path)))
    }
}

impl<T: Transport> Drop for RanksFile<'_, T> {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Errors are ignored: the file was read, or is discarded.
            let _ = self.close(false);
        }
    }
}

struct RanksSink<'a, T: Transport> {
    /// Closed before `sink` removes the file.
    file: RanksFile<'a, T>,
    /// On rank 0: commits the file, or removes it.
    sink: Option<Sink>,
    /// Bytes reserved on disk, and length of the file; the same on every rank.
    reserved: Cell<u64>,
    len: Cell<u64>,
}

impl<T: Transport> RanksSink<'_, T> {
    /// Reserves disk space for the following writes of all ranks. In some MPI libraries a collective write
    /// that runs out of space on one rank blocks the others.
    fn reserve(&self, end: u64) -> Result<()> {
        let ranks = self.file.ranks;
        let ends = gather_numbers(ranks, end)?;
        self.len.set(ends.into_iter().fold(self.len.get(), u64::max));
        let (old, needed) = (self.reserved.get(), self.len.get());
        if needed <= old {
            return Ok(());
        }
        self.reserved.set(needed.saturating_add(RESERVE));
        let sink = self.sink.as_ref();
        agree(ranks, sink.map_or(Ok(()), |sink| sink.set_aside(old, self.reserved.get())))
    }
}

impl<T: Transport> SharedSink for RanksSink<'_, T> {
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let RanksFile { ranks, path, .. } = &self.file;
        let file = self.file.get()?;
        self.reserve(if bytes.is_empty() { 0 } else { offset + bytes.len() as u64 })?;
        ranks.in_pieces(bytes.len(), |done, len| {
            let at = offset + done as u64;
            let written = ranks.0.write_at_all(file, at, &bytes[done..done + len]);
            written.map_err(|e| e.with_path(path).at(at))
        })
    }

    fn write_parts(&self, end: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        let RanksFile { ranks, path, .. } = &self.file;
        let file = self.file.get()?;
        self.reserve(end)?;
        let mut parts = parts.map(|(mut offset, bytes)| {
            for piece in bytes.chunks(PIECE) {
                let written = ranks.0.write_at(file, offset, piece);
                written.map_err(|e| e.with_path(path).at(offset))?;
                offset += piece.len() as u64;
            }
            Ok(())
        });
        let done = parts.find(Result::is_err).unwrap_or(Ok(()));
        agree(*ranks, done)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { mut file, sink, len, .. } = *self;
        file.close(true)?;
        // Unused reserved space is released.
        let commit = |sink: Sink| sink.set_len(len.get()).and_then(|()| sink.commit());
        agree(file.ranks, sink.map_or(Ok(()), commit))
    }
}

struct RanksSource<'a, T: Transport> {
    file: RanksFile<'a, T>,
    len: u64,
}

impl<T: Transport> SharedSource for RanksSource<'_, T> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at_all(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let RanksFile { ranks, path, .. } = &self.file;
        let file = self.file.get()?;
        ranks.in_pieces(buffer.len(), |done, len| {
            let at = offset.saturating_add(done as u64);
            let read = ranks.0.read_at_all(file, at, &mut buffer[done..done + len]);
            read.map_err(|e| e.with_path(path).at(at))
        })
    }
}
