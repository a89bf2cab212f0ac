//! The byte ranges of a file and their kinds.

use spile_core::Result;
use spile_core::format::{Region, RegionKind};

use crate::event::text::BYTE_ORDER_MARK;
use crate::event::{Event, Form, Item};
use crate::read::File;
use crate::wire::{Control, Tag};

/// Bytes between tags that are examined to see whether they are blanks.
const BETWEEN: u64 = 4 << 10;

/// Maximum number of characters of a displayed name.
const NAME: usize = 40;

/// Passes all regions to `each`, in file order.
pub(crate) fn regions(file: &File, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
    for (k, record) in file.raw_records().iter().enumerate() {
        let (offset, len) = (record.offset, record.end - record.offset);
        let (name, value) = (format!("record {}", k + 1), String::new());
        each(Region { offset, len, kind: RegionKind::Data, name, value })?;
    }
    if !file.raw_records().is_empty() {
        return Ok(());
    }
    let mut events = file.events();
    let mut element = String::new();
    let mut last: Option<Region> = None;
    let mut end = 0;
    loop {
        let item = events.next()?;
        // Comments inside data are events after the data; the region of the data includes them.
        if item.as_ref().is_some_and(|item| item.offset < end || item.end == item.offset) {
            continue;
        }
        let offset = item.as_ref().map_or(file.source().len(), |item| item.offset);
        if offset > end {
            match between(file, end, offset)? {
                Some(region) => {
                    last.take().map_or(Ok(()), &mut *each)?;
                    each(region)?;
                }
                // Line end and indent are part of the previous region.
                None => last.iter_mut().for_each(|last| last.len = offset - last.offset),
            }
        }
        last.take().map_or(Ok(()), &mut *each)?;
        let Some(item) = item else { return Ok(()) };
        end = item.end;
        last = Some(region(&item, &mut element));
    }
}

/// The region between two events of a text; `None` for blanks that are part of the previous region.
fn between(file: &File, from: u64, to: u64) -> Result<Option<Region>> {
    let shown = file.source().read_vec(from, (to - from).min(BETWEEN))?;
    let plain = shown.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&shown).trim_ascii_start();
    let blank = plain.is_empty();
    if file.form() != Form::Text || (blank && from > 0) {
        return Ok(None);
    }
    let (kind, name) = match plain {
        [b'<', b'!', ..] => (RegionKind::Header, "declaration"),
        _ if blank => (RegionKind::Padding, "blank"),
        _ => (RegionKind::Text, "text outside of all elements"),
    };
    let value = if blank { String::new() } else { String::from_utf8_lossy(&shown).into_owned() };
    Ok(Some(Region { offset: from, len: to - from, kind, name: name.into(), value }))
}

/// The name of a tag, truncated to [`NAME`] characters.
fn title(tag: &Tag) -> String {
    let title = tag.name_lossy();
    match title.char_indices().nth(NAME) {
        Some((cut, _)) => format!("{}...", &title[..cut]),
        None => title,
    }
}

fn region(item: &Item, element: &mut String) -> Region {
    let (kind, name, value) = match &item.event {
        Event::Tag(control, tag) => {
            let name = match control {
                Control::Begin => {
                    *element = title(tag);
                    format!("begin {element}")
                }
                Control::End => format!("end {}", title(tag)),
                Control::Empty => format!("empty {}", title(tag)),
                Control::Comment => "comment".to_string(),
                Control::Instruction => "processing instruction".to_string(),
            };
            let comment = *control == Control::Comment;
            let kind = if comment { RegionKind::Text } else { RegionKind::Header };
            let text = if *control == Control::End { b"" } else { tag.text() };
            (kind, name, String::from_utf8_lossy(text).into_owned())
        }
        Event::Data(data) => {
            let parts = match data.extents.parts().len() {
                1 => String::new(),
                n => format!("{n} parts"),
            };
            (RegionKind::Data, format!("data {element}"), parts)
        }
    };
    Region { offset: item.offset, len: item.end - item.offset, kind, name, value }
}
