//! The same content in another encoding: compressed or not, with Unix or MIME line breaks.
//!
//! Data stream from the one file to the other; what is compressed already and stays so keeps its
//! deflate streams.

use std::path::Path;

use spile_core::comm::Serial;
use spile_core::error::{Error, Result};
use spile_core::format::Reader as _;
use spile_core::sink::Overwrite;
use spile_core::source::Source;

use crate::check::decode_all;
use crate::codec::{Encoder, LINE};
use crate::content::Content;
use crate::elements::Elements;
use crate::read::{File, Section, announces};
use crate::wire::{Breaks, ENTRY, Kind, Raw};
use crate::write::{Options, Writer};

/// What is wanted of all sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As they are.
    Keep,
    /// Compressed; I sections have no compressed form.
    Encode,
    /// Not compressed.
    Decode,
}

/// How a file is recoded.
#[derive(Clone, Copy, Debug)]
pub struct Recode {
    /// What is wanted of the sections.
    pub coding: Coding,
    /// Other line breaks; without them the style is the file's own.
    pub breaks: Option<Breaks>,
    /// Compression level of what is compressed anew, 0 to 12.
    pub level: u32,
    /// Whether an existing file may be replaced.
    pub overwrite: Overwrite,
}

/// What becomes of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Kept,
    /// It is compressed.
    Encoded,
    /// It is decompressed.
    Decoded,
}

/// What [`recode`] would do with each section of a file. Fails where it could not.
pub fn changes(file: &File, coding: Coding) -> Result<Vec<Change>> {
    let one = |(number, section): (usize, &Section)| {
        let change = match (coding, section.encoded) {
            (Coding::Decode, true) => {
                if announces(section.kind, &section.user).is_some() {
                    let message = "without compression it would read as the announcement of some";
                    return Err(Error::argument(message).in_object(place(number, section)));
                }
                Change::Decoded
            }
            (Coding::Encode, false) if section.kind != Kind::Inline => {
                Encoder::allow(largest(section), file.limits())
                    .map_err(|e| e.in_object(place(number, section)))?;
                Change::Encoded
            }
            _ => Change::Kept,
        };
        Ok(change)
    };
    file.sections().iter().enumerate().map(one).collect()
}

/// Writes the content of `file` anew: vendor and user strings and all data are the same, paddings
/// are those of the style, sections are compressed or not as `how` says.
pub fn recode(file: &File, target: &Path, how: &Recode) -> Result<Vec<Change>> {
    let changes = changes(file, how.coding)?;
    let header = file.header();
    let breaks = match how.breaks.unwrap_or(header.breaks) {
        Breaks::Mime => Breaks::Mime,
        Breaks::Unix | Breaks::Other => Breaks::Unix,
    };
    let Recode { level, overwrite, .. } = *how;
    let options = Options { vendor: header.vendor.clone(), breaks, level, overwrite };
    let mut writer = Writer::create(&Serial, target, &header.user, options)?;
    for (number, (section, change)) in file.sections().iter().zip(&changes).enumerate() {
        let written = if *change == Change::Kept {
            // Damaged lines may have their breaks elsewhere; to replace them would do more harm.
            let sound = match how.breaks {
                Some(_) if section.encoded => decode_all(file.source(), section, file.limits()),
                _ => Ok(()),
            };
            let mut kept = |raw| keep(&mut writer, file.source(), raw, section.encoded, how.breaks);
            sound.and_then(|()| section.raw.iter().try_for_each(&mut kept))
        } else {
            let content = file.content(section)?;
            write(&mut writer, section, &content, *change == Change::Encoded)
        };
        written.map_err(|e| e.in_object(place(number, section)))?;
    }
    writer.close()?;
    Ok(changes)
}

fn place(number: usize, section: &Section) -> String {
    format!("section {number}, {}", section.title())
}

/// Bytes of the largest element.
fn largest(section: &Section) -> u64 {
    match section.kind {
        Kind::Varray => {
            section.raw[0].starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
        }
        _ => section.size,
    }
}

/// Writes a section whose form changes.
fn write(
    writer: &mut Writer<'_>,
    section: &Section,
    content: &Content,
    encode: bool,
) -> Result<()> {
    let fetch = |at, buffer: &mut [u8]| content.fetch(at, buffer);
    let data = Elements::Fetched(content.len(), &fetch);
    let (user, count) = (&section.user, &[section.count]);
    match section.kind {
        Kind::Inline => Err(Error::argument("an I section has no compressed form")),
        Kind::Block => writer.block_from(user, 0, section.size, Some(data), encode),
        Kind::Array => writer.array(user, count, section.size, data, encode),
        Kind::Varray => writer.varray(user, count, &section.sizes(), data, encode),
    }
}

/// Writes a raw section as it is. One of the compression convention has line breaks inside its
/// data; `breaks` replaces them.
fn keep(
    writer: &mut Writer<'_>,
    source: &Source,
    raw: &Raw,
    encoded: bool,
    breaks: Option<Breaks>,
) -> Result<()> {
    let (head, stored) = (&raw.head, Content::stored(source, raw.data, raw.len));
    let whole = [0, raw.len];
    // The sizes in an announcement are entries; what is announced are lines of base64.
    let (starts, line, first): (&[u64], _, _) = match head.kind {
        Kind::Varray => (&raw.starts, LINE as u64 + 2, b'='),
        Kind::Block => (&whole, LINE as u64 + 2, b'='),
        Kind::Inline | Kind::Array => (&whole, ENTRY, b'-'),
    };
    let end = match breaks.filter(|_| encoded) {
        None => None,
        Some(Breaks::Mime) => Some(*b"\r\n"),
        Some(Breaks::Unix | Breaks::Other) => Some([first, b'\n']),
    };
    let fetch = |at, buffer: &mut [u8]| {
        stored.fetch(at, buffer)?;
        if let Some(end) = end {
            rebreak(starts, line, end, at, buffer);
        }
        Ok(())
    };
    let data = Elements::Fetched(raw.len, &fetch);
    match head.kind {
        Kind::Inline => {
            let mut bytes = [0; ENTRY as usize];
            fetch(0, &mut bytes)?;
            writer.inline(&head.user, 0, Some(&bytes))
        }
        Kind::Block => writer.block_from(&head.user, 0, head.size, Some(data), false),
        Kind::Array => writer.array(&head.user, &[head.count], head.size, data, false),
        Kind::Varray => writer.varray(&head.user, &[head.count], &raw.sizes(), data, false),
    }
}

/// Puts the two bytes `end` at the end of every line of `line` bytes, and of the last one, of
/// elements that begin at `starts`. `buffer` has the bytes from `at` on.
fn rebreak(starts: &[u64], line: u64, end: [u8; 2], at: u64, buffer: &mut [u8]) {
    let stop = at + buffer.len() as u64;
    let first = starts.partition_point(|start| *start <= at).saturating_sub(1);
    for element in starts[first..].windows(2).take_while(|element| element[0] < stop) {
        let skipped = at.saturating_sub(element[0]) / line;
        let mut from = element[0] + skipped * line;
        while from < element[1].min(stop) {
            let to = (from + line).min(element[1]);
            // A line of one byte is not one of the convention; it is left alone.
            for (place, byte) in (to.saturating_sub(2)..to).zip(end) {
                if to - from > 1 && (at..stop).contains(&place) {
                    buffer[(place - at) as usize] = byte;
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
    fn line_breaks_change_at_any_cut() {
        let starts = [0, 10, 10, 15, 15 + 8];
        let mut whole: Vec<u8> = (100..123).collect();
        rebreak(&starts, 4, *b"\r\n", 0, &mut whole);
        let breaks: Vec<usize> = (0..23).filter(|k| whole[*k] == b'\n').collect();
        assert_eq!(breaks, [3, 7, 9, 13, 18, 22]);
        for from in 0..23 {
            for to in from..23 {
                let mut part: Vec<u8> = (100 + from as u8..100 + to as u8).collect();
                rebreak(&starts, 4, *b"\r\n", from as u64, &mut part);
                assert_eq!(part, whole[from..to], "{from}..{to}");
            }
        }
    }
}
