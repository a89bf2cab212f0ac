//! From one form to the other, event by event, in bounded memory.
//!
//! [`Style::Exact`] loses nothing: tags are copied letter for letter, numbers have all their
//! digits, and binary to text to binary gives the same bytes. [`Style::Library`] gives what the
//! original converter gives where that is right.

use std::io::Write;

use spile_core::decimal::Wide;
use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::element_data::{ElementData, describe_data};
use crate::event::{Data, Event, Events, Form, Item, declared_qe_syntax};
use crate::scalar::{Scalar, Style};
use crate::text_codec::{integer_kind, stream_numbers, stream_tokens};
use crate::tokens::words;
use crate::wire::{Control, Tag, Type, escape};
use crate::write::{Target, Writer};

/// What a conversion did.
#[derive(Clone, Debug, Default)]
pub struct Converted {
    /// Elements.
    pub elements: u64,
    /// What has no place in the new form, a sentence each.
    pub lost: Vec<String>,
}

/// Writes the file in `source` to `out` in another form.
pub fn convert<W: Write>(
    source: &Source,
    target: Target,
    style: Style,
    out: W,
    limits: &Limits,
) -> Result<Converted> {
    let form = Form::detect(source)?
        .ok_or_else(|| Error::not_this_format("iotk-001", "no IOTK file").at(0))?;
    let mut converter = Converter {
        source,
        form,
        target,
        style,
        limits,
        writer: Writer::new(out, target, style)?,
        open: Vec::new(),
        qe_syntax: None,
        started: false,
        done: Converted::default(),
        nothing: Tree::new(limits),
    };
    let mut events = Events::new(source, form, limits);
    let mut next = events.next()?;
    while let Some(item) = next {
        next = events.next()?;
        let offset = item.offset;
        let used = converter.take(&item, next.as_ref()).map_err(|e| e.at(offset))?;
        if used {
            next = events.next()?;
        }
    }
    if let Some(name) = converter.open.last() {
        let message = format!("the file ends before </{}>", name.escape_ascii());
        return Err(Error::truncated("iotk-009", message).at(source.len()));
    }
    converter.writer.finish()?;
    Ok(converter.done)
}

struct Converter<'a, W: Write> {
    source: &'a Source,
    form: Form,
    target: Target,
    style: Style,
    limits: &'a Limits,
    writer: Writer<W>,
    open: Vec<Vec<u8>>,
    qe_syntax: Option<bool>,
    /// The head, or what stands for it, is written.
    started: bool,
    done: Converted,
    nothing: Tree,
}

impl<W: Write> Converter<'_, W> {
    fn library(&self) -> bool {
        self.style == Style::Library
    }

    /// The library indents by level; otherwise a tag stays where it was.
    fn indent(&self, item: &Item) -> u32 {
        if self.library() { self.writer.indent() } else { item.indent }
    }

    /// Writes one event; true if the next one was written with it.
    fn take(&mut self, item: &Item, next: Option<&Item>) -> Result<bool> {
        self.qe_syntax = declared_qe_syntax(&item.event).or(self.qe_syntax);
        match &item.event {
            Event::Instruction(tag) => self.instruction(tag, item)?,
            Event::Comment(text) => {
                self.start()?;
                let mut again = Vec::new();
                // The library escapes comments anew at each pass.
                if self.library() {
                    escape(text, &mut again);
                } else {
                    again.clone_from(text);
                }
                let indent = self.indent(item);
                self.writer.tag(Control::Comment, &again, indent)?;
            }
            Event::Empty(tag) => {
                self.start()?;
                self.done.elements += 1;
                let indent = self.indent(item);
                self.writer.tag(Control::Empty, tag.text(), indent)?;
            }
            Event::Begin(tag) => {
                self.start()?;
                self.done.elements += 1;
                if self.open.len() as u64 >= u64::from(self.limits.depth) {
                    let message = format!("tags nested deeper than {}", self.limits.depth);
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
            Event::End(tag) => {
                if self.open.pop().is_none_or(|name| name != tag.name()) {
                    let message = format!("</{}> ends nothing", tag.name().escape_ascii());
                    return Err(Error::malformed("iotk-008", message));
                }
                if self.library() {
                    self.writer.end()?;
                } else {
                    self.writer.end_at(tag, item.indent)?;
                }
            }
            Event::Data(data) => self.loose(data)?,
        }
        Ok(false)
    }

    /// The head comes before everything else. The library always writes its own.
    fn start(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.started, true) && self.library() {
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
            // Only a text has this line, and only with a head behind it.
            if tag.name() == b"iotk" {
                self.writer.declaration()?;
            }
        }
        let plain = tag.text() == b"xml version=\"1.0\"";
        if head && plain && self.target != Target::Text {
            return Ok(());
        }
        self.started = true;
        let indent = self.indent(item);
        let flag = if self.target == Target::Text { "F" } else { "T" };
        let own = tag.name() == b"iotk" && tag.get_raw("binary").is_some();
        let tag = if own { tag.with_attribute("binary", flag, "") } else { tag.clone() };
        self.writer.tag(Control::Instruction, tag.text(), indent)
    }

    /// A begin tag with the data behind it.
    fn element(&mut self, tag: &Tag, kind: Type, data: &Data, item: &Item) -> Result<()> {
        let place = |e: Error| e.in_object(format!("element {}", tag.name_lossy()));
        let known = describe_data(tag, Some(kind), data, self.form, self.source, self.limits);
        let known = known.and_then(ElementData::checked).map_err(place)?;
        if let Some(("iotk-035", message)) = &known.warning {
            self.done.lost.push(format!("element {}: {message}", tag.name_lossy()));
        }
        let indent = self.indent(item);
        // With `qe_syntax` a scalar stands on one line with its tags.
        let inline = tag.get_raw("type").is_none() && known.array.shape.rank() == 0;
        match self.target {
            Target::Text => self.as_text(tag, &known, inline, indent).map_err(place),
            Target::Binary(..) => {
                self.as_binary(tag, kind, known, data, inline, indent).map_err(place)
            }
        }
    }

    fn begin(&mut self, tag: &Tag, inline: bool, indent: u32) -> Result<()> {
        if inline {
            return self.writer.begin_inline(tag, indent);
        }
        self.writer.begin_at(tag, indent)
    }

    fn as_text(&mut self, tag: &Tag, known: &ElementData, inline: bool, indent: u32) -> Result<()> {
        let fmt = tag.get_raw("fmt").map(<[u8]>::to_vec);
        let mut new = tag.clone();
        let mut plain = false;
        let mut columns = tag.get_u64("columns").unwrap_or(1);
        if self.library() {
            new = new.without_attribute("kind");
            if let Some(fmt) = &fmt {
                plain = true;
                columns = strings_a_line(fmt, known).ok_or_else(|| {
                    let message = format!("format {} is not done", fmt.escape_ascii());
                    Error::unsupported("iotk-018", message)
                        .hint("without --compat the data are written in full")
                })?;
            }
        } else {
            // Data under a format lose digits and signs; ours are written without it.
            new = new.with_renamed("fmt", "spile_fmt");
            let actual = Type::of_dtype(known.array.dtype).map(|(_, kind)| kind);
            let numeric = known.kind != Some(Type::Character);
            if let Some(actual) = actual.filter(|k| numeric && tag.get_u64("kind") != Some(*k))
                && self.form != Form::Text
            {
                new = new.with_attribute("spile_kind", &actual.to_string(), "kind");
            }
        }
        self.begin(&new, inline, indent)?;
        let array = Array::open(self.source, &self.nothing, &known.array, self.limits)?;
        if plain {
            return self.writer.fields(&array, columns);
        }
        self.writer.array(&array, columns)
    }

    fn as_binary(
        &mut self,
        tag: &Tag,
        kind: Type,
        known: ElementData,
        data: &Data,
        inline: bool,
        indent: u32,
    ) -> Result<()> {
        let Form::Binary(framing) = self.form else {
            return self.text_to_binary(tag, kind, known, data, inline, indent);
        };
        self.begin(tag, inline, indent)?;
        let Target::Binary(wanted, _) = self.target else { return Ok(()) };
        if wanted.order == framing.order || known.array.dtype.word() == 1 {
            return self.copy(data);
        }
        let array = Array::open(self.source, &self.nothing, &known.array, self.limits)?;
        self.writer.array(&array, 1)
    }

    /// A record as it is.
    fn copy(&mut self, data: &Data) -> Result<()> {
        self.writer.begin_data(data.parts.len())?;
        let mut buffer = vec![0; 64 << 10];
        for part in data.parts.iter() {
            let (mut at, end) = (part.offset, part.offset + part.len);
            while at < end {
                let piece = &mut buffer[..(end - at).min(64 << 10) as usize];
                self.source.read_exact_at(at, piece)?;
                self.writer.raw_bytes(piece)?;
                at += piece.len() as u64;
            }
        }
        self.writer.end_data()
    }

    fn text_to_binary(
        &mut self,
        tag: &Tag,
        kind: Type,
        mut known: ElementData,
        data: &Data,
        inline: bool,
        indent: u32,
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
            // With `qe_syntax` the library tells a kind of strings, too.
            new = new.with_attribute("kind", "4", "");
        } else if !numeric && tag.get_raw("type").is_some() && tag.get_u64("len").is_none() {
            new = new.with_attribute("len", &known.array.dtype.size().to_string(), "size");
        }
        self.begin(&new, inline, indent)?;
        let dtype = known.array.dtype;
        let Some((scalar, _)) = Scalar::of(dtype).filter(|_| tag.get_raw("fmt").is_none()) else {
            let array = Array::open(self.source, &self.nothing, &known.array, self.limits)?;
            return self.writer.array(&array, 1);
        };
        let total = known.array.shape.bytes(dtype.size())?;
        self.writer.begin_data(total)?;
        let (source, limits, writer) = (self.source, self.limits, &mut self.writer);
        let mut each = |bytes: &[u8]| writer.data_bytes(dtype, bytes);
        stream_numbers(source, data, scalar, total, limits, &mut each)?;
        self.writer.end_data()
    }

    /// The smallest usual kind that holds numbers whose kind is not told: the default kinds of
    /// programs, wider ones where a number needs them.
    fn kind_for(&self, kind: Type, data: &Data) -> Result<u64> {
        match kind {
            Type::Integer => return integer_kind(self.source, data, self.limits),
            Type::Logical | Type::Character => return Ok(4),
            Type::Real | Type::Complex => {}
        }
        let mut fits = true;
        stream_tokens(self.source, data, self.limits, &mut |text| {
            fits = fits && words(text).all(|(_, word)| fits_double(word));
            Ok(())
        })?;
        Ok(if fits { 8 } else { 16 })
    }

    /// Data of an element without a type: characters.
    fn loose(&mut self, data: &Data) -> Result<()> {
        self.start()?;
        if self.open.is_empty() {
            let message = format!("data outside of all elements at byte {}", data.parts.offset());
            self.done.lost.push(message);
            return Ok(());
        }
        // How long it is without its escapes is only known when it is there as a whole.
        self.limits.allow(data.parts.len(), "text in an element without a type")?;
        let none = Tag::default();
        let known = describe_data(&none, None, data, self.form, self.source, self.limits)?;
        let array = Array::open(self.source, &self.nothing, &known.array, self.limits)?;
        let text = array.read(&Selection::all(), Axes::Stored)?;
        let blank = text.trim_ascii().is_empty();
        if blank && self.target == Target::Text {
            self.done.lost.push(format!("blanks at byte {}", data.parts.offset()));
        }
        self.writer.loose_text(&text)
    }
}

/// How many strings of full length a format puts on a line: `(3a5)`, or `(a)` for one.
fn strings_a_line(fmt: &[u8], known: &ElementData) -> Option<u64> {
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

/// A real number that a double can hold with all the digits it has.
fn fits_double(word: &[u8]) -> bool {
    let mut bytes = Vec::new();
    if Scalar::F64.parse(word, &mut bytes).is_none() {
        // Too large for a double only, or no number: then whoever parses it tells what is wrong.
        return Scalar::Wide(Wide::Binary128).parse(word, &mut bytes).is_none();
    }
    let mantissa = word.split(u8::is_ascii_alphabetic).next().unwrap_or(word);
    let digits = mantissa.iter().filter(|b| b.is_ascii_digit()).skip_while(|b| **b == b'0');
    let kept: Vec<u8> = digits.copied().collect();
    let zeros = kept.iter().rev().take_while(|b| **b == b'0').count();
    let value = bytes.try_into().map_or(0.0, f64::from_le_bytes);
    let vanished = value == 0.0 && kept.len() > zeros;
    kept.len() - zeros <= 17 && !vanished
}
