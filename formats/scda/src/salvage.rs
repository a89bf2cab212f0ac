//! What can be saved of a cut or damaged file: every section that is whole and, if compressed, can
//! be decoded. Of the section that is cut it is told what is left, for those who want to take it
//! out by hand.

use spile_core::error::{Error, Result};
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use crate::check::decode_all;
use crate::read::{Section, announced};
use crate::wire::{ENTRY, FILE_HEADER, FileHeader, Head, Kind, Raw, read_sizes};

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    FileHeader::read(source)?;
    let mut saved = Salvage::default();
    target.copy_from(source, 0, FILE_HEADER)?;
    let (mut offset, mut number) = (FILE_HEADER, 0);
    loop {
        match Section::read(source, offset, true, limits) {
            Ok(None) => return Ok(saved),
            Ok(Some(section)) => {
                let holder = section.raw.last().unwrap_or(&section.raw[0]);
                let title = title(&holder.head, section.raw.first().filter(|_| section.encoded));
                // What cannot be decoded is not there, however whole it looks.
                let encoded = section.encoded.then(|| decode_all(source, &section, limits));
                if let Some(Err(error)) = encoded {
                    saved.lost.push(format!("section {number}, {title}: {error}"));
                } else {
                    target.copy_from(source, offset, holder.end - offset)?;
                    saved.kept.push(title);
                }
                offset = holder.end;
            }
            Err(error) => {
                let (words, next) =
                    lost(source, offset, &format!("section {number}"), &error, limits);
                saved.lost.push(words);
                match next {
                    Some(next) => offset = next,
                    None => return Ok(saved),
                }
            }
        }
        number += 1;
    }
}

/// What is said about a section that cannot be read, and where the next one begins if that is known.
fn lost(
    source: &Source,
    offset: u64,
    section: &str,
    error: &Error,
    limits: &Limits,
) -> (String, Option<u64>) {
    let rest = |head: Option<Head>, announcement: Option<&Raw>| {
        let left = head.and_then(|head| {
            Some(format!("; of {} {}", title(&head, announcement), left(source, &head, limits)?))
        });
        format!("{section} and all that follow: {error}{}", left.unwrap_or_default())
    };
    let Ok(Some(raw)) = Raw::read(source, offset, limits) else {
        return (rest(Head::read(source, offset).ok().flatten(), None), None);
    };
    // It announces compressed data; those that follow are cut, or something else.
    if Raw::read(source, raw.end, limits).is_err() {
        return (rest(Head::read(source, raw.end).ok().flatten(), Some(&raw)), None);
    }
    (format!("{section}, {}: {error}", raw.title()), Some(raw.end))
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
