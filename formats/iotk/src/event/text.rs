//! Events from XML, by the rules of the library: several roots, `--` in comments and a bare `<` in
//! formatted data are accepted. Entities are not expanded recursively.

use std::collections::VecDeque;
use std::ops::Range;

use memchr::{memchr, memchr_iter};
use spile_core::{Error, Extent, Extents, Limits, Result, Source};

use super::{BeginTag, Data, Event, Item, declared_qe_syntax};
use crate::wire::record::Window;
use crate::wire::{Control, Tag, is_space};

/// Bytes of a name that are examined to distinguish a tag from other text.
pub(crate) const LONGEST_NAME: usize = 512;

/// U+FEFF, which some editors put at the beginning of a text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Tags without an end that are searched up to the end of the file. Further ones end at the first
/// `>`, so that the total time stays linear.
const UNTERMINATED: u32 = 100;

/// Delimiters remembered as absent from the rest of the file.
const ABSENT: usize = 8;

/// Events of a text file.
pub struct TextEvents {
    window: Window,
    at: u64,
    limits: Limits,
    /// Set if the previous tag is a begin tag.
    open: Option<Open>,
    qe_syntax: Option<bool>,
    /// Events already parsed.
    ready: VecDeque<Item>,
    /// Delimiters that do not occur at or after an offset. Salvage searches for the same delimiter
    /// from many offsets.
    absent: Vec<(Vec<u8>, u64)>,
    /// Begin tags and declarations that reached the end of the file.
    unterminated: u32,
    scanned: u64,
}

struct Open {
    /// The tag has a type, so blanks are data, too.
    typed: bool,
    /// The end tag, which alone terminates formatted data.
    closing: Option<Vec<u8>>,
}

impl TextEvents {
    /// Starts at the first byte.
    pub fn new(source: &Source, limits: &Limits) -> Self {
        Self {
            window: Window::new(source.clone()),
            at: 0,
            limits: *limits,
            open: None,
            qe_syntax: None,
            ready: VecDeque::new(),
            absent: Vec::new(),
            unterminated: 0,
            scanned: 0,
        }
    }

    /// Continues at the tag at `offset`.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.ready.clear();
        (self.at, self.open) = (offset, None);
    }

    pub(crate) fn scanned(&self) -> u64 {
        self.scanned
    }

    /// The next event, or `None` at the end of the file.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item>> {
        match self.ready.pop_front() {
            Some(item) => Ok(Some(item)),
            None => self.parse_next(),
        }
    }

    /// Parses up to and including the next tag and returns the first event found. Comments inside
    /// data are returned after the data.
    fn parse_next(&mut self) -> Result<Option<Item>> {
        if self.at == 0 && self.window.get(0, BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
            self.at = BYTE_ORDER_MARK.len() as u64;
        }
        let start = self.at;
        let mut parts: Vec<Extent> = Vec::new();
        let mut blank = true;
        let mut literal: Vec<Range<u64>> = Vec::new();
        let mut text_len = 0;
        let mut from = start;
        let mut held = 0;
        loop {
            let tag_start = self.markup(from)?;
            let to = tag_start.unwrap_or(self.window.len());
            blank &= self.is_blank(from, to)?;
            text_len += to - from;
            push(&mut parts, from, to);
            let data = |mut parts: Vec<Extent>, literal: Vec<Range<u64>>| {
                if parts.is_empty() {
                    parts.push(Extent { offset: to, len: 0 });
                }
                let extents = Extents::several(parts)?;
                Ok(Some(Item::data(Data { extents, literal }, start, to)))
            };
            let Some(tag_start) = tag_start else {
                self.at = to;
                return if blank { Ok(self.ready.pop_front()) } else { data(parts, literal) };
            };
            let mut head = [0; 9];
            let found = self.window.get(tag_start, 9)?;
            head[..found.len()].copy_from_slice(found);
            if head == *b"<![CDATA[" {
                let end = self
                    .find(tag_start + 9, b"]]>")?
                    .ok_or_else(|| unclosed(tag_start, "CDATA"))?;
                push(&mut parts, tag_start + 9, end);
                let start = text_len;
                text_len += end - (tag_start + 9);
                held += 2 * size_of::<Range<u64>>() as u64;
                self.limits.allow(held, "CDATA sections").map_err(|e| e.at(tag_start))?;
                literal.push(start..text_len);
                (blank, from) = (false, end + 3);
            } else if head.starts_with(b"<!--") && (!blank || self.is_typed()) {
                let (item, _) = self.tag(tag_start)?;
                from = item.end;
                // All comments are kept until the end of the data.
                held += 4 * size_of::<Item>() as u64 + (item.end - item.offset);
                self.limits.allow(held, "comments inside data").map_err(|e| e.at(tag_start))?;
                self.ready.push_back(item);
            } else if head.starts_with(b"<!") && !head.starts_with(b"<!--") {
                from = self.declaration(tag_start)?;
            } else {
                let typed = self.is_typed();
                let (item, formatted) = self.tag(tag_start)?;
                self.at = item.end;
                self.open = match &item.event {
                    Event::Tag(Control::Begin, tag) => Some(Open {
                        typed: item.kind.is_some(),
                        closing: formatted.then(|| [b"</", tag.name()].concat()),
                    }),
                    _ => None,
                };
                let closes = matches!(item.event, Event::Tag(Control::End, _));
                if !blank || (closes && typed) {
                    self.ready.push_back(item);
                    return data(parts, literal);
                }
                if self.ready.is_empty() {
                    return Ok(Some(item));
                }
                self.ready.push_back(item);
                return Ok(self.ready.pop_front());
            }
        }
    }

    fn is_typed(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.typed)
    }

    /// Offset of the next `<` that begins a tag.
    fn markup(&mut self, mut from: u64) -> Result<Option<u64>> {
        if let Some(closing) = self.open.as_ref().and_then(|open| open.closing.clone()) {
            while let Some(at) = self.find(from, &closing)? {
                let next = self.window.get(at + closing.len() as u64, 1)?.first();
                if next.is_none_or(|b| *b == b'>' || is_space(*b)) {
                    return Ok(Some(at));
                }
                from = at + 1;
            }
            return Ok(None);
        }
        while let Some(at) = self.find(from, b"<")? {
            let tag = begins_tag(self.window.get(at + 1, LONGEST_NAME)?);
            if tag {
                return Ok(Some(at));
            }
            from = at + 1;
        }
        Ok(None)
    }

    /// The tag whose `<` is at `at`, and whether its data are formatted.
    fn tag(&mut self, at: u64) -> Result<(Item, bool)> {
        let head = self.window.get(at, 4)?;
        let control = match head {
            b"<!--" => Control::Comment,
            [b'<', b'?', ..] => Control::Instruction,
            [b'<', b'/', ..] => Control::End,
            _ => Control::Begin,
        };
        let (open, close) = control.delimiters();
        let from = at + open.len() as u64;
        let missing = || unclosed(at, "tag");
        let to = match control {
            Control::Begin => self.end_of_begin(from)?,
            _ => self.find(from, close)?,
        };
        let to = to.ok_or_else(missing)?;
        let end = to + close.len() as u64;
        let text = self.window.part(from, to, &self.limits).map_err(|e| e.at(at))?;
        let (text, control) = match (control, text.strip_suffix(b"/")) {
            (Control::Begin, Some(text)) => (text, Control::Empty),
            _ => (&text[..], control),
        };
        let tag = Tag::new(join_lines(text));
        let (mut warning, mut kind, mut formatted, mut attributes) = (None, None, false, 0);
        if matches!(control, Control::Begin | Control::Empty) {
            let begin = BeginTag::inspect(&tag, self.qe_syntax);
            attributes = begin.attributes;
            if !begin.well_formed
                && let Some(bad) = tag.attributes().find(|a| !a.well_formed)
            {
                let name = bad.name.escape_ascii();
                let message = format!("the value of attribute \"{name}\" is not quoted");
                warning = Some(Box::new(("iotk-032", message)));
            }
            if control == Control::Begin {
                (kind, formatted) = (begin.kind, begin.formatted);
            }
        }
        let named = matches!(control, Control::Begin | Control::End | Control::Empty);
        if named && tag.name().is_empty() {
            return Err(Error::malformed("iotk-006", "a tag without a name").at(at));
        }
        let event = Event::Tag(control, tag);
        self.qe_syntax = declared_qe_syntax(&event).or(self.qe_syntax);
        let indent = self.indent(at)?;
        Ok((Item { offset: at, end, indent, event, kind, attributes, warning }, formatted))
    }

    /// Offset of the `>` that ends a begin tag: the first one outside of quoted values. If there is
    /// none, quotes are ignored.
    fn end_of_begin(&mut self, from: u64) -> Result<Option<u64>> {
        if self.unterminated >= UNTERMINATED || self.is_absent(from, b">") {
            return self.find(from, b">");
        }
        let end = self.end_outside_quotes(from)?;
        self.scanned += end.unwrap_or(self.window.len()).saturating_sub(from);
        if end.is_none() {
            self.unterminated += 1;
            return self.find(from, b">");
        }
        Ok(end)
    }

    fn end_outside_quotes(&mut self, from: u64) -> Result<Option<u64>> {
        let mut at = from;
        let mut after_equals = false;
        loop {
            let rest = self.window.rest(at, 1)?;
            if rest.is_empty() {
                return Ok(None);
            }
            let mut open = None;
            let mut k = 0;
            while k < rest.len() {
                match rest[k] {
                    b'>' => return Ok(Some(at + k as u64)),
                    quote @ (b'"' | b'\'') if after_equals => {
                        let Some(len) = memchr(quote, &rest[k + 1..]) else {
                            open = Some((k as u64, quote));
                            break;
                        };
                        (k, after_equals) = (k + len + 2, false);
                        continue;
                    }
                    byte => after_equals = byte == b'=' || (after_equals && is_space(byte)),
                }
                k += 1;
            }
            match open {
                None => at += rest.len() as u64,
                // The closing quote is beyond the window.
                Some((k, quote)) => match self.find(at + k + 1, &[quote])? {
                    Some(end) => (at, after_equals) = (end + 1, false),
                    None => return Ok(None),
                },
            }
        }
    }

    /// Offset after a declaration such as `<!DOCTYPE ... [ ... ]>`, which is skipped.
    fn declaration(&mut self, at: u64) -> Result<u64> {
        let mut from = at;
        let mut depth = 0_u32;
        if self.unterminated >= UNTERMINATED || self.is_absent(at, b">") {
            return Err(unclosed(at, "declaration"));
        }
        loop {
            let rest = self.window.rest(from, 1)?;
            if rest.is_empty() {
                self.unterminated += 1;
                self.scanned += from - at;
                return Err(unclosed(at, "declaration"));
            }
            let len = rest.len() as u64;
            for (k, byte) in rest.iter().enumerate() {
                match byte {
                    b'[' => depth += 1,
                    b']' => depth = depth.saturating_sub(1),
                    b'>' if depth == 0 => return Ok(from + k as u64 + 1),
                    _ => {}
                }
            }
            from += len;
        }
    }

    /// Number of blanks between the beginning of the line and the tag at `at`; 0 if other bytes are
    /// in between.
    fn indent(&mut self, at: u64) -> Result<u32> {
        let from = at.saturating_sub(64);
        let before = self.window.part(from, at, &self.limits)?;
        let blanks = before.iter().rev().take_while(|b| **b == b' ').count();
        let line = before.len() == blanks || before[before.len() - blanks - 1] == b'\n';
        Ok(if line { blanks as u32 } else { 0 })
    }

    fn is_blank(&mut self, mut from: u64, to: u64) -> Result<bool> {
        while from < to {
            let rest = self.window.rest(from, 1)?;
            let part = &rest[..rest.len().min((to - from) as usize)];
            if part.is_empty() || part.iter().any(|b| !is_space(*b)) {
                return Ok(part.is_empty());
            }
            from += part.len() as u64;
        }
        Ok(true)
    }

    fn is_absent(&self, from: u64, needle: &[u8]) -> bool {
        self.absent.iter().any(|(absent, at)| from >= *at && absent == needle)
    }

    /// Offset of the first occurrence of `needle` at or after `from`.
    fn find(&mut self, from: u64, needle: &[u8]) -> Result<Option<u64>> {
        if self.is_absent(from, needle) {
            return Ok(None);
        }
        let mut at = from;
        loop {
            let rest = self.window.rest(at, needle.len())?;
            if rest.len() < needle.len() {
                break;
            }
            let found = match needle {
                [byte] => memchr(*byte, rest),
                _ => memchr_iter(needle[0], rest).find(|at| rest[*at..].starts_with(needle)),
            };
            if let Some(found) = found {
                at += found as u64;
                self.scanned += at - from;
                return Ok(Some(at));
            }
            // The needle may begin in the last bytes of the window.
            at += (rest.len() - needle.len() + 1) as u64;
        }
        self.scanned += at - from;
        self.absent.retain(|(absent, _)| absent != needle);
        self.absent.truncate(ABSENT - 1);
        self.absent.insert(0, (needle.to_vec(), from));
        Ok(None)
    }
}

/// True if the bytes after a `<` are those of a tag: `!`, `?`, or an optional slash and a valid
/// name. Free text has `a < b` and `<someone@somewhere>`.
pub(crate) fn begins_tag(head: &[u8]) -> bool {
    // `</>` is reported as a tag without a name.
    if matches!(head, [b'!' | b'?', ..] | [b'/', b'>', ..]) {
        return true;
    }
    let first = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b':') || b >= 0x80;
    let other = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'-');
    let name = head.strip_prefix(b"/").unwrap_or(head);
    let end = name.iter().find(|b| !first(**b) && !other(**b));
    name.first().is_some_and(|b| first(*b))
        && end.is_none_or(|b| is_space(*b) || matches!(b, b'>' | b'/'))
}

fn push(parts: &mut Vec<Extent>, from: u64, to: u64) {
    if from < to {
        parts.push(Extent { offset: from, len: to - from });
    }
}

fn unclosed(at: u64, what: &str) -> Error {
    Error::truncated("iotk-007", format!("unexpected end of file inside a {what}")).at(at)
}

/// Joins the lines of a tag. The library breaks lines at a blank, so a line end becomes a blank. An
/// empty line is a line end that is part of the tag.
fn join_lines(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\n', rest) {
        let (line, next) = (&rest[..at], &rest[at + 1..]);
        if let Some(next) = next.strip_prefix(b"\n") {
            out.extend_from_slice(&rest[..=at]);
            rest = next;
        } else {
            out.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            out.push(b' ');
            rest = next;
        }
    }
    out.extend_from_slice(rest);
    out
}
