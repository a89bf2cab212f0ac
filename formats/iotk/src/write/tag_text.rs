//! Formatting of tags and attributes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use spile_core::{Attrs, ByteOrder, DType, Result, Value};

use crate::event::text::begins_tag;
use crate::scalar::{Scalar, Style};
use crate::to_tree::{COMMENTS, SPELLING, parse_markup, parse_value};
use crate::upf;
use crate::wire::{Control, Tag, unescape, write_attribute};

/// Tags longer than this are broken into lines in a text.
const LINE: usize = 128;

/// The same for elements of pseudopotentials: Quantum ESPRESSO 6.6 and later reads lines of 1024 bytes, and misses
/// attributes after a line end.
const UPF_LINE: usize = 1_000;

/// Writes a tag. A long one is broken into lines, at the last blank that leaves a line of less than
/// [`LINE`] or [`UPF_LINE`] bytes, or at the first blank. A line end that belongs to the tag is written as an empty
/// line.
pub(crate) fn write_lines(tag: &[u8], style: Style, out: &mut impl Write) -> Result<()> {
    let escape_lines = |text: &[u8]| -> Vec<u8> {
        if style == Style::Library || !text.contains(&b'\n') {
            return text.to_vec();
        }
        let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
        lines.join(&b"\n\n"[..])
    };
    let mut rest = tag;
    let longest = if tag.starts_with(b"<PP_") && style == Style::Exact { UPF_LINE } else { LINE };
    while rest.len() > longest {
        let fits = |k: &usize| {
            let near = |k: usize| rest.get(k).is_some_and(|b| *b == b'\n');
            rest[*k] == b' ' && !near(k - 1) && !near(k + 1)
        };
        let last = (1..longest).rev().find(fits);
        let Some(at) = last.or_else(|| (longest..rest.len()).find(fits)) else { break };
        out.write_all(&escape_lines(&rest[..at]))?;
        out.write_all(b"\n")?;
        rest = &rest[at + 1..];
    }
    out.write_all(&escape_lines(rest))?;
    Ok(())
}

/// True if a parser of the text form finds the end of the tag where it is.
pub(crate) fn representable(control: Control, text: &[u8]) -> bool {
    let contains = |delimiter: &[u8]| text.windows(delimiter.len()).any(|w| w == delimiter);
    match control {
        Control::Comment => !contains(b"-->"),
        Control::Instruction => !contains(b"?>"),
        Control::End => !contains(b">") && begins_tag(text),
        Control::Begin | Control::Empty => {
            let mut quote = None;
            let mut after_equals = false;
            for byte in text {
                match (quote, byte) {
                    (Some(open), byte) if open == *byte => quote = None,
                    (Some(_), _) => {}
                    (None, b'>') => return false,
                    (None, b'"' | b'\'') if after_equals => quote = Some(*byte),
                    (None, byte) => {
                        let blank = byte.is_ascii_whitespace();
                        after_equals = *byte == b'=' || (after_equals && blank);
                        continue;
                    }
                }
                after_equals = false;
            }
            let slash = control == Control::Begin && text.ends_with(b"/");
            quote.is_none() && !slash && begins_tag(text)
        }
    }
}

/// Appends attributes to the text of a tag. A name in `reserved` gets an underscore at its end.
/// [`SPELLING`] gives the text of numbers; it and [`COMMENTS`] are not attributes of the file.
pub(crate) fn write_values(attrs: &Attrs, reserved: &[&str], out: &mut Vec<u8>) {
    for (name, text) in formatted(attrs) {
        let invalid = |c: char| " =\"'<>/\t\r\n".contains(c);
        let mut name: String = name.chars().map(|c| if invalid(c) { '_' } else { c }).collect();
        if name.is_empty() || reserved.contains(&name.as_str()) {
            name.push('_');
        }
        write_attribute(&name, &text, out);
    }
}

/// Names and texts of the attributes that are written, in order.
fn formatted(attrs: &Attrs) -> impl Iterator<Item = (&str, Vec<u8>)> {
    let mut spellings: HashMap<Cow<'_, str>, Vec<Vec<u8>>> = HashMap::new();
    for (_, value) in attrs.iter().filter(|(name, _)| *name == SPELLING) {
        // The name of the tag is empty.
        let tag = Tag::new([b" ", format_value(value).as_slice()].concat());
        for attribute in tag.attributes() {
            let name = String::from_utf8_lossy(attribute.name).into_owned();
            let text = unescape(attribute.value).into_owned();
            spellings.entry(Cow::Owned(name)).or_default().push(text);
        }
    }
    let is_written = |name: &str, value: &Value| {
        name != SPELLING && !(name == COMMENTS && parse_markup(value).is_some())
    };
    attrs.iter().filter(move |(name, value)| is_written(name, value)).map(move |(name, value)| {
        // A spelling of another value is outdated.
        let is_value = |text: &&Vec<u8>| {
            std::str::from_utf8(text).is_ok_and(|text| {
                parse_value(name, text) == *value || upf::typed_value(name, text) == *value
            })
        };
        let spelling = spellings.get(name).and_then(|texts| texts.iter().find(is_value));
        (name, spelling.cloned().unwrap_or_else(|| format_value(value)))
    })
}

/// The text of an attribute value, with the digits to read numbers back exactly.
pub(crate) fn format_value(value: &Value) -> Vec<u8> {
    let real = |x: f64| -> Vec<u8> {
        let mut text = Vec::new();
        Scalar::F64.write(&x.to_le_bytes(), Style::Exact, &mut text);
        text.trim_ascii_start().to_vec()
    };
    match value {
        Value::Bool(flag) => vec![if *flag { b'T' } else { b'F' }],
        Value::Float(x) => real(*x),
        Value::Complex(re, im) => [real(*re), real(*im)].join(&b','),
        Value::Bytes(bytes) => bytes.clone(),
        Value::List(values) => values.iter().map(format_value).collect::<Vec<_>>().join(&b' '),
        other => other.to_string().into_bytes(),
    }
}

/// Appends `spile_type`, the original type of elements that are written as another type.
pub(crate) fn write_origin(dtype: DType, written: DType, out: &mut Vec<u8>) {
    let dtype = dtype.with_order(ByteOrder::Little);
    if dtype != written.with_order(ByteOrder::Little) {
        write_attribute("spile_type", dtype.to_string().as_bytes(), out);
    }
}
