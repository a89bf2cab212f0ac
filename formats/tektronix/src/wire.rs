//! On-disk structures, and recognition of the kinds of files.

pub(crate) mod isf;
pub(crate) mod llwfm;
pub(crate) mod wfm;

use spile_core::wire::fetch;
use spile_core::{Error, Result, Source};

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Isf,
    Wfm,
    LlWfm,
}

/// Whether a file that starts with `head` is a waveform of a generator, which is not read.
pub(crate) fn is_generator(head: &[u8]) -> bool {
    head.strip_prefix(b"MAGIC ").and_then(|rest| rest.first()).is_some_and(u8::is_ascii_digit)
}

impl FileKind {
    /// Kind of a file that starts with `head`; `None` if it is not a Tektronix file.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let text = head.strip_prefix(b":").unwrap_or(head);
        if wfm::byte_order(head).is_some() {
            Some(Self::Wfm)
        } else if text.starts_with(llwfm::NAME) {
            Some(Self::LlWfm)
        } else if isf::is_preamble(head) {
            Some(Self::Isf)
        } else {
            None
        }
    }

    /// Kind of a file. Fails if it is not a recording of a Tektronix oscilloscope.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 32)?;
        if is_generator(&head) {
            let end = head.iter().position(u8::is_ascii_control).unwrap_or(head.len());
            let name = String::from_utf8_lossy(&head[..end]);
            let message = format!("waveform of a Tektronix AWG generator (\"{name}\")");
            return Err(Error::unsupported("tektronix-019", message).at(0));
        }
        Self::of(&head).ok_or_else(|| {
            let message = "expected an ISF preamble or a WFM header at the start of the file";
            Error::not_this_format("tektronix-001", message).at(0)
        })
    }
}
