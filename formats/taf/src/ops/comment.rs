//! `addComment` and `setComment`. The array is not modified.

use std::path::Path;

use spile_core::{Error, Limits, Result, Sink};

use crate::read::File;

/// Appends `text` as a new line. This is one write at the end of the file: after a crash the old
/// comments are intact and the new one can be incomplete.
///
/// # Errors
/// `text` is empty.
pub fn add_comment(path: &Path, text: &str, limits: &Limits) -> Result<()> {
    if text.is_empty() {
        return Err(Error::argument("the comment is empty").with_path(path));
    }
    let sink = Sink::edit(path)?;
    let file = File::open(path, limits)?;
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
    sink.reserve(end + line.len() as u64)?;
    sink.write_all_at(end, &line)?;
    sink.commit()
}

/// Replaces all comments by `text`; an empty text removes them.
pub fn set_comment(path: &Path, text: &str, limits: &Limits) -> Result<()> {
    let sink = Sink::edit(path)?;
    let (offset, _) = File::open(path, limits)?.comment_range();
    sink.reserve(offset + text.len() as u64)?;
    sink.write_all_at(offset, text.as_bytes())?;
    sink.set_len(offset + text.len() as u64)?;
    sink.commit()
}
