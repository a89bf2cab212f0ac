//! Files as recordings.

mod isf;
mod isf_text;
mod llwfm;
mod wfm;

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::recording::Recording;
use spile_core::source::Source;

use crate::wire::FileKind;

/// Opens a file of any kind as a recording.
pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    match FileKind::read(&source)? {
        FileKind::Isf => isf::open(source, limits),
        FileKind::Wfm => wfm::open(source, limits),
        FileKind::LlWfm => llwfm::open(source, limits),
    }
}
