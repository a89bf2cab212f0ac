//! Conversion between the binary and the text form, event by event, in bounded memory.
//!
//! [`Style::Exact`] is lossless: tags are copied unchanged, numbers have all digits, and binary to
//! text to binary gives the same bytes. [`Style::Library`] gives the bytes of the original converter
//! except for its errors.

use std::io::Write;

use spile_core::decimal::Wide;
use spile_core::{DType, Dataset, Error, Kind, Limits, Result, Source};

use crate::element_data::{ElementData, describe_data};
use crate::event::{Data, Event, Events, Form, Item, declared_qe_syntax};
use crate::scalar::{Scalar, Style};
use crate::text_codec::{integer_kind, stream_numbers, stream_tokens};
use crate::tokens::tokens;
use crate::wire::{Control, Tag, Type, escape};
use crate::write::{Target, Writer};

/// The result of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Converted {
    /// Number of elements.
    pub elements: u64,
    /// Messages about content that the new form cannot represent.
    pub lost: Vec<String>,
}

/// Writes the file in `source` to `out` in the form `target`. Fails with iotk-001 if it is not an IOTK
/// file.
pub fn convert<W: Write>(
    source: &Source,
    target: Target,
    style: Style,
    out: W,
    limits: &Limits,
) -> Result<Converted> {
    convert_with(source, target, style, Heads::default(), out, limits)
}

/// Integers before tags in records, and the tags before the first element, of a converted file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// Adds the head of the library if the file has none.
    pub add_head: bool,
    /// Headers have 8 bytes, not 4: the header kind of the library.
    pub long_headers: bool,
}

/// [`convert`] with the given heads.
pub fn convert_with<W: Write>(
    source: &Source,
    target: Target,
    style: Style,
    heads: Heads,
    out: W,
    limits: &Limits,
) -> Result<Converted> {
    let form = Form::detect(source)?;
    let mut converter = Converter {
        bytes: Dataset::of_bytes(source.clone(), limits),
        form,
        target,
        style,
        writer: match Writer::new(out, target, style)? {
            writer if heads.long_headers => writer.with_long_headers(),
            writer => writer,
        },
        add_head: heads.add_head,
        open: Vec::new(),
        qe_syntax: None,
        started: false,
        result: Converted::default(),
    };
    let mut events = Events::new(source, form, limits);
    let mut next = events.next()?;
    while let Some(item) = next {
        next = events.next()?;
        let offset = item.offset;
        let consumed = converter.convert(&item, next.as_ref()).map_err(|e| e.at(offset))?;
        if consumed {
            next = events.next()?;
        }
    }
    if let Some(name) = converter.open.last() {
        let message = format!("unexpected end of file: expected </{}>", name.escape_ascii());
        return Err(Error::truncated("iotk-009", message).at(source.len()));
    }
    converter.writer.finish()?;
    Ok(converter.result)
}

struct Converter<W: Write> {
    /// The bytes of the source, without a tree.
    bytes: Dataset,
    form: Form,
    target: Target,
    style: Style,
    writer: Writer<W>,
    open: Vec<Vec<u8>>,
    qe_syntax: Option<bool>,
    /// The head is written.
    started: bool,
    /// The head of the library is written if the file has none.
    add_head: bool,
    result: Converted,
}

impl<W: Write> Converter<W> {
    fn library(&self) -> bool {
        self.style == Style::Library
    }

    /// The library indents by level; otherwise the indent of the tag is kept.
    fn indent(&self, item: &Item) -> u32 {
        if self.library() { self.writer.indent() } else { item.indent }
    }

    /// Writes one event; true if the next one was written with it.
    fn convert(&mut self, item: &Item, next: Option<&Item>) -> Result<bool> {
        self.qe_syntax = declared_qe_syntax(&item.event).or(self.qe_syntax);
        match &item.event {
            Event::Tag(Control::Instruction, tag) => self.instruction(tag, item)?,
            Event::Tag(Control::Comment, tag) => {
                self.start()?;
                let indent = self.indent(item);
                let mut escaped = Vec::new();
                escape(tag.text(), &mut escaped);
                // The library escapes comments again at each conversion.
                let text = if self.library() { &escaped } else { tag.text() };
                self.writer.tag(Control::Comment, text, indent)?;
            }
            Event::Tag(Control::Empty, tag) => {
                self.start()?;
                self.result.elements += 1;
                let indent = self.indent(item);
                self.writer.tag(Control::Empty, tag.text(), indent)?;
            }
            Event::Tag(Control::Begin, tag) => {
                self.start()?;
                self.result.elements += 1;
                let depth = self.bytes.limits().depth;
                if self.open.len() as u64 >= u64::from(depth) {
                    let message = format!("tags nested deeper than {depth}");
                    return Err(Error::limit(message));
                }
                self.open.push(tag.name().to_vec());
                if let (Some(kind), Some(Item { event: Event::Data(data), .. })) = (item.kind, next)
                {
                    self.element(tag, kind, data, item)?;
                    return Ok(true);
                }
                let indent = self.indent(item);
                self.writer.begin_at(tag, indent)?;
            }
            Event::Tag(Control::End, tag) => {
                if self.open.pop().is_none_or(|name| name != tag.name()) {
                    let name = tag.name().escape_ascii();
                    let message = format!("</{name}> does not match the open element");
                    return Err(Error::malformed("iotk-008", message));
                }
                if self.library() {
                    self.writer.end()?;
                } else {
                    self.writer.end_at(tag, item.indent)?;
                }
            }
            Event::Data(data) => self.untyped(data)?,
        }
        Ok(false)
    }

    /// Writes the head of the library before the first tag.
    fn start(&mut self) -> Result<()> {
        let add = self.library() || self.add_head;
        if !std::mem::replace(&mut self.started, true) && add {
            self.writer.head("1.0", self.qe_syntax == Some(true))?;
        }
        Ok(())
    }

    fn instruction(&mut self, tag: &Tag, item: &Item) -> Result<()> {
        let head = !self.started || self.open.is_empty();
        if self.library() && head && matches!(tag.name(), b"xml" | b"iotk") {
            return Ok(());
        }
        if self.library() {
            self.start()?;
        } else if !self.started && self.target == Target::Text && self.form != Form::Text {
            // A text with a head begins with the XML declaration.
            if tag.name() == b"iotk" {
                self.writer.declaration()?;
            }
        }
        let plain = tag.text() == b"xml version=\"1.0\"";
        // The added head has a declaration.
        if self.add_head && !self.started && tag.name() == b"xml" {
            return Ok(());
        }
        if self.add_head && !self.started && self.form == Form::Text && self.target == Target::Text
        {
            self.writer.declaration()?;
        }
        if head && plain && self.target != Target::Text {
            return Ok(());
        }
        self.started = true;
        let indent = self.indent(item);
        let flag = if self.target == Target::Text { "F" } else { "T" };
        let form = tag.name() == b"iotk" && tag.get_raw("binary").is_some();
        let tag = if form { tag.with_attribute("binary", flag, "") } else { tag.clone() };
        self.writer.tag(Control::Instruction, tag.text(), indent)
    }

    /// Writes a begin tag and the data after it.
    fn element(&mut self, tag: &Tag, kind: Type, data: &Data, item: &Item) -> Result<()> {
        let in_element = |e: Error| e.in_object(format!("element {}", tag.name_lossy()));
        let known = describe_data(tag, Some(kind), data, self.form, &self.bytes);
        let known = known.and_then(ElementData::checked).map_err(in_element)?;
        if let Some(("iotk-035", message)) = &known.warning {
            self.result.lost.push(format!("element {}: {message}", tag.name_lossy()));
        }
        // With `qe_syntax` a scalar is on the line of its tags.
        let inline = tag.get_raw("type").is_none() && known.array.shape.rank() == 0;
        let place = (inline, self.indent(item));
        let done = match (self.target, self.form) {
            (Target::Text, _) => self.write_text(tag, &known, place),
            (Target::Binary(..), Form::Text) => self.text_to_binary(tag, kind, known, data, place),
            (Target::Binary(output, _), Form::Binary(framing)) => {
                let same = output.order == framing.order || known.array.dtype.word() == 1;
                self.begin(tag, place)?;
                if same { self.copy(data) } else { self.write_array(&known) }
            }
        };
        done.map_err(in_element)
    }

    fn begin(&mut self, tag: &Tag, (inline, indent): (bool, u32)) -> Result<()> {
        if inline {
            return self.writer.begin_inline(tag, indent);
        }
        self.writer.begin_at(tag, indent)
    }

    fn write_array(&mut self, known: &ElementData) -> Result<()> {
        let array = self.bytes.open_array(&known.array)?;
        self.writer.array(&array, 1)
    }

    fn write_text(&mut self, tag: &Tag, known: &ElementData, place: (bool, u32)) -> Result<()> {
        let fmt = tag.get_raw("fmt").map(<[u8]>::to_vec);
        let mut new = tag.clone();
        let mut plain = false;
        let mut columns = tag.get_u64("columns").unwrap_or(1);
        if self.library() {
            new = new.without_attribute("kind");
            if let Some(fmt) = &fmt {
                plain = true;
                columns = strings_per_line(fmt, known).ok_or_else(|| {
                    let message = format!("unsupported format {}", fmt.escape_ascii());
                    Error::unsupported("iotk-018", message)
                        .hint("the exact style writes the data without a format")
                })?;
            }
        } else {
            // A format loses digits and signs, so exact data are written without it.
            new = new.with_renamed("fmt", "spile_fmt");
            let actual = Type::of_dtype(known.array.dtype).map(|(_, kind)| kind);
            let numeric = known.kind != Some(Type::Character);
            if let Some(actual) = actual.filter(|k| numeric && tag.get_u64("kind") != Some(*k))
                && self.form != Form::Text
            {
                new = new.with_attribute("spile_kind", &actual.to_string(), "kind");
            }
        }
        self.begin(&new, place)?;
        let array = self.bytes.open_array(&known.array)?;
        if plain {
            return self.writer.fields(&array, columns);
        }
        self.writer.array(&array, columns)
    }

    /// Copies a record unchanged.
    fn copy(&mut self, data: &Data) -> Result<()> {
        self.writer.begin_data(data.extents.len())?;
        for part in data.extents.parts() {
            let write = |bytes: &[u8]| self.writer.data_bytes(DType::U8, bytes);
            self.bytes.source().for_each_block(part.offset, part.len, write)?;
        }
        self.writer.end_data()
    }

    fn text_to_binary(
        &mut self,
        tag: &Tag,
        kind: Type,
        mut known: ElementData,
        data: &Data,
        place: (bool, u32),
    ) -> Result<()> {
        let mut new = tag.without_attribute("spile_kind");
        if !self.library() {
            new = new.with_renamed("spile_fmt", "fmt");
        }
        let count = known.array.shape.count().unwrap_or(0);
        if tag.get_raw("type").is_some() && tag.get_u64("size").is_none() {
            new = new.with_attribute("size", &count.to_string(), "type");
        }
        let numeric = kind != Type::Character;
        if numeric && tag.get_u64("spile_kind").is_none() {
            let number = match tag.get_u64("kind").filter(|_| !self.library()) {
                Some(number) => number,
                None if self.library() => 4,
                None => self.kind_for(kind, data)?,
            };
            let dtype = kind.dtype(number, self.form.order());
            known.array.dtype = dtype.unwrap_or(known.array.dtype);
            let number = Type::of_dtype(known.array.dtype).map_or(number, |(_, kind)| kind);
            new = new.with_attribute("kind", &number.to_string(), "size");
        } else if self.library() && tag.get_raw("type").is_none() {
            // With `qe_syntax` the library writes a kind for strings, too.
            new = new.with_attribute("kind", "4", "");
        } else if !numeric && tag.get_raw("type").is_some() && tag.get_u64("len").is_none() {
            new = new.with_attribute("len", &known.array.dtype.size().to_string(), "size");
        }
        self.begin(&new, place)?;
        let dtype = known.array.dtype;
        let Some((scalar, _)) = Scalar::of(dtype).filter(|_| tag.get_raw("fmt").is_none()) else {
            return self.write_array(&known);
        };
        let total = known.array.shape.bytes(dtype.size())?;
        self.writer.begin_data(total)?;
        let mut each = |bytes: &[u8]| self.writer.data_bytes(dtype, bytes);
        stream_numbers(&self.bytes, data, scalar, total, &mut each)?;
        self.writer.end_data()
    }

    /// The kind for numbers without a declared kind: the default kind, or a wider one if a number
    /// needs it.
    fn kind_for(&self, kind: Type, data: &Data) -> Result<u64> {
        match kind {
            Type::Integer => return integer_kind(&self.bytes, data),
            Type::Logical | Type::Character => return Ok(4),
            Type::Real | Type::Complex => {}
        }
        let mut fits = true;
        stream_tokens(&self.bytes, data, &mut |text| {
            fits = fits && tokens(text).all(|(_, token)| fits_double(token));
            Ok(())
        })?;
        Ok(if fits { 8 } else { 16 })
    }

    /// Writes the data of an element without a type as characters.
    fn untyped(&mut self, data: &Data) -> Result<()> {
        self.start()?;
        if self.open.is_empty() {
            let message = format!("data outside of all elements at byte {}", data.offset());
            self.result.lost.push(message);
            return Ok(());
        }
        // The length without escapes is known only after decoding.
        self.bytes.limits().allow(data.extents.len(), "text in an element without a type")?;
        let none = Tag::default();
        let known = describe_data(&none, None, data, self.form, &self.bytes)?;
        let array = self.bytes.open_array(&known.array)?;
        let text = array.bytes()?;
        let blank = text.trim_ascii().is_empty();
        if blank && self.target == Target::Text {
            self.result.lost.push(format!("blanks at byte {}", data.offset()));
        }
        self.writer.untyped_text(&text)
    }
}

/// Number of strings of full length per line in a format such as `(3a5)` or `(a)`; `None` for other
/// formats.
fn strings_per_line(fmt: &[u8], known: &ElementData) -> Option<u64> {
    if known.array.dtype.kind() != Kind::Text {
        return None;
    }
    let text = std::str::from_utf8(fmt).ok()?.trim().to_ascii_lowercase();
    let inner = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let (repeat, width) = inner.split_once('a')?;
    let repeat = if repeat.is_empty() { 1 } else { repeat.parse().ok()? };
    let width = if width.is_empty() { known.array.dtype.size() } else { width.parse().ok()? };
    (width == known.array.dtype.size()).then_some(repeat)
}

/// True if a double represents all digits of the real number `token`.
fn fits_double(token: &[u8]) -> bool {
    let mut bytes = Vec::new();
    if Scalar::F64.parse(token, &mut bytes).is_none() {
        // Too large for a double, or not a number, which is reported when it is parsed.
        return Scalar::Wide(Wide::Binary128).parse(token, &mut bytes).is_none();
    }
    let mantissa = token.split(u8::is_ascii_alphabetic).next().unwrap_or(token);
    let digits = mantissa.iter().filter(|b| b.is_ascii_digit()).skip_while(|b| **b == b'0');
    let kept: Vec<u8> = digits.copied().collect();
    let zeros = kept.iter().rev().take_while(|b| **b == b'0').count();
    let value = bytes.try_into().map_or(0.0, f64::from_le_bytes);
    let vanished = value == 0.0 && kept.len() > zeros;
    kept.len() - zeros <= 17 && !vanished
}
