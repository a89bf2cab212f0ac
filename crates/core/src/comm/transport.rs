//! Communicators over external collective calls: MPI through its Rust binding, or through callbacks of a
//! C program.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    Comm, PACKED, SharedSink, SharedSource, agree, broadcast_message, broadcast_number, pack, total,
};
use crate::{Error, Overwrite, Result, Sink, Source, os};

/// Largest transfer in bytes; MPI counts are `int`.
const PIECE: usize = 1 << 30;

/// Disk space is reserved in steps of this number of bytes.
const RESERVE: u64 = 1 << 20;

/// MPI calls, collective except for `rank`, `size` and `write_at`. A call may fail on some ranks only.
pub trait Transport {
    /// An open file.
    type File;

    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Copies the `bytes` of `root` to all ranks. The length is the same on every rank and not 0.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()>;

    /// Replaces each value by its maximum over all ranks. The number of values is the same on every rank.
    fn max(&self, values: &mut [u64]) -> Result<()>;

    /// Replaces each value by the exclusive or of the values of all ranks. The number of values is the same on every
    /// rank.
    fn xor(&self, values: &mut [u64]) -> Result<()>;

    /// Replaces each value by its sum over the ranks before this one; 0 on rank 0. The sums do not overflow.
    fn sum_before(&self, values: &mut [u64; 2]) -> Result<()>;

    /// Fills `all` with the bytes of all ranks, by rank. `mine` has the same length on every rank, not 0.
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;

    /// With `write`, creates a file that does not exist and opens it for writing; otherwise opens an existing
    /// file for reading.
    fn open(&self, path: &Path, write: bool) -> Result<Self::File>;

    /// Writes the bytes of each rank, possibly none, less than 2^31.
    fn write_at_all(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Writes bytes of this rank, less than 2^31. Not collective.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()>;

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

    fn max(&self, values: &mut [u64]) -> Result<()> {
        self.0.max(values)
    }

    fn xor(&self, values: &mut [u64]) -> Result<()> {
        self.0.xor(values)
    }

    fn sum_before(&self, mine: u64) -> Result<u64> {
        // Sums of the upper and lower halves do not overflow.
        let mut halves = [mine >> 32, mine & u64::from(u32::MAX)];
        self.0.sum_before(&mut halves)?;
        let sum = (u128::from(halves[0]) << 32) + u128::from(halves[1]);
        Ok(u64::try_from(sum).unwrap_or(u64::MAX))
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.0.broadcast(root, bytes) }
    }

    /// The file has a temporary name `.NAME.XXXXXX.part` until it is finished, so that all processes can
    /// open it. The transport creates it: hints about the striping of a file apply to new files only.
    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>> {
        let mut sink = None;
        let mut name = Ok(Vec::new());
        if self.rank() == 0 {
            name = Sink::create_named(path, overwrite).map(|(made, name)| {
                sink = Some(made);
                name.into_os_string().into_encoded_bytes()
            });
        }
        let name = broadcast_message(self, 0, &agree(self, name)?)?;
        let name = os::path_from_bytes(&name).map_err(|e| Error::io(path, e))?;
        let file = self.open_file(name, path, true)?;
        agree(self, sink.as_mut().map_or(Ok(()), Sink::adopt))?;
        Ok(Box::new(RanksSink { file, sink, reserved: Cell::new(0), end: Cell::new(0) }))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>> {
        let root = if self.rank() == 0 { Source::open(path).map(Some) } else { Ok(None) };
        let root = agree(self, root)?;
        let len = broadcast_number(self, 0, root.as_ref().map_or(0, Source::len))?;
        Ok(Box::new(RanksSource { file: self.open_file(path, path, false)?, root, len }))
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

    /// Writes bytes of this rank, of which no rank has more than `longest`. Collective.
    fn in_pieces(&self, offset: u64, bytes: &[u8], longest: u64) -> Result<()> {
        let file = self.get()?;
        let mut pieces = bytes.chunks(PIECE);
        each_round(offset, longest, |at| {
            let written = self.ranks.0.write_at_all(file, at, pieces.next().unwrap_or_default());
            written.map_err(|e| e.with_path(&self.path).at(at))
        })
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
    /// Bytes reserved on disk; the same on every rank.
    reserved: Cell<u64>,
    /// Offset of the first byte after those that this rank wrote.
    end: Cell<u64>,
}

impl<T: Transport> RanksSink<'_, T> {
    fn note_end(&self, offset: u64, parts: &[&[u8]]) {
        let bytes = total(parts);
        if bytes > 0 {
            self.end.set(self.end.get().max(offset.saturating_add(bytes)));
        }
    }
}

impl<T: Transport> SharedSink for RanksSink<'_, T> {
    /// Rank 0 reserves the space.
    fn reserve(&self, end: u64) -> Result<bool> {
        let old = self.reserved.get();
        if end <= old {
            return Ok(false);
        }
        self.reserved.set(end.saturating_add(RESERVE));
        let sink = self.sink.as_ref();
        sink.map_or(Ok(()), |sink| sink.set_aside(old, self.reserved.get())).map(|()| true)
    }

    /// Of many bytes, the largest part of each rank is written collectively and the others, such as headers,
    /// independently.
    fn write(&self, mut offset: u64, parts: &[&[u8]], longest: u64) -> Result<()> {
        self.note_end(offset, parts);
        if longest <= PACKED {
            return self.file.in_pieces(offset, &pack(parts), longest);
        }
        let largest = (0..parts.len()).rev().max_by_key(|k| parts[*k].len());
        let mut results = Vec::new();
        for (k, part) in parts.iter().enumerate() {
            results.push(if Some(k) == largest {
                self.file.in_pieces(offset, part, longest)
            } else {
                self.write_alone(offset, &[part])
            });
            offset += part.len() as u64;
        }
        if largest.is_none() {
            results.push(self.file.in_pieces(offset, &[], longest));
        }
        results.into_iter().collect()
    }

    fn write_alone(&self, mut offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.note_end(offset, parts);
        let RanksFile { ranks, path, .. } = &self.file;
        let file = self.file.get()?;
        let packed = if total(parts) <= PACKED { pack(parts) } else { Cow::default() };
        let parts = if packed.is_empty() { parts } else { &[&*packed] };
        for piece in parts.iter().flat_map(|part| part.chunks(PIECE)) {
            let written = ranks.0.write_at(file, offset, piece);
            written.map_err(|e| e.with_path(path).at(offset))?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { mut file, sink, end, .. } = *self;
        file.close(true)?;
        let mut len = [end.get()];
        file.ranks.max(&mut len)?;
        // Unused reserved space is released.
        let commit = |sink: Sink| sink.set_len(len[0]).and_then(|()| sink.commit());
        agree(file.ranks, sink.map_or(Ok(()), commit))
    }
}

struct RanksSource<'a, T: Transport> {
    file: RanksFile<'a, T>,
    /// On rank 0: the same file, for reads that are not collective.
    root: Option<Source>,
    len: u64,
}

impl<T: Transport> SharedSource for RanksSource<'_, T> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, buffer: &mut [u8], longest: u64) -> Result<()> {
        let RanksFile { ranks, path, .. } = &self.file;
        let file = self.file.get()?;
        let mut pieces = buffer.chunks_mut(PIECE);
        each_round(offset, longest, |at| {
            let read = ranks.0.read_at_all(file, at, pieces.next().unwrap_or_default());
            read.map_err(|e| e.with_path(path).at(at))
        })
    }

    fn read_at_root(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.root.as_ref().map_or(Ok(()), |source| source.read_exact_at(offset, buffer))
    }
}

/// Calls `transfer` with the offset of each piece of at most `longest` bytes: equally often on all ranks,
/// also after an error. Returns the first error.
fn each_round(
    offset: u64,
    longest: u64,
    mut transfer: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    for round in 0..longest.div_ceil(PIECE as u64) {
        let done = transfer(offset.saturating_add(round * PIECE as u64));
        result = result.and(done);
    }
    result
}
