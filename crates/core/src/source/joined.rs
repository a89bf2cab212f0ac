//! Several files read as one: their concatenated bytes.
//!
//! Files are opened on demand and only the most recently used stay open, so that the number of files is
//! not limited by the number of file descriptors.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::ahead::at_once;
use super::{CACHE_SHARE, Source, is_url, open_regular};
use crate::os::{self, Stamp};
use crate::{Error, Limits, Result};

/// Number of files kept open.
const OPEN: usize = 32;

/// Number of URLs opened at the same time.
const OPEN_URLS: usize = 8;

/// One file of a joined source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    path: PathBuf,
    /// Number of bytes in the parts before this one.
    start: u64,
    len: u64,
    /// The file when the source was created, to detect changes; `None` for a URL.
    stamp: Option<Stamp>,
}

impl Part {
    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Offset of its first byte in the joined source.
    pub fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

pub(super) struct Joined {
    pub(super) parts: Vec<Part>,
    /// The files at URLs, by the number of the part. They stay open and notice changes themselves.
    remote: HashMap<usize, Source>,
    /// Least recently used first.
    open: Mutex<Vec<(usize, Arc<File>)>>,
}

impl Joined {
    pub(super) fn new(paths: &[PathBuf]) -> Result<Self> {
        let mut parts = Vec::with_capacity(paths.len());
        let mut start = 0_u64;
        let remote = open_remote(paths)?;
        for (k, path) in paths.iter().enumerate() {
            let (len, stamp) = if let Some(source) = remote.get(&k) {
                (source.len(), None)
            } else {
                let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
                (meta.len(), Some(Stamp::from(&meta)))
            };
            parts.push(Part { path: path.clone(), start, len, stamp });
            start = start
                .checked_add(len)
                .ok_or_else(|| Error::limit("the total length of the files exceeds 64 bits"))?;
        }
        let joined = Self { parts, remote, open: Mutex::new(Vec::new()) };
        joined.limit_cache(Limits::default().memory / CACHE_SHARE);
        Ok(joined)
    }

    /// The source of part `k`, if it is at a URL.
    pub(super) fn remote_part(&self, k: usize) -> Option<&Source> {
        self.remote.get(&k)
    }

    /// Number of requests of the files at URLs.
    pub(super) fn requests(&self) -> u64 {
        self.remote.values().map(Source::requests).sum()
    }

    /// Number of bytes read from the files at URLs.
    pub(super) fn bytes_read(&self) -> u64 {
        self.remote.values().map(Source::bytes_read).sum()
    }

    /// Number of reads that are efficient at the same time; 0 if all files are local.
    pub(super) fn concurrency(&self) -> usize {
        self.remote.values().map(Source::concurrency).max().unwrap_or(0)
    }

    /// Limits the memory of the caches together to about `bytes`.
    pub(super) fn limit_cache(&self, bytes: u64) {
        let share = bytes / (self.remote.len() as u64).max(1);
        self.remote.values().for_each(|source| source.limit_cache_to(share));
    }

    pub(super) fn len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.len)
    }

    /// Number of the part that contains the byte at `offset`.
    pub(super) fn find(&self, offset: u64) -> Option<usize> {
        let k = self.parts.partition_point(|part| part.start <= offset).checked_sub(1)?;
        (offset - self.parts[k].start < self.parts[k].len).then_some(k)
    }

    /// Reads up to `buffer.len()` bytes and returns their number. Stops at the first missing byte: bytes
    /// missing from one part are never replaced by those of the next.
    pub(super) fn read_at_most(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let Some(at) = offset.checked_add(done as u64) else { break };
            let Some(k) = self.find(at) else { break };
            let part = &self.parts[k];
            let (inside, rest) = (at - part.start, buffer.len() - done);
            let expected = usize::try_from(part.len - inside).unwrap_or(rest).min(rest);
            if let Some(source) = self.remote.get(&k) {
                source.read_exact_at(inside, &mut buffer[done..done + expected])?;
                done += expected;
                continue;
            }
            let file = self.file(k)?;
            let file = |buffer: &mut [u8], at| os::read_at(&file, buffer, at);
            let read = super::fill(file, inside, &mut buffer[done..done + expected])
                .map_err(|(e, at)| Error::io(&part.path, e).at(at))?;
            done += read;
            if read < expected {
                break;
            }
        }
        Ok(done)
    }

    fn file(&self, k: usize) -> Result<Arc<File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.iter().position(|(number, _)| *number == k);
        let entry = if let Some(at) = found {
            open.remove(at)
        } else {
            let part = &self.parts[k];
            let (file, _) = open_regular(&part.path).map_err(|e| Error::io(&part.path, e))?;
            let meta = file.metadata().map_err(|e| Error::io(&part.path, e))?;
            if Some(Stamp::from(&meta)) != part.stamp {
                let message = "the file has changed since it was opened";
                return Err(Error::malformed("core-changed", message)
                    .with_path(&part.path)
                    .hint("open it again"));
            }
            if open.len() >= OPEN {
                open.remove(0);
            }
            (k, Arc::new(file))
        };
        let file = entry.1.clone();
        open.push(entry);
        Ok(file)
    }
}

/// Opens the files at URLs, several at the same time.
fn open_remote(paths: &[PathBuf]) -> Result<HashMap<usize, Source>> {
    let urls: Vec<usize> = (0..paths.len()).filter(|k| is_url(&paths[*k])).collect();
    let opened = at_once(OPEN_URLS, urls.clone(), |k| Source::open(&paths[k]))?;
    Ok(urls.into_iter().zip(opened).collect())
}
