//! Recovers a truncated or damaged file: copies every section that is complete and, if compressed, can
//! be decoded. Reports how much of a truncated section is present.

use spile_core::format::{Salvage, Salvager};
use spile_core::limits::Budget;
use spile_core::{Dataset, Error, Limits, Result, Sink, Source};

use crate::Scda;
use crate::check::decode_all;
use crate::section::{Section, compressed_kind};
use crate::wire::{ENTRY, FILE_HEADER, FileHeader, Head, Kind, Raw, read_starts};

impl Salvager for Scda {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        FileHeader::read(source)?;
        let mut saved = Salvage::default();
        let bytes = Dataset::of_bytes(source.clone(), limits);
        target.copy_from(source, 0, FILE_HEADER)?;
        let (mut offset, mut number) = (FILE_HEADER, 0);
        loop {
            match Section::read(source, offset, true, &mut Budget::new(limits)) {
                Ok(None) => return Ok(saved),
                Ok(Some(section)) => {
                    let title = title(&section.raw().head, section.announcement());
                    let decoded =
                        if section.encoded { decode_all(&bytes, &section) } else { Ok(()) };
                    if let Err(error) = decoded {
                        saved.lost.push(format!("section {number}, {title}: {error}"));
                    } else {
                        target.copy_from(source, offset, section.end() - offset)?;
                        saved.kept.push(title);
                    }
                    offset = section.end();
                }
                Err(error) => {
                    let (message, next) =
                        lost(source, offset, &format!("section {number}"), &error, limits);
                    saved.lost.push(message);
                    match next {
                        Some(next) => offset = next,
                        None => return Ok(saved),
                    }
                }
            }
            number += 1;
        }
    }
}

/// Message about a section that cannot be read, and the offset of the next section if it is known.
fn lost(
    source: &Source,
    offset: u64,
    section: &str,
    error: &Error,
    limits: &Limits,
) -> (String, Option<u64>) {
    let rest = |head: Option<Head>, announcement: Option<&Raw>| {
        let present = head.and_then(|head| {
            Some(format!("; {}: {}", title(&head, announcement), present(source, &head, limits)?))
        });
        format!("{section} and all following: {error}{}", present.unwrap_or_default())
    };
    let read = |at| Section::read(source, at, false, &mut Budget::new(limits));
    let Ok(Some(first)) = read(offset) else {
        return (rest(Head::read(source, offset).ok().flatten(), None), None);
    };
    // The first section of a compressed pair is complete; the second is truncated or of another type.
    let next = first.end();
    if read(next).is_err() {
        return (rest(Head::read(source, next).ok().flatten(), Some(first.raw())), None);
    }
    (format!("{section}, {}: {error}", first.title()), Some(next))
}

/// Type and user string of a section as the user sees it: `A "density" (compressed)`.
fn title(head: &Head, announcement: Option<&Raw>) -> String {
    let kind = announcement.and_then(|raw| compressed_kind(raw.head.kind, &raw.head.user));
    let letter = kind.unwrap_or(head.kind).letter();
    let note = if kind.is_some() { " (compressed)" } else { "" };
    format!("{letter} \"{}\"{note}", head.user.escape_ascii())
}

/// How much of a truncated section is in the file.
fn present(source: &Source, head: &Head, limits: &Limits) -> Option<String> {
    let found = source.len().checked_sub(head.end())?;
    match head.kind {
        Kind::Inline => Some(format!("{found} of 32 bytes are present")),
        Kind::Block => Some(format!("{} of {} bytes are present", found.min(head.size), head.size)),
        Kind::Array => {
            let complete = found.checked_div(head.size).unwrap_or(head.count).min(head.count);
            Some(format!("{complete} of {} elements are complete", head.count))
        }
        Kind::Varray if found / ENTRY < head.count => {
            Some(format!("{} of {} sizes are present, no elements", found / ENTRY, head.count))
        }
        Kind::Varray => {
            limits.allow((head.count + 1).saturating_mul(8), "the table of element sizes").ok()?;
            let starts = read_starts(source, head.end(), head.count, b'E').ok()?;
            let found = found - head.count * ENTRY;
            let complete = starts.iter().skip(1).take_while(|end| **end <= found).count();
            Some(format!("{complete} of {} elements are complete", head.count))
        }
    }
}
