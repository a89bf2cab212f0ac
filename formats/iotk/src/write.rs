//! Writing, in both forms.

mod data;

use std::borrow::Cow;
use std::io::Write;

use spile_core::convert::{Number, to_little};
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::Linear;
use spile_core::read::Array;
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;
use zerocopy::IntoBytes;

use crate::number::Style;
use crate::read::STORAGE;
use crate::recast::{Recast, fortran};
use crate::record::{Framing, RecordWriter, SUBRECORD};
use crate::spell::{representable, write_lines, write_origin, write_values};
use crate::wire::{Control, SECOND, Tag, Type, escape, write_attribute};

/// The shape of an array has attributes `n1` to `n7`.
pub(crate) const MOST_DIMENSIONS: usize = 7;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// XML.
    Text,
    /// Records, cut into sub-records of at most so many bytes.
    Binary(Framing, u64),
}

impl Default for Target {
    fn default() -> Self {
        Self::Binary(Framing::default(), SUBRECORD)
    }
}

/// Writes tags and data, one after the other.
pub struct Writer<W: Write> {
    out: Out<W>,
    style: Style,
    open: Vec<Vec<u8>>,
    /// The next end tag stands on the line of its data, and without an indent in records.
    inline: bool,
}

enum Out<W: Write> {
    Text(W),
    Binary(RecordWriter<W>),
}

impl<W: Write> Writer<W> {
    /// Starts with nothing, not even a head. `out` should be buffered.
    pub fn new(out: W, target: Target, style: Style) -> Result<Self> {
        let out = match target {
            Target::Text => Out::Text(out),
            Target::Binary(framing, limit) => Out::Binary(RecordWriter::new(out, framing, limit)?),
        };
        Ok(Self { out, style, open: Vec::new(), inline: false })
    }

    /// What the library writes before the root.
    pub fn head(&mut self, file_version: &str, qe_syntax: bool) -> Result<()> {
        let flag = |flag: bool| if flag { "T" } else { "F" };
        self.declaration()?;
        let binary = flag(matches!(self.out, Out::Binary(_)));
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

    /// `<?xml version="1.0"?>`, in a text.
    pub(crate) fn declaration(&mut self) -> Result<()> {
        match &mut self.out {
            Out::Text(out) => Ok(out.write_all(b"<?xml version=\"1.0\"?>\n")?),
            Out::Binary(_) => Ok(()),
        }
    }

    /// Levels that are open.
    pub fn level(&self) -> usize {
        self.open.len()
    }

    /// The library's indentation at this level.
    pub(crate) fn indent(&self) -> u32 {
        (2 * self.open.len()).min(12) as u32
    }

    /// `<name ...>`
    pub fn begin(&mut self, tag: &Tag) -> Result<()> {
        let indent = self.indent();
        self.begin_at(tag, indent)
    }

    pub(crate) fn begin_at(&mut self, tag: &Tag, indent: u32) -> Result<()> {
        self.tag(Control::Begin, tag.text(), indent)?;
        self.open.push(tag.name().to_vec());
        Ok(())
    }

    /// Ends the innermost element.
    pub fn end(&mut self) -> Result<()> {
        let Some(name) = self.open.pop() else {
            return Err(Error::argument("there is no element to end"));
        };
        // Behind a value on the line of its tags the library has no indentation either.
        let indent = if self.inline { 0 } else { self.indent() };
        self.tag(Control::End, &name, indent)
    }

    pub(crate) fn end_at(&mut self, tag: &Tag, indent: u32) -> Result<()> {
        self.open.pop();
        self.tag(Control::End, tag.text(), indent)
    }

    /// `<name .../>`
    pub fn empty(&mut self, tag: &Tag) -> Result<()> {
        let indent = self.indent();
        self.tag(Control::Empty, tag.text(), indent)
    }

    /// `<!--text-->`
    pub fn comment(&mut self, text: &str) -> Result<()> {
        let mut plain = Vec::new();
        escape(text.as_bytes(), &mut plain);
        let indent = self.indent();
        self.tag(Control::Comment, &plain, indent)
    }

    /// `<?name ...?>`
    pub fn instruction(&mut self, tag: &Tag) -> Result<()> {
        let indent = self.indent();
        self.tag(Control::Instruction, tag.text(), indent)
    }

    /// An element that stands for another file.
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

    /// An element with the numbers or strings of `array`; its tag gets type, size and kind. What
    /// Fortran does not have becomes what it has, and `spile_type` tells what it was.
    pub fn dat(&mut self, name: &str, attrs: &[(String, Value)], array: &Array) -> Result<()> {
        let count = array.shape().count().unwrap_or(0);
        self.begin_dat(name, attrs, (array.dtype(), array.map()), count)?;
        self.array(array, 1)?;
        self.end()
    }

    /// An element with numbers that are in memory. Nothing is copied on the way to a binary file.
    pub fn dat_slice<T: Number + IntoBytes>(
        &mut self,
        name: &str,
        attrs: &[(String, Value)],
        numbers: &[T],
    ) -> Result<()> {
        let dtype = T::DTYPE.with_order(ByteOrder::NATIVE);
        self.begin_dat(name, attrs, (dtype, None), numbers.len() as u64)?;
        let mut bytes = Cow::Borrowed(numbers.as_bytes());
        let (mut written, _) = fortran(dtype, None);
        if written != dtype {
            to_little(dtype, bytes.to_mut());
            bytes = Cow::Owned(Recast::new(dtype, None, written).apply(&bytes)?.to_vec());
            written = written.with_order(ByteOrder::Little);
        }
        if matches!(self.out, Out::Binary(_)) {
            self.begin_data(bytes.len() as u64)?;
            self.data_bytes(written, &bytes)?;
            self.end_data()?;
        } else {
            self.numbers_in_memory(written, &bytes)?;
        }
        self.end()
    }

    /// The begin tag of an element with data.
    fn begin_dat(
        &mut self,
        name: &str,
        attrs: &[(String, Value)],
        (dtype, map): (DType, Option<Linear>),
        count: u64,
    ) -> Result<()> {
        let (written, each) = fortran(dtype, map);
        let (kind, number) = fortran_type(written)?;
        let mut text = name.as_bytes().to_vec();
        write_attribute("type", kind.name().as_bytes(), &mut text);
        let size = count.saturating_mul(each);
        write_attribute("size", size.to_string().as_bytes(), &mut text);
        let word = if kind == Type::Character { "len" } else { "kind" };
        write_attribute(word, number.to_string().as_bytes(), &mut text);
        write_origin(dtype, written, &mut text);
        write_values(attrs, &STORAGE, &mut text);
        let tag = Tag::new(text);
        let library = self.style == Style::Library && matches!(self.out, Out::Text(_));
        self.begin(&if library { tag.without("kind") } else { tag })
    }

    /// The same with `qe_syntax`: the type is a tag of its own and has the shape.
    pub fn dat_qe(&mut self, name: &str, attrs: &[(String, Value)], array: &Array) -> Result<()> {
        let (written, each) = fortran(array.dtype(), array.map());
        let (kind, number) = fortran_type(written)?;
        let mut lengths = array.shape().lengths().to_vec();
        if each != 1 {
            lengths.insert(0, each);
        }
        if lengths.len() > MOST_DIMENSIONS {
            let message = format!("an array of {} dimensions", lengths.len());
            return Err(Error::unsupported("iotk-017", message)
                .hint(format!("arrays of Fortran have at most {MOST_DIMENSIONS}")));
        }
        let mut text = name.as_bytes().to_vec();
        write_values(attrs, &STORAGE, &mut text);
        self.begin(&Tag::new(text))?;
        let word = if kind == Type::Character { "string" } else { kind.name() };
        let mut text = word.as_bytes().to_vec();
        if !lengths.is_empty() {
            write_attribute("rank", lengths.len().to_string().as_bytes(), &mut text);
        }
        for (k, length) in lengths.iter().enumerate() {
            write_attribute(&format!("n{}", k + 1), length.to_string().as_bytes(), &mut text);
        }
        let word = if kind == Type::Character { "len" } else { "kind" };
        write_attribute(word, number.to_string().as_bytes(), &mut text);
        write_origin(array.dtype(), written, &mut text);
        self.inline = lengths.is_empty();
        self.begin(&Tag::new(text))?;
        self.array(array, 1)?;
        self.end()?;
        self.end()
    }

    /// The begin tag of a value that stands on one line with it.
    pub(crate) fn begin_inline(&mut self, tag: &Tag, indent: u32) -> Result<()> {
        self.inline = true;
        self.begin_at(tag, indent)
    }

    /// One tag, letter for letter.
    pub(crate) fn tag(&mut self, control: Control, text: &[u8], indent: u32) -> Result<()> {
        let (open, close) = control.delimiters();
        let tag = [open, text, close].concat();
        let blanks = vec![b' '; indent as usize];
        match &mut self.out {
            Out::Text(out) => {
                if !representable(control, text) {
                    let shown = tag[..tag.len().min(60)].escape_ascii();
                    let message = format!("\"{shown}\" would end too early in a text");
                    return Err(Error::unsupported("iotk-016", message));
                }
                let ends = control == Control::End && self.inline;
                if !ends {
                    out.write_all(&blanks)?;
                }
                write_lines(&tag, self.style, out)?;
                if ends || !self.inline {
                    out.write_all(b"\n")?;
                }
            }
            Out::Binary(records) => {
                let len = blanks.len() + tag.len() + 2;
                let too_long = || Error::unsupported("iotk-016", format!("a tag of {len} bytes"));
                let len = i32::try_from(len).ok().filter(|n| *n < 1 << 23).ok_or_else(too_long)?;
                let order = records.framing().order;
                records.record(&[&integer(control as i32 + 256 * len, order)])?;
                let header = integer(SECOND + 256 * len, order);
                records.record(&[&header, b"\n", &blanks, &tag, b"\n"])?;
            }
        }
        self.inline &= control != Control::End;
        Ok(())
    }

    /// Text between tags, letter for letter, on lines of its own.
    pub(crate) fn loose_text(&mut self, text: &[u8]) -> Result<()> {
        match &mut self.out {
            Out::Text(out) => {
                let mut plain = Vec::with_capacity(text.len() + 1);
                escape(text, &mut plain);
                plain.push(b'\n');
                Ok(out.write_all(&plain)?)
            }
            Out::Binary(records) => records.record(&[&[0; 4], text]),
        }
    }

    /// Ends the file: all elements must be closed.
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

pub(crate) fn fortran_type(dtype: DType) -> Result<(Type, u64)> {
    let message = || format!("Fortran has no {dtype} elements");
    Type::of(dtype).ok_or_else(|| Error::unsupported("iotk-017", message()))
}

/// Four bytes in the file's order.
fn integer(value: i32, order: ByteOrder) -> [u8; 4] {
    match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    }
}
