//! XML parser for VTK files: elements with attributes and the byte ranges of their text. Text is not kept in
//! memory, and nothing is parsed after the mark that begins the appended data, which are not XML.

use spile_core::error::{Error, Result};
use spile_core::layout::Extent;
use spile_core::limits::Limits;
use spile_core::source::Source;

/// Size of the read buffer.
const CHUNK: usize = 64 << 10;

/// Maximum length of a tag.
const LONGEST: usize = 1 << 20;

/// Maximum length of a comment.
const LONGEST_COMMENT: usize = 256 << 20;

/// Maximum nesting depth; VTK uses six levels.
const MAX_DEPTH: usize = 32;

/// Memory charged for an element, without its attributes.
const ELEMENT: u64 = 128;

/// Memory charged for an attribute, without its text.
const ATTRIBUTE: u64 = 64;

/// An element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attrs: Vec<(String, String)>,
    /// Offset of its first byte.
    pub(crate) at: u64,
    /// Text between its tag and the next one.
    pub(crate) text: Option<Extent>,
    pub(crate) children: Vec<Element>,
}

impl Element {
    pub(crate) fn attr(&self, name: &str) -> Option<&str> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn malformed(&self, message: impl Into<String>) -> Error {
        Error::malformed("vtk-004", message).in_object(self.name.clone()).at(self.at)
    }

    pub(crate) fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::unsupported("vtk-006", message).in_object(self.name.clone()).at(self.at)
    }

    /// The integer value of an attribute, or `default` if there is no such attribute.
    pub(crate) fn number(&self, name: &str, default: Option<u64>) -> Result<u64> {
        match (self.attr(name), default) {
            (Some(text), _) => text.trim().parse().map_err(|_| {
                self.malformed(format!("{name}: expected an integer, found \"{text}\""))
            }),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.malformed(format!("no attribute {name}"))),
        }
    }

    /// The value of an attribute as `N` numbers.
    pub(crate) fn list<T: std::str::FromStr, const N: usize>(&self, name: &str) -> Result<[T; N]> {
        let text = self.attr(name).unwrap_or_default();
        let numbers: Option<Vec<T>> = text.split_whitespace().map(|w| w.parse().ok()).collect();
        numbers.and_then(|numbers| <[T; N]>::try_from(numbers).ok()).ok_or_else(|| {
            self.malformed(format!("{name}: expected {N} numbers, found \"{text}\""))
        })
    }
}

/// The XML of a file, without text.
pub(crate) struct Document {
    pub(crate) root: Element,
    /// The first comment with the requested prefix.
    pub(crate) comment: Option<Vec<u8>>,
    /// First byte of the appended data, after their mark.
    pub(crate) appended: Option<u64>,
    /// Memory charged for the elements, in bytes.
    pub(crate) memory: u64,
    /// Read from a legacy file.
    pub(crate) legacy: bool,
}

impl Document {
    /// Whether the file is a collection of other files.
    pub(crate) fn is_collection(&self) -> bool {
        self.root.attr("type") == Some("Collection")
    }
}

/// Parses a file; `prefix` selects the comment to keep.
pub(crate) fn read(source: &Source, prefix: &[u8], limits: &Limits) -> Result<Document> {
    let mut scanner = Scanner::new(source, limits);
    // Open elements, from the root on.
    let mut open: Vec<Element> = Vec::new();
    let (mut comment, mut appended) = (None, None);
    let root = loop {
        let Some(at) = scanner.find(b'<')? else {
            let last = open.last().map_or("VTKFile", |e| e.name.as_str());
            let message = format!("unexpected end of file inside <{last}>");
            return Err(Error::truncated("vtk-002", message).at(source.len()));
        };
        if let Some(parent) = open.last_mut() {
            parent.text.get_or_insert(Extent { offset: scanner.at, len: at - scanner.at });
        }
        match scanner.tag(at)? {
            Tag::Comment(text) => {
                if comment.is_none() && text.starts_with(prefix) {
                    scanner.charge(text.len() as u64)?;
                    comment = Some(text);
                }
                continue;
            }
            Tag::Instruction => continue,
            Tag::Open(_) if open.len() >= MAX_DEPTH => {
                let message = format!("elements nested deeper than {MAX_DEPTH} levels");
                return Err(malformed(message, at));
            }
            Tag::Open(element) if element.name == "AppendedData" => {
                let mark = scanner.find(b'_')?.ok_or_else(|| {
                    Error::truncated("vtk-002", "no mark _ before the appended data").at(scanner.at)
                })?;
                appended = Some(mark + 1);
                // The rest of the file is not XML.
                break open.into_iter().rfold(element, |last, mut parent| {
                    parent.children.push(last);
                    parent
                });
            }
            Tag::Open(element) => {
                open.push(element);
                continue;
            }
            Tag::Empty(element) => open.push(element),
            Tag::Close(name) if open.last().is_none_or(|element| element.name != name) => {
                let message = format!("</{name}> without an open element of that name");
                return Err(malformed(message, at));
            }
            Tag::Close(_) => {}
        }
        let Some(done) = open.pop() else { continue };
        match open.last_mut() {
            Some(parent) => parent.children.push(done),
            None => break done,
        }
    };
    Ok(Document { root, comment, appended, memory: scanner.memory, legacy: false })
}

fn malformed(message: impl Into<String>, at: u64) -> Error {
    Error::malformed("vtk-003", message).at(at)
}

enum Tag {
    Open(Element),
    /// An element that its tag closes.
    Empty(Element),
    Close(String),
    Comment(Vec<u8>),
    /// A processing instruction.
    Instruction,
}

/// Reads a file in parts.
pub(crate) struct Scanner<'a> {
    pub(crate) source: &'a Source,
    /// Offset of the next byte.
    pub(crate) at: u64,
    chunk: Vec<u8>,
    /// Offset of the chunk.
    start: u64,
    /// Memory charged so far.
    pub(crate) memory: u64,
    limits: &'a Limits,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a Source, limits: &'a Limits) -> Self {
        Self { source, at: 0, chunk: Vec::new(), start: 0, memory: 0, limits }
    }

    /// Charges an element with `attrs` attributes and `text` bytes of text.
    pub(crate) fn charge_element(&mut self, attrs: u64, text: u64) -> Result<()> {
        self.charge(ELEMENT + attrs * ATTRIBUTE + text)
    }

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.memory = self.memory.saturating_add(bytes);
        self.limits.allow(self.memory, "the XML elements").map(drop)
    }

    /// The buffered bytes at `at`; empty at the end of the file.
    pub(crate) fn bytes(&mut self, at: u64) -> Result<&[u8]> {
        if at < self.start || at >= self.start + self.chunk.len() as u64 {
            self.chunk.resize(CHUNK, 0);
            let read = self.source.read_at_most(at, &mut self.chunk)?;
            self.chunk.truncate(read);
            self.start = at;
        }
        Ok(&self.chunk[(at - self.start) as usize..])
    }

    /// Offset of the next occurrence of `byte`.
    pub(crate) fn find(&mut self, byte: u8) -> Result<Option<u64>> {
        let mut at = self.at;
        loop {
            let bytes = self.bytes(at)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            if let Some(k) = bytes.iter().position(|b| *b == byte) {
                return Ok(Some(at + k as u64));
            }
            at += bytes.len() as u64;
        }
    }

    /// The bytes from `at` to `end`, without `end`, and continues after it. `quotes`: an `end` inside quotes does
    /// not count.
    fn until(&mut self, at: u64, end: &[u8], longest: usize, quotes: bool) -> Result<Vec<u8>> {
        let (mut text, mut quote) = (Vec::new(), None);
        self.at = at;
        while quote.is_some() || !text.ends_with(end) {
            let byte = self.bytes(self.at)?.first().copied().ok_or_else(|| {
                Error::truncated("vtk-002", "unexpected end of file inside a tag").at(at)
            })?;
            text.push(byte);
            self.at += 1;
            if quote == Some(byte) {
                quote = None;
            } else if quotes && quote.is_none() && matches!(byte, b'"' | b'\'') {
                quote = Some(byte);
            }
            self.limits.allow(text.len() as u64, "a tag or comment")?;
            if text.len() > longest {
                return Err(malformed("tag or comment without an end", at));
            }
        }
        text.truncate(text.len() - end.len());
        Ok(text)
    }

    /// Parses what begins with `<` at `at`.
    fn tag(&mut self, at: u64) -> Result<Tag> {
        let head: Vec<u8> = self.source.read_vec(at, 4.min(self.source.len() - at))?;
        if head == b"<!--" {
            return Ok(Tag::Comment(self.until(at + 4, b"-->", LONGEST_COMMENT, false)?));
        }
        if head.starts_with(b"<?") {
            self.until(at + 2, b"?>", LONGEST_COMMENT, false)?;
            return Ok(Tag::Instruction);
        }
        if head.starts_with(b"<!") {
            return Err(malformed("document types and CDATA are not supported", at));
        }
        let text = self.until(at + 1, b">", LONGEST, true)?;
        let attrs = text.split(|b| *b == b'=').count() as u64;
        self.charge_element(attrs, text.len() as u64)?;
        let text = String::from_utf8(text).map_err(|_| malformed("tag is not UTF-8", at))?;
        if let Some(name) = text.strip_prefix('/') {
            return Ok(Tag::Close(name.trim().to_string()));
        }
        let inside = text.strip_suffix('/');
        let element = element(inside.unwrap_or(&text), at).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            malformed(format!("invalid tag <{shown}...>"), at)
        })?;
        Ok(if inside.is_some() { Tag::Empty(element) } else { Tag::Open(element) })
    }
}

/// Parses the inside of a tag; `None` if it is invalid.
fn element(inside: &str, at: u64) -> Option<Element> {
    let (name, mut rest) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let mut attrs = Vec::new();
    while !rest.trim_start().is_empty() {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        attrs.push((name.trim().to_string(), unescape(value)?));
        rest = after;
    }
    Some(Element { name: name.to_string(), attrs, at, text: None, children: Vec::new() })
}

/// Characters with a named entity.
const NAMED: [(char, &str); 5] =
    [('&', "amp"), ('<', "lt"), ('>', "gt"), ('"', "quot"), ('\'', "apos")];

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match NAMED.iter().find(|(named, _)| *named == c) {
            Some((_, name)) => out.extend(["&", name, ";"]),
            None if c.is_control() => out.extend(["&#", &u32::from(c).to_string(), ";"]),
            None => out.push(c),
        }
    }
    out
}

pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut out = parts.next()?.to_string();
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        let c = match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(digits), _) => char::from_u32(u32::from_str_radix(digits, 16).ok()?)?,
            (_, Some(digits)) => char::from_u32(digits.parse().ok()?)?,
            _ => NAMED.iter().find(|(_, known)| *known == name)?.0,
        };
        out.push(c);
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_round_trip() {
        for text in ["a<b>&\"'c", "\t\n\r é", "&#65;", ""] {
            assert_eq!(unescape(&escape(text)).as_deref(), Some(text));
        }
        assert_eq!(unescape("&#x41;&#66;").as_deref(), Some("AB"));
        assert_eq!(unescape("&nbsp;"), None);
    }

    #[test]
    fn elements_have_attributes_and_the_range_of_their_text() {
        let text = b"<?xml version='1.0'?><!-- note 1 --><a x='1 > 0'>\n12 <b y=\"&lt;\"/></a>";
        let source = Source::memory(text.to_vec());
        let found = read(&source, b" note", &Limits::default()).unwrap();
        assert_eq!(found.comment.as_deref(), Some(&b" note 1 "[..]));
        assert_eq!(found.root.attr("x"), Some("1 > 0"));
        let Extent { offset, len } = found.root.text.unwrap();
        assert_eq!(&text[offset as usize..(offset + len) as usize], b"\n12 ");
        assert_eq!(found.root.child("b").unwrap().attr("y"), Some("<"));
        for bad in ["<a>", "<a", "<a></b>", "<a b=1/>", "<!DOCTYPE a>", "<a &/>", ""] {
            let source = Source::memory(bad.as_bytes().to_vec());
            assert!(read(&source, b"", &Limits::default()).is_err(), "{bad}");
        }
    }
}
