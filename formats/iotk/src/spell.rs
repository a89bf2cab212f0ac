//! Tags and attributes as they are spelled in a file.

use std::io::Write;

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;

use crate::number::{Scalar, Style};
use crate::text::begins_tag;
use crate::wire::{Control, write_attribute};

/// A tag longer than this is broken into lines in a text.
const LINE: usize = 128;

/// A tag over several lines if it is long: broken at the last blank that leaves a line of less
/// than [`LINE`] bytes, or at the first one there is. A line end that belongs to the tag becomes
/// an empty line, so that it is told from a break.
pub(crate) fn write_lines(tag: &[u8], style: Style, out: &mut impl Write) -> Result<()> {
    let own = |text: &[u8]| -> Vec<u8> {
        if style == Style::Library || !text.contains(&b'\n') {
            return text.to_vec();
        }
        let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
        lines.join(&b"\n\n"[..])
    };
    let mut rest = tag;
    while rest.len() > LINE {
        let fits = |k: &usize| {
            let near = |k: usize| rest.get(k).is_some_and(|b| *b == b'\n');
            rest[*k] == b' ' && !near(k - 1) && !near(k + 1)
        };
        let last = (1..LINE).rev().find(fits);
        let Some(at) = last.or_else(|| (LINE..rest.len()).find(fits)) else { break };
        out.write_all(&own(&rest[..at]))?;
        out.write_all(b"\n")?;
        rest = &rest[at + 1..];
    }
    out.write_all(&own(rest))?;
    Ok(())
}

/// A text has nothing but its marks to end a tag by.
pub(crate) fn representable(control: Control, text: &[u8]) -> bool {
    let contains = |mark: &[u8]| text.windows(mark.len()).any(|w| w == mark);
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
            let stroke = control == Control::Begin && text.ends_with(b"/");
            quote.is_none() && !stroke && begins_tag(text)
        }
    }
}

/// Attributes with typed values. A name that would be taken for something else, one of `taken`,
/// gets a stroke behind it.
pub(crate) fn write_values(attrs: &[(String, Value)], taken: &[&str], out: &mut Vec<u8>) {
    for (name, value) in attrs {
        let odd = |c: char| " =\"'<>/\t\r\n".contains(c);
        let mut name: String = name.chars().map(|c| if odd(c) { '_' } else { c }).collect();
        if name.is_empty() || taken.contains(&name.as_str()) {
            name.push('_');
        }
        write_attribute(&name, &value_text(value), out);
    }
}

/// A value as the library writes attributes, with all its digits.
fn value_text(value: &Value) -> Vec<u8> {
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
        Value::List(values) => values.iter().map(value_text).collect::<Vec<_>>().join(&b' '),
        other => other.to_string().into_bytes(),
    }
}

/// Tells what elements were before they became what Fortran has.
pub(crate) fn write_origin(dtype: DType, written: DType, out: &mut Vec<u8>) {
    let dtype = dtype.with_order(ByteOrder::Little);
    if dtype != written.with_order(ByteOrder::Little) {
        write_attribute("spile_type", dtype.to_string().as_bytes(), out);
    }
}
