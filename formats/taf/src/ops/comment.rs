//! `addComment` and `setComment`. The array is not modified.

use std::path::Path;

use spile_core::{Error, Limits, Result};

use crate::journal;

/// Appends `text` as a new line. After a crash at any time the file is the old one or the new one.
///
/// # Errors
/// `text` is empty.
pub fn add_comment(path: &Path, text: &str, limits: &Limits) -> Result<()> {
    if text.is_empty() {
        return Err(Error::argument("the comment is empty").with_path(path));
    }
    let (lock, file) = journal::lock(path, limits)?;
    let (offset, len) = file.comment_range();
    let end = offset + len;
    let mut line = Vec::with_capacity(text.len() + 2);
    if len > 0 && file.source().read_vec(end - 1, 1)? != b"\n" {
        line.push(b'\n');
    }
    line.extend_from_slice(text.as_bytes());
    if !text.ends_with('\n') {
        line.push(b'\n');
    }
    let new = end + line.len() as u64;
    journal::change(&lock, &file, file.header(), new, journal::COPIED, |sink| {
        sink.reserve(new)?;
        sink.write_all_at(end, &line)
    })
}

/// Replaces all comments by `text`; an empty text removes them. After a crash at any time the file is the
/// old one or the new one.
pub fn set_comment(path: &Path, text: &str, limits: &Limits) -> Result<()> {
    set_comment_up_to(path, text, journal::COPIED, limits)
}

/// Replaces all comments. A file of more than `largest` bytes is changed in place if its blocks cannot be shared.
pub(crate) fn set_comment_up_to(
    path: &Path,
    text: &str,
    largest: u64,
    limits: &Limits,
) -> Result<()> {
    let (lock, file) = journal::lock(path, limits)?;
    let (offset, _) = file.comment_range();
    let new = offset + text.len() as u64;
    journal::change(&lock, &file, file.header(), new, largest, |sink| {
        sink.reserve(new)?;
        sink.write_all_at(offset, text.as_bytes())
    })
}
