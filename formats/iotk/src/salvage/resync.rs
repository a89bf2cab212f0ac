//! Reads the intact parts of a damaged file. After a damage, reading continues at the next complete
//! tag from which the tags nest up to an end tag that belongs to exactly one open element. Bytes for
//! which there is no such tag are lost.

use std::collections::HashSet;

use memchr::memchr;
use spile_core::{Error, ErrorKind, Limits, Result, Source};

use crate::event::text::{LONGEST_NAME, begins_tag};
use crate::event::{Event, Events, Form, Item};
use crate::index::{Builder, Index};
use crate::wire::Control;
use crate::wire::record::Window;

/// The search for a tag stops when the bytes examined exceed this multiple of the length of the
/// file, and [`SLACK`]. Malicious files have many overlapping candidates.
const PASSES: u64 = 16;
const SLACK: u64 = 1 << 20;

/// Bytes that are searched together.
const BLOCK: u64 = 32 << 10;

/// Bytes that cannot be read, and the elements to close in their place.
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Elements whose ends are lost, innermost first.
    pub(crate) close: Vec<usize>,
    /// The element that is lost entirely.
    pub(crate) torn: Option<usize>,
    /// The innermost element that continues after the gap.
    pub(crate) inside: Option<usize>,
}

/// The readable content of a damaged file.
pub(crate) struct Survey {
    pub(crate) index: Index,
    pub(crate) gaps: Vec<Gap>,
    /// Elements whose end tags are lost.
    pub(crate) closed: HashSet<usize>,
    /// The first error.
    pub(crate) error: Option<Error>,
}

/// Reads all tags that can be read.
pub(crate) fn survey(source: &Source, form: Form, limits: &Limits) -> Result<Survey> {
    let mut builder = Builder::new(limits);
    let mut events = Events::new(source, form, limits);
    let mut search = Search::new(source, form, limits);
    let mut gaps: Vec<Gap> = Vec::new();
    let mut closed = HashSet::new();
    let mut first = None;
    // Offsets after the last event and after the last tag.
    let (mut reached, mut tag_end) = (0, 0);
    loop {
        let (error, from, mismatch) = match events.next() {
            Ok(Some(item)) => {
                let (offset, end) = (item.offset, item.end);
                let data = matches!(item.event, Event::Data(_));
                match builder.add(item) {
                    Ok(()) => {
                        reached = reached.max(end);
                        tag_end = if data { tag_end } else { reached };
                        continue;
                    }
                    Err(error) => (error, offset, true),
                }
            }
            Ok(None) => match builder.unclosed(source.len()) {
                Some(error) => (error, source.len(), false),
                None => break,
            },
            Err(error) => (error, reached, false),
        };
        let known = matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated);
        if error.kind() == ErrorKind::Io {
            return Err(error);
        }
        let names: Vec<&[u8]> =
            builder.open.iter().map(|id| builder.index.elements()[*id].tag.name()).collect();
        let again = if known { search.find(from, &names)? } else { None };
        first.get_or_insert(error);

        let keep = again.as_ref().map_or(0, |tag| tag.level);
        let mut to = again.as_ref().map_or(source.len(), |tag| tag.offset);
        let mut close: Vec<usize> = builder.open.split_off(keep);
        close.reverse();
        // Text before a damaged tag is part of the gap; a complete record is not.
        let complete = from == source.len() || (form != Form::Text && !mismatch);
        let mut gap_from = if complete { reached } else { tag_end };
        // An element with incomplete data or mismatched names is lost.
        let past = gaps.last().map_or(0, |gap: &Gap| gap.to);
        let is_torn = |id: usize| {
            let element = &builder.index.elements()[id];
            let unsure = form == Form::Text || element.data.is_empty() || mismatch;
            element.kind.is_some() && element.offset >= past && unsure
        };
        let mut torn = None;
        if let Some(last) = close.first().copied().filter(|id| is_torn(*id)) {
            close.remove(0);
            torn = Some(last);
        } else if close.is_empty()
            && let Some(last) = builder.open.last().copied().filter(|id| is_torn(*id))
            && let Some(end) = again.as_ref().and_then(|tag| tag.end)
        {
            builder.open.pop();
            torn = Some(last);
            to = end;
        }
        if let Some(torn) = torn {
            gap_from = builder.index.elements()[torn].offset;
        }
        closed.extend(close.iter().copied());
        let inside = builder.open.last().copied();
        gaps.push(Gap { from: gap_from, to, close, torn, inside });
        if again.is_none() {
            break;
        }
        events.seek(to);
        (reached, tag_end) = (to, to);
    }
    Ok(Survey { index: builder.index, gaps, closed, error: first })
}

/// A tag at which reading can continue.
struct Resumption {
    offset: u64,
    /// How many of the open elements are still open there.
    level: usize,
    /// If the tag is the end tag of the innermost of them: the offset after it.
    end: Option<u64>,
}

/// Searches for tags at which reading can continue. It examines a number of bytes proportional to
/// the length of the file over all calls.
struct Search<'a> {
    source: &'a Source,
    form: Form,
    limits: &'a Limits,
    events: Events,
    window: Window,
}

impl<'a> Search<'a> {
    fn new(source: &'a Source, form: Form, limits: &'a Limits) -> Self {
        let events = Events::new(source, form, limits);
        Self { source, form, limits, events, window: Window::new(source.clone()) }
    }

    /// The first tag at or after `from` from which the tags nest up to an end tag that belongs to
    /// exactly one of the open elements.
    fn find(&mut self, from: u64, open: &[&[u8]]) -> Result<Option<Resumption>> {
        let mut at = from;
        while let Some(offset) = self.next_tag(at)? {
            self.events.seek(offset);
            match open_level(&mut self.events, open, self.limits) {
                Ok((level, end)) => return Ok(Some(Resumption { offset, level, end })),
                Err(stuck) => at = stuck.max(offset + 1),
            }
        }
        Ok(None)
    }

    /// Offset of the next complete tag at or after `from`.
    fn next_tag(&mut self, from: u64) -> Result<Option<u64>> {
        let budget = self.source.len().saturating_mul(PASSES).saturating_add(SLACK);
        let mut at = from;
        while at < self.source.len() && self.events.scanned() <= budget {
            let bytes = self.window.get(at, BLOCK as usize)?;
            let (found, size) = match self.form {
                Form::Text => (memchr(b'<', bytes), 1),
                // The record of a header.
                Form::Binary(framing) => {
                    let own = self.events.header_bytes();
                    let size = 2 * framing.marker as usize + own;
                    let header = |bytes: &[u8]| {
                        framing.first(bytes).is_some_and(|record| record.len() == own)
                    };
                    (bytes.windows(size).position(header), size)
                }
            };
            let Some(found) = found else {
                at += (bytes.len() + 1).saturating_sub(size).max(1) as u64;
                continue;
            };
            at += found as u64;
            if self.form != Form::Text || begins_tag(self.window.get(at + 1, LONGEST_NAME)?) {
                self.events.seek(at);
                if matches!(self.events.next(), Ok(Some(item)) if item.offset == at && is_tag(&item))
                {
                    return Ok(Some(at));
                }
            }
            at += 1;
        }
        Ok(None)
    }
}

/// Reads events up to an end tag without its begin tag. Returns how many of the `open` elements are
/// open before it, and its end offset if it is the first event. The error is the offset up to which
/// there is no such end tag.
fn open_level(
    events: &mut Events,
    open: &[&[u8]],
    limits: &Limits,
) -> std::result::Result<(usize, Option<u64>), u64> {
    let mut inner: Vec<Vec<u8>> = Vec::new();
    let mut reached = 0;
    let mut first = true;
    loop {
        let item = match events.next() {
            Ok(Some(item)) => item,
            Ok(None) if open.is_empty() && inner.is_empty() => return Ok((0, None)),
            Ok(None) => return Err(u64::MAX),
            Err(_) => return Err(reached),
        };
        match item.event {
            Event::Tag(Control::Begin, _) if inner.len() as u64 >= u64::from(limits.depth) => {
                return Err(item.end);
            }
            Event::Tag(Control::Begin, tag) => inner.push(tag.name().to_vec()),
            Event::Tag(Control::End, tag) => match inner.pop() {
                Some(name) if name == tag.name() => {}
                Some(_) => return Err(item.offset),
                None => {
                    let mut same = (0..open.len()).filter(|k| open[*k] == tag.name());
                    return match (same.next(), same.next()) {
                        (Some(k), None) => Ok((k + 1, first.then_some(item.end))),
                        _ => Err(item.end),
                    };
                }
            },
            _ => {}
        }
        first = false;
        reached = reached.max(item.end);
    }
}

/// True for a tag without a warning.
fn is_tag(item: &Item) -> bool {
    item.warning.is_none() && !matches!(item.event, Event::Data(_))
}
