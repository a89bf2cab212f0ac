//! Changes of the end of a file that are safe against crashes.
//!
//! Comments run from the array to the end of the file, so no order of writes in place keeps both array and
//! comments intact at every moment. [`change`] modifies a copy of the file and renames it where the file
//! system can share blocks (reflink) or the file is [small](COPIED). Larger files are modified in place
//! under a rollback journal `NAME-journal` beside the file. It has the old header and the old comments, and
//! is removed when the change is on disk. [`lock`] undoes a change that was interrupted; [`finding`] reports
//! it to readers. `FORMAT.md` describes the bytes of the journal.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use spile_core::report::{Finding, Report};
use spile_core::sink::sync_folder;
use spile_core::{
    ByteOrder, Error, ErrorKind, Limits, Overwrite, Result, Sink, Source, Wire, cancel, wire,
};

use crate::read::File;
use crate::wire::{DIMENSIONS_OFFSET, Header};

/// Largest file in bytes that is copied to be changed, if its blocks cannot be shared.
pub(crate) const COPIED: u64 = 64 << 20;

/// First bytes of a journal.
const MAGIC: &[u8; 8] = b"TAFUNDO1";

/// Bytes of a journal before the old header.
const FIXED: u64 = 48;

/// The checksum covers this number of bytes before the comments.
const SAMPLED: u64 = 64 << 10;

/// Locks a file against other writers, undoes an interrupted change, and opens it.
pub(crate) fn lock(path: &Path, limits: &Limits) -> Result<(Sink, File)> {
    let sink = Sink::edit(path)?;
    if let Some(name) = journal_of(path).filter(|name| name.exists()) {
        let journal = Journal::open(name, limits)?;
        if !journal.belongs_to(&Source::open(path)?)? {
            let message = format!(
                "the journal {} belongs to another file of this name",
                journal.path.display()
            );
            return Err(Error::new(ErrorKind::Io, "taf-027", message)
                .with_path(path)
                .hint("remove the journal if the file is complete"));
        }
        journal.undo(&sink)?;
        journal.remove()?;
    }
    let file = File::open(path, limits)?;
    Ok((sink, file))
}

/// A warning if the file has a journal: it is being changed, or a change was interrupted.
pub(crate) fn finding(source: &Source) -> Option<Finding> {
    let name = journal_of(source.path()?).filter(|name| name.exists())?;
    let mut report = Report::default();
    let message = format!(
        "a change of this file is not finished ({} exists): the comments can contain elements",
        name.display()
    );
    let hint = "if no program is writing the file, the next change by spile restores it first";
    report.warn("taf-025", message).hint(hint);
    report.findings.pop()
}

/// Calls `modify` with a sink over the content of `file`, to replace its header by `new` and the bytes from
/// the comments on, so that the file has `len` bytes. After a crash or failure at any time the file is the
/// old one or the new one. Files of more than `largest` bytes whose blocks cannot be shared are changed in
/// place under a journal.
pub(crate) fn change<T>(
    lock: &Sink,
    file: &File,
    new: &Header,
    len: u64,
    largest: u64,
    modify: impl FnOnce(&Sink) -> Result<T>,
) -> Result<T> {
    let finish = |sink: &Sink| -> Result<T> {
        let done = modify(sink)?;
        sink.set_len(len)?;
        // Everything else is on disk before the length of the array changes.
        sink.sync()?;
        if new.dimensions != file.header().dimensions {
            sink.write_all_at(DIMENSIONS_OFFSET, &new.encode_dimensions())?;
        }
        Ok(done)
    };
    if let Some(copy) = Sink::copy_of(lock.path(), largest)? {
        let done = finish(&copy)?;
        copy.commit()?;
        return Ok(done);
    }
    let journal = Journal::create(lock.path(), file, new, len)?;
    let changed = finish(lock).and_then(|done| {
        lock.sync()?;
        journal.remove()?;
        Ok(done)
    });
    if changed.is_err() {
        // If this fails, too, the next writer tries it again.
        cancel::uninterrupted(|| journal.undo(lock).and_then(|()| journal.remove()))?;
    }
    changed
}

/// Writes `bytes` at `offset` and flushes them to disk. They are in one sector, so that this is atomic. On failure
/// the old bytes are restored.
pub(crate) fn overwrite(lock: &Sink, file: &File, offset: u64, bytes: &[u8]) -> Result<()> {
    let old = file.source().read_vec(offset, bytes.len() as u64)?;
    lock.write_all_at(offset, bytes).and_then(|()| lock.sync()).inspect_err(|_| {
        let _ = cancel::uninterrupted(|| lock.write_all_at(offset, &old));
    })
}

/// Path of the journal of a file; `None` if the file cannot be found.
fn journal_of(path: &Path) -> Option<PathBuf> {
    // Writers of a link and of its target use the same journal.
    let path = fs::canonicalize(path).ok()?;
    let mut name = path.file_name()?.to_os_string();
    name.push("-journal");
    Some(path.with_file_name(name))
}

/// The old header and comments of a file that is being changed.
struct Journal {
    path: PathBuf,
    source: Source,
    /// Length of the file in bytes, before and after the change.
    lengths: [u64; 2],
    /// Offset of the comments before the change.
    comments: u64,
    /// Bytes of the header, and of everything before it.
    head: u64,
    /// Checksum of the elements before the comments.
    checksum: u64,
}

impl Journal {
    /// Writes the journal of a change to the header `new` and a length of `len` bytes.
    fn create(path: &Path, file: &File, new: &Header, len: u64) -> Result<Self> {
        let missing = || Error::argument("the file has been removed").with_path(path);
        let name = journal_of(path).ok_or_else(missing)?;
        let (head, (comments, tail)) = (new.data_offset(), file.comment_range());
        let old = file.source().read_vec(0, head)?;
        let mut after = old.clone();
        after[DIMENSIONS_OFFSET as usize..].copy_from_slice(&new.encode_dimensions());
        let checksum = checksum(file.source(), head, comments)?;
        let mut sink = Sink::create(&name, Overwrite::Never)?;
        sink.write_all(MAGIC)?;
        for number in [comments + tail, len, comments, head, checksum] {
            sink.write_all(&number.to_le_bytes())?;
        }
        sink.write_all(&old)?;
        sink.write_all(&after)?;
        sink.copy_from(file.source(), comments, tail)?;
        let source = sink.source()?;
        sink.commit()?;
        Ok(Self { path: name, source, lengths: [comments + tail, len], comments, head, checksum })
    }

    fn open(path: PathBuf, limits: &Limits) -> Result<Self> {
        let source = Source::open(&path)?;
        let bytes = wire::fetch(&source, 0, FIXED as usize)?;
        let mut fields = Wire::new(&bytes, 0, ByteOrder::Little, "taf-028");
        fields.expect(MAGIC, "taf-028").map_err(|e| e.with_path(&path))?;
        let lengths = [fields.u64()?, fields.u64()?];
        let (comments, head, checksum) = (fields.u64()?, fields.u64()?, fields.u64()?);
        limits.allow(head.saturating_mul(2), "the journal")?;
        let expected = lengths[0].checked_sub(comments).filter(|_| head <= comments);
        let expected = expected.and_then(|tail| tail.checked_add(head.checked_mul(2)? + FIXED));
        if expected != Some(source.len()) {
            let message = "the length of the journal does not match its content";
            return Err(Error::malformed("taf-028", message).with_path(path));
        }
        Ok(Self { path, source, lengths, comments, head, checksum })
    }

    /// Whether `file` is the file before, during or after the change.
    fn belongs_to(&self, file: &Source) -> Result<bool> {
        let [old, new] = self.lengths;
        if file.len() < old.min(new) || file.len() > old.max(new) || file.len() < self.comments {
            return Ok(false);
        }
        let head = file.read_vec(0, self.head)?;
        let is_head = |at: u64| Ok::<_, Error>(self.source.read_vec(at, self.head)? == head);
        Ok((is_head(FIXED)? || is_head(FIXED + self.head)?)
            && checksum(file, self.head, self.comments)? == self.checksum)
    }

    /// Restores the old header, comments and length.
    fn undo(&self, sink: &Sink) -> Result<()> {
        let mut at = self.comments;
        let tail = self.lengths[0] - self.comments;
        self.source.for_each_block(FIXED + 2 * self.head, tail, |bytes| {
            sink.write_all_at(at, bytes)?;
            at += bytes.len() as u64;
            Ok(())
        })?;
        sink.write_all_at(0, &self.source.read_vec(FIXED, self.head)?)?;
        sink.set_len(self.lengths[0])?;
        sink.sync()
    }

    /// Removes the journal: the change, or its undoing, is on disk.
    fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&self.path, e)),
            _ => sync_folder(&self.path),
        }
    }
}

/// FNV-1a checksum of the elements in the last [`SAMPLED`] bytes of `from..to`.
fn checksum(source: &Source, from: u64, to: u64) -> Result<u64> {
    let start = to.saturating_sub(SAMPLED).max(from);
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = source.read_vec(start, to - start)?;
    Ok(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests;
