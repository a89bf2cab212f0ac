//! Atomic commits: the order of writes and syncs.

use std::time::Instant;

use spile_core::Result;

use super::{Commit, Writer};
use crate::wire::{Block, Form, Marker, SLOT};

impl Writer {
    /// Writes data, names, marker and entries, in this order. With `durable` there is a sync before the
    /// entries are written and another one after.
    pub(super) fn commit(&mut self, durable: bool) -> Result<()> {
        self.frames_since_commit = 0;
        if let Commit::Every(_) = self.mode.commit {
            self.last_commit = Instant::now();
        }
        self.write_buffer()?;
        let Some(first) = self.pending.first() else {
            if durable {
                self.sink.sync()?;
            }
            self.committed_frames = self.frame;
            return Ok(());
        };
        let (first_frame, end) = (first.frame, self.count + self.pending.len() as u64);
        let names = self.write_names()?;
        let index = self.new_index.unwrap_or(self.header.index);
        if let Some(block) = self.new_index {
            self.copy_index(block)?;
        }
        let marker = Marker { first: self.count, end, frame: first_frame };
        let form = self.header.form;
        // A single entry inside a sector is written atomically without a marker.
        let single =
            self.pending.len() == 1 && !form.is_v0_0_1() && index.location.is_multiple_of(32);
        let moving = (index, names) != (self.header.index, self.header.names);
        if moving {
            // In every mode: if the header reached the disk before the index it refers to, a power
            // failure would lose all frames.
            self.sink.sync()?;
        }
        if moving || !single {
            let marker = if single { self.header.marker } else { Some(marker) };
            let header = self.header.clone().with_marker(marker).with_blocks(index, names);
            self.sink.write_all_at(0, &header.raw)?;
            self.header = header;
            (self.new_index, self.new_names) = (None, None);
        }
        if durable && !moving {
            self.sink.sync()?;
        }
        self.encoded.clear();
        for entry in &self.pending {
            entry.encode(form, self.names.bytes(entry.id), &mut self.encoded);
        }
        let at = index.location + self.count * form.entry_size();
        let mut written = self.sink.write_all_at(at, &self.encoded);
        if durable {
            written = written.and_then(|()| self.sink.sync());
        }
        if let Err(error) = written {
            // After an error the frames are not part of the file until they are committed again.
            let _ = self.clear_entries(self.count, end);
            return Err(error);
        }
        self.count = end;
        self.committed_frames = self.frame;
        self.pending.clear();
        if std::mem::take(&mut self.unused_end) > self.tail {
            // A failure leaves bytes that no entry refers to.
            let _ = self.sink.set_len(self.tail);
        }
        if self.header.stored_count.is_some() {
            // Some files of 0.0.1 store the number of entries in the header.
            self.header = self.header.clone().with_count(end);
            self.sink.write_all_at(0, &self.header.raw)?;
            if durable {
                self.sink.sync()?;
            }
        }
        Ok(())
    }

    /// Writes new names to the name list, or the complete list to a larger block if they do not fit.
    /// Returns the block of the list.
    fn write_names(&mut self) -> Result<Option<Block>> {
        let Some(block) = self.new_names.or(self.header.names) else { return Ok(None) };
        if self.names_written == self.names.len() {
            return Ok(Some(block));
        }
        let form = self.header.form;
        let new = self.names.encode(form, self.names_written);
        let used = self.names.used + new.len() as u64;
        // An empty name ends the list of 2.x.
        let end = used + u64::from(form == Form::V2);
        let mut target = block;
        if end <= block.allocated * SLOT {
            self.sink.write_all_at(block.location + self.names.used, &new)?;
        } else {
            while target.allocated * SLOT < end {
                target.allocated *= 2;
            }
            let mut all = self.names.encode(form, 0);
            all.resize((target.allocated * SLOT) as usize, 0);
            target.location = self.append_data(&all)?;
            self.kept = self.tail;
            self.write_buffer()?;
            self.new_names = Some(target);
        }
        self.names.used = used;
        self.names_written = self.names.len();
        Ok(Some(target))
    }

    fn copy_index(&self, to: Block) -> Result<()> {
        let (mut at, from) = (to.location, self.header.index.location);
        let bytes = self.count * self.header.form.entry_size();
        self.file.source().for_each_block(from, bytes, |block| {
            self.sink.write_all_at(at, block)?;
            at += block.len() as u64;
            Ok(())
        })
    }

    /// Commits the completed frames and removes the marker. Chunks of the current frame are not written, except
    /// in files of 0.0.1, which have the bytes of the original code.
    pub(super) fn finish(&mut self) -> Result<()> {
        if !self.header.form.is_v0_0_1() {
            self.discard_frame();
        }
        self.commit(true)?;
        // The marker of a complete commit has no effect, so that a failure is none of the commit.
        let _ = self.remove_marker();
        Ok(())
    }

    pub(super) fn remove_marker(&mut self) -> Result<()> {
        if self.header.marker.is_some() {
            self.header = self.header.clone().with_marker(None);
            self.sink.write_all_at(0, &self.header.raw)?;
        }
        Ok(())
    }
}
