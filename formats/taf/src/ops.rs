//! The operations of Table 3-1 that make or change files. The others are methods of
//! [`File`]: `probe` is opening it, `read`, `map` ([`File::array`]), `summarize`, `plot`
//! ([`File::envelope`]); `convert` is `create` on whatever another format's reader gives.
//!
//! Dimensions and indices count from 1, as in the report. Whatever rewrites an array goes to a
//! temporary file that replaces the old one when it is whole; comments are kept byte for byte.

mod append;
mod comment;
mod create;
mod crop;
mod export;
mod grid;
mod reorder;

pub use append::{append, replace};
pub use comment::{add_comment, set_comment};
pub use create::{Create, create, example, type_for};
pub use crop::{Bounds, crop};
pub use export::{export, write_rows};
pub use grid::{Adjust, adjust};
pub use reorder::{permute, transpose};

use std::path::{Path, PathBuf};

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::read::Selected;
use spile_core::sink::{Overwrite, Sink, copy_new};

use crate::read::File;
use crate::wire::Header;
use crate::write::write_array;

/// Where a changed array goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Over the file itself, atomically.
    InPlace,
    /// To another file.
    File(PathBuf, Overwrite),
}

impl Target {
    /// Keeps others from changing the file while it is being replaced.
    fn lock(&self, path: &Path) -> Result<Option<Sink>> {
        match self {
            Self::InPlace => Sink::edit(path).map(Some),
            Self::File(..) => Ok(None),
        }
    }

    fn sink(&self, path: &Path) -> Result<Sink> {
        match self {
            Self::InPlace => Sink::create(path, Overwrite::Replace),
            Self::File(path, overwrite) => Sink::create(path, *overwrite),
        }
    }
}

/// Copies a file to `<stem>-backup-<k>.taf` beside it, with the first `k` that is free.
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
            // Somebody else took the name meanwhile.
            Err(error) if error.kind() == ErrorKind::Exists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(copy),
        }
    }
    Err(Error::argument("no free name for a backup").with_path(path))
}

/// Writes a new file with another header and other elements, and the same comments.
fn rewrite(
    file: &File,
    path: &Path,
    target: &Target,
    header: &Header,
    selected: &Selected<'_>,
) -> Result<u64> {
    let mut sink = target.sink(path)?;
    let clipped = write_array(&mut sink, header, selected)?;
    file.copy_comments(&mut sink)?;
    sink.commit()?;
    Ok(clipped)
}

/// Dimension `number`, counted from 1, as an index.
fn dimension_index(header: &Header, number: usize) -> Result<usize> {
    let rank = header.dimensions.len();
    if (1..=rank).contains(&number) {
        return Ok(number - 1);
    }
    Err(Error::argument(format!("there is no dimension {number}; the array has {rank}")))
}
