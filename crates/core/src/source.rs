//! Input: positioned reads.
//!
//! A [`Source`] is read at any offset, from any thread, without a cursor. Its bytes come from a file
//! (`pread`), a memory-mapped file, memory, several concatenated files, or a [`ReadAt`] implementation. Remote
//! sources, whose requests take long, have a cache of blocks, and reads of arrays are planned ahead.
//!
//! Copying reads never use the map, so a file that shrinks while it is read gives a `Truncated` error.
//! The map is used by [`Source::view`] only.

mod ahead;
mod cached;
mod joined;
mod store;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::Mmap;

use crate::cancel;
use crate::error::human_bytes;
use crate::{Error, Limits, Result, os};
use ahead::Ahead;
use cached::Cached;
use joined::Joined;

pub(crate) use ahead::{Requests, window};
pub use joined::Part;
pub(crate) use store::list;
pub use store::{RemoteStore, install_remote_store, is_folder, is_url, remote_store, shown};

/// Bytes that are read at offsets. Cloning is cheap; clones share the counter of [`Source::bytes_read`]
/// and the state of [`Source::stop`].
#[derive(Clone)]
pub struct Source(Arc<Inner>);

/// Longest read in bytes for which one system call is tried; Linux reads at most 2 GiB per call.
const ONE_CALL: usize = 1 << 30;

/// Number of bytes that [`Source::for_each_block`] reads at once; a multiple of every element size.
pub const BLOCK: u64 = 64 << 10;

/// The cache of a remote source uses at most this fraction (1/CACHE_SHARE) of the memory limit.
const CACHE_SHARE: u64 = 16;

struct Inner {
    path: Option<PathBuf>,
    len: u64,
    bytes: Bytes,
    read: AtomicU64,
    stopped: AtomicBool,
}

enum Bytes {
    File(File),
    Mapped { file: File, map: Mmap },
    Memory(Vec<u8>),
    Joined(Joined),
    Foreign(Box<dyn ReadAt>),
    Cached(Box<Cached>),
    Ahead(Box<Ahead>),
}

/// Positioned reads from something other than a local file: an object of another language, a remote
/// store.
pub trait ReadAt: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset` and returns their number; 0 only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Number of reads that are efficient at the same time.
    fn concurrency(&self) -> usize {
        1
    }
}

impl Source {
    /// Opens a regular file for positioned reads, or the file at a URL with the default memory limit.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_within(path, &Limits::default())
    }

    /// Opens a regular file for positioned reads, or the file at a URL: if its server can only send it as a whole, it
    /// is kept in memory, within the limit.
    pub fn open_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        if let Some((store, url)) = remote_store(path)? {
            let source = store.open(url, limits)?;
            source.limit_cache(limits.memory);
            return Ok(source);
        }
        let (file, len) = open_regular(path).map_err(|e| match e.kind() {
            io::ErrorKind::IsADirectory => Error::io(path, e).hint("pass the files in it"),
            _ => Error::io(path, e),
        })?;
        Ok(Self::new(Some(path.to_path_buf()), len, Bytes::File(file)))
    }

    /// A source over an open file, which `path` names in messages.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Self> {
        let len = file.metadata().map_err(|e| Error::io(path, e))?.len();
        Ok(Self::new(Some(path.to_path_buf()), len, Bytes::File(file)))
    }

    /// Opens a regular file for positioned reads and maps it for zero-copy views.
    ///
    /// # Safety
    /// While a slice from [`Source::view`] is alive, no process may shorten or rewrite the file: an
    /// access past the new end raises `SIGBUS`, which no earlier check can prevent. Use it for files
    /// that are not modified: finished runs, read-only archives, private files. All other methods are
    /// safe on a file that changes.
    #[allow(unsafe_code)]
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, len) = open_regular(path).map_err(|e| Error::io(path, e))?;
        // SAFETY: required of the caller, see above; the map is read-only.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
        Ok(Self::new(Some(path.to_path_buf()), len, Bytes::Mapped { file, map }))
    }

    /// A memory-mapped copy of `bytes` in an unnamed temporary file.
    #[allow(unsafe_code)]
    pub fn map_copy(bytes: &[u8]) -> Result<Self> {
        let file = tempfile::tempfile()?;
        os::write_all_at(&file, bytes, 0)?;
        // SAFETY: the file has no name and its only handle is moved into the source, so it cannot be
        // shortened or rewritten.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self::new(None, bytes.len() as u64, Bytes::Mapped { file, map }))
    }

    /// A source over bytes in memory.
    pub fn memory(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::new(None, bytes.len() as u64, Bytes::Memory(bytes))
    }

    /// The concatenated bytes of `files`, with the path `folder`. Each file is opened when it is read.
    /// Fails if the metadata of a file cannot be read or the total length exceeds 64 bits.
    pub fn joined(folder: impl AsRef<Path>, files: &[PathBuf]) -> Result<Self> {
        let joined = Joined::new(files)?;
        let folder = folder.as_ref().to_path_buf();
        Ok(Self::new(Some(folder), joined.len(), Bytes::Joined(joined)))
    }

    /// A source of `len` bytes that are read by `reader`, whose calls take long: requests to a server. Blocks are
    /// cached, small reads fetch blocks of 32 KiB, and reads of arrays make few requests. `head` has the first bytes
    /// of the file, if they are known.
    pub fn remote(name: Option<PathBuf>, len: u64, reader: Box<dyn ReadAt>, head: &[u8]) -> Self {
        let read = head.len() as u64;
        let source = Self::new(name, len, Bytes::Cached(Box::new(Cached::new(reader, len, head))));
        source.0.read.store(read, Ordering::Relaxed);
        source
    }

    /// A source of `len` bytes that are read by `reader`; `name` is used as its path in messages.
    pub fn foreign(name: Option<PathBuf>, len: u64, reader: Box<dyn ReadAt>) -> Self {
        Self::new(name, len, Bytes::Foreign(reader))
    }

    /// The files of a [joined](Source::joined) source; empty for other sources.
    pub fn parts(&self) -> &[Part] {
        match &self.0.bytes {
            Bytes::Joined(joined) => &joined.parts,
            _ => &[],
        }
    }

    /// The source of file `k` of a [joined](Source::joined) source, if it is at a URL and therefore open.
    pub(crate) fn remote_part(&self, k: usize) -> Option<Self> {
        match &self.0.bytes {
            Bytes::Joined(joined) => joined.remote_part(k).cloned(),
            _ => None,
        }
    }

    /// The file of a [joined](Source::joined) source with the byte at `offset`.
    pub fn part_at(&self, offset: u64) -> Option<&Part> {
        match &self.0.bytes {
            Bytes::Joined(joined) => joined.find(offset).map(|k| &joined.parts[k]),
            _ => None,
        }
    }

    fn new(path: Option<PathBuf>, len: u64, bytes: Bytes) -> Self {
        let (read, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Inner { path, len, bytes, read, stopped }))
    }

    /// The path, if the source has one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Length in bytes when it was opened.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether the length was 0 when it was opened.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Length in bytes now; differs from [`Source::len`] while the file is being written. Joined,
    /// in-memory and foreign sources have a fixed length.
    pub fn current_len(&self) -> Result<u64> {
        match &self.0.bytes {
            Bytes::File(file) | Bytes::Mapped { file, .. } => {
                Ok(file.metadata().map_err(|e| self.io(e))?.len())
            }
            Bytes::Memory(_)
            | Bytes::Joined(_)
            | Bytes::Foreign(_)
            | Bytes::Cached(_)
            | Bytes::Ahead(_) => Ok(self.0.len),
        }
    }

    /// Total number of bytes read so far from files and foreign readers, repeated reads included. For
    /// progress displays.
    pub fn bytes_read(&self) -> u64 {
        match &self.0.bytes {
            Bytes::Ahead(ahead) => ahead.inner().bytes_read(),
            Bytes::Joined(joined) if joined.concurrency() > 0 => joined.bytes_read(),
            _ => self.0.read.load(Ordering::Relaxed),
        }
    }

    /// Number of requests of a remote source so far, without those of opening it; 0 for other sources.
    pub fn requests(&self) -> u64 {
        match &self.0.bytes {
            Bytes::Cached(cached) => cached.requests(),
            Bytes::Ahead(ahead) => ahead.inner().requests(),
            Bytes::Joined(joined) => joined.requests(),
            _ => 0,
        }
    }

    /// Number of reads that are efficient at the same time; 0 unless it is remote.
    fn concurrency(&self) -> usize {
        match &self.0.bytes {
            Bytes::Cached(cached) => cached.concurrency().max(1),
            Bytes::Ahead(ahead) => ahead.inner().concurrency(),
            Bytes::Joined(joined) => joined.concurrency(),
            _ => 0,
        }
    }

    /// Limits the cache of a remote source to a share of the memory limit, in bytes.
    pub(crate) fn limit_cache(&self, memory: u64) {
        match &self.0.bytes {
            Bytes::Cached(cached) => cached.set_capacity(memory / CACHE_SHARE),
            Bytes::Ahead(ahead) => ahead.inner().limit_cache(memory),
            Bytes::Joined(joined) => joined.limit_cache(memory / CACHE_SHARE),
            _ => {}
        }
    }

    fn limit_cache_to(&self, bytes: u64) {
        if let Bytes::Cached(cached) = &self.0.bytes {
            cached.set_capacity(bytes);
        }
    }

    #[inline]
    fn count(&self, bytes: usize) {
        self.0.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// With `true`, all reads of this source and its clones fail with an `Io` error until it is called
    /// with `false`. Cancels running operations.
    pub fn stop(&self, stopped: bool) {
        self.0.stopped.store(stopped, Ordering::Relaxed);
    }

    /// Fails if the source is [stopped](Source::stop), or [everything](crate::cancel::stop_all). For loops that continue after failed reads.
    #[inline]
    pub fn ensure_running(&self) -> Result<()> {
        if self.is_stopped() { Err(self.was_stopped()) } else { Ok(()) }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed) || cancel::is_stopped()
    }

    #[cold]
    fn was_stopped(&self) -> Error {
        cancel::cancelled().in_source(self)
    }

    /// Fills `buffer` with the bytes at `offset`. Fails with `Truncated` at the first missing byte. Reads
    /// past [`Source::len`] succeed if the file has grown.
    #[inline]
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        // Fast path: a file and one system call. For reads of a few KiB even a hundred more instructions
        // are measurable.
        if let Bytes::File(file) = &self.0.bytes
            && !self.is_stopped()
            && buffer.len() <= ONE_CALL
            && os::read_at(file, buffer, offset).is_ok_and(|done| done == buffer.len())
        {
            self.count(buffer.len());
            return Ok(());
        }
        self.read_exact_in_parts(offset, buffer)
    }

    #[inline(never)]
    fn read_exact_in_parts(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let done = self.read_at_most(offset, buffer)?;
        if done == buffer.len() { Ok(()) } else { Err(self.short(offset, buffer.len(), done)) }
    }

    /// Reads up to `buffer.len()` bytes at `offset` and returns their number; fewer only at the end.
    pub fn read_at_most(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.ensure_running()?;
        let done = match &self.0.bytes {
            Bytes::File(file) | Bytes::Mapped { file, .. } => {
                fill(|buffer, at| os::read_at(file, buffer, at), offset, buffer)
                    .map_err(|(e, at)| self.io(e).at(at))?
            }
            Bytes::Foreign(reader) => {
                let rest = usize::try_from(self.0.len.saturating_sub(offset)).unwrap_or(usize::MAX);
                let expected = buffer.len().min(rest);
                fill(|buffer, at| reader.read_at(at, buffer), offset, &mut buffer[..expected])
                    .map_err(|(e, at)| self.io(e).at(at))?
            }
            Bytes::Cached(cached) => {
                let rest = usize::try_from(self.0.len.saturating_sub(offset)).unwrap_or(usize::MAX);
                let expected = buffer.len().min(rest);
                let (read, done) = cached
                    .read_at(offset, &mut buffer[..expected])
                    .map_err(|(e, at)| self.io(e).at(at))?;
                self.0.read.fetch_add(read, Ordering::Relaxed);
                return Ok(done);
            }
            // Counted by the inner source.
            Bytes::Ahead(ahead) => return ahead.read_at_most(offset, buffer),
            Bytes::Joined(joined) => joined.read_at_most(offset, buffer)?,
            Bytes::Memory(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|o| bytes.get(o..)).unwrap_or(&[]);
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                return Ok(n);
            }
        };
        self.count(done);
        Ok(done)
    }

    /// Returns the `len` bytes at `offset`. Fails with `Truncated` before any allocation if the file is
    /// shorter.
    pub fn read_vec(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        self.require(offset, len)?;
        let mut bytes = vec![
            0;
            usize::try_from(len)
                .map_err(|_| Error::limit("length exceeds the address space"))?
        ];
        self.read_exact_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Calls `each` with the `len` bytes at `offset` in order, [`BLOCK`] bytes at a time. Fails with `Truncated` at
    /// the first missing byte.
    pub fn for_each_block(
        &self,
        offset: u64,
        len: u64,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; len.min(BLOCK) as usize];
        let mut done = 0;
        while done < len {
            let block = &mut buffer[..(len - done).min(BLOCK) as usize];
            self.read_exact_at(offset.saturating_add(done), block)?;
            each(block)?;
            done += block.len() as u64;
        }
        Ok(())
    }

    /// Fails with `Truncated` unless the file has `len` bytes at `offset`.
    pub fn require(&self, offset: u64, len: u64) -> Result<()> {
        let within = |end: u64| offset.checked_add(len).is_some_and(|e| e <= end);
        if within(self.0.len) || within(self.current_len()?) {
            return Ok(());
        }
        Err(self.short(offset, usize::try_from(len).unwrap_or(usize::MAX), 0))
    }

    /// The `len` bytes at `offset` without a copy. `None` if the source is neither memory nor mapped, if
    /// it is shorter, or if a mapped file has shrunk.
    pub fn view(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let all: &[u8] = match &self.0.bytes {
            Bytes::Memory(bytes) => bytes,
            // Pages of the map past the end of a shortened file cannot be read.
            Bytes::Mapped { map, .. } if self.current_len().ok()? >= map.len() as u64 => map,
            _ => return None,
        };
        let start = usize::try_from(offset).ok()?;
        all.get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }

    fn io(&self, error: io::Error) -> Error {
        // A reader may have an error of its own kind, with a code and a hint.
        error.downcast::<Error>().unwrap_or_else(Error::from).in_source(self)
    }

    fn short(&self, offset: u64, expected: usize, got: usize) -> Error {
        let mut at = offset.saturating_add(got as u64);
        let mut end = self.current_len().unwrap_or(self.0.len);
        let mut path = self.path();
        if let Bytes::Joined(joined) = &self.0.bytes
            && let Some(part) = joined.find(at).map(|k| &joined.parts[k])
        {
            (at, path) = (at - part.start(), Some(part.path()));
            end = if is_url(part.path()) {
                part.len()
            } else {
                std::fs::metadata(part.path()).map_or(at, |meta| meta.len())
            };
        }
        let message = format!(
            "unexpected end of file: expected {}, the file has {}",
            human_bytes(expected as u64),
            human_bytes(end)
        );
        let error = Error::truncated("core-eof", message).at(at);
        match path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}

/// Reads until `buffer` is full or the end is reached; returns the number of bytes, or the error and its
/// offset.
fn fill(
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
    offset: u64,
    buffer: &mut [u8],
) -> std::result::Result<usize, (io::Error, u64)> {
    let mut done = 0;
    while done < buffer.len() {
        // Offsets above i64::MAX are invalid for the system call.
        let Some(at) = offset.checked_add(done as u64).filter(|at| *at >> 63 == 0) else { break };
        match read(&mut buffer[done..], at) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err((e, at)),
        }
    }
    Ok(done)
}

fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // Opening a pipe without a writer would block.
    let meta = std::fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "not a regular file; random access is required",
        ));
    }
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_file_that_shrinks_while_open_gives_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        #[allow(unsafe_code)]
        // SAFETY: no view is taken before the file is shortened.
        let mapped = unsafe { Source::map(file.path()) }.unwrap();
        let plain = Source::open(file.path()).unwrap();
        file.as_file().set_len(100).unwrap();
        for source in [plain, mapped] {
            let error = source.read_exact_at(90, &mut [0; 20]).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(100)));
            assert!(source.view(0, 50).is_none());
        }
    }

    /// Reads at most three bytes per call.
    struct Three(Vec<u8>);

    impl ReadAt for Three {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(3);
            buffer[..n].copy_from_slice(&self.0[offset as usize..][..n]);
            Ok(n)
        }
    }

    #[test]
    fn all_kinds_of_source_return_the_same_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let parts = ["a", "empty", "b"].map(|name| folder.path().join(name));
        std::fs::write(&parts[0], &bytes[..252]).unwrap();
        std::fs::write(&parts[1], []).unwrap();
        std::fs::write(&parts[2], &bytes[252..]).unwrap();
        let sources = [
            Source::open(file.path()).unwrap(),
            Source::map_copy(&bytes).unwrap(),
            Source::memory(bytes.clone()),
            Source::joined(folder.path(), &parts).unwrap(),
            Source::foreign(None, 256, Box::new(Three(bytes.clone()))),
        ];
        for source in &sources {
            assert_eq!(source.len(), 256);
            assert_eq!(source.read_vec(250, 6).unwrap(), &bytes[250..]);
            for (offset, len) in [(250, 7), (257, 1), (u64::MAX, 1), (0, u64::MAX)] {
                let error = source.read_vec(offset, len).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Truncated, "{offset} {len}");
            }
        }
        assert!(sources[0].view(0, 4).is_none());
        assert_eq!(sources[1].view(3, 2), sources[2].view(3, 2));
    }

    #[test]
    fn reads_of_a_stopped_source_fail() {
        let source = Source::memory(vec![1, 2, 3]);
        source.stop(true);
        assert_eq!(source.clone().read_vec(0, 1).unwrap_err().kind(), ErrorKind::Io);
        source.stop(false);
        assert_eq!(source.read_vec(0, 1).unwrap(), [1]);
    }

    #[test]
    fn a_changed_part_is_an_error_and_is_not_filled_from_the_next_part() {
        let folder = tempfile::tempdir().unwrap();
        let parts: Vec<_> = (0..50).map(|k| folder.path().join(k.to_string())).collect();
        for (k, part) in parts.iter().enumerate() {
            std::fs::write(part, [k as u8; 10]).unwrap();
        }
        let source = Source::joined(folder.path(), &parts).unwrap();
        assert_eq!(source.len(), 500);
        assert_eq!(source.parts()[7].start(), 70);
        assert_eq!(source.read_vec(68, 4).unwrap(), [6, 6, 7, 7]);
        // Still open: the missing bytes are an error although the next file has more.
        let open = std::fs::OpenOptions::new().write(true).open(&parts[7]).unwrap();
        open.set_len(4).unwrap();
        let error = source.read_vec(72, 10).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(4)));
        assert_eq!(error.path(), Some(parts[7].as_path()));
        // Closed in between: another file of the same name is rejected.
        std::fs::remove_file(&parts[0]).unwrap();
        std::fs::write(&parts[0], [9; 11]).unwrap();
        let error = source.read_vec(0, 4).unwrap_err();
        assert_eq!(error.code(), "core-changed");
        std::fs::remove_file(&parts[1]).unwrap();
        assert_eq!(source.read_vec(12, 1).unwrap_err().kind(), ErrorKind::Io);
        for k in 2..50 {
            assert_eq!(source.read_vec(k * 10, 1).unwrap(), [k as u8]);
        }
    }
}
