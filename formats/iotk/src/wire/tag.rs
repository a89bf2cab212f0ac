//! Tags of both forms: control codes, names, attributes, escapes, data types.

use std::borrow::Cow;

use spile_core::{ByteOrder, DType, Kind};

/// The kind of a tag (IOTK binary files, section 2, the table of control codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `<name ...>`
    Begin = 1,
    /// `</name>`
    End = 2,
    /// `<name .../>`
    Empty = 3,
    /// `<!--...-->`
    Comment = 4,
    /// `<?name ...?>`
    Instruction = 5,
}

/// The control code of the second header of a tag.
pub(crate) const SECOND: i32 = 128;

impl Control {
    pub(crate) fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            1 => Self::Begin,
            2 => Self::End,
            3 => Self::Empty,
            4 => Self::Comment,
            5 => Self::Instruction,
            _ => return None,
        })
    }

    /// The opening and closing delimiter of a tag.
    pub(crate) fn delimiters(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Begin => (b"<", b">"),
            Self::End => (b"</", b">"),
            Self::Empty => (b"<", b"/>"),
            Self::Comment => (b"<!--", b"-->"),
            Self::Instruction => (b"<?", b"?>"),
        }
    }
}

/// The bytes of a tag between its delimiters, unchanged: `pippo a="1"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    text: Vec<u8>,
    /// Length of the name in bytes.
    name: usize,
}

impl Tag {
    /// A tag from the bytes between its delimiters.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        let name = text.iter().position(|b| is_space(*b)).unwrap_or(text.len());
        Self { text, name }
    }

    /// The text between the delimiters.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Consumes the tag and returns the text between the delimiters.
    pub(crate) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.text[..self.name]
    }

    /// The name as a string; invalid UTF-8 is replaced.
    pub fn name_lossy(&self) -> String {
        String::from_utf8_lossy(self.name()).into_owned()
    }

    /// Iterates over the attributes in file order; escapes in values are not resolved.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes { text: &self.text, at: self.name }
    }

    /// The value of the first attribute named `name`, with escapes resolved.
    pub fn get(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.get_raw(name).map(|value| unescape(value))
    }

    /// The value of the first attribute named `name`, with escapes not resolved.
    pub fn get_raw(&self, name: &str) -> Option<&[u8]> {
        self.attributes().find(|a| a.name == name.as_bytes()).map(|a| a.value)
    }

    /// The value of the attribute `name` as a string; invalid UTF-8 is replaced.
    pub fn get_text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// The value of the attribute `name` as an unsigned integer.
    pub fn get_u64(&self, name: &str) -> Option<u64> {
        std::str::from_utf8(self.get_raw(name)?).ok()?.trim().parse().ok()
    }

    /// The value of the attribute `name` as a logical, by the rules of the library.
    pub fn get_bool(&self, name: &str) -> Option<bool> {
        parse_logical(self.get_raw(name)?.trim_ascii())
    }

    /// A copy with the value of attribute `name` replaced. A missing attribute is inserted after
    /// the attribute `after`, or at the end. All other bytes are unchanged.
    pub fn with_attribute(&self, name: &str, value: &str, after: &str) -> Self {
        let mut text = self.text.clone();
        if let Some(a) = self.attributes().find(|a| a.name == name.as_bytes()) {
            text.splice(a.start..a.end, format!("{name}=\"{value}\"").into_bytes());
            return Self::new(text);
        }
        let previous = self.attributes().find(|a| a.name == after.as_bytes());
        let at = previous.map_or(self.text.trim_ascii_end().len(), |a| a.end);
        text.splice(at..at, format!(" {name}=\"{value}\"").into_bytes());
        Self::new(text)
    }

    /// A copy without the attribute `name` and the blank before it.
    pub fn without_attribute(&self, name: &str) -> Self {
        let mut text = self.text.clone();
        if let Some(a) = self.attributes().find(|a| a.name == name.as_bytes()) {
            let from = if is_space(text[a.start - 1]) { a.start - 1 } else { a.start };
            text.drain(from..a.end);
        }
        Self::new(text)
    }

    /// A copy in which the attribute `from` is named `to`.
    pub fn with_renamed(&self, from: &str, to: &str) -> Self {
        let mut text = self.text.clone();
        if let Some(a) = self.attributes().find(|a| a.name == from.as_bytes()) {
            text.splice(a.start..a.start + from.len(), to.bytes());
        }
        Self::new(text)
    }
}

/// One attribute of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value; escapes are not resolved.
    pub value: &'a [u8],
    /// False if the equals sign or the quotes are missing.
    pub well_formed: bool,
    /// Name and value as they are in the tag.
    pub text: &'a [u8],
    /// Byte range in the text of the tag.
    start: usize,
    end: usize,
}

/// Iterator over the attributes of a tag, in file order. Blanks around `=` and both kinds of quotes
/// are accepted.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    text: &'a [u8],
    at: usize,
}

impl Attributes<'_> {
    /// The index of the first byte from `at` on that satisfies `matches`, or the length. An explicit
    /// loop, because it visits every byte of every tag.
    fn seek(text: &[u8], mut at: usize, matches: impl Fn(u8) -> bool) -> usize {
        while at < text.len() && !matches(text[at]) {
            at += 1;
        }
        at
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let text = self.text;
        let start = Self::seek(text, self.at, |b| !is_space(b));
        if start >= text.len() {
            self.at = start;
            return None;
        }
        // A lone equals sign is treated as a name, so that the iterator advances.
        let name_end = Self::seek(text, start, |b| b == b'=' || is_space(b)).max(start + 1);
        let name = &text[start..name_end];
        let equals = Self::seek(text, name_end, |b| !is_space(b));
        let first = Self::seek(text, equals + 1, |b| !is_space(b));
        let (value, well_formed, end) = match text.get(first).copied() {
            _ if text.get(equals) != Some(&b'=') => (&b""[..], false, name_end),
            Some(quote @ (b'"' | b'\'')) => {
                let last = Self::seek(text, first + 1, |b| b == quote);
                let closed = last < text.len();
                (&text[first + 1..last], closed, last + usize::from(closed))
            }
            _ => {
                let end = Self::seek(text, first, is_space);
                (&text[first..end], false, end)
            }
        };
        self.at = end;
        Some(Attribute { name, value, well_formed, text: &text[start..end], start, end })
    }
}

/// True for the bytes that separate attributes inside a tag.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Parses a logical: an optional dot, then T or F in either case; the rest is ignored.
pub(crate) fn parse_logical(word: &[u8]) -> Option<bool> {
    match word.strip_prefix(b".").unwrap_or(word).first()? {
        b't' | b'T' => Some(true),
        b'f' | b'F' => Some(false),
        _ => None,
    }
}

/// Resolves `&amp; &lt; &gt; &quot; &apos;` and character references such as `&#65;`, once. Other
/// entities are left unchanged.
pub fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'&') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let end = tail.iter().take(10).position(|b| *b == b';').filter(|_| *first == b'&');
        let resolved = end.and_then(|end| entity(&tail[..end]));
        if let (Some(c), Some(end)) = (resolved, end) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &tail[end + 1..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    Cow::Owned(out)
}

fn entity(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', hex @ ..] => {
            char::from_u32(u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?)?
        }
        [b'#', digits @ ..] => char::from_u32(std::str::from_utf8(digits).ok()?.parse().ok()?)?,
        _ => return None,
    })
}

/// Appends `text` to `out` with `&`, `<` and `>` escaped, as the library does in data.
pub fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            other => out.push(*other),
        }
    }
}

/// Appends ` name="value"` to `out`. A value with double quotes is put in single quotes; if it has
/// both kinds, both are escaped.
pub fn write_attribute(name: &str, value: &[u8], out: &mut Vec<u8>) {
    let mut plain = Vec::with_capacity(value.len());
    escape(value, &mut plain);
    let (double, single) = (plain.contains(&b'"'), plain.contains(&b'\''));
    let quote = if double && !single { b'\'' } else { b'"' };
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&[b'=', quote]);
    for byte in plain {
        match byte {
            b'"' if single && double => out.extend_from_slice(b"&quot;"),
            b'\'' if single && double => out.extend_from_slice(b"&apos;"),
            other => out.push(other),
        }
    }
    out.push(quote);
}

/// The Fortran type of an element's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `integer`
    Integer,
    /// `real`
    Real,
    /// `complex`
    Complex,
    /// `logical`
    Logical,
    /// `character`
    Character,
}

impl Type {
    /// The type named `name`, case-insensitive. `string` is the `qe_syntax` name of `character`.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let all = [Self::Integer, Self::Real, Self::Complex, Self::Logical, Self::Character];
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        let string = is("string").then_some(Self::Character);
        all.into_iter().find(|kind| is(kind.name())).or(string)
    }

    /// The name as written in the attribute `type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Complex => "complex",
            Self::Logical => "logical",
            Self::Character => "character",
        }
    }

    /// The element type for a Fortran kind, or for a length in bytes if the type is `character`.
    pub fn dtype(self, kind: u64, order: ByteOrder) -> Option<DType> {
        let kind = u32::try_from(kind).ok()?;
        let real = |parts: u32| match kind {
            10 if parts == 2 => DType::new(Kind::ComplexX87, 32, order),
            10 => DType::new(Kind::X87, 16, order),
            4 | 8 | 16 if parts == 2 => DType::new(Kind::Complex, 2 * kind, order),
            4 | 8 | 16 => DType::new(Kind::Float, kind, order),
            _ => None,
        };
        match self {
            Self::Integer => DType::new(Kind::Int, kind, order),
            Self::Logical => DType::new(Kind::Bool, kind, order),
            Self::Real => real(1),
            Self::Complex => real(2),
            Self::Character => Some(DType::text(kind)),
        }
    }

    /// The kind whose elements have `size` bytes.
    pub(crate) fn kind_of_size(self, size: u64) -> Option<u64> {
        let kind = if self == Self::Complex { size / 2 } else { size };
        let fits = |kind: &u64| {
            self.dtype(*kind, ByteOrder::Little).is_some_and(|d| d.size() as u64 == size)
        };
        Some(kind).filter(fits)
    }

    /// The Fortran type and kind of `dtype`, or `None` if Fortran has no such type.
    pub fn of_dtype(dtype: DType) -> Option<(Self, u64)> {
        Some(match (dtype.kind(), dtype.size() as u64) {
            (Kind::Int, size) => (Self::Integer, size),
            (Kind::Bool, size) => (Self::Logical, size),
            (Kind::Float, size @ (4 | 8 | 16)) => (Self::Real, size),
            (Kind::Complex, size @ (8 | 16 | 32)) => (Self::Complex, size / 2),
            (Kind::X87, _) => (Self::Real, 10),
            (Kind::ComplexX87, _) => (Self::Complex, 10),
            (Kind::Text, size) => (Self::Character, size),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_with_missing_quotes_or_equals_signs_are_parsed() {
        let tag = Tag::new(&b"e x = '1' y=\"a 'b' > c\" bare z=3\n  w=\"4\" cut=\"5"[..]);
        let found: Vec<_> = tag.attributes().map(|a| (a.name, a.value, a.well_formed)).collect();
        let expected: [(&[u8], &[u8], bool); 6] = [
            (b"x", b"1", true),
            (b"y", b"a 'b' > c", true),
            (b"bare", b"", false),
            (b"z", b"3", false),
            (b"w", b"4", true),
            (b"cut", b"5", false),
        ];
        assert_eq!(found, expected);
        assert_eq!(tag.name(), b"e");
    }

    #[test]
    fn changing_an_attribute_keeps_all_other_bytes_of_the_tag() {
        let tag = Tag::new(&b"x  type='real' size=\"3\"  units=\"Bohr\""[..]);
        let kind = tag.with_attribute("kind", "8", "size");
        assert_eq!(kind.text(), b"x  type='real' size=\"3\" kind=\"8\"  units=\"Bohr\"");
        assert_eq!(kind.without_attribute("kind"), tag);
        assert_eq!(kind.with_attribute("kind", "4", "").get_u64("kind"), Some(4));
        assert_eq!(tag.with_renamed("units", "u").get_raw("u"), Some(&b"Bohr"[..]));
    }

    #[test]
    fn escapes_are_resolved_once() {
        assert_eq!(
            &*unescape(b"&amp;lt; &lt;&foo; & ; &#65;&#x42;&#0x;"),
            b"&lt; <&foo; & ; AB&#0x;"
        );
        for value in ["say \"hi\"", "it's", "it's \"both\" & <more>", ""] {
            let mut out = Vec::new();
            write_attribute("v", value.as_bytes(), &mut out);
            let tag = Tag::new([b"t".to_vec(), out].concat());
            assert_eq!(tag.get_text("v").as_deref(), Some(value));
        }
    }
}
