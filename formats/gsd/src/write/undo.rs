//! Removing what a failed operation has written, and reusing its space.

use spile_core::Result;

use super::Writer;
use crate::index::Index;
use crate::wire::{Block, Marker};

/// Index entries up to which the end of the data is determined when a file is opened for appending.
const FEW: u64 = 8192;

/// What a file contained at some time, see [`Writer::close_or_undo`].
pub(crate) struct Content {
    entries: u64,
    frames: u64,
    blocks: (Block, Option<Block>),
    end: u64,
}

impl Writer {
    /// The committed content of a writer without completed frames that are not committed.
    pub(crate) fn content(&self) -> Content {
        Content { entries: self.count, frames: self.frame, blocks: self.blocks(), end: self.tail }
    }

    /// Commits the completed frames and closes the file if `done` is not an error. If one of them fails, the
    /// frames since `before` are removed, as far as the file can be written, and the error is returned.
    pub(crate) fn close_or_undo(mut self, before: &Content, done: Result<()>) -> Result<()> {
        self.closed = true;
        let done = done.and_then(|()| self.finish());
        if done.is_err() && self.remove_entries(before).is_ok() && self.blocks() == before.blocks {
            let _ = self.sink.set_len(before.end);
        }
        done
    }

    /// Location of the index and the name list.
    fn blocks(&self) -> (Block, Option<Block>) {
        (self.header.index, self.header.names)
    }

    fn remove_entries(&mut self, before: &Content) -> Result<()> {
        if self.count > before.entries {
            let marker = Marker { first: before.entries, end: self.count, frame: before.frames };
            self.header = self.header.clone().with_marker(Some(marker));
            if self.header.stored_count.is_some() {
                self.header = self.header.clone().with_count(before.entries);
            }
            self.sink.write_all_at(0, &self.header.raw)?;
            self.clear_entries(before.entries, self.count)?;
            self.count = before.entries;
        }
        // A failed write may have left a part of another header.
        self.header = self.header.clone().with_marker(None);
        self.sink.write_all_at(0, &self.header.raw)
    }

    /// Overwrites the index entries `from..to` by zeros. The marker must include them unless it is a single one:
    /// readers ignore all of them as soon as the last one is empty.
    pub(super) fn clear_entries(&self, from: u64, to: u64) -> Result<()> {
        let size = self.header.form.entry_size();
        let offset = |k: u64| self.header.index.location + k * size;
        let zeros = vec![0; (size * FEW.min(to - from)) as usize];
        self.sink.write_all_at(offset(to - 1), &zeros[..size as usize])?;
        let mut k = from;
        while k < to {
            let part = FEW.min(to - k);
            self.sink.write_all_at(offset(k), &zeros[..(part * size) as usize])?;
            k += part;
        }
        Ok(())
    }

    /// Removes the chunks of the current frame and reuses their space.
    pub fn discard_frame(&mut self) {
        for entry in self.current.drain(..) {
            self.used[entry.id as usize] = 0;
        }
        let in_file = self.tail - self.buffer.len() as u64;
        self.buffer.truncate(self.kept.saturating_sub(in_file) as usize);
        self.tail = self.kept;
        if in_file > self.kept {
            // If that fails, the next data overwrite these bytes.
            let _ = self.sink.set_len(self.kept);
        }
    }
}

/// Offset from which a file has no data; its length if there are many entries and it was closed cleanly.
pub(super) fn end_of_data(index: &Index) -> Result<u64> {
    let len = index.source.current_len()?;
    let clean = index.header.marker.is_none();
    // Files of 0.0.1 have the bytes of the original code.
    if index.count > FEW && clean || index.form().is_v0_0_1() {
        return Ok(len);
    }
    let (mut end, mut valid) = (index.end_of_blocks(), true);
    index.scan(0..index.count, |k, entry| {
        match index.locate(k, &entry) {
            Ok(data) => end = end.max(data.offset + data.len),
            // The place of its data is unknown.
            Err(_) => valid = false,
        }
        Ok(())
    })?;
    Ok(if valid { end.min(len) } else { len })
}
