//! Events from records (IOTK binary files, section 2): a tag is two records, data is one.

use spile_core::{ByteOrder, Error, Extents, Limits, Result, Source, Wire};

use super::{BeginTag, Data, Event, Item, declared_qe_syntax};
use crate::wire::record::{Framing, Record, Records};
use crate::wire::{Control, SECOND, Tag, is_space};

/// Bytes examined by the fast path for short tags; nearly all tags are shorter.
const SHORT: usize = 512;

/// Events of a binary file.
pub struct BinaryEvents {
    records: Records,
    framing: Framing,
    /// Bytes of the integers before tags and data: the header kind of the library that wrote the file, 4 or 8.
    header: usize,
    limits: Limits,
    buffer: Vec<u8>,
    qe_syntax: Option<bool>,
    scanned: u64,
}

impl BinaryEvents {
    /// Starts at the first record.
    pub fn new(source: &Source, framing: Framing, limits: &Limits) -> Self {
        let mut records = Records::new(source.clone(), framing, limits);
        let long = records.ahead(SHORT).is_ok_and(|head| has_long_headers(head, framing));
        let header = if long { 8 } else { 4 };
        let buffer = Vec::new();
        Self { records, framing, header, limits: *limits, buffer, qe_syntax: None, scanned: 0 }
    }

    /// Bytes of the integers before tags and data.
    pub(crate) fn header_bytes(&self) -> usize {
        self.header
    }

    /// Continues at the record at `offset`.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.records.seek(offset);
    }

    pub(crate) fn scanned(&self) -> u64 {
        self.scanned + self.records.scanned()
    }

    /// The next event, or `None` at the end of the file.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item>> {
        let mut item = match self.short()? {
            Some(item) => item,
            None => match self.any()? {
                Some(item) => item,
                None => return Ok(None),
            },
        };
        match &item.event {
            Event::Tag(Control::Begin, tag) => {
                let begin = BeginTag::inspect(tag, self.qe_syntax);
                (item.kind, item.attributes) = (begin.kind, begin.attributes);
            }
            Event::Tag(Control::Empty, tag) => item.attributes = tag.attributes().count(),
            other => self.qe_syntax = declared_qe_syntax(other).or(self.qe_syntax),
        }
        Ok(Some(item))
    }

    fn any(&mut self) -> Result<Option<Item>> {
        let Some(record) = self.records.next()? else { return Ok(None) };
        let header = self.header(&record)?;
        if header == 0 {
            let from = self.header as u64;
            let extents = Extents::several(record.content.pieces(from, u64::MAX).collect())?;
            let data = Data { extents, literal: Vec::new() };
            return Ok(Some(Item::data(data, record.offset, record.end)));
        }
        let control = Control::from_code(header.rem_euclid(256) as i32);
        let sizes = record.content.len() == self.header as u64;
        let Some(control) = control.filter(|_| header > 0 && sizes) else {
            let message = format!(
                "expected a tag or data, found a record of {} bytes that begins with {header}",
                record.content.len()
            );
            return Err(
                Error::malformed("iotk-005", message).at(record.offset + self.framing.marker)
            );
        };
        self.tag(&record, header, control).map(Some)
    }

    /// Fast path: the next tag or data record if it is valid and entirely in the window.
    fn short(&mut self) -> Result<Option<Item>> {
        let (framing, offset, size) = (self.framing, self.records.position(), self.header);
        let marker = framing.marker as usize;
        let bytes = self.records.ahead(SHORT)?;
        let item = || {
            let first = framing.first(bytes)?;
            let header = integer(first, framing, size)?;
            if header == 0 {
                let from = framing.marker + size as u64;
                let (at, len) = (offset + from, (first.len() - size) as u64);
                let data = Data { extents: Extents::one(at, len), literal: Vec::new() };
                return Some(Item::data(data, offset, at + len + framing.marker));
            }
            let control = Control::from_code((header & 0xff) as i32);
            let control = control.filter(|_| header > 0 && first.len() == size)?;
            let len = usize::try_from(header >> 8).ok()?;
            let second = framing.first(bytes.get(2 * marker + size..)?)?;
            let (again, written) = (integer(second, framing, size)?, &second[size..]);
            let agrees = again == expected(header, control) && written.len() == len;
            let (indent, tag) = cut(written, control, 0).ok().filter(|_| agrees)?;
            let end = offset + (4 * marker + 2 * size + len) as u64;
            let event = Event::Tag(control, tag);
            Some(Item { offset, end, indent, event, kind: None, attributes: 0, warning: None })
        };
        let item = item();
        if let Some(item) = &item {
            // Data are skipped.
            let tag = matches!(item.event, Event::Tag(..));
            self.scanned += if tag { item.end - item.offset } else { 4 * framing.marker };
            self.records.seek(item.end);
        }
        Ok(item)
    }

    /// The header at the beginning of a record.
    fn header(&mut self, record: &Record) -> Result<i64> {
        self.records.beginning(record, self.header, &mut self.buffer)?;
        let at = record.offset + self.framing.marker;
        let mut wire = Wire::new(&self.buffer, at, self.framing.order, "iotk-005");
        let header = if self.header == 8 { wire.i64() } else { wire.i32().map(i64::from) };
        header.map_err(|e| e.hint("the file has Fortran records, but no IOTK tags"))
    }

    fn tag(&mut self, first: &Record, header: i64, control: Control) -> Result<Item> {
        let offset = first.offset;
        let Some(second) = self.records.next()? else {
            let message = "unexpected end of file between the two records of a tag";
            return Err(Error::truncated("iotk-003", message).at(first.end));
        };
        let len = self.limits.allow(second.content.len(), "a tag").map_err(|e| e.at(offset))?;
        let again = self.header(&second)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        self.records.beginning(&second, len, &mut buffer)?;
        let written = buffer.get(self.header..).unwrap_or_default();
        let at = second.offset + self.framing.marker + self.header as u64;

        // The library takes the length modulo 65536 and ignores the second header. Here the length
        // of the record is used.
        self.scanned += written.len() as u64;
        let declared = header / 256;
        let warning = if again != expected(header, control) {
            let message = format!(
                "the headers of the tag disagree: {header} in the first, {again} in the second"
            );
            Some(("iotk-031", message))
        } else if declared != written.len() as i64 {
            let message =
                format!("the tag headers declare {declared} bytes, the tag has {}", written.len());
            Some(("iotk-031", message))
        } else {
            None
        };
        let item = cut(written, control, at).map(|(indent, tag)| {
            let event = Event::Tag(control, tag);
            Item {
                offset,
                end: second.end,
                indent,
                event,
                kind: None,
                attributes: 0,
                warning: warning.map(Box::new),
            }
        });
        self.buffer = buffer;
        item
    }
}

/// The second header of a tag with this first one.
fn expected(header: i64, control: Control) -> i64 {
    i64::from(SECOND).saturating_add(header.saturating_sub(control as i64))
}

/// The header of `size` bytes at the beginning of `bytes`.
fn integer(bytes: &[u8], framing: Framing, size: usize) -> Option<i64> {
    if size == 4 {
        return framing.integer(bytes).map(i64::from);
    }
    let raw = *bytes.first_chunk()?;
    Some(match framing.order {
        ByteOrder::Little => i64::from_le_bytes(raw),
        ByteOrder::Big => i64::from_be_bytes(raw),
    })
}

/// Whether a file that begins with `head` has headers of 8 bytes: the first record is one and declares the
/// length of the second.
fn has_long_headers(head: &[u8], framing: Framing) -> bool {
    let Some(first) = framing.first(head).filter(|first| first.len() == 8) else { return false };
    let Some(header) = integer(first, framing, 8) else { return false };
    let control = Control::from_code((header & 0xff) as i32);
    let rest = head.get(8 + 2 * framing.marker as usize..).unwrap_or_default();
    let second = integer(rest.get(framing.marker as usize..).unwrap_or_default(), framing, 8);
    control.is_some_and(|control| second == Some(expected(header, control)) && header >> 8 > 0)
}

/// Extracts the tag from a record: from the first opening delimiter to the last closing one.
fn cut(written: &[u8], control: Control, at: u64) -> Result<(u32, Tag)> {
    let (open, close) = control.delimiters();
    let starts = |at: &usize, delimiter: &[u8]| {
        written[*at] == delimiter[0] && written[*at..].starts_with(delimiter)
    };
    let last = |delimiter: &[u8]| (0..written.len()).rev().find(|at| starts(at, delimiter));
    let bad = || {
        let shown = written[..written.len().min(60)].escape_ascii();
        let message = format!("expected a tag of type {control:?}, found \"{shown}\"");
        Error::malformed("iotk-006", message).at(at)
    };
    let from = (0..written.len()).find(|at| starts(at, open)).ok_or_else(bad)?;
    // The control code identifies an empty tag even if its slash is missing.
    let to = last(close).or_else(|| last(b">")).ok_or_else(bad)?;
    let text = written.get(from + open.len()..to).ok_or_else(bad)?;
    let named = matches!(control, Control::Begin | Control::End | Control::Empty);
    if named && text.first().is_none_or(|b| is_space(*b)) {
        return Err(bad());
    }
    let line = written[..from].iter().rposition(|b| *b == b'\n').map_or(0, |k| k + 1);
    let blank = written[line..from].iter().all(|b| *b == b' ');
    let indent = if blank { (from - line) as u32 } else { 0 };
    Ok((indent, Tag::new(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert_form::convert;
    use crate::scalar::Style;
    use crate::write::Target;

    #[test]
    fn every_tag_counts_as_scanned() {
        let limits = Limits::default();
        let text = Source::memory(format!("<R>{}</R>", "<a></a>".repeat(100)));
        let mut bytes = Vec::new();
        convert(&text, Target::default(), Style::Exact, &mut bytes, &limits).unwrap();
        let len = bytes.len() as u64;
        let source = Source::memory(bytes);
        let framing = Framing::detect(&source).unwrap().unwrap();
        let mut events = BinaryEvents::new(&source, framing, &limits);
        for pass in 1..=3 {
            events.seek(0);
            while events.next().unwrap().is_some() {}
            assert_eq!(events.scanned(), pass * len);
        }
    }
}
