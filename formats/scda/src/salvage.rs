//! What can be saved of a cut or damaged file: every whole section before the damage. Of the
//! section that is cut it is told what is left, for those who want to take it out by hand.

use spile_core::error::Result;
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use crate::read::announced;
use crate::wire::{ENTRY, FILE_HEADER, FileHeader, Head, Kind, Raw, read_sizes};

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    FileHeader::read(source)?;
    let mut saved = Salvage::default();
    // The last byte of what is whole; an announcement counts with the section it announces.
    let (mut end, mut offset) = (FILE_HEADER, FILE_HEADER);
    let mut waiting: Option<Raw> = None;
    loop {
        match Raw::read(source, offset, limits) {
            Ok(Some(raw)) => {
                offset = raw.end;
                if announced(&raw.head).is_some() && waiting.is_none() {
                    waiting = Some(raw);
                    continue;
                }
                saved.kept.push(title(&raw.head, waiting.take().as_ref()));
                end = offset;
            }
            Ok(None) => break,
            Err(error) => {
                let number = saved.kept.len();
                let mut lost = format!("section {number} and all that follow: {error}");
                if let Ok(Some(head)) = Head::read(source, offset)
                    && let Some(left) = left(source, &head, limits)
                {
                    lost = format!("{lost}; of {} {left}", title(&head, waiting.take().as_ref()));
                }
                saved.lost.push(lost);
                waiting = None;
                break;
            }
        }
    }
    if let Some(raw) = waiting {
        saved.lost.push(format!("{}: the compressed section is missing", raw.title()));
    }
    target.copy_from(source, 0, end)?;
    Ok(saved)
}

/// The section in words, as the user sees it: `A "density" (compressed)`.
fn title(head: &Head, announcement: Option<&Raw>) -> String {
    let kind = announcement.and_then(|raw| announced(&raw.head));
    let letter = kind.unwrap_or(head.kind).letter();
    let note = if kind.is_some() { " (compressed)" } else { "" };
    format!("{letter} \"{}\"{note}", head.user.escape_ascii())
}

/// What is there of a section that the file cuts.
fn left(source: &Source, head: &Head, limits: &Limits) -> Option<String> {
    let there = source.len().checked_sub(head.end)?;
    match head.kind {
        Kind::Inline => Some(format!("{there} of 32 bytes are there")),
        Kind::Block => Some(format!("{} of {} bytes are there", there.min(head.size), head.size)),
        Kind::Array => {
            let whole = there.checked_div(head.size).unwrap_or(head.count).min(head.count);
            Some(format!("{whole} of {} elements are whole", head.count))
        }
        Kind::Varray if there / ENTRY < head.count => {
            Some(format!("{} of {} sizes are there, and no element", there / ENTRY, head.count))
        }
        Kind::Varray => {
            let starts = read_sizes(source, head.end, head.count, b'E', limits).ok()?;
            let there = there - head.count * ENTRY;
            let whole = starts.iter().skip(1).take_while(|end| **end <= there).count();
            Some(format!("{whole} of {} elements are whole", head.count))
        }
    }
}
