//! [`Writer`]: writes tags and data in both forms.

pub(crate) mod tag_text;
mod values;

use std::borrow::Cow;
use std::io::Write;

use spile_core::convert::Number;
use spile_core::{
    Array, ArrayDesc, Attrs, ByteOrder, DType, Dataset, Error, Layout, Limits, Linear, Order,
    Result, Shape, Source,
};
use zerocopy::IntoBytes;

use self::tag_text::{representable, write_lines, write_origin, write_values};
use crate::cast::fortran;
use crate::scalar::Style;
use crate::to_tree::{COMMENTS, STORAGE, parse_markup};
use crate::wire::record::{Framing, RecordWriter, SUBRECORD};
use crate::wire::{Control, SECOND, Tag, Type, escape, write_attribute};

/// Shapes are stored in attributes `n1` to `n7`.
pub(crate) const MAX_RANK: usize = 7;

/// The form of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// XML.
    Text,
    /// Records, split into sub-records of at most this number of bytes.
    Binary(Framing, u64),
}

impl Default for Target {
    fn default() -> Self {
        Self::Binary(Framing::default(), SUBRECORD)
    }
}

/// Writes tags and data in file order.
pub struct Writer<W: Write> {
    out: Out<W>,
    style: Style,
    open: Vec<Vec<u8>>,
    /// The next end tag is on the line of its data, and without an indent in records.
    inline: bool,
    /// Bytes of the integers before tags and data in records: 4 or 8.
    header: usize,
}

enum Out<W: Write> {
    Text(W),
    Binary(RecordWriter<W>),
}

impl<W: Write> Writer<W> {
    /// A writer that has written nothing yet, not even a head. `out` should be buffered.
    pub fn new(out: W, target: Target, style: Style) -> Result<Self> {
        let out = match target {
            Target::Text => Out::Text(out),
            Target::Binary(framing, limit) => Out::Binary(RecordWriter::new(out, framing, limit)?),
        };
        Ok(Self { out, style, open: Vec::new(), inline: false, header: 4 })
    }

    /// This with integers of 8 bytes before tags and data in records, as a library with that header kind reads and
    /// writes them; the default is 4 bytes.
    #[must_use]
    pub fn with_long_headers(mut self) -> Self {
        self.header = 8;
        self
    }

    /// Writes the tags that the library writes before the root.
    pub fn head(&mut self, file_version: &str, qe_syntax: bool) -> Result<()> {
        self.declaration()?;
        self.head_tags(file_version, qe_syntax)
    }

    /// Writes `<?iotk version="..."?>` and the other instructions of the head.
    pub(crate) fn head_tags(&mut self, file_version: &str, qe_syntax: bool) -> Result<()> {
        let flag = |flag: bool| if flag { "T" } else { "F" };
        let binary = flag(!self.is_text());
        for (name, value) in [
            ("version", "1.2.0"),
            ("file_version", file_version),
            ("binary", binary),
            ("qe_syntax", flag(qe_syntax)),
        ] {
            let mut text = b"iotk".to_vec();
            write_attribute(name, value.as_bytes(), &mut text);
            self.tag(Control::Instruction, &text, 0)?;
        }
        Ok(())
    }

    /// Writes `<?xml version="1.0"?>` to a text, nothing to a binary file.
    pub(crate) fn declaration(&mut self) -> Result<()> {
        match &mut self.out {
            Out::Text(out) => Ok(out.write_all(b"<?xml version=\"1.0\"?>\n")?),
            Out::Binary(_) => Ok(()),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.out, Out::Text(_))
    }

    /// Number of open elements.
    pub fn level(&self) -> usize {
        self.open.len()
    }

    /// The indentation of the library at this level, in blanks.
    pub(crate) fn indent(&self) -> u32 {
        (2 * self.open.len()).min(12) as u32
    }

    /// Writes `<name ...>`.
    pub fn begin(&mut self, tag: &Tag) -> Result<()> {
        let indent = self.indent();
        self.begin_at(tag, indent)
    }

    pub(crate) fn begin_at(&mut self, tag: &Tag, indent: u32) -> Result<()> {
        self.tag(Control::Begin, tag.text(), indent)?;
        self.open.push(tag.name().to_vec());
        Ok(())
    }

    /// Writes the end tag of the innermost open element. Fails if no element is open.
    pub fn end(&mut self) -> Result<()> {
        let Some(name) = self.open.pop() else {
            return Err(Error::argument("no element is open"));
        };
        // The library does not indent an end tag on the line of its value.
        let indent = if self.inline { 0 } else { self.indent() };
        self.tag(Control::End, &name, indent)
    }

    pub(crate) fn end_at(&mut self, tag: &Tag, indent: u32) -> Result<()> {
        self.open.pop();
        self.tag(Control::End, tag.text(), indent)
    }

    /// Writes `<name .../>`.
    pub fn empty(&mut self, tag: &Tag) -> Result<()> {
        let indent = self.indent();
        self.tag(Control::Empty, tag.text(), indent)
    }

    /// Writes `<!--text-->`, with `&`, `<` and `>` in `text` escaped.
    pub fn comment(&mut self, text: &str) -> Result<()> {
        let mut plain = Vec::new();
        escape(text.as_bytes(), &mut plain);
        let indent = self.indent();
        self.tag(Control::Comment, &plain, indent)
    }

    /// Writes a comment or instruction. Its text is unchanged unless a delimiter inside would end it.
    pub(crate) fn markup(&mut self, control: Control, text: &[u8]) -> Result<()> {
        let indent = self.indent();
        self.tag(control, &written_markup(control, text), indent)
    }

    /// Writes `<?name ...?>`.
    pub fn instruction(&mut self, tag: &Tag) -> Result<()> {
        let indent = self.indent();
        self.tag(Control::Instruction, tag.text(), indent)
    }

    /// Writes an element that links to another file.
    pub fn link(&mut self, name: &str, file: &str, binary: bool, raw: bool) -> Result<()> {
        let mut text = name.as_bytes().to_vec();
        write_attribute("iotk_link", file.as_bytes(), &mut text);
        for (name, _) in [("iotk_binary", binary), ("iotk_raw", raw)].iter().filter(|(_, set)| *set)
        {
            write_attribute(name, b"T", &mut text);
        }
        self.begin(&Tag::new(text))?;
        self.comment("This is a link to the file indicated in the iotk_link attribute")?;
        self.end()
    }

    /// Writes an element with the numbers or strings of `array`; its tag gets type, size and kind.
    /// Types that Fortran does not have are converted; `spile_type` is the original type.
    pub fn dat(&mut self, name: &str, attrs: &Attrs, array: &Array) -> Result<()> {
        self.begin_array(name, attrs, (array.dtype(), array.map(), array.shape()), false)?;
        self.array(array, 1)?;
        self.end_array(attrs, false)
    }

    /// Writes everything of an element with an array before the data: its tag, or both tags of
    /// `qe_syntax`.
    pub(crate) fn begin_array(
        &mut self,
        name: &str,
        attrs: &Attrs,
        (dtype, map, shape): (DType, Option<Linear>, &Shape),
        qe_syntax: bool,
    ) -> Result<()> {
        let (written, each) = fortran(dtype, map);
        let (kind, number) = fortran_type(written)?;
        let is_text = kind == Type::Character;
        let mut text = name.as_bytes().to_vec();
        if qe_syntax {
            write_values(attrs, &STORAGE, &mut text);
            self.begin(&Tag::new(text))?;
            text = if is_text { b"string".to_vec() } else { kind.name().into() };
            write_shape(shape, each, &mut text)?;
        } else {
            write_attribute("type", kind.name().as_bytes(), &mut text);
            let size = shape.count().unwrap_or(0).saturating_mul(each);
            write_attribute("size", size.to_string().as_bytes(), &mut text);
        }
        let name = if is_text { "len" } else { "kind" };
        // The library writes no kinds in a text.
        if qe_syntax || is_text || self.style != Style::Library || !self.is_text() {
            write_attribute(name, number.to_string().as_bytes(), &mut text);
        }
        write_origin(dtype, written, &mut text);
        if qe_syntax {
            self.inline = shape.rank() == 0 && each == 1;
        } else {
            write_values(attrs, &STORAGE, &mut text);
        }
        self.begin(&Tag::new(text))
    }

    /// Writes everything of an element with an array after the data.
    pub(crate) fn end_array(&mut self, attrs: &Attrs, qe_syntax: bool) -> Result<()> {
        if qe_syntax {
            self.end()?;
        }
        let mut markup = markup_of(attrs).into_iter();
        markup.try_for_each(|(_, control, text)| self.markup(control, text))?;
        self.end()
    }

    /// Writes an element with numbers in memory, without a copy if the file is binary.
    pub fn dat_slice<T: Number + IntoBytes>(
        &mut self,
        name: &str,
        attrs: &Attrs,
        numbers: &[T],
    ) -> Result<()> {
        let dtype = T::DTYPE.with_order(ByteOrder::NATIVE);
        let bytes = numbers.as_bytes();
        if self.is_text() || fortran(dtype, None).0 != dtype {
            let layout = Layout::contiguous(0, bytes.len() as u64, Order::F);
            let desc = ArrayDesc::new(dtype, Shape::new([numbers.len() as u64]), layout);
            let memory = Dataset::of_bytes(Source::memory(bytes), &Limits::default());
            return self.dat(name, attrs, &memory.open_array(&desc)?);
        }
        let shape = Shape::new([numbers.len() as u64]);
        self.begin_array(name, attrs, (dtype, None, &shape), false)?;
        self.begin_data(bytes.len() as u64)?;
        self.data_bytes(dtype, bytes)?;
        self.end_data()?;
        self.end()
    }

    /// Writes an element with the numbers or strings of `array` in `qe_syntax`: an inner tag named
    /// like the type has the shape. Fails with iotk-017 for more than seven dimensions.
    pub fn dat_qe(&mut self, name: &str, attrs: &Attrs, array: &Array) -> Result<()> {
        self.begin_array(name, attrs, (array.dtype(), array.map(), array.shape()), true)?;
        self.array(array, 1)?;
        self.end_array(attrs, true)
    }

    /// Writes the begin tag of a value that is on the same line.
    pub(crate) fn begin_inline(&mut self, tag: &Tag, indent: u32) -> Result<()> {
        self.inline = true;
        self.begin_at(tag, indent)
    }

    /// Writes one tag without a change. Fails with iotk-016 if the form cannot represent it.
    pub(crate) fn tag(&mut self, control: Control, text: &[u8], indent: u32) -> Result<()> {
        let (open, close) = control.delimiters();
        let tag = [open, text, close].concat();
        let blanks = vec![b' '; indent as usize];
        match &mut self.out {
            Out::Text(out) => {
                if !representable(control, text) {
                    let shown = tag[..tag.len().min(60)].escape_ascii();
                    let message = format!("a text cannot represent the tag \"{shown}\"");
                    return Err(Error::unsupported("iotk-016", message));
                }
                let inline_end = control == Control::End && self.inline;
                if !inline_end {
                    out.write_all(&blanks)?;
                }
                write_lines(&tag, self.style, out)?;
                if inline_end || !self.inline {
                    out.write_all(b"\n")?;
                }
            }
            Out::Binary(records) => {
                let len = blanks.len() + tag.len() + 2;
                let size = self.header;
                let too_long = || {
                    let message = format!("expected a tag of less than 8388608 bytes, found {len}");
                    let error = Error::unsupported("iotk-016", message);
                    error.hint("headers of 8 bytes have no such limit")
                };
                let fits = |n: &i64| *n < 1 << if size == 8 { 55 } else { 23 };
                let len = i64::try_from(len).ok().filter(fits).ok_or_else(too_long)?;
                let order = records.framing().order;
                records.record(&[&integer(control as i64 + 256 * len, order, size)[..size]])?;
                let header = integer(i64::from(SECOND) + 256 * len, order, size);
                records.record(&[&header[..size], b"\n", &blanks, &tag, b"\n"])?;
            }
        }
        self.inline &= control != Control::End;
        Ok(())
    }

    /// Writes text between tags, on separate lines.
    pub(crate) fn untyped_text(&mut self, text: &[u8]) -> Result<()> {
        match &mut self.out {
            Out::Text(out) => {
                let mut plain = Vec::with_capacity(text.len() + 1);
                escape(text, &mut plain);
                plain.push(b'\n');
                Ok(out.write_all(&plain)?)
            }
            Out::Binary(records) => records.record(&[&[0; 8][..self.header], text]),
        }
    }

    /// Flushes and returns the output. Fails if an element is open.
    pub fn finish(mut self) -> Result<W> {
        if let Some(name) = self.open.last() {
            let message = format!("element {} is still open", name.escape_ascii());
            return Err(Error::argument(message));
        }
        if let (Out::Text(out), Style::Library) = (&mut self.out, self.style) {
            out.write_all(b"\n")?;
        }
        let mut out = match self.out {
            Out::Text(out) => out,
            Out::Binary(records) => records.into_inner(),
        };
        out.flush()?;
        Ok(out)
    }
}

/// The comments and instructions in the attributes of a node, by position.
pub(crate) fn markup_of(attrs: &Attrs) -> Vec<(usize, Control, &[u8])> {
    let lists = attrs.iter().filter(|(name, _)| *name == COMMENTS);
    let mut markup: Vec<_> = lists.filter_map(|(_, value)| parse_markup(value)).flatten().collect();
    markup.sort_by_key(|(position, ..)| *position);
    markup
}

/// The text of a comment or instruction as it is written.
pub(crate) fn written_markup(control: Control, text: &[u8]) -> Cow<'_, [u8]> {
    if representable(control, text) {
        return Cow::Borrowed(text);
    }
    let mut escaped = Vec::new();
    escape(text, &mut escaped);
    Cow::Owned(escaped)
}

/// Appends the shape of an array with `each` written elements per element, in `qe_syntax`. Fails with
/// iotk-017 for more than seven dimensions.
fn write_shape(shape: &Shape, each: u64, text: &mut Vec<u8>) -> Result<()> {
    let mut lengths = shape.lengths().to_vec();
    if each != 1 {
        lengths.insert(0, each);
    }
    if lengths.len() > MAX_RANK {
        let message = format!("expected at most {MAX_RANK} dimensions, found {}", lengths.len());
        return Err(Error::unsupported("iotk-017", message));
    }
    if !lengths.is_empty() {
        write_attribute("rank", lengths.len().to_string().as_bytes(), text);
    }
    for (k, length) in lengths.iter().enumerate() {
        write_attribute(&format!("n{}", k + 1), length.to_string().as_bytes(), text);
    }
    Ok(())
}

/// The Fortran type and kind of `dtype`. Fails with iotk-017 if there is none.
pub(crate) fn fortran_type(dtype: DType) -> Result<(Type, u64)> {
    let message = || format!("Fortran has no type for {dtype} elements");
    Type::of_dtype(dtype).ok_or_else(|| Error::unsupported("iotk-017", message()))
}

/// `value` in byte order `order`, in the first four of eight bytes if it fits them; headers of 4 bytes do.
fn integer(value: i64, order: ByteOrder, size: usize) -> [u8; 8] {
    let mut out = [0; 8];
    match (order, i32::try_from(value).ok().filter(|_| size == 4)) {
        (ByteOrder::Little, _) => out = value.to_le_bytes(),
        (ByteOrder::Big, None) => out = value.to_be_bytes(),
        (ByteOrder::Big, Some(short)) => out[..4].copy_from_slice(&short.to_be_bytes()),
    }
    out
}
