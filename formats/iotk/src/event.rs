//! What is in a file, one thing after the other: the same events from both forms.

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::ByteOrder;

use crate::binary::BinaryEvents;
use crate::record::{Framing, Parts};
use crate::text::{MARK, TextEvents};
use crate::wire::{Tag, Type, logical};

/// Which of the two forms a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Fortran records.
    Binary(Framing),
    /// XML.
    Text,
}

impl Form {
    /// The form of the bytes in `source`: text begins with `<`, records with their length.
    pub fn detect(source: &Source) -> Result<Option<Self>> {
        let head = spile_core::wire::fetch(source, 0, 512)?;
        if looks_like_text(&head) {
            return Ok(Some(Self::Text));
        }
        Ok(Framing::detect(source)?.map(Self::Binary))
    }

    /// Byte order of numbers.
    pub fn order(self) -> ByteOrder {
        match self {
            Self::Binary(framing) => framing.order,
            Self::Text => ByteOrder::Little,
        }
    }
}

/// Text whose first mark is that of a tag. A byte-order mark and blank lines may come before.
pub(crate) fn looks_like_text(head: &[u8]) -> bool {
    let head = head.strip_prefix(MARK).unwrap_or(head).trim_ascii_start();
    matches!(head, [b'<', b'?' | b'!' | b'_' | b':' | b'a'..=b'z' | b'A'..=b'Z', ..])
}

/// One thing in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `<name ...>`
    Begin(Tag),
    /// `</name>`
    End(Tag),
    /// `<name .../>`
    Empty(Tag),
    /// `<!--...-->`, without the marks.
    Comment(Vec<u8>),
    /// `<?name ...?>`
    Instruction(Tag),
    /// What stands between the tags of an element.
    Data(Data),
}

/// The data of an element, still in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Packed elements, or the text that stands for them.
    pub parts: Parts,
    /// Text that is meant letter for letter (`CDATA`).
    pub literal: bool,
}

/// An event and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// First byte.
    pub offset: u64,
    /// Behind the last byte.
    pub end: u64,
    /// Blanks between the beginning of the line and the tag.
    pub indent: u32,
    /// What it is.
    pub event: Event,
    /// The type of the data that a begin tag announces.
    pub kind: Option<Type>,
    /// A departure from the letter of the format that does no harm: code and sentence.
    pub remark: Option<Box<(&'static str, String)>>,
}

impl Item {
    /// A piece of data.
    pub(crate) fn data(data: Data, offset: u64, end: u64) -> Self {
        Self { offset, end, indent: 0, event: Event::Data(data), kind: None, remark: None }
    }
}

/// The events of a file.
pub enum Events {
    /// From records.
    Binary(BinaryEvents),
    /// From XML.
    Text(TextEvents),
}

impl Events {
    /// Starts at the beginning of `source`.
    pub fn new(source: &Source, form: Form, limits: &Limits) -> Self {
        match form {
            Form::Binary(framing) => Self::Binary(BinaryEvents::new(source, framing, limits)),
            Form::Text => Self::Text(TextEvents::new(source, limits)),
        }
    }

    /// Goes on at another place, where a tag or a record begins.
    pub(crate) fn seek(&mut self, offset: u64) {
        match self {
            Self::Binary(events) => events.seek(offset),
            Self::Text(events) => events.seek(offset),
        }
    }

    /// The next event, or nothing at the end of the file.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item>> {
        match self {
            Self::Binary(events) => events.next(),
            Self::Text(events) => events.next(),
        }
    }
}

/// The type of the data that follow a begin tag, if any do: those of a known `type`, and with
/// `qe_syntax` those of a tag that is itself called `real`, `integer` and so on. Where no head says
/// whether there is such a syntax, a rank or kind shows it. Data marked as truncated were left out
/// on purpose.
fn data_type(tag: &Tag, named: Option<&[u8]>, qe_syntax: bool) -> Option<Type> {
    match named {
        Some(name) => Type::named(name.trim_ascii()),
        None if qe_syntax => Type::named(tag.name()),
        None => None,
    }
}

/// What is asked of a begin tag before anything else, in one walk through its attributes: there may
/// be very many tags.
pub(crate) struct Look {
    /// The type of the data that follow.
    pub(crate) kind: Option<Type>,
    /// They stand there under a format.
    pub(crate) formatted: bool,
    /// All attributes have quoted values.
    pub(crate) sound: bool,
}

impl Look {
    pub(crate) fn at(tag: &Tag, qe_syntax: Option<bool>) -> Self {
        let (mut formatted, mut sound, mut shape, mut left_out) = (false, true, false, false);
        let mut named = None;
        for attribute in tag.attributes() {
            sound &= attribute.sound;
            match attribute.name {
                b"type" if named.is_none() => named = Some(attribute.value),
                b"rank" | b"kind" => shape = true,
                b"fmt" => formatted = true,
                b"trunc" => left_out = logical(attribute.value.trim_ascii()) == Some(true),
                _ => {}
            }
        }
        let kind = data_type(tag, named, qe_syntax.unwrap_or(shape)).filter(|_| !left_out);
        Self { kind, formatted, sound }
    }
}

/// What `<?iotk qe_syntax="..."?>` says, if this is it.
pub(crate) fn says_qe_syntax(event: &Event) -> Option<bool> {
    match event {
        Event::Instruction(tag) if tag.name() == b"iotk" => tag.flag("qe_syntax"),
        _ => None,
    }
}
