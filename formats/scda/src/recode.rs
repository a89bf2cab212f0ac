//! Operations on files: change of compression and line breaks.
//!
//! Data are streamed. Sections that stay compressed keep their deflate streams.

use std::path::Path;

use spile_core::comm::Serial;
use spile_core::{Error, Overwrite, Result};

use crate::buffers::{Elements, Fetch};
use crate::check::decode_all;
use crate::codec::{Encoder, LINE};
use crate::content::Content;
use crate::index::Index;
use crate::read::File;
use crate::section::{Section, compressed_kind};
use crate::wire::{Breaks, ENTRY, Kind, Raw, differences};
use crate::write::{Options, Writer};

/// Target compression of all sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Unchanged.
    Keep,
    /// Compressed; I sections have no compressed form.
    Encode,
    /// Not compressed.
    Decode,
}

/// Options of [`recode`].
#[derive(Clone, Copy, Debug)]
pub struct Recode {
    /// Target compression.
    pub coding: Coding,
    /// New line break style; `None` keeps the style of the file.
    pub breaks: Option<Breaks>,
    /// Compression level of newly compressed sections, 0 to 12.
    pub level: u32,
    /// Whether an existing file is replaced.
    pub overwrite: Overwrite,
}

/// Change of one section by [`recode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Unchanged.
    Kept,
    /// Compressed.
    Encoded,
    /// Decompressed.
    Decoded,
}

/// The changes that [`recode`] would make, one per section. Fails if a section cannot be changed.
pub fn changes(file: &File, coding: Coding) -> Result<Vec<Change>> {
    let one = |(number, section): (usize, &Section)| {
        let change = match (coding, section.encoded) {
            (Coding::Decode, true) => {
                if compressed_kind(section.kind, section.user()).is_some() {
                    let message = "this type and user string are reserved for compressed sections";
                    return Err(Error::argument(message).in_object(title(number, section)));
                }
                Change::Decoded
            }
            (Coding::Encode, false) if section.kind != Kind::Inline => {
                Encoder::allow(largest(section), file.limits())
                    .map_err(|e| e.in_object(title(number, section)))?;
                Change::Encoded
            }
            _ => Change::Kept,
        };
        Ok(change)
    };
    file.sections().iter().enumerate().map(one).collect()
}

/// Writes the content of `file` to `target` with another compression or line break style, and returns the
/// change of each section. Vendor string, user strings and data stay the same. An index is written anew.
pub fn recode(file: &File, target: &Path, options: &Recode) -> Result<Vec<Change>> {
    let changes = changes(file, options.coding)?;
    let header = file.header();
    let breaks = match options.breaks.unwrap_or(header.breaks) {
        Breaks::Mime => Breaks::Mime,
        Breaks::Unix | Breaks::Other => Breaks::Unix,
    };
    let Recode { level, overwrite, .. } = *options;
    let checksums = file.index().is_some_and(Index::has_checksums);
    let index = file.index().is_some();
    let vendor = header.vendor.clone();
    let writer_options = Options { vendor, breaks, level, overwrite, index, checksums };
    let mut writer = Writer::create(&Serial, target, &header.user, writer_options)?;
    for (number, (section, change)) in file.sections().iter().zip(&changes).enumerate() {
        let written = if *change == Change::Kept {
            // In damaged data the line breaks may be elsewhere.
            let valid = match options.breaks {
                Some(_) if section.encoded => decode_all(file.bytes(), section),
                _ => Ok(()),
            };
            let mut kept = |raw| keep(&mut writer, file, section, raw, options.breaks);
            valid.and_then(|()| section.raws().try_for_each(&mut kept))
        } else {
            let content = file.content(section)?;
            let fetch = |at, buffer: &mut [u8]| content.fetch(at, buffer);
            let (name, counts) = ((section.kind, section.user()), (section.count, section.size));
            let data: (u64, &Fetch<'_>) = (content.len(), &fetch);
            let encode = *change == Change::Encoded;
            put(&mut writer, file, name, counts, section.element_starts(), data, encode)
        };
        written.map_err(|e| e.in_object(title(number, section)))?;
    }
    writer.close()?;
    Ok(changes)
}

fn title(number: usize, section: &Section) -> String {
    format!("section {number}, {}", section.title())
}

/// Bytes of the largest element.
fn largest(section: &Section) -> u64 {
    match section.kind {
        Kind::Varray => {
            let starts = section.element_starts().unwrap_or_default();
            starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
        }
        _ => section.size,
    }
}

/// Writes a section with the data that `fetch` supplies; elements of a V section begin at `starts`.
fn put(
    writer: &mut Writer<'_>,
    file: &File,
    (kind, user): (Kind, &[u8]),
    (count, size): (u64, u64),
    starts: Option<&[u64]>,
    (len, fetch): (u64, &Fetch<'_>),
    encode: bool,
) -> Result<()> {
    let data = Elements::Fetched(len, fetch);
    match kind {
        Kind::Inline => {
            let mut bytes = [0; ENTRY as usize];
            fetch(0, &mut bytes)?;
            writer.inline(user, 0, Some(&bytes))
        }
        Kind::Block => writer.block_from(user, 0, size, Some(data), encode),
        Kind::Array => writer.array(user, &[count], size, data, encode),
        Kind::Varray => {
            let starts = starts.unwrap_or_default();
            let table = (starts.len() as u64).saturating_mul(16);
            file.limits().allow(table, "the table of element sizes")?;
            writer.varray(user, &[count], &differences(starts), data, encode)
        }
    }
}

/// Writes a raw section unchanged, except that `breaks` replaces the line breaks in the data of a compressed
/// section.
fn keep(
    writer: &mut Writer<'_>,
    file: &File,
    section: &Section,
    raw: &Raw,
    breaks: Option<Breaks>,
) -> Result<()> {
    let (head, stored) = (&raw.head, Content::stored(file.source(), raw.data(), raw.len));
    let one = [0, raw.len];
    let stored_starts = section.stored_starts();
    // Uncompressed sizes are count entries, compressed data are lines of base64.
    let (starts, line, first): (&[u64], _, _) = match head.kind {
        Kind::Varray => (stored_starts.unwrap_or(&one), LINE as u64 + 2, b'='),
        Kind::Block => (&one, LINE as u64 + 2, b'='),
        Kind::Inline | Kind::Array => (&one, ENTRY, b'-'),
    };
    let end = match breaks.filter(|_| section.encoded) {
        None => None,
        Some(Breaks::Mime) => Some(*b"\r\n"),
        Some(Breaks::Unix | Breaks::Other) => Some([first, b'\n']),
    };
    let fetch = |at, buffer: &mut [u8]| {
        stored.fetch(at, buffer)?;
        if let Some(end) = end {
            replace_breaks(starts, line, end, at, buffer);
        }
        Ok(())
    };
    let (section, counts) = ((head.kind, &*head.user), (head.count, head.size));
    put(writer, file, section, counts, stored_starts, (raw.len, &fetch), false)
}

/// Replaces the last two bytes of every line by `end`. Lines have `line` bytes, the last one of an element
/// may be shorter; elements begin at `starts`. `buffer` contains the bytes at offset `at`.
fn replace_breaks(starts: &[u64], line: u64, end: [u8; 2], at: u64, buffer: &mut [u8]) {
    let stop = at + buffer.len() as u64;
    let first = starts.partition_point(|start| *start <= at).saturating_sub(1);
    for element in starts[first..].windows(2).take_while(|element| element[0] < stop) {
        let skipped = at.saturating_sub(element[0]) / line;
        let mut from = element[0] + skipped * line;
        while from < element[1].min(stop) {
            let to = (from + line).min(element[1]);
            // A line of one byte has no line break.
            for (position, byte) in (to.saturating_sub(2)..to).zip(end) {
                if to - from > 1 && (at..stop).contains(&position) {
                    buffer[(position - at) as usize] = byte;
                }
            }
            from += line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_replaced_in_any_part() {
        let starts = [0, 10, 10, 15, 15 + 8];
        let mut all: Vec<u8> = (100..123).collect();
        replace_breaks(&starts, 4, *b"\r\n", 0, &mut all);
        let breaks: Vec<usize> = (0..23).filter(|k| all[*k] == b'\n').collect();
        assert_eq!(breaks, [3, 7, 9, 13, 18, 22]);
        for from in 0..23 {
            for to in from..23 {
                let mut part: Vec<u8> = (100 + from as u8..100 + to as u8).collect();
                replace_breaks(&starts, 4, *b"\r\n", from as u64, &mut part);
                assert_eq!(part, all[from..to], "{from}..{to}");
            }
        }
    }
}
