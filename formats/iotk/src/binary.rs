//! Events from records (seed section 2): a tag is two records, data is one.

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::Wire;

use crate::event::{Data, Event, Item, Look, says_qe_syntax};
use crate::record::{Framing, Parts, Record, Records};
use crate::wire::{Control, SECOND, Tag, is_space};

/// Bytes in which a tag is looked for without ado; nearly all are shorter.
const SHORT: usize = 512;

/// Reads a binary file from its beginning.
pub struct BinaryEvents {
    records: Records,
    framing: Framing,
    limits: Limits,
    buffer: Vec<u8>,
    qe_syntax: Option<bool>,
}

impl BinaryEvents {
    /// Starts at the first record.
    pub fn new(source: &Source, framing: Framing, limits: &Limits) -> Self {
        let records = Records::new(source.clone(), framing, limits);
        Self { records, framing, limits: *limits, buffer: Vec::new(), qe_syntax: None }
    }

    /// Where the next event begins.
    pub fn position(&self) -> u64 {
        self.records.position()
    }

    /// Goes on at another record.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.records.seek(offset);
    }

    /// The next event, or nothing at the end of the file.
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
            Event::Begin(tag) => item.kind = Look::at(tag, self.qe_syntax).kind,
            other => self.qe_syntax = says_qe_syntax(other).or(self.qe_syntax),
        }
        Ok(Some(item))
    }

    fn any(&mut self) -> Result<Option<Item>> {
        let Some(record) = self.records.next()? else { return Ok(None) };
        let header = self.header(&record)?;
        if header == 0 {
            let data = Data { parts: record.parts.skip(4), literal: false };
            return Ok(Some(Item::data(data, record.offset, record.end)));
        }
        let control = Control::from_code(header.rem_euclid(256));
        let Some(control) = control.filter(|_| header > 0 && record.parts.len() == 4) else {
            let message = format!(
                "no tag and no data: a record of {} bytes that begins with \
                 {header}",
                record.parts.len()
            );
            return Err(Error::malformed("iotk-005", message).at(record.parts.offset()));
        };
        self.tag(&record, header, control).map(Some)
    }

    /// The tag or the data that begin here, if nothing is odd about them and their records are in
    /// memory whole: almost all are like that, and files may have very many of them.
    fn short(&mut self) -> Result<Option<Item>> {
        let (framing, offset) = (self.framing, self.records.position());
        let marker = framing.marker as usize;
        let bytes = self.records.ahead(SHORT)?;
        let item = || {
            let first = framing.first(bytes)?;
            let header = framing.integer(first)?;
            if header == 0 {
                let (at, len) = (offset + framing.marker + 4, first.len() as u64 - 4);
                let data = Data { parts: Parts::one(at, len), literal: false };
                return Some(Item::data(data, offset, at + len + framing.marker));
            }
            let control = Control::from_code(header & 0xff);
            let control = control.filter(|_| header > 0 && first.len() == 4)?;
            let len = (header >> 8) as usize;
            let second = framing.first(bytes.get(2 * marker + 4..)?)?;
            let (again, written) = (framing.integer(second)?, &second[4..]);
            let agrees = again == SECOND + (header - control as i32) && written.len() == len;
            let (indent, tag) = cut(written, control, 0).ok().filter(|_| agrees)?;
            let end = offset + (4 * marker + 8 + len) as u64;
            let event = event(control, tag);
            Some(Item { offset, end, indent, event, kind: None, remark: None })
        };
        let item = item();
        if let Some(item) = &item {
            self.records.seek(item.end);
        }
        Ok(item)
    }

    /// The first four bytes of a record.
    fn header(&mut self, record: &Record) -> Result<i32> {
        self.records.beginning(record, 4, &mut self.buffer)?;
        let at = record.parts.offset();
        let mut wire = Wire::new(&self.buffer, at, self.framing.order, "iotk-005");
        wire.i32().map_err(|e| e.hint("the file has Fortran records, but not those of IOTK"))
    }

    fn tag(&mut self, first: &Record, header: i32, control: Control) -> Result<Item> {
        let offset = first.offset;
        let Some(second) = self.records.next()? else {
            let message = "the file ends between the two records of a tag";
            return Err(Error::truncated("iotk-003", message).at(first.end));
        };
        let len = self.limits.allow(second.parts.len(), "a tag").map_err(|e| e.at(offset))?;
        let again = self.header(&second)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        self.records.beginning(&second, len, &mut buffer)?;
        let written = &buffer[4..];
        let at = second.parts.offset() + 4;

        // The library takes the length modulo 65536 and does not look at the second header. Ours
        // believes the record, which has the whole tag whatever the headers say.
        let told = i64::from(header / 256);
        let remark = if again != SECOND + (header - control as i32) {
            let message = format!("the second header of the tag is {again}, the first {header}");
            Some(("iotk-031", message))
        } else if told != written.len() as i64 {
            let message = format!("the headers say {told} bytes, the tag has {}", written.len());
            Some(("iotk-031", message))
        } else {
            None
        };
        let item = cut(written, control, at).map(|(indent, tag)| {
            let event = event(control, tag);
            Item {
                offset,
                end: second.end,
                indent,
                event,
                kind: None,
                remark: remark.map(Box::new),
            }
        });
        self.buffer = buffer;
        item
    }
}

fn event(control: Control, tag: Tag) -> Event {
    match control {
        Control::Begin => Event::Begin(tag),
        Control::End => Event::End(tag),
        Control::Empty => Event::Empty(tag),
        Control::Comment => Event::Comment(tag.into_text()),
        Control::Instruction => Event::Instruction(tag),
    }
}

/// The tag in what was written for it: from the first opening mark to the last closing one.
fn cut(written: &[u8], control: Control, at: u64) -> Result<(u32, Tag)> {
    let (open, close) = control.delimiters();
    // Most bytes are none of a mark, and the first says so.
    let starts =
        |at: &usize, mark: &[u8]| written[*at] == mark[0] && written[*at..].starts_with(mark);
    let last = |mark: &[u8]| (0..written.len()).rev().find(|at| starts(at, mark));
    let bad = || {
        let shown = written[..written.len().min(60)].escape_ascii();
        let message = format!("no {control:?} tag in \"{shown}\"");
        Error::malformed("iotk-006", message).at(at)
    };
    let from = (0..written.len()).find(|at| starts(at, open)).ok_or_else(bad)?;
    // An empty tag whose stroke is missing is still clear from its control code.
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
