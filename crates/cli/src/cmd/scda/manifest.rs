//! The manifest of an scda file, written by `unpack` and read by `pack`.
//!
//! Fields have the names of the specification: `N` elements of `E` bytes. Manifests may be written by hand:
//! fields that follow from the data are optional, and errors contain the line or the section.

use std::fs;
use std::io::{BufRead as _, BufReader};

use serde::Deserialize;
use spile::limits::Limits;
use spile::source::Source;
use spile_ops::json::hex;
use spile_scda::wire::{Breaks, USER, VENDOR};

use super::LineBreaks;
use crate::cmd::prelude::*;

/// File name of the manifest in a folder.
pub(super) const MANIFEST: &str = "manifest.json";

/// A manifest as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    vendor: Option<Text>,
    #[serde(default)]
    user: Text,
    breaks: Option<LineBreaks>,
    level: Option<u32>,
    #[serde(default)]
    index: bool,
    #[serde(default)]
    checksums: bool,
    sections: Vec<Row>,
}

/// A section of a manifest.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    #[serde(rename = "type")]
    pub(super) kind: Letter,
    #[serde(default)]
    pub(super) user: Text,
    #[serde(rename = "N", skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    #[serde(rename = "E", skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<Sizes>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) encoded: bool,
    pub(super) file: Option<String>,
    #[serde(skip_serializing)]
    pub(super) text: Option<Pieces>,
    #[serde(skip_serializing)]
    pub(super) hex: Option<Pieces>,
}

/// The kind of a section: inline, block, array, or array of elements of different sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Letter {
    I,
    B,
    A,
    V,
}

/// A string of an scda file: text if it is UTF-8, else bytes in hexadecimal.
#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a string or {\"hex\": \"...\"}")]
pub(super) enum Text {
    Plain(String),
    Bytes { hex: String },
}

impl Default for Text {
    fn default() -> Self {
        Self::Plain(String::new())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Plain(text.into()),
            Err(_) => Self::Bytes { hex: hex(bytes) },
        }
    }
}

impl Text {
    /// The bytes of field `name`, at most `longest`.
    fn bytes(self, name: &str, longest: usize) -> Result<Vec<u8>> {
        let bytes = match self {
            Self::Plain(text) => text.into_bytes(),
            Self::Bytes { hex } => parse_hex(&hex)?,
        };
        if bytes.len() > longest {
            let found = bytes.len();
            let message = format!("\"{name}\": expected at most {longest} bytes, found {found}");
            return Err(Error::argument(message));
        }
        Ok(bytes)
    }
}

/// Size of a block or of each element; sizes of the elements; or the name of a file with their sizes.
#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a size, a list of sizes, or the name of a file")]
pub(super) enum Sizes {
    One(u64),
    List(Vec<u64>),
    File(String),
}

/// Data contained in the manifest: a string, or a list of strings that are the elements of an array.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings, one per element")]
pub(super) enum Pieces {
    One(String),
    List(Vec<String>),
}

impl Pieces {
    /// The bytes, and the sizes of the elements if they are listed.
    fn decode(
        self,
        decode: impl Fn(&str) -> Result<Vec<u8>>,
    ) -> Result<(Vec<u8>, Option<Vec<u64>>)> {
        match self {
            Self::One(text) => Ok((decode(&text)?, None)),
            Self::List(list) => {
                let list = list.iter().map(|text| decode(text)).collect::<Result<Vec<_>>>()?;
                let sizes = list.iter().map(|piece| piece.len() as u64).collect();
                Ok((list.concat(), Some(sizes)))
            }
        }
    }
}

/// A parsed manifest.
pub(super) struct Manifest {
    pub(super) vendor: Option<Vec<u8>>,
    pub(super) user: Vec<u8>,
    pub(super) breaks: Option<Breaks>,
    pub(super) level: Option<u32>,
    pub(super) index: bool,
    pub(super) checksums: bool,
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
        let Document { vendor, user, breaks, level, index, checksums, sections } =
            serde_json::from_slice(&text)
                .map_err(|e| Error::argument(format!("invalid manifest: {e}")))?;
        if level.is_some_and(|level| level > 12) {
            return Err(Error::argument("\"level\": expected a number from 0 to 12"));
        }
        let mut tables = 0;
        let sections = sections.into_iter().enumerate().map(|(number, row)| {
            let item = section(row, folder, &mut tables, limits);
            item.map_err(|e| e.in_object(format!("section {number}")))
        });
        Ok(Self {
            vendor: vendor.map(|vendor| vendor.bytes("vendor", VENDOR)).transpose()?,
            user: user.bytes("user", USER)?,
            breaks: breaks.map(Into::into),
            level,
            index,
            checksums,
            sections: sections.collect::<Result<_>>()?,
        })
    }
}

/// Validates a section. `tables` is the total number of element sizes in memory.
fn section(row: Row, folder: &Path, tables: &mut u64, limits: &Limits) -> Result<Item> {
    let Row { kind, user, number, size, encoded, file, text, hex } = row;
    let user = user.bytes("user", USER)?;
    if encoded && kind == Letter::I {
        return Err(Error::argument("\"encoded\": I sections cannot be compressed"));
    }
    let (data, pieces) = match (file, text, hex) {
        (Some(name), None, None) => {
            let path = folder.join(name);
            let len = Source::open(&path).map_err(|e| in_field("file", &e))?.len();
            (Data::File(path, len), None)
        }
        (None, text, None) => {
            let text = text.unwrap_or(Pieces::One(String::new()));
            let (bytes, sizes) = text.decode(|text| Ok(text.as_bytes().to_vec()))?;
            (Data::Inline(bytes), sizes)
        }
        (None, None, Some(hex)) => {
            let (bytes, sizes) = hex.decode(parse_hex)?;
            (Data::Inline(bytes), sizes)
        }
        _ => return Err(Error::argument("\"file\", \"text\" and \"hex\" exclude each other")),
    };
    let unused = |name: &str| Err(Error::argument(format!("{kind:?} sections have no \"{name}\"")));
    let form = match (kind, size) {
        (Letter::I, Some(_)) => return unused("E"),
        (Letter::I | Letter::B, _) if number.is_some() => return unused("N"),
        (Letter::I, None) if data.len() != 32 => {
            let message = format!("expected 32 bytes in an I section, found {}", data.len());
            return Err(Error::argument(message));
        }
        (Letter::I, None) => Form::Inline,
        (Letter::B, Some(Sizes::One(size))) if size != data.len() => {
            let message = format!("expected {size} bytes (E), found {}", data.len());
            return Err(Error::argument(message));
        }
        (Letter::B, None | Some(Sizes::One(_))) => Form::Block,
        (Letter::A, None) => array(number, None, data.len(), pieces.as_deref())?,
        (Letter::A, Some(Sizes::One(size))) => {
            array(number, Some(size), data.len(), pieces.as_deref())?
        }
        (Letter::A | Letter::B, Some(Sizes::List(_) | Sizes::File(_))) => {
            return Err(Error::argument(format!("\"E\": {kind:?} sections have one size")));
        }
        (Letter::V, size) => {
            let sizes = match size {
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
    let item = Item { user, form, data, encoded };
    if encoded {
        spile_scda::Encoder::allow(item.largest(), limits)?;
    }
    Ok(item)
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

/// Parses pairs of hexadecimal digits; white space is ignored.
fn parse_hex(text: &str) -> Result<Vec<u8>> {
    let digits = text.chars().filter(|c| !c.is_ascii_whitespace());
    let digits = digits.map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<Vec<u8>>>();
    match digits.as_deref().map(<[u8]>::as_chunks) {
        Some((pairs, [])) => Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
        _ => Err(Error::argument("expected pairs of hexadecimal digits")),
    }
}
