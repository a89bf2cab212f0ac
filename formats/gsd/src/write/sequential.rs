//! Writes a complete file of version 2.1 front to back: header, index, names, data. The number of chunks
//! must be known in advance.

use std::io::Write as _;

use spile_core::{Error, Result, Sink};

use crate::names::Names;
use crate::wire::{About, Entry, Form, Header, SLOT, Type, tables_for};

/// Bytes of the index that are written at once.
const PART: usize = 256 << 10;

/// Fails with gsd-034 if there are too many names for a file of version 2.1.
pub(crate) fn check_names(names: &Names) -> Result<()> {
    let (_, max) = Form::V2.name_limits();
    if names.len() <= max {
        return Ok(());
    }
    let message = format!("expected at most {max} names, found {}", names.len());
    Err(Error::unsupported("gsd-034", message).in_object("name list"))
}

/// Returns the code of the element type of a chunk. Fails with gsd-038 if version 2.1 cannot store it.
pub(crate) fn check_chunk(kind: Type, n: u64, m: u64) -> Result<u8> {
    let code = kind.code(Form::V2).filter(|_| u32::try_from(m).is_ok());
    code.ok_or_else(|| {
        let message = format!("version 2.1 cannot store {n} x {m} {}", kind.name());
        Error::unsupported("gsd-038", message)
    })
}

/// A new file that is written to a sink.
pub(crate) struct SequentialWriter<'a> {
    sink: &'a mut Sink,
    header: Header,
    /// Entries of the current frame, and encoded entries of completed frames.
    frame: Vec<Entry>,
    encoded: Vec<u8>,
    written: u64,
}

impl<'a> SequentialWriter<'a> {
    /// Starts a file with index capacity for `entries` chunks in `frames` frames.
    pub(crate) fn new(
        sink: &'a mut Sink,
        about: &About,
        names: &Names,
        entries: u64,
        frames: u64,
    ) -> Result<Self> {
        check_names(names)?;
        let header = Header::new(Form::V2, 2 << 16 | 1, about);
        let mut list = names.encode(Form::V2, 0);
        let (index, block) = tables_for(header.index.location, entries, frames, list.len() as u64);
        list.resize((block.allocated * SLOT) as usize, 0);
        sink.write_all_at(block.location, &list)?;
        sink.seek(block.location + list.len() as u64);
        let header = header.with_blocks(index, Some(block));
        Ok(Self { sink, header, frame: Vec::new(), encoded: Vec::new(), written: 0 })
    }

    /// Adds a chunk whose data `write` writes to the sink. Frame numbers must not decrease.
    pub(crate) fn chunk(
        &mut self,
        frame: u64,
        id: u32,
        (kind, n, m): (Type, u64, u64),
        write: impl FnOnce(&mut Sink) -> Result<()>,
    ) -> Result<()> {
        if self.frame.first().is_some_and(|e| e.frame != frame) {
            self.end_frame()?;
        }
        let code = check_chunk(kind, n, m).map_err(|e| e.in_frame(frame))?;
        let location = self.sink.position();
        write(self.sink)?;
        let expected = n.saturating_mul(m).saturating_mul(kind.size());
        let found = self.sink.position() - location;
        if found != expected {
            let message = format!("expected {expected} bytes of data, found {found}");
            return Err(Error::argument(message).in_frame(frame));
        }
        let location = location as i64;
        let entry = Entry { frame, n, m, location, id, code, flags: 0, step: 0, checksum_ok: true };
        self.frame.push(entry);
        Ok(())
    }

    /// Adds a chunk with these data.
    pub(crate) fn bytes(
        &mut self,
        frame: u64,
        id: u32,
        size: (Type, u64, u64),
        data: &[u8],
    ) -> Result<()> {
        self.chunk(frame, id, size, |sink| Ok(sink.write_all(data)?))
    }

    fn end_frame(&mut self) -> Result<()> {
        self.frame.sort_by_key(|entry| entry.id);
        for entry in self.frame.drain(..) {
            entry.encode(Form::V2, &[], &mut self.encoded);
        }
        if self.encoded.len() >= PART { self.write_entries() } else { Ok(()) }
    }

    fn write_entries(&mut self) -> Result<()> {
        let size = Form::V2.entry_size();
        let count = self.encoded.len() as u64 / size;
        let capacity = self.header.index.allocated;
        if self.written + count > capacity {
            return Err(Error::argument(format!("more than {capacity} chunks")));
        }
        let at = self.header.index.location + self.written * size;
        self.sink.write_all_at(at, &self.encoded)?;
        self.written += count;
        self.encoded.clear();
        Ok(())
    }

    /// Writes remaining entries and the header. The caller commits the sink.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.end_frame()?;
        self.write_entries()?;
        // The file includes all of the name list even if no data follow.
        self.sink.set_len(self.sink.position())?;
        self.sink.write_all_at(0, &self.header.raw)
    }
}
