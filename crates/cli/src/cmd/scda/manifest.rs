//! The manifest that describes an scda file: what `unpack` writes and `pack` reads.
//!
//! Fields have the paper's names: `N` elements of `E` bytes. It may be written by hand, so what
//! follows from the data can be left out, and every complaint names the section and the field.

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

/// The manifest's name in a folder.
pub(super) const MANIFEST: &str = "manifest.json";

/// A line of the manifest that `unpack` writes.
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

/// A string of an scda file, which may be any bytes: as it is where it is UTF-8.
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

/// The size of a block or of elements.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Sizes {
    One(u64),
    List(Vec<u64>),
    File(String),
}

/// A file to be made.
pub(super) struct Manifest {
    pub(super) vendor: Option<Vec<u8>>,
    pub(super) user: Vec<u8>,
    pub(super) breaks: Option<Breaks>,
    pub(super) level: Option<u32>,
    pub(super) sections: Vec<Item>,
}

/// A section to be written; everything in it fits together.
pub(super) struct Item {
    pub(super) user: Vec<u8>,
    pub(super) form: Form,
    pub(super) data: Data,
    pub(super) encoded: bool,
}

pub(super) enum Form {
    Inline,
    Block,
    /// Number and size of the elements.
    Array(u64, u64),
    /// Sizes of the elements.
    Varray(Vec<u64>),
}

/// Where the bytes of a section are.
pub(super) enum Data {
    File(PathBuf, u64),
    Here(Vec<u8>),
}

impl Data {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Here(bytes) => bytes.len() as u64,
        }
    }
}

impl Item {
    /// Bytes of the largest element.
    pub(super) fn largest(&self) -> u64 {
        match &self.form {
            Form::Inline | Form::Block => self.data.len(),
            Form::Array(_, size) => *size,
            Form::Varray(sizes) => sizes.iter().max().copied().unwrap_or(0),
        }
    }
}

impl Manifest {
    /// Reads a manifest; the files that it names lie beside it, in `folder`.
    pub(super) fn read(source: &Source, folder: &Path, limits: &Limits) -> Result<Self> {
        // Parsed JSON takes several times the room of its text.
        limits.allow(source.len().saturating_mul(8), "the manifest")?;
        let text = source.read_vec(0, source.len())?;
        let value: Value = serde_json::from_slice(&text)
            .map_err(|e| Error::argument(format!("is not a manifest in JSON: {e}")))?;
        let mut fields = Fields::new(value)?;
        let vendor = fields.take("vendor", |v| string(v, VENDOR))?;
        let user = fields.take("user", |v| string(v, USER))?.unwrap_or_default();
        let breaks = fields.take("breaks", |value| match value.as_str() {
            Some("unix") => Ok(Breaks::Unix),
            Some("mime") => Ok(Breaks::Mime),
            _ => Err("is \"unix\" or \"mime\"".into()),
        })?;
        let level = fields.take("level", |value| {
            let level = value.as_u64().and_then(|level| u32::try_from(level).ok());
            level.filter(|level| *level <= 12).ok_or_else(|| "is a number from 0 to 12".into())
        })?;
        let list = match fields.0.remove("sections") {
            Some(Value::Array(list)) => list,
            Some(_) => return Err(Error::argument("\"sections\" is a list")),
            None => return Err(Error::argument("the list \"sections\" is missing")),
        };
        fields.done(&["vendor", "user", "breaks", "level", "sections"])?;
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

/// One section, checked as a whole. `tables` counts the sizes that are in memory.
fn section(mut fields: Fields, folder: &Path, tables: &mut u64, limits: &Limits) -> Result<Item> {
    let kinds = [Kind::Inline, Kind::Block, Kind::Array, Kind::Varray];
    let kind = fields.take("type", |value| {
        let named = |kind: &Kind| value.as_str() == Some(kind.letter().encode_utf8(&mut [0; 4]));
        kinds.into_iter().find(named).ok_or_else(|| "is \"I\", \"B\", \"A\" or \"V\"".into())
    })?;
    let kind = kind.ok_or_else(|| Error::argument("\"type\" is missing: I, B, A or V"))?;
    let user = fields.take("user", |v| string(v, USER))?.unwrap_or_default();
    let flag = |value: &Value| value.as_bool().ok_or_else(|| "is true or false".into());
    let encoded = fields.take("encoded", flag)?.unwrap_or(false);
    if encoded && kind == Kind::Inline {
        return Err(Error::argument("\"encoded\": an I section has no compressed form"));
    }
    let (data, pieces) = data(&mut fields, folder)?;
    let mut known = vec!["type", "user", "encoded", "file", "text", "hex"];
    let elements = matches!(kind, Kind::Array | Kind::Varray);
    let number = if elements { fields.take("N", whole)? } else { None };
    known.extend(["N", "E"].into_iter().skip(match kind {
        Kind::Inline => 2,
        Kind::Block => 1,
        Kind::Array | Kind::Varray => 0,
    }));
    let form = match kind {
        Kind::Inline if data.len() != 32 => {
            let message = format!("an I section has 32 bytes, {} are given", data.len());
            return Err(Error::argument(message));
        }
        Kind::Inline => Form::Inline,
        Kind::Block => match fields.take("E", whole)? {
            Some(size) if size != data.len() => {
                let message = format!("\"E\" is {size}, but {} bytes are given", data.len());
                return Err(Error::argument(message));
            }
            _ => Form::Block,
        },
        Kind::Array => array(number, fields.take("E", whole)?, data.len(), pieces.as_deref())?,
        Kind::Varray => {
            let sizes = match fields.take("E", sizes)? {
                Some(Sizes::List(list)) => list,
                Some(Sizes::File(name)) => read_sizes(&folder.join(name), number, *tables, limits)
                    .map_err(|e| in_field("E", &e))?,
                Some(Sizes::One(_)) | None => pieces.ok_or_else(|| {
                    Error::argument("\"E\" is missing: the sizes of the elements")
                        .hint("a list of numbers, or the name of a file with a number a line")
                })?,
            };
            varray(number, sizes, data.len(), tables)?
        }
    };
    fields.done(&known)?;
    let item = Item { user, form, data, encoded };
    if encoded {
        spile_scda::Encoder::allow(item.largest(), limits)?;
    }
    Ok(item)
}

/// The data of a section, and the sizes of its elements where they are given one by one.
fn data(fields: &mut Fields, folder: &Path) -> Result<(Data, Option<Vec<u64>>)> {
    let text = |value: &Value| value.as_str().map(str::to_string).ok_or("is a file name".into());
    let file = fields.take("file", text)?;
    let text = fields.take("text", |value| pieces(value, |t| Some(t.as_bytes().to_vec())))?;
    let bytes = fields.take("hex", |value| pieces(value, unhex))?;
    let given: Vec<&str> =
        [("file", file.is_some()), ("text", text.is_some()), ("hex", bytes.is_some())]
            .into_iter()
            .filter_map(|(name, given)| given.then_some(name))
            .collect();
    if given.len() > 1 {
        let names = given.join("\" and \"");
        return Err(Error::argument(format!("\"{names}\" are two ways to give the data")));
    }
    if let Some(name) = file {
        let path = folder.join(name);
        let len = Source::open(&path).map_err(|e| in_field("file", &e))?.len();
        return Ok((Data::File(path, len), None));
    }
    let Pieces { bytes, sizes } = text.or(bytes).unwrap_or_default();
    Ok((Data::Here(bytes), sizes))
}

/// Bytes that stand in the manifest.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    /// Where they are a list: bytes of each of its items.
    sizes: Option<Vec<u64>>,
}

/// A string, or a list of strings that are the elements of an array.
fn pieces(value: &Value, decode: fn(&str) -> Option<Vec<u8>>) -> Answer<Pieces> {
    let bad = || String::from("is a string, or a list of strings, one for each element");
    let one = |value: &Value| -> Answer<Vec<u8>> {
        decode(value.as_str().ok_or_else(bad)?).ok_or_else(|| "is not hexadecimal".into())
    };
    let Value::Array(list) = value else {
        return Ok(Pieces { bytes: one(value)?, sizes: None });
    };
    let list = list.iter().map(one).collect::<Answer<Vec<_>>>()?;
    let sizes = list.iter().map(|piece| piece.len() as u64).collect();
    Ok(Pieces { bytes: list.concat(), sizes: Some(sizes) })
}

/// Number and size of the elements of an A section; one follows from the other and the data.
fn array(
    number: Option<u64>,
    size: Option<u64>,
    bytes: u64,
    pieces: Option<&[u64]>,
) -> Result<Form> {
    let listed = match pieces {
        Some([first, rest @ ..]) if rest.iter().all(|size| size == first) => Some(*first),
        Some([_, ..]) => {
            let message = "the elements of an A section have one size, those given differ";
            return Err(Error::argument(message).hint("a V section has elements of any size"));
        }
        _ => None,
    };
    let number = number.or(pieces.map(|pieces| pieces.len() as u64));
    let wrong = |what: String| Err(Error::argument(format!("{bytes} bytes are given, not {what}")));
    let (number, size) = match (number, size.or(listed)) {
        (Some(number), Some(size)) => (number, size),
        (None, Some(size)) if size > 0 && bytes.is_multiple_of(size) => (bytes / size, size),
        (None, Some(size)) if size > 0 => return wrong(format!("a multiple of {size} (E)")),
        (Some(0), None) => (0, 0),
        (Some(number), None) if bytes.is_multiple_of(number) => (number, bytes / number),
        (Some(number), None) => return wrong(format!("{number} elements (N) of one size")),
        (None, size) => {
            let missing = if size.is_some() { "\"N\" is missing" } else { "\"E\" is missing" };
            return Err(Error::argument(format!("{missing}: N elements of E bytes")));
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
        let message = format!("\"N\" is {number}, but there are {} sizes", sizes.len());
        return Err(Error::argument(message));
    }
    let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
    if total != Some(bytes) {
        let total = total.map_or("more than any file holds".into(), |t| t.to_string());
        let message = format!("the sizes (E) add up to {total}, but {bytes} bytes are given");
        return Err(Error::argument(message));
    }
    *tables += sizes.len() as u64;
    Ok(Form::Varray(sizes))
}

/// The sizes of elements in a file of numbers, separated by white space.
fn read_sizes(path: &Path, number: Option<u64>, before: u64, limits: &Limits) -> Result<Vec<u64>> {
    let file = fs::File::open(path).map_err(|e| Error::io(path, e))?;
    let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
    // A number has a digit and something behind it.
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
        for word in line.split_ascii_whitespace() {
            let size = word.parse().map_err(|_| {
                let message = format!("\"{word}\" is not the size of an element");
                Error::argument(message).with_path(path)
            })?;
            sizes.push(size);
            if number.is_some_and(|number| sizes.len() as u64 > number) {
                let message = format!("has more than the {} sizes of \"N\"", sizes.len() - 1);
                return Err(Error::argument(message).with_path(path));
            }
        }
    }
}

/// The error of a file that a field names.
fn in_field(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), error.code(), format!("\"{name}\": {error}"))
}

/// What a field is, or the rest of a sentence that begins with its name.
type Answer<T> = std::result::Result<T, String>;

/// The fields of a JSON object that were not looked at yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn new(value: Value) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(Error::argument("is not an object with fields")),
        }
    }

    /// A field, if it is there, in its meaning.
    fn take<T>(&mut self, name: &str, read: impl FnOnce(&Value) -> Answer<T>) -> Result<Option<T>> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        read(&value).map(Some).map_err(|what| Error::argument(format!("\"{name}\" {what}")))
    }

    /// All fields were `known` ones: a mistyped one must not go unnoticed.
    fn done(self, known: &[&str]) -> Result<()> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        let hint = match closest(name, known.iter().copied()).as_slice() {
            [] => format!("known here are {}", known.join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Err(Error::argument(format!("there is no field \"{name}\" here")).hint(hint))
    }
}

fn whole(value: &Value) -> Answer<u64> {
    value.as_u64().ok_or_else(|| format!("is a whole number, not {value}"))
}

fn sizes(value: &Value) -> Answer<Sizes> {
    match value {
        Value::String(name) => Ok(Sizes::File(name.clone())),
        Value::Array(list) => Ok(Sizes::List(list.iter().map(whole).collect::<Answer<_>>()?)),
        _ => Err("of a V section is a list of sizes, or the name of a file".into()),
    }
}

/// A string as it is, or any bytes as `{"hex": "00ff"}`; at most `longest` of them.
fn string(value: &Value, longest: usize) -> Answer<Vec<u8>> {
    let bad = || String::from("is a string, or {\"hex\": \"...\"} for any bytes");
    let bytes = match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Object(map) if map.len() == 1 => {
            map.get("hex").and_then(Value::as_str).and_then(unhex).ok_or_else(bad)?
        }
        _ => return Err(bad()),
    };
    if bytes.len() > longest {
        return Err(format!("has {} bytes, at most {longest} fit", bytes.len()));
    }
    Ok(bytes)
}

/// Bytes from pairs of hexadecimal digits, with or without white space.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|c| !c.is_ascii_whitespace());
    let digits = digits.map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<Vec<u8>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
