//! The manifest of an scda file, written by `unpack` and read by `pack`.
//!
//! Fields have the names of the specification: `N` elements of `E` bytes. Manifests may be written by hand:
//! fields that follow from the data are optional, and errors contain the section and the field.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use spile::error::{Error, Result};
use spile::limits::Limits;
use spile::source::Source;
use spile::tree::closest;
use spile_ops::json::hex;
use spile_scda::wire::{Breaks, Kind, USER, VENDOR};

/// File name of the manifest in a folder.
pub(super) const MANIFEST: &str = "manifest.json";

/// A section in the manifest written by `unpack`.
#[derive(Serialize)]
pub(super) struct Row {
    #[serde(rename = "type")]
    pub(super) kind: char,
    pub(super) user: Text,
    #[serde(rename = "N", skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    #[serde(rename = "E", skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<Sizes>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) encoded: bool,
    pub(super) file: String,
}

/// A string of an scda file: text if it is UTF-8, else bytes in hexadecimal.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Text {
    Plain(String),
    Bytes { hex: String },
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Plain(text.into()),
            Err(_) => Self::Bytes { hex: hex(bytes) },
        }
    }
}

/// Size of a block or sizes of elements.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Sizes {
    One(u64),
    List(Vec<u64>),
    File(String),
}

/// A parsed manifest.
pub(super) struct Manifest {
    pub(super) vendor: Option<Vec<u8>>,
    pub(super) user: Vec<u8>,
    pub(super) breaks: Option<Breaks>,
    pub(super) level: Option<u32>,
    pub(super) sections: Vec<Item>,
}

/// A validated section.
pub(super) struct Item {
    pub(super) user: Vec<u8>,
    pub(super) form: Form,
    pub(super) data: Data,
    pub(super) encoded: bool,
}

pub(super) enum Form {
    Inline,
    Block,
    /// Number of elements and size of each.
    Array(u64, u64),
    /// Sizes of the elements.
    Varray(Vec<u64>),
}

/// The data of a section.
pub(super) enum Data {
    File(PathBuf, u64),
    Inline(Vec<u8>),
}

impl Data {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }
}

impl Item {
    /// Size of the largest element in bytes.
    pub(super) fn largest(&self) -> u64 {
        match &self.form {
            Form::Inline | Form::Block => self.data.len(),
            Form::Array(_, size) => *size,
            Form::Varray(sizes) => sizes.iter().max().copied().unwrap_or(0),
        }
    }
}

impl Manifest {
    /// Reads a manifest; its file names are relative to `folder`.
    pub(super) fn read(source: &Source, folder: &Path, limits: &Limits) -> Result<Self> {
        // Parsed JSON takes several times the memory of its text.
        limits.allow(source.len().saturating_mul(8), "the manifest")?;
        let text = source.read_vec(0, source.len())?;
        let value: Value = serde_json::from_slice(&text)
            .map_err(|e| Error::argument(format!("invalid JSON in the manifest: {e}")))?;
        let mut fields = Fields::new(value)?;
        let vendor = fields.take("vendor", |v| parse_string(v, VENDOR))?;
        let user = fields.take("user", |v| parse_string(v, USER))?.unwrap_or_default();
        let breaks = fields.take("breaks", |value| match value.as_str() {
            Some("unix") => Ok(Breaks::Unix),
            Some("mime") => Ok(Breaks::Mime),
            _ => Err("expected \"unix\" or \"mime\"".into()),
        })?;
        let level = fields.take("level", |value| {
            let level = value.as_u64().and_then(|level| u32::try_from(level).ok());
            level
                .filter(|level| *level <= 12)
                .ok_or_else(|| "expected a number from 0 to 12".into())
        })?;
        let list = match fields.0.remove("sections") {
            Some(Value::Array(list)) => list,
            Some(_) => return Err(Error::argument("\"sections\": expected a list")),
            None => return Err(Error::argument("missing field \"sections\"")),
        };
        fields.finish(&["vendor", "user", "breaks", "level", "sections"])?;
        let mut tables = 0;
        let sections = list.into_iter().enumerate().map(|(number, value)| {
            Fields::new(value)
                .and_then(|fields| section(fields, folder, &mut tables, limits))
                .map_err(|e| e.in_object(format!("section {number}")))
        });
        let sections = sections.collect::<Result<_>>()?;
        Ok(Self { vendor, user, breaks, level, sections })
    }
}

/// Parses and validates a section. `tables` is the total number of element sizes in memory.
fn section(mut fields: Fields, folder: &Path, tables: &mut u64, limits: &Limits) -> Result<Item> {
    let kinds = [Kind::Inline, Kind::Block, Kind::Array, Kind::Varray];
    let kind = fields.take("type", |value| {
        let named = |kind: &Kind| value.as_str() == Some(kind.letter().encode_utf8(&mut [0; 4]));
        kinds.into_iter().find(named).ok_or_else(|| "expected \"I\", \"B\", \"A\" or \"V\"".into())
    })?;
    let kind = kind.ok_or_else(|| Error::argument("missing field \"type\": I, B, A or V"))?;
    let user = fields.take("user", |v| parse_string(v, USER))?.unwrap_or_default();
    let flag = |value: &Value| value.as_bool().ok_or_else(|| "expected true or false".into());
    let encoded = fields.take("encoded", flag)?.unwrap_or(false);
    if encoded && kind == Kind::Inline {
        return Err(Error::argument("\"encoded\": I sections cannot be compressed"));
    }
    let (data, pieces) = data(&mut fields, folder)?;
    let mut known = vec!["type", "user", "encoded", "file", "text", "hex"];
    let elements = matches!(kind, Kind::Array | Kind::Varray);
    let number = if elements { fields.take("N", parse_u64)? } else { None };
    known.extend(["N", "E"].into_iter().skip(match kind {
        Kind::Inline => 2,
        Kind::Block => 1,
        Kind::Array | Kind::Varray => 0,
    }));
    let form = match kind {
        Kind::Inline if data.len() != 32 => {
            let message = format!("expected 32 bytes in an I section, found {}", data.len());
            return Err(Error::argument(message));
        }
        Kind::Inline => Form::Inline,
        Kind::Block => match fields.take("E", parse_u64)? {
            Some(size) if size != data.len() => {
                let message = format!("expected {size} bytes (E), found {}", data.len());
                return Err(Error::argument(message));
            }
            _ => Form::Block,
        },
        Kind::Array => array(number, fields.take("E", parse_u64)?, data.len(), pieces.as_deref())?,
        Kind::Varray => {
            let sizes = match fields.take("E", parse_sizes)? {
                Some(Sizes::List(list)) => list,
                Some(Sizes::File(name)) => read_sizes(&folder.join(name), number, *tables, limits)
                    .map_err(|e| in_field("E", &e))?,
                Some(Sizes::One(_)) | None => pieces.ok_or_else(|| {
                    Error::argument("missing field \"E\": the sizes of the elements")
                        .hint("a list of numbers, or the name of a file with one number per line")
                })?,
            };
            varray(number, sizes, data.len(), tables)?
        }
    };
    fields.finish(&known)?;
    let item = Item { user, form, data, encoded };
    if encoded {
        spile_scda::Encoder::allow(item.largest(), limits)?;
    }
    Ok(item)
}

/// The data of a section, and the sizes of its elements if they are listed separately.
fn data(fields: &mut Fields, folder: &Path) -> Result<(Data, Option<Vec<u64>>)> {
    let text =
        |value: &Value| value.as_str().map(str::to_string).ok_or("expected a file name".into());
    let file = fields.take("file", text)?;
    let text = fields.take("text", |value| parse_pieces(value, |t| Some(t.as_bytes().to_vec())))?;
    let bytes = fields.take("hex", |value| parse_pieces(value, parse_hex))?;
    let given: Vec<&str> =
        [("file", file.is_some()), ("text", text.is_some()), ("hex", bytes.is_some())]
            .into_iter()
            .filter_map(|(name, given)| given.then_some(name))
            .collect();
    if given.len() > 1 {
        let names = given.join("\" and \"");
        return Err(Error::argument(format!("\"{names}\" exclude each other")));
    }
    if let Some(name) = file {
        let path = folder.join(name);
        let len = Source::open(&path).map_err(|e| in_field("file", &e))?.len();
        return Ok((Data::File(path, len), None));
    }
    let Pieces { bytes, sizes } = text.or(bytes).unwrap_or_default();
    Ok((Data::Inline(bytes), sizes))
}

/// Data contained in the manifest.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    /// Sizes of the items, if the data is a list.
    sizes: Option<Vec<u64>>,
}

/// Parses a string, or a list of strings that are the elements of an array.
fn parse_pieces(value: &Value, decode: fn(&str) -> Option<Vec<u8>>) -> FieldResult<Pieces> {
    let bad = || String::from("expected a string, or a list of strings, one per element");
    let one = |value: &Value| -> FieldResult<Vec<u8>> {
        decode(value.as_str().ok_or_else(bad)?).ok_or_else(|| "expected hexadecimal digits".into())
    };
    let Value::Array(list) = value else {
        return Ok(Pieces { bytes: one(value)?, sizes: None });
    };
    let list = list.iter().map(one).collect::<FieldResult<Vec<_>>>()?;
    let sizes = list.iter().map(|piece| piece.len() as u64).collect();
    Ok(Pieces { bytes: list.concat(), sizes: Some(sizes) })
}

/// Number and size of the elements of an A section; one of them is optional.
fn array(
    number: Option<u64>,
    size: Option<u64>,
    bytes: u64,
    pieces: Option<&[u64]>,
) -> Result<Form> {
    let listed = match pieces {
        Some([first, rest @ ..]) if rest.iter().all(|size| size == first) => Some(*first),
        Some([_, ..]) => {
            let message = "the elements of an A section must have the same size";
            return Err(
                Error::argument(message).hint("use a V section for elements of different sizes")
            );
        }
        _ => None,
    };
    let number = number.or(pieces.map(|pieces| pieces.len() as u64));
    let wrong =
        |what: String| Err(Error::argument(format!("expected {what}, found {bytes} bytes")));
    let (number, size) = match (number, size.or(listed)) {
        (Some(number), Some(size)) => (number, size),
        (None, Some(size)) if size > 0 && bytes.is_multiple_of(size) => (bytes / size, size),
        (None, Some(size)) if size > 0 => return wrong(format!("a multiple of {size} bytes (E)")),
        (Some(0), None) => (0, 0),
        (Some(number), None) if bytes.is_multiple_of(number) => (number, bytes / number),
        (Some(number), None) => return wrong(format!("{number} elements (N) of one size")),
        (None, size) => {
            let missing = if size.is_some() { "N" } else { "E" };
            let message = format!("missing field \"{missing}\": N elements of E bytes");
            return Err(Error::argument(message));
        }
    };
    let alike = pieces.is_none_or(|pieces| pieces.len() as u64 == number);
    if number.checked_mul(size) != Some(bytes) || !alike {
        return wrong(format!("{number} elements (N) of {size} bytes (E)"));
    }
    Ok(Form::Array(number, size))
}

fn varray(number: Option<u64>, sizes: Vec<u64>, bytes: u64, tables: &mut u64) -> Result<Form> {
    if let Some(number) = number.filter(|number| *number != sizes.len() as u64) {
        let message = format!("expected {number} sizes (N), found {}", sizes.len());
        return Err(Error::argument(message));
    }
    let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
    if total != Some(bytes) {
        let total = total.map_or("more than 2^64".into(), |t| t.to_string());
        let message = format!("expected {total} bytes (sum of E), found {bytes}");
        return Err(Error::argument(message));
    }
    *tables += sizes.len() as u64;
    Ok(Form::Varray(sizes))
}

/// Reads the sizes of elements from a file of numbers separated by white space.
fn read_sizes(path: &Path, number: Option<u64>, before: u64, limits: &Limits) -> Result<Vec<u64>> {
    let file = fs::File::open(path).map_err(|e| Error::io(path, e))?;
    let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
    // A number takes at least two bytes.
    let most = number.unwrap_or(u64::MAX).min(length / 2 + 1).saturating_add(before);
    limits.allow(most.saturating_mul(8), "the sizes of the elements")?;
    let mut sizes = Vec::new();
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).map_err(|e| Error::io(path, e))? == 0 {
            return Ok(sizes);
        }
        for token in line.split_ascii_whitespace() {
            let size = token.parse().map_err(|_| {
                let message = format!("expected the size of an element, found \"{token}\"");
                Error::argument(message).with_path(path)
            })?;
            sizes.push(size);
            if number.is_some_and(|number| sizes.len() as u64 > number) {
                let message = format!("more than {} sizes (N)", sizes.len() - 1);
                return Err(Error::argument(message).with_path(path));
            }
        }
    }
}

/// The error of a file named by a field.
fn in_field(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), error.code(), format!("\"{name}\": {error}"))
}

/// The value of a field, or an error message.
type FieldResult<T> = std::result::Result<T, String>;

/// The fields of a JSON object that are not parsed yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn new(value: Value) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(Error::argument("expected a JSON object")),
        }
    }

    /// Removes and parses a field, if it exists.
    fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> FieldResult<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        read(&value).map(Some).map_err(|e| Error::argument(format!("\"{name}\": {e}")))
    }

    /// Fails if a field is left, which is not one of `known`.
    fn finish(self, known: &[&str]) -> Result<()> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        let hint = match closest(name, known.iter().copied()).as_slice() {
            [] => format!("known fields: {}", known.join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Err(Error::argument(format!("unknown field \"{name}\"")).hint(hint))
    }
}

fn parse_u64(value: &Value) -> FieldResult<u64> {
    value.as_u64().ok_or_else(|| format!("expected an integer >= 0, found {value}"))
}

fn parse_sizes(value: &Value) -> FieldResult<Sizes> {
    match value {
        Value::String(name) => Ok(Sizes::File(name.clone())),
        Value::Array(list) => {
            Ok(Sizes::List(list.iter().map(parse_u64).collect::<FieldResult<_>>()?))
        }
        _ => Err("expected a list of sizes, or the name of a file".into()),
    }
}

/// Parses a string, or bytes as `{"hex": "00ff"}`, of at most `longest` bytes.
fn parse_string(value: &Value, longest: usize) -> FieldResult<Vec<u8>> {
    let bad = || String::from("expected a string or {\"hex\": \"...\"}");
    let bytes = match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Object(map) if map.len() == 1 => {
            map.get("hex").and_then(Value::as_str).and_then(parse_hex).ok_or_else(bad)?
        }
        _ => return Err(bad()),
    };
    if bytes.len() > longest {
        return Err(format!("expected at most {longest} bytes, found {}", bytes.len()));
    }
    Ok(bytes)
}

/// Parses pairs of hexadecimal digits; white space is ignored.
fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|c| !c.is_ascii_whitespace());
    let digits = digits.map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<Vec<u8>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
