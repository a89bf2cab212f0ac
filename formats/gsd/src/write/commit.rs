//! Commits: the order of writes that makes frames appear whole or not at all.

use std::time::Instant;

use spile_core::error::Result;

use super::{COPY, Writer};
use crate::wire::{Block, Form, Marker, SLOT};

impl Writer {
    /// Writes data, names, marker, then entries. With `durable`, everything that an entry needs is
    /// on the disk before the entry is written, and the entry before this returns: two syncs.
    pub(super) fn commit(&mut self, durable: bool) -> Result<()> {
        self.waiting = 0;
        self.committed = Instant::now();
        self.write_buffer()?;
        let Some(first) = self.pending.first() else {
            return if durable { self.sink.sync() } else { Ok(()) };
        };
        let (first_frame, end) = (first.frame, self.count + self.pending.len() as u64);
        let names = self.save_names()?;
        let index = self.moved.unwrap_or(self.header.index);
        if let Some(block) = self.moved {
            self.copy_index(block)?;
        }
        let marker = Marker { first: self.count, end, frame: first_frame };
        let form = self.header.form;
        // A single entry inside a sector is whole or absent by itself.
        let alone =
            self.pending.len() == 1 && !form.is_first() && index.location.is_multiple_of(32);
        let mut header = self.header.clone();
        if !alone {
            header = header.with_marker(Some(marker));
        }
        header = header.with_blocks(index, names);
        let moving = (index, names) != (self.header.index, self.header.names);
        if moving {
            // Always: a header that reached the disk before the index it names would cost all frames,
            // also those that were flushed long ago.
            self.sink.sync()?;
        }
        if header != self.header {
            self.sink.write_all_at(0, &header.raw)?;
            self.header = header;
            (self.moved, self.names_moved) = (None, None);
        }
        if durable && !moving {
            self.sink.sync()?;
        }
        let mut bytes = Vec::with_capacity(self.pending.len() * form.entry_size() as usize);
        for entry in &self.pending {
            entry.encode(form, self.names.raw(entry.id), &mut bytes);
        }
        self.sink.write_all_at(index.location + self.count * form.entry_size(), &bytes)?;
        if durable {
            self.sink.sync()?;
        }
        self.count = end;
        self.pending.clear();
        if self.header.counted.is_some() {
            // The first code counts in the header.
            self.header = self.header.clone().with_count(end);
            self.sink.write_all_at(0, &self.header.raw)?;
            if durable {
                self.sink.sync()?;
            }
        }
        Ok(())
    }

    /// Writes names that are not in the file yet, where there is room, or the whole list into a
    /// larger place. Returns where the list is.
    fn save_names(&mut self) -> Result<Option<Block>> {
        let Some(block) = self.names_moved.or(self.header.names) else { return Ok(None) };
        if self.names_saved == self.names.len() {
            return Ok(Some(block));
        }
        let slots = self.header.form != Form::List;
        let encode = |from: usize| -> Vec<u8> {
            let mut bytes = Vec::new();
            for name in self.names.iter().skip(from) {
                bytes.extend_from_slice(name);
                let padding = if slots { SLOT as usize - name.len() } else { 1 };
                bytes.resize(bytes.len() + padding, 0);
            }
            bytes
        };
        let new = encode(self.names_saved);
        let used = self.names.used + new.len() as u64;
        // An empty name ends the list.
        let end = used + u64::from(!slots);
        let mut place = block;
        if end <= block.allocated * SLOT {
            self.sink.write_all_at(block.location + self.names.used, &new)?;
        } else {
            while place.allocated * SLOT < end {
                place.allocated *= 2;
            }
            let mut all = encode(0);
            all.resize((place.allocated * SLOT) as usize, 0);
            place.location = self.append_data(&all)?;
            self.write_buffer()?;
            self.names_moved = Some(place);
        }
        self.names.used = used;
        self.names_saved = self.names.len();
        Ok(Some(place))
    }

    fn copy_index(&self, to: Block) -> Result<()> {
        let size = self.header.form.entry_size();
        let bytes = self.count * size;
        let mut buffer = vec![0; bytes.min(COPY) as usize];
        let mut done = 0;
        while done < bytes {
            let part = &mut buffer[..(bytes - done).min(COPY) as usize];
            self.file.source().read_exact_at(self.header.index.location + done, part)?;
            self.sink.write_all_at(to.location + done, part)?;
            done += part.len() as u64;
        }
        Ok(())
    }

    /// Commits what has ended, and takes the marker away.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.commit(true)?;
        if self.header.marker.is_some() {
            // All is there; the marker has nothing left to say.
            self.header = self.header.clone().with_marker(None);
            self.sink.write_all_at(0, &self.header.raw)?;
        }
        Ok(())
    }
}
