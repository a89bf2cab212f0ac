//! The operations of Table 3-1 that create or modify files.
//!
//! The others are methods of [`File`]: `probe` is [`File::open`], `map` is [`File::array`], `plot`
//! uses [`File::envelope`]; `read` and `summarize` keep their names. `convert` is [`create`] with an
//! array of another format.
//!
//! Dimensions and indices count from 1, as in the report. Operations that rewrite the array write a
//! temporary file and rename it when it is complete; `journal` describes changes at the end of the file.
//! Comments are copied unchanged.

mod adjust;
mod append;
mod comment;
mod create;
mod crop;
mod export;
mod permute;

pub use adjust::{Adjust, adjust};
#[cfg(test)]
pub(crate) use append::append_up_to;
pub use append::{Appended, append, append_along, replace};
#[cfg(test)]
pub(crate) use comment::set_comment_up_to;
pub use comment::{add_comment, set_comment};
pub use create::{Create, create, create_columns, example, map_of, type_for};
pub use crop::{Bounds, crop};
pub use export::{export, write_rows};
pub use permute::{permute, transpose};

use std::io::Write as _;
use std::path::{Path, PathBuf};

use spile_core::read::Selected;
use spile_core::sink::copy_new;
use spile_core::{Error, ErrorKind, Limits, Overwrite, Result, Sink};

use crate::journal;
use crate::read::File;
use crate::wire::Header;
use crate::write::write_array;

/// Destination of a modified array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The file itself, replaced atomically.
    InPlace,
    /// Another file.
    File(PathBuf, Overwrite),
}

impl Target {
    /// Opens the file, and locks it against other writers if it is to be replaced.
    fn open(&self, path: &Path, limits: &Limits) -> Result<(Option<Sink>, File)> {
        match self {
            Self::InPlace => journal::lock(path, limits).map(|(lock, file)| (Some(lock), file)),
            Self::File(..) => Ok((None, File::open(path, limits)?)),
        }
    }

    /// Sink for the new file.
    fn sink(&self, path: &Path) -> Result<Sink> {
        match self {
            Self::InPlace => Sink::create(path, Overwrite::Replace),
            Self::File(path, overwrite) => Sink::create(path, *overwrite),
        }
    }
}

/// Copies a file to `<stem>-backup-<k>.taf` in the same folder, with the first unused `k` from 1 on.
/// Returns the path of the copy.
pub fn backup(path: &Path) -> Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default();
    for k in 1_u32.. {
        let mut name = stem.to_os_string();
        name.push(format!("-backup-{k}.taf"));
        let copy = path.with_file_name(name);
        if copy.exists() {
            continue;
        }
        match copy_new(path, &copy) {
            // Another process has created this name in the meantime.
            Err(error) if error.kind() == ErrorKind::Exists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(copy),
        }
    }
    Err(Error::argument("no unused backup name").with_path(path))
}

/// Writes `header`, `selected` and `comments`, or those of `file`, to `target`. Returns the number of
/// clipped values.
fn rewrite(
    file: &File,
    path: &Path,
    target: &Target,
    header: &Header,
    selected: &Selected<'_>,
    comments: Option<String>,
) -> Result<u64> {
    let mut sink = target.sink(path)?;
    let clipped = write_array(&mut sink, header, selected)?;
    match comments {
        Some(comments) => sink.write_all(comments.as_bytes())?,
        None => file.copy_comments(&mut sink)?,
    }
    sink.commit()?;
    Ok(clipped)
}

/// Zero-based index of dimension `number`, which counts from 1.
fn dimension_index(header: &Header, number: usize) -> Result<usize> {
    let rank = header.dimensions.len();
    if (1..=rank).contains(&number) {
        return Ok(number - 1);
    }
    Err(Error::argument(format!("no dimension {number}: the array has {rank} dimensions")))
}
