//! The content of a file as a sequence of events, identical for both forms.

pub(crate) mod binary;
pub(crate) mod text;

use std::ops::Range;

use spile_core::{ByteOrder, Error, Extents, Limits, Result, Source};

use self::binary::BinaryEvents;
use self::text::{BYTE_ORDER_MARK, TextEvents};
use crate::wire::record::Framing;
use crate::wire::{Control, Tag, Type, parse_logical};

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Fortran records.
    Binary(Framing),
    /// XML.
    Text,
}

impl Form {
    /// Detects the form of `source` from its first bytes: text begins with `<`, records with their
    /// length. Fails with iotk-001 if it is neither.
    pub fn detect(source: &Source) -> Result<Self> {
        let head = spile_core::wire::fetch(source, 0, 512)?;
        if looks_like_text(&head) {
            return Ok(Self::Text);
        }
        let framing = Framing::detect(source)?.ok_or_else(|| {
            let message = "expected text that begins with a tag or Fortran records";
            Error::not_this_format("iotk-001", message).at(0)
        })?;
        Ok(Self::Binary(framing))
    }

    /// Byte order of numbers; little for text.
    pub fn order(self) -> ByteOrder {
        match self {
            Self::Binary(framing) => framing.order,
            Self::Text => ByteOrder::Little,
        }
    }
}

/// True if `head` begins with a tag, after an optional byte-order mark and white space.
pub(crate) fn looks_like_text(head: &[u8]) -> bool {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    matches!(head, [b'<', b'?' | b'!' | b'_' | b':' | b'a'..=b'z' | b'A'..=b'Z', ..])
}

/// A tag, or the data of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A tag of any kind; the text of a comment is that of the tag.
    Tag(Control, Tag),
    /// The content between the tags of an element.
    Data(Data),
}

/// The data of an element: byte ranges of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Packed binary elements, or their text.
    pub extents: Extents,
    /// `CDATA` sections, in which escapes are not resolved: positions in the text of all `extents`, in order.
    pub literal: Vec<Range<u64>>,
}

impl Data {
    /// Offset of the first byte.
    pub fn offset(&self) -> u64 {
        self.extents.parts().first().map_or(0, |part| part.offset)
    }
}

/// An event and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Offset of the first byte.
    pub offset: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// Blanks between the beginning of the line and the tag.
    pub indent: u32,
    /// The event.
    pub event: Event,
    /// The type of the data that a begin tag announces.
    pub kind: Option<Type>,
    /// Number of attributes of a begin or empty tag.
    pub attributes: usize,
    /// A deviation from the format that loses no data: code and message.
    pub warning: Option<Box<(&'static str, String)>>,
}

impl Item {
    pub(crate) fn data(data: Data, offset: u64, end: u64) -> Self {
        let (event, kind, warning) = (Event::Data(data), None, None);
        Self { offset, end, indent: 0, event, kind, attributes: 0, warning }
    }
}

/// The events of a file.
pub enum Events {
    /// Reads Fortran records.
    Binary(BinaryEvents),
    /// Reads XML.
    Text(TextEvents),
}

impl Events {
    /// Events from the beginning of `source`.
    pub fn new(source: &Source, form: Form, limits: &Limits) -> Self {
        match form {
            Form::Binary(framing) => Self::Binary(BinaryEvents::new(source, framing, limits)),
            Form::Text => Self::Text(TextEvents::new(source, limits)),
        }
    }

    /// Continues at `offset`, where a tag or a record begins.
    pub(crate) fn seek(&mut self, offset: u64) {
        match self {
            Self::Binary(events) => events.seek(offset),
            Self::Text(events) => events.seek(offset),
        }
    }

    /// Bytes of the integers before tags and data in records.
    pub(crate) fn header_bytes(&self) -> usize {
        match self {
            Self::Binary(events) => events.header_bytes(),
            Self::Text(_) => 0,
        }
    }

    /// Bytes examined so far, including those examined more than once.
    pub(crate) fn scanned(&self) -> u64 {
        match self {
            Self::Binary(events) => events.scanned(),
            Self::Text(events) => events.scanned(),
        }
    }

    /// The next event, or `None` at the end of the file.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item>> {
        match self {
            Self::Binary(events) => events.next(),
            Self::Text(events) => events.next(),
        }
    }
}

/// The type of the data after a begin tag: the attribute `type`, or with `qe_syntax` the name of the
/// tag (`real`, `integer`, ...).
fn data_type(tag: &Tag, named: Option<&[u8]>, qe_syntax: bool) -> Option<Type> {
    match named {
        Some(name) => Type::from_name(name.trim_ascii()),
        None if qe_syntax => Type::from_name(tag.name()),
        None => None,
    }
}

/// Properties of a begin or empty tag that the parsers need, found in one pass over its attributes.
pub(crate) struct BeginTag {
    /// The type of the data that follow. `None` if the data are marked as left out (`trunc`).
    pub(crate) kind: Option<Type>,
    /// The data are written with a Fortran format.
    pub(crate) formatted: bool,
    /// All attributes have quoted values.
    pub(crate) well_formed: bool,
    pub(crate) attributes: usize,
}

impl BeginTag {
    /// `qe_syntax` is the declaration in the head. Without one, a `rank` or `kind` attribute implies
    /// it.
    pub(crate) fn inspect(tag: &Tag, qe_syntax: Option<bool>) -> Self {
        let (mut formatted, mut well_formed, mut shape, mut left_out) = (false, true, false, false);
        let (mut named, mut attributes) = (None, 0);
        for attribute in tag.attributes() {
            attributes += 1;
            well_formed &= attribute.well_formed;
            match attribute.name {
                b"type" if named.is_none() => named = Some(attribute.value),
                b"rank" | b"kind" => shape = true,
                b"fmt" => formatted = true,
                b"trunc" => left_out = parse_logical(attribute.value.trim_ascii()) == Some(true),
                _ => {}
            }
        }
        let kind = data_type(tag, named, qe_syntax.unwrap_or(shape)).filter(|_| !left_out);
        Self { kind, formatted, well_formed, attributes }
    }
}

/// The value of `<?iotk qe_syntax="..."?>`, if `event` is that instruction.
pub(crate) fn declared_qe_syntax(event: &Event) -> Option<bool> {
    match event {
        Event::Tag(Control::Instruction, tag) if tag.name() == b"iotk" => tag.get_bool("qe_syntax"),
        _ => None,
    }
}
