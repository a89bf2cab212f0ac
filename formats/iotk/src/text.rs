//! Events from XML, by the library's rules and not those of a strict parser: several roots, `--`
//! in comments and a bare `<` in formatted data are fine. No entity is ever expanded into another.

use std::collections::VecDeque;

use memchr::{memchr, memchr_iter};
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::event::{Data, Event, Item, Look, says_qe_syntax};
use crate::record::{Parts, Window};
use crate::wire::{Control, Tag, is_space};

/// Bytes of a name that are looked at to tell a tag from other text.
const LONGEST_NAME: usize = 512;

/// What some editors put before a text: U+FEFF.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a text file from its beginning.
pub struct TextEvents {
    window: Window,
    at: u64,
    limits: Limits,
    /// The begin tag that was last, until another tag comes.
    open: Option<Open>,
    qe_syntax: Option<bool>,
    /// Events that were found together.
    ready: VecDeque<Item>,
}

struct Open {
    /// Its data have a type: even blanks are data then.
    announced: bool,
    /// Behind formatted data nothing but this ends them.
    closing: Option<Vec<u8>>,
}

impl TextEvents {
    /// Starts at the first byte.
    pub fn new(source: &Source, limits: &Limits) -> Self {
        let window = Window::new(source.clone());
        Self { window, at: 0, limits: *limits, open: None, qe_syntax: None, ready: VecDeque::new() }
    }

    /// Where the next event begins, or the blanks before it.
    pub fn position(&self) -> u64 {
        self.ready.front().map_or(self.at, |item| item.offset)
    }

    /// Goes on at another tag.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.ready.clear();
        (self.at, self.open) = (offset, None);
    }

    /// The next event, or nothing at the end of the file.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item>> {
        match self.ready.pop_front() {
            Some(item) => Ok(Some(item)),
            None => self.read_on(),
        }
    }

    /// Reads up to and including the next tag, and gives the first of what it found. Comments
    /// inside data are moved behind them.
    fn read_on(&mut self) -> Result<Option<Item>> {
        if self.at == 0 && self.window.get(0, MARK.len())? == MARK {
            self.at = MARK.len() as u64;
        }
        let start = self.at;
        let mut parts: Option<Parts> = None;
        let mut blank = true;
        let mut literal = false;
        let mut from = start;
        let mut held = 0;
        loop {
            let mark = self.markup(from)?;
            let to = mark.unwrap_or(self.window.len());
            blank &= self.is_blank(from, to)?;
            push(&mut parts, from, to);
            let data = |parts: Option<Parts>| {
                let parts = parts.unwrap_or_else(|| Parts::one(to, 0));
                Some(Item::data(Data { parts, literal }, start, to))
            };
            let Some(mark) = mark else {
                self.at = to;
                return Ok(if blank { self.ready.pop_front() } else { data(parts) });
            };
            let mut head = [0; 9];
            let there = self.window.get(mark, 9)?;
            head[..there.len()].copy_from_slice(there);
            if head == *b"<![CDATA[" {
                let end = self.find(mark + 9, b"]]>")?.ok_or_else(|| unclosed(mark, "CDATA"))?;
                push(&mut parts, mark + 9, end);
                (literal, blank, from) = (true, false, end + 3);
            } else if head.starts_with(b"<!--") && (!blank || self.announced()) {
                let (item, _) = self.tag(mark)?;
                from = item.end;
                // They are all held until the data end.
                held += 2 * size_of::<Item>() as u64 + (item.end - item.offset);
                self.limits.allow(held, "comments inside data").map_err(|e| e.at(mark))?;
                self.ready.push_back(item);
            } else if head.starts_with(b"<!") && !head.starts_with(b"<!--") {
                from = self.declaration(mark)?;
            } else {
                let announced = self.announced();
                let (item, formatted) = self.tag(mark)?;
                self.at = item.end;
                self.open = match &item.event {
                    Event::Begin(tag) => Some(Open {
                        announced: item.kind.is_some(),
                        closing: formatted.then(|| [b"</", tag.name()].concat()),
                    }),
                    _ => None,
                };
                let closes = matches!(item.event, Event::End(_));
                if !blank || (closes && announced) {
                    self.ready.push_back(item);
                    return Ok(data(parts));
                }
                if self.ready.is_empty() {
                    return Ok(Some(item));
                }
                self.ready.push_back(item);
                return Ok(self.ready.pop_front());
            }
        }
    }

    fn announced(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.announced)
    }

    /// The next `<` that begins a tag.
    fn markup(&mut self, mut from: u64) -> Result<Option<u64>> {
        if let Some(closing) = self.open.as_ref().and_then(|open| open.closing.clone()) {
            while let Some(at) = self.find(from, &closing)? {
                let behind = self.window.get(at + closing.len() as u64, 1)?.first();
                if behind.is_none_or(|b| *b == b'>' || is_space(*b)) {
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

    /// The tag at `at`, which is that of a `<`, and whether its data are formatted.
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
        let (mut remark, mut kind, mut formatted) = (None, None, false);
        let event = match control {
            Control::Comment => Event::Comment(join_lines(&text)),
            Control::Instruction => Event::Instruction(Tag::new(join_lines(&text))),
            Control::End => Event::End(Tag::new(join_lines(&text))),
            _ => {
                let (text, empty) = match text.strip_suffix(b"/") {
                    Some(text) => (text, true),
                    None => (&text[..], false),
                };
                let tag = Tag::new(join_lines(text));
                let look = Look::at(&tag, self.qe_syntax);
                if !look.sound
                    && let Some(bad) = tag.attributes().find(|a| !a.sound)
                {
                    let message =
                        format!("attribute \"{}\" is not quoted", bad.name.escape_ascii());
                    remark = Some(Box::new(("iotk-032", message)));
                }
                if empty {
                    Event::Empty(tag)
                } else {
                    (kind, formatted) = (look.kind, look.formatted);
                    Event::Begin(tag)
                }
            }
        };
        if let Event::Begin(tag) | Event::End(tag) | Event::Empty(tag) = &event
            && tag.name().is_empty()
        {
            return Err(Error::malformed("iotk-006", "a tag without a name").at(at));
        }
        self.qe_syntax = says_qe_syntax(&event).or(self.qe_syntax);
        let indent = self.indent(at)?;
        Ok((Item { offset: at, end, indent, event, kind, remark }, formatted))
    }

    /// The `>` that ends a begin tag: one inside a quoted value does not.
    fn end_of_begin(&mut self, from: u64) -> Result<Option<u64>> {
        let mut at = from;
        let mut after_equals = false;
        loop {
            let rest = self.window.rest(at, 1)?;
            // No closing quote anywhere: the first `>` will have been meant.
            if rest.is_empty() {
                return self.find(from, b">");
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
                // It ends behind what is in memory, or not at all.
                Some((k, quote)) => match self.find(at + k + 1, &[quote])? {
                    Some(end) => (at, after_equals) = (end + 1, false),
                    None => return self.find(from, b">"),
                },
            }
        }
    }

    /// Behind a declaration such as `<!DOCTYPE ... [ ... ]>`, which is passed over.
    fn declaration(&mut self, at: u64) -> Result<u64> {
        let mut from = at;
        let mut depth = 0_u32;
        loop {
            let rest = self.window.rest(from, 1)?;
            if rest.is_empty() {
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

    /// Blanks between the beginning of a line and the tag at `at`.
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

    /// The first place of `wanted` from `from` on.
    fn find(&mut self, mut from: u64, wanted: &[u8]) -> Result<Option<u64>> {
        loop {
            let rest = self.window.rest(from, wanted.len())?;
            if rest.len() < wanted.len() {
                return Ok(None);
            }
            // The next one is seldom far.
            let found = match wanted {
                [byte] => memchr(*byte, rest),
                _ => memchr_iter(wanted[0], rest).find(|at| rest[*at..].starts_with(wanted)),
            };
            if let Some(at) = found {
                return Ok(Some(from + at as u64));
            }
            // What is looked for may begin in the last bytes of the window.
            from += (rest.len() - wanted.len() + 1) as u64;
        }
    }
}

/// What follows a `<` is a tag: a mark, or a name with nothing strange in it. Free text has things
/// like `a < b` and `<someone@somewhere>`.
pub(crate) fn begins_tag(head: &[u8]) -> bool {
    // Whoever reads `</>` finds that it has no name.
    if matches!(head, [b'!' | b'?', ..] | [b'/', b'>', ..]) {
        return true;
    }
    let name = head.strip_prefix(b"/").unwrap_or(head);
    let end = name.iter().find(|b| NAME[usize::from(**b)] == NameByte::None);
    name.first().is_some_and(|b| NAME[usize::from(*b)] == NameByte::First)
        && end.is_none_or(|b| is_space(*b) || matches!(b, b'>' | b'/'))
}

/// What a byte may be in a name. A table, because this is asked of every tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameByte {
    None,
    First,
    Other,
}

static NAME: [NameByte; 256] = {
    let mut table = [NameByte::None; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        if c.is_ascii_alphabetic() || matches!(c, b'_' | b':') || c >= 0x80 {
            table[byte] = NameByte::First;
        } else if c.is_ascii_digit() || matches!(c, b'.' | b'-') {
            table[byte] = NameByte::Other;
        }
        byte += 1;
    }
    table
};

fn push(parts: &mut Option<Parts>, from: u64, to: u64) {
    if from < to {
        match parts {
            Some(parts) => parts.push(from, to - from),
            None => *parts = Some(Parts::one(from, to - from)),
        }
    }
}

fn unclosed(at: u64, what: &str) -> Error {
    Error::truncated("iotk-007", format!("the {what} that begins here does not end")).at(at)
}

/// A tag that was broken into lines, in one: the library breaks at a blank, so a line end stands
/// for one. An empty line stands for a line end that is part of the tag.
fn join_lines(text: &[u8]) -> Vec<u8> {
    if memchr(b'\n', text).is_none() {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match text[at..] {
            [b'\n', b'\n', ..] => {
                out.push(b'\n');
                at += 2;
            }
            [b'\r', b'\n', b'\n', ..] => {
                out.extend_from_slice(b"\r\n");
                at += 3;
            }
            [b'\r', b'\n', ..] => {
                out.push(b' ');
                at += 2;
            }
            [b'\n', ..] => {
                out.push(b' ');
                at += 1;
            }
            [byte, ..] => {
                out.push(byte);
                at += 1;
            }
            [] => break,
        }
    }
    out
}
