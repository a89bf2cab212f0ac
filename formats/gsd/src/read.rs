//! An open GSD file, in the words of its own library: frames, chunks, names, steps.

use std::path::Path;
use std::sync::Arc;

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::index::Index;
use crate::place::Place;
use crate::wire::{Entry, Header, Type};

/// The chunk that holds the time step since 0.2.
pub(crate) const STEP: &str = "configuration/step";

/// The schema of HOOMD-blue, whose frames fall back to frame 0.
pub(crate) const HOOMD: &str = "hoomd";

/// A chunk: an index entry whose every field has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its name.
    pub name: Arc<str>,
    /// Number of its entry in the index.
    pub number: u64,
    /// The entry as it stands in the file.
    pub entry: Entry,
    /// Where its data are.
    pub place: Place,
}

impl Chunk {
    /// Rows and columns; a single column is not a dimension.
    pub fn shape(&self) -> Shape {
        shape(&self.entry, self.entry.m != 1)
    }

    /// The data, for core to read.
    pub fn desc(&self) -> ArrayDesc {
        desc(self.place, self.shape())
    }
}

pub(crate) fn shape(entry: &Entry, columns: bool) -> Shape {
    if columns { Shape::new([entry.n, entry.m]) } else { Shape::new([entry.n]) }
}

pub(crate) fn layout(place: Place) -> Layout {
    Layout::Plain { extents: Extents::one(place.offset, place.len), order: Order::C }
}

fn desc(place: Place, shape: Shape) -> ArrayDesc {
    ArrayDesc::new(place.kind.dtype(), shape, layout(place))
}

/// An open file. Opening reads the header, the names and a few index entries, however many there
/// are; lookups bisect. All methods may be called from many threads at once.
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

    /// Opens what is in `source`.
    pub fn from_source(source: &Source, limits: &Limits) -> Result<Self> {
        Ok(Self { index: Arc::new(Index::open(source, limits)?) })
    }

    /// Looks at the file again: frames that were committed since are there now. Never sees a part
    /// of a frame that a [`crate::Writer`] is still committing.
    pub fn refresh(&mut self) -> Result<()> {
        self.index = Arc::new(self.index.reopen()?);
        Ok(())
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.index.header
    }

    /// The bytes.
    pub fn source(&self) -> &Source {
        &self.index.source
    }

    /// Number of frames.
    pub fn nframes(&self) -> Result<u64> {
        self.index.frames()
    }

    /// Number of chunks in all frames.
    pub fn nchunks(&self) -> u64 {
        self.index.count
    }

    /// The last commit was cut off by a kill; what it left behind does not count.
    pub fn has_torn_commit(&self) -> bool {
        self.index.torn
    }

    /// The names of chunks that begin with `prefix`, in the order of their numbers.
    pub fn find_matching_names(&self, prefix: &str) -> Vec<String> {
        let names = self.index.names.iter().filter(|name| name.starts_with(prefix.as_bytes()));
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// The chunk of that name in that frame, checked. Of several the last counts.
    pub fn find_chunk(&self, frame: u64, name: &str) -> Result<Option<Chunk>> {
        let Some(id) = self.index.name_id(name) else { return Ok(None) };
        match self.index.find(frame, id, |_| true)? {
            Some((k, entry)) => self.chunk(k, entry).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn chunk(&self, number: u64, entry: Entry) -> Result<Chunk> {
        let place = self.index.place(number, &entry)?;
        Ok(Chunk { name: self.index.names.text(entry.id), number, entry, place })
    }

    /// All chunks of a frame, in the order of the index.
    pub fn frame(&self, frame: u64) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        self.index.each_of_frame(frame, |k, entry| {
            chunks.push(self.chunk(k, entry)?);
            Ok(())
        })?;
        Ok(chunks)
    }

    /// The data of a chunk as an array: read it, stream it, select of it.
    pub fn array(&self, chunk: &Chunk) -> Result<Array> {
        let limits = self.index.limits();
        Array::open(self.source(), &Tree::new(limits), &chunk.desc(), limits)
    }

    /// The bytes of a chunk: little-endian elements, row after row.
    pub fn read_chunk(&self, chunk: &Chunk) -> Result<Vec<u8>> {
        let Place { offset, len, .. } = chunk.place;
        self.index.limits().allow(len, "the chunk")?;
        self.source().read_vec(offset, len)
    }

    /// The bytes of a chunk into `buffer`, which is as long as they are.
    pub fn read_chunk_into(&self, chunk: &Chunk, buffer: &mut [u8]) -> Result<()> {
        self.read_data(chunk.place.offset, chunk.place.len, buffer)
    }

    /// Finds a chunk and reads its bytes into `buffer`, which is as long as they are: the shortest
    /// way. False if the frame does not have it.
    pub fn read_into(&self, frame: u64, name: &str, buffer: &mut [u8]) -> Result<bool> {
        let Some(id) = self.index.name_id(name) else { return Ok(false) };
        let Some((offset, len)) = self.index.find_data(frame, id)? else { return Ok(false) };
        self.read_data(offset, len, buffer)?;
        Ok(true)
    }

    #[inline]
    fn read_data(&self, offset: u64, len: u64, buffer: &mut [u8]) -> Result<()> {
        if buffer.len() as u64 != len {
            let message = format!("the chunk has {len} bytes, not {}", buffer.len());
            return Err(Error::argument(message));
        }
        self.source().read_exact_at(offset, buffer)
    }

    /// The simulation step of a frame, where the file tells: in 0.0.1 that of the frame's last
    /// chunk, later the chunk `configuration/step`.
    pub fn step(&self, frame: u64) -> Result<Option<u64>> {
        if self.index.form().is_first() {
            let range = self.index.frame(frame)?;
            let last = range.last().map(|k| self.index.entry(k)).transpose()?;
            return Ok(last.map(|entry| entry.step));
        }
        let hoomd = self.header().schema == HOOMD;
        let mut chunk = self.find_chunk(frame, STEP)?;
        if chunk.is_none() && hoomd {
            chunk = self.find_chunk(0, STEP)?;
        }
        match chunk {
            Some(chunk) if chunk.place.kind == Type::UInt64 && chunk.place.len >= 8 => {
                let mut bytes = [0; 8];
                self.source().read_exact_at(chunk.place.offset, &mut bytes)?;
                Ok(Some(u64::from_le_bytes(bytes)))
            }
            // The default of the schema.
            None if hoomd => Ok(Some(0)),
            _ => Ok(None),
        }
    }

    /// The step of the last committed frame.
    pub fn last_step(&self) -> Result<Option<u64>> {
        match self.nframes()? {
            0 => Ok(None),
            n => self.step(n - 1),
        }
    }

    /// Goes through all chunks, in the order of the index. What cannot be read of an entry is an
    /// `Err` handed to `each`, which decides whether to go on.
    pub fn each_chunk(&self, mut each: impl FnMut(Result<Chunk>) -> Result<()>) -> Result<()> {
        self.index.scan(0..self.index.count, |k, entry| each(self.chunk(k, entry)))
    }
}

/// The error says something about the file's content, not about the machine or the caller.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated | ErrorKind::Unsupported)
}
