//! [`File`]: an open GSD file with frames, chunks, names and steps.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use spile_core::{ArrayDesc, Error, Layout, Limits, Order, Result, Shape, Source};

use crate::index::{DataRange, Index};
use crate::wire::{Entry, Header, Type};

/// The chunk with the time step, since 0.2.
pub(crate) const STEP: &str = "configuration/step";

/// Name of the schema of HOOMD-blue.
pub(crate) const HOOMD: &str = "hoomd";

/// Bytes from which on [`File::read_parts`] uses several threads.
const PARALLEL: usize = 4 << 20;

/// A chunk whose index entry has been validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Name.
    pub name: Arc<str>,
    /// Number of its entry in the index.
    pub number: u64,
    /// Its index entry.
    pub entry: Entry,
    /// Location and type of its data.
    pub data: DataRange,
}

impl Chunk {
    /// Rows and columns; only rows if there is one column.
    pub fn shape(&self) -> Shape {
        shape(&self.entry, self.entry.m != 1)
    }

    /// Array description of the data.
    pub fn desc(&self) -> ArrayDesc {
        ArrayDesc::new(self.data.kind.dtype(), self.shape(), layout(self.data))
    }
}

pub(crate) fn shape(entry: &Entry, columns: bool) -> Shape {
    if columns { Shape::new([entry.n, entry.m]) } else { Shape::new([entry.n]) }
}

pub(crate) fn layout(data: DataRange) -> Layout {
    Layout::contiguous(data.offset, data.len, Order::C)
}

/// An open file. Opening reads the header, the names and a few index entries, independent of their
/// number (all entries in 0.0.1). Lookups are binary searches that read index pages on demand. Methods
/// may be called from several threads.
#[derive(Clone)]
pub struct File {
    pub(crate) index: Arc<Index>,
}

impl File {
    /// Opens a file for reading.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(&Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("gsd"))
    }

    /// Opens the file in `source`.
    pub fn from_source(source: &Source, limits: &Limits) -> Result<Self> {
        Ok(Self { index: Arc::new(Index::open(source, limits)?) })
    }

    /// Updates the file to include frames that were committed since it was opened. Never includes a
    /// part of a commit by [`crate::Writer`].
    pub fn refresh(&mut self) -> Result<()> {
        self.index = Arc::new(self.index.reopen()?);
        Ok(())
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.index.header
    }

    /// The source of bytes.
    pub fn source(&self) -> &Source {
        &self.index.source
    }

    /// The limits that the file was opened with.
    pub fn limits(&self) -> &Limits {
        self.index.limits()
    }

    /// Number of frames.
    pub fn nframes(&self) -> Result<u64> {
        self.index.frames()
    }

    /// Number of chunks in all frames.
    pub fn nchunks(&self) -> u64 {
        self.index.count
    }

    /// The last commit was interrupted; its frames are not part of the file.
    pub fn has_torn_commit(&self) -> bool {
        self.index.torn
    }

    /// Names of chunks that start with `prefix`, in the order of the name list.
    pub fn find_matching_names(&self, prefix: &str) -> Vec<String> {
        let names = self.index.names.iter().filter(|name| name.starts_with(prefix.as_bytes()));
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// The chunk `name` of a frame, the last one if there are several; none if the frame lacks it. Fails
    /// if its index entry is invalid.
    pub fn find_chunk(&self, frame: u64, name: &str) -> Result<Option<Chunk>> {
        let Some(id) = self.index.names.id(name.as_bytes()) else { return Ok(None) };
        let found = self.index.find(frame, id, |_| true)?;
        found.map(|(k, entry)| self.chunk(k, entry)).transpose()
    }

    /// Validates entry `number` and returns its chunk.
    pub(crate) fn chunk(&self, number: u64, entry: Entry) -> Result<Chunk> {
        let data = self.index.locate(number, &entry)?;
        Ok(Chunk { name: self.index.names.display(entry.id), number, entry, data })
    }

    /// All chunks of a frame, in index order.
    pub fn frame(&self, frame: u64) -> Result<Vec<Chunk>> {
        let range = self.index.frame_range(frame)?;
        let cost = (range.end - range.start).saturating_mul(size_of::<Chunk>() as u64);
        self.index.limits().allow(cost, "the list of chunks of the frame")?;
        let mut chunks = Vec::new();
        self.index.each_entry(frame, range, |k, entry| {
            chunks.push(self.chunk(k, entry)?);
            Ok(())
        })?;
        Ok(chunks)
    }

    /// Reads the data of a chunk: little-endian elements in row-major order.
    pub fn read_chunk(&self, chunk: &Chunk) -> Result<Vec<u8>> {
        let DataRange { offset, len, .. } = chunk.data;
        self.index.limits().allow(len, "the chunk")?;
        self.source().read_vec(offset, len)
    }

    /// Finds chunk `name` of a frame and reads its data into `buffer`. Returns false if the frame lacks
    /// the chunk. Fails if the length of `buffer` differs from that of the data.
    pub fn read_into(&self, frame: u64, name: &str, buffer: &mut [u8]) -> Result<bool> {
        let Some(id) = self.index.names.id(name.as_bytes()) else { return Ok(false) };
        let Some((k, entry)) = self.index.find(frame, id, |_| true)? else { return Ok(false) };
        let data = self.index.locate(k, &entry)?;
        if buffer.len() as u64 != data.len {
            let message =
                format!("expected a buffer of {} bytes, found {}", data.len, buffer.len());
            return Err(Error::argument(message));
        }
        self.source().read_exact_at(data.offset, buffer)?;
        Ok(true)
    }

    /// Reads the bytes from each offset on into the buffer next to it, with several threads if there are
    /// several large ones.
    pub fn read_parts(&self, mut parts: Vec<(u64, &mut [u8])>) -> Result<()> {
        let total: usize = parts.iter().map(|(_, buffer)| buffer.len()).sum();
        if total < PARALLEL {
            return parts
                .iter_mut()
                .try_for_each(|(at, buffer)| self.source().read_exact_at(*at, buffer));
        }
        parts.into_par_iter().try_for_each(|(at, buffer)| self.source().read_exact_at(at, buffer))
    }

    /// Time step of a frame: in 0.0.1 that of its last chunk, later the chunk `configuration/step`. In the
    /// HOOMD schema it falls back to frame 0, then to 0; otherwise it may be missing.
    pub fn step(&self, frame: u64) -> Result<Option<u64>> {
        if self.index.form().is_v0_0_1() {
            let range = self.index.frame_range(frame)?;
            let last = range.last().map(|k| self.index.entry(k)).transpose()?;
            return Ok(last.map(|entry| entry.step));
        }
        let hoomd = self.header().schema == HOOMD;
        let mut chunk = self.find_chunk(frame, STEP)?;
        if chunk.is_none() && hoomd {
            chunk = self.find_chunk(0, STEP)?;
        }
        match chunk {
            Some(chunk) if chunk.data.kind == Type::UInt64 && chunk.data.len >= 8 => {
                let mut bytes = [0; 8];
                self.source().read_exact_at(chunk.data.offset, &mut bytes)?;
                Ok(Some(u64::from_le_bytes(bytes)))
            }
            None if hoomd => Ok(Some(0)),
            _ => Ok(None),
        }
    }

    /// Time step of the last frame; none if there are no frames.
    pub fn last_step(&self) -> Result<Option<u64>> {
        match self.nframes()? {
            0 => Ok(None),
            n => self.step(n - 1),
        }
    }

    /// Calls `each` for all chunks in index order. An invalid entry is passed as an `Err`; `each` decides
    /// whether to continue.
    pub fn each_chunk(&self, mut each: impl FnMut(Result<Chunk>) -> Result<()>) -> Result<()> {
        self.index.scan(0..self.index.count, |k, entry| each(self.chunk(k, entry)))
    }
}
