//! Other files that datasets refer to: external storage and sources of virtual datasets.
//!
//! The bytes of these files follow those of the HDF5 file in a joined source. Only files in the folder of the HDF5
//! file or below are opened, so that a file from elsewhere cannot show other files of the user.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use spile_core::error::{Error, Result};
use spile_core::source::{Part, Source};

/// Largest number of other files.
const MAX_FILES: usize = 100_000;

/// The other files of an HDF5 file, with the offsets of their first bytes in the joined source.
#[derive(Default)]
pub(crate) struct OtherFiles {
    known: RefCell<Vec<(PathBuf, u64, u64)>>,
}

impl OtherFiles {
    /// Path of the file called `name` in the HDF5 file `source`; `None` if it does not exist. Fails with `Unsupported`
    /// and `code` if it is not in the folder of the HDF5 file or below.
    pub(crate) fn find(source: &Source, name: &str, code: &'static str) -> Result<Option<PathBuf>> {
        let refused = |why: &str| Error::unsupported(code, format!("file \"{name}\": {why}"));
        let own = source.path().filter(|path| source.parts().is_empty() && path.is_file());
        let own = own.ok_or_else(|| refused("other files need an HDF5 file in a folder"))?;
        let folder = std::fs::canonicalize(own).map_err(|e| Error::io(own, e))?;
        let Some(folder) = folder.parent() else { return Ok(None) };
        let Ok(path) = std::fs::canonicalize(folder.join(Path::new(name))) else {
            return Ok(None);
        };
        if path.starts_with(folder) && path.is_file() {
            return Ok(Some(path));
        }
        Err(refused("not in the folder of the HDF5 file"))
    }

    /// Offset of the first byte of a file in the joined source, and its length.
    pub(crate) fn add(&self, source: &Source, path: &Path) -> Result<(u64, u64)> {
        let mut known = self.known.borrow_mut();
        if let Some((_, start, len)) = known.iter().find(|(known, ..)| known == path) {
            return Ok((*start, *len));
        }
        if known.len() >= MAX_FILES {
            return Err(Error::limit(format!("more than {MAX_FILES} other files")));
        }
        let len = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len();
        let start = known.last().map_or(source.len(), |(_, start, len)| start + len);
        if start.checked_add(len).is_none() {
            return Err(Error::limit("the total length of the files exceeds 64 bits"));
        }
        known.push((path.to_path_buf(), start, len));
        Ok((start, len))
    }

    /// Adds a file that is joined with others: its parts follow one another, as in `joined`. Returns the offset of its
    /// first byte in the joined source.
    pub(crate) fn add_joined(&self, source: &Source, joined: &Source, path: &Path) -> Result<u64> {
        if joined.parts().is_empty() {
            return Ok(self.add(source, path)?.0);
        }
        let mut known = self.known.borrow_mut();
        let parts = joined.parts();
        if known.len().saturating_add(parts.len()) > MAX_FILES {
            return Err(Error::limit(format!("more than {MAX_FILES} other files")));
        }
        let start = known.last().map_or(source.len(), |(_, start, len)| start + len);
        if start.checked_add(joined.len()).is_none() {
            return Err(Error::limit("the total length of the files exceeds 64 bits"));
        }
        let ends = parts.iter().skip(1).map(Part::start).chain([joined.len()]);
        for (part, end) in parts.iter().zip(ends) {
            let own = (part.path().to_path_buf(), start + part.start(), end - part.start());
            known.push(own);
        }
        Ok(start)
    }

    /// `source` followed by the other files.
    pub(crate) fn join(self, source: Source) -> Result<Source> {
        let known = self.known.into_inner();
        let (Some(path), false) = (source.path(), known.is_empty()) else { return Ok(source) };
        let others = known.into_iter().map(|(path, ..)| path);
        let files: Vec<PathBuf> = std::iter::once(path.to_path_buf()).chain(others).collect();
        Source::joined(path, &files)
    }
}
