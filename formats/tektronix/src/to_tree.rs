//! Files as recordings.

mod iq;
mod isf;
mod isf_text;
mod llwfm;
mod metadata;
mod wfm;

use spile_core::{OpenOptions, Parsed, Result, Source};

use crate::wire::FileKind;

/// Opens a file of any kind as a recording.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    match FileKind::read(&source)? {
        FileKind::Isf => isf::open(source, options),
        FileKind::Wfm => wfm::open(source, options),
        FileKind::LlWfm => llwfm::open(source, options),
    }
}
