//! A damaged file as far as it can be read: behind a damage it goes on where a whole tag stands
//! again and the next end tag that is one too many says which elements are still open. Where
//! nothing says that, the bytes are lost; nothing is guessed.

use std::collections::HashSet;

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::event::{Event, Events, Form, Item};
use crate::index::{Builder, Index};
use crate::record::Window;

/// Places in a text that look like tags and are none, before the search is given up: each may cost
/// a look at all that follows.
const ATTEMPTS: u32 = 1_000;

/// Bytes of a binary file that are searched together.
const BLOCK: u64 = 32 << 10;

/// Bytes that cannot be read, and what must be closed in their place.
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Elements whose ends are lost, innermost first.
    pub(crate) close: Vec<usize>,
    /// The element that is lost as a whole.
    pub(crate) torn: Option<usize>,
    /// The innermost element that goes on behind it.
    pub(crate) inside: Option<usize>,
}

/// What a damaged file has.
pub(crate) struct Survey {
    pub(crate) index: Index,
    pub(crate) gaps: Vec<Gap>,
    /// Elements that were closed although their ends are lost.
    pub(crate) closed: HashSet<usize>,
    /// The first damage.
    pub(crate) error: Option<Error>,
}

/// Reads tags wherever they can be read.
pub(crate) fn survey(source: &Source, form: Form, limits: &Limits) -> Result<Survey> {
    let mut builder = Builder::new(limits);
    let mut events = Events::new(source, form, limits);
    let mut gaps: Vec<Gap> = Vec::new();
    let mut closed = HashSet::new();
    let mut first = None;
    // Behind the last event, and behind the last tag.
    let (mut reached, mut tag_end) = (0, 0);
    loop {
        let (error, from, mismatch) = match events.next() {
            Ok(Some(item)) => {
                let (offset, end) = (item.offset, item.end);
                let data = matches!(item.event, Event::Data(_));
                match builder.take(item) {
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
        let again = if known { find(source, form, limits, from, &names)? } else { None };
        first.get_or_insert(error);

        let keep = again.as_ref().map_or(0, |place| place.level);
        let mut to = again.as_ref().map_or(source.len(), |place| place.at);
        let mut close: Vec<usize> = builder.open.split_off(keep);
        close.reverse();
        // Loose text before a damaged tag belongs to it; a whole record stands for itself.
        let whole = from == source.len() || (form != Form::Text && !mismatch);
        let mut gap_from = if whole { reached } else { tag_end };
        // An element whose data are not all there is no element; nor one with two names.
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
            && let Some(end) = again.as_ref().and_then(|place| place.ends)
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

/// Where a file can be read again.
struct Place {
    at: u64,
    /// How many of the open elements are still open there.
    level: usize,
    /// Behind the end tag of the innermost of them, if that is what stands there.
    ends: Option<u64>,
}

/// The first tag at or behind `from` from which everything nests up to an end tag that belongs to
/// one, and only one, of the open elements.
fn find(
    source: &Source,
    form: Form,
    limits: &Limits,
    from: u64,
    open: &[&[u8]],
) -> Result<Option<Place>> {
    let mut at = from;
    let mut events = Events::new(source, form, limits);
    while let Some(tag) = next_tag(source, form, &mut events, at)? {
        events.seek(tag);
        match look(&mut events, open, limits) {
            Ok((level, ends)) => return Ok(Some(Place { at: tag, level, ends })),
            Err(stuck) => at = stuck.max(tag + 1),
        }
    }
    Ok(None)
}

/// How many of the open elements are open where the events go on, and the end of the first tag if
/// it says so; or the place up to which nothing says that.
fn look(
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
            Event::Begin(tag) if inner.len() as u64 >= u64::from(limits.depth) => {
                drop(tag);
                return Err(item.end);
            }
            Event::Begin(tag) => inner.push(tag.name().to_vec()),
            Event::End(tag) => match inner.pop() {
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

/// The next place where a whole tag stands.
fn next_tag(source: &Source, form: Form, events: &mut Events, from: u64) -> Result<Option<u64>> {
    let mut window = Window::new(source.clone());
    let mut at = from;
    let mut attempts = 0;
    while at < source.len() {
        let size = match form {
            Form::Text => 1,
            // A record of four bytes, and the beginning of the next.
            Form::Binary(framing) => (2 * framing.marker + 4) as usize,
        };
        let bytes = window.get(at, BLOCK as usize)?;
        let found = bytes.windows(size).position(|bytes| match form {
            Form::Text => bytes == b"<",
            Form::Binary(framing) => framing.first(bytes).is_some_and(|record| record.len() == 4),
        });
        let Some(found) = found else {
            let passed = (bytes.len() + 1).saturating_sub(size).max(1);
            at += passed as u64;
            continue;
        };
        at += found as u64;
        events.seek(at);
        if matches!(events.next(), Ok(Some(item)) if item.offset == at && is_tag(&item)) {
            return Ok(Some(at));
        }
        attempts += 1;
        if form == Form::Text && attempts > ATTEMPTS {
            return Ok(None);
        }
        at += 1;
    }
    Ok(None)
}

/// A tag without anything odd about it.
fn is_tag(item: &Item) -> bool {
    item.remark.is_none() && !matches!(item.event, Event::Data(_))
}
