//! Tags, as they stand in both forms: control codes, names, attributes, escapes, data types.

use std::borrow::Cow;

use spile_core::dtype::{DType, Kind};
use spile_core::wire::ByteOrder;

/// What a tag is (seed section 2, the table of control codes).
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

    /// What stands before and behind the text of a tag.
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

/// A tag without its delimiters, letter for letter: `pippo a="1"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    text: Vec<u8>,
    /// Length of the name, which is asked for all the time.
    name: usize,
}

impl Tag {
    /// A tag from what stands between its delimiters.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        let name = text.iter().position(|b| is_space(*b)).unwrap_or(text.len());
        Self { text, name }
    }

    /// The text between the delimiters.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The same, given away.
    pub(crate) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.text[..self.name]
    }

    /// The name as text; bytes that are not UTF-8 are replaced.
    pub fn title(&self) -> String {
        String::from_utf8_lossy(self.name()).into_owned()
    }

    /// Names and values, the latter as they stand there, escapes and all.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes { text: &self.text, at: self.name }
    }

    /// The value of the first attribute of that name, escapes resolved.
    pub fn get(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.raw(name).map(|value| unescape(value))
    }

    /// The value as it stands there.
    pub fn raw(&self, name: &str) -> Option<&[u8]> {
        self.attributes().find(|a| a.name == name.as_bytes()).map(|a| a.value)
    }

    /// The value as text.
    pub fn text_of(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// The value as a whole number that is not negative.
    pub fn count(&self, name: &str) -> Option<u64> {
        std::str::from_utf8(self.raw(name)?).ok()?.trim().parse().ok()
    }

    /// The value as a logical, as the library reads it.
    pub fn flag(&self, name: &str) -> Option<bool> {
        logical(self.raw(name)?.trim_ascii())
    }

    /// The same tag with another value for an attribute, or with the attribute added behind
    /// `after`, or at the end. Everything else stays letter for letter.
    pub fn with(&self, name: &str, value: &str, after: &str) -> Self {
        let mut text = self.text.clone();
        if let Some(a) = self.attributes().find(|a| a.name == name.as_bytes()) {
            text.splice(a.start..a.end, format!("{name}=\"{value}\"").into_bytes());
            return Self::new(text);
        }
        let behind = self.attributes().find(|a| a.name == after.as_bytes());
        let at = behind.map_or(self.text.trim_ascii_end().len(), |a| a.end);
        text.splice(at..at, format!(" {name}=\"{value}\"").into_bytes());
        Self::new(text)
    }

    /// The same tag without an attribute and the blank before it.
    pub fn without(&self, name: &str) -> Self {
        let mut text = self.text.clone();
        if let Some(a) = self.attributes().find(|a| a.name == name.as_bytes()) {
            let from = if is_space(text[a.start - 1]) { a.start - 1 } else { a.start };
            text.drain(from..a.end);
        }
        Self::new(text)
    }

    /// The same tag with an attribute under another name.
    pub fn renamed(&self, from: &str, to: &str) -> Self {
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
    /// Its name.
    pub name: &'a [u8],
    /// Its value as it stands there.
    pub value: &'a [u8],
    /// It has an equals sign and a quoted value.
    pub sound: bool,
    /// Its place in the tag.
    start: usize,
    end: usize,
}

/// The attributes of a tag, in their order. Blanks are allowed around `=`; either quote will do.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    text: &'a [u8],
    at: usize,
}

impl Attributes<'_> {
    /// From `at` on, the first byte that is wanted, or the end. The loops are written out because
    /// this walks over every byte of every tag.
    fn seek(text: &[u8], mut at: usize, wanted: impl Fn(u8) -> bool) -> usize {
        while at < text.len() && !wanted(text[at]) {
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
        // A lone equals sign is passed over as a name, so that the walk goes on.
        let behind = Self::seek(text, start, |b| b == b'=' || is_space(b)).max(start + 1);
        let name = &text[start..behind];
        let equals = Self::seek(text, behind, |b| !is_space(b));
        if text.get(equals) != Some(&b'=') {
            self.at = behind;
            return Some(Attribute { name, value: b"", sound: false, start, end: behind });
        }
        let first = Self::seek(text, equals + 1, |b| !is_space(b));
        let quote = text.get(first).copied().filter(|b| matches!(b, b'"' | b'\''));
        let Some(quote) = quote else {
            self.at = Self::seek(text, first, is_space);
            let value = &text[first..self.at];
            return Some(Attribute { name, value, sound: false, start, end: self.at });
        };
        let last = Self::seek(text, first + 1, |b| b == quote);
        let sound = last < text.len();
        self.at = last + usize::from(sound);
        Some(Attribute { name, value: &text[first + 1..last], sound, start, end: self.at })
    }
}

/// What separates words inside a tag.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A logical value: an optional dot, then T or F; the rest of the word does not matter.
pub(crate) fn logical(word: &[u8]) -> Option<bool> {
    match word.strip_prefix(b".").unwrap_or(word).first()? {
        b't' | b'T' => Some(true),
        b'f' | b'F' => Some(false),
        _ => None,
    }
}

/// Resolves `&amp; &lt; &gt; &quot; &apos;` and character numbers. Everything else is left as it
/// stands there, and nothing is resolved twice.
pub fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'&') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let end = tail.iter().take(10).position(|b| *b == b';').filter(|_| *first == b'&');
        let meant = end.and_then(|end| entity(&tail[..end]));
        if let (Some(c), Some(end)) = (meant, end) {
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

/// Escapes what would be markup: `&`, `<` and `>`, as the library does in data.
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

/// ` name="value"`, in apostrophes where the value has quotes, with both escaped where it has both.
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
    /// The type of that name, in any case of letters. `string` is what `qe_syntax` says.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        Some(match name.first()? {
            b'r' | b'R' if is("real") => Self::Real,
            b'i' | b'I' if is("integer") => Self::Integer,
            b'c' | b'C' if is("complex") => Self::Complex,
            b'l' | b'L' if is("logical") => Self::Logical,
            b'c' | b'C' if is("character") => Self::Character,
            b's' | b'S' if is("string") => Self::Character,
            _ => return None,
        })
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Complex => "complex",
            Self::Logical => "logical",
            Self::Character => "character",
        }
    }

    /// The element type for a Fortran kind; the length where it is `character`.
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

    /// The kind that has elements of `size` bytes.
    pub(crate) fn kind_of_size(self, size: u64) -> Option<u64> {
        let kind = if self == Self::Complex { size / 2 } else { size };
        let fits = |kind: &u64| {
            self.dtype(*kind, ByteOrder::Little).is_some_and(|d| d.size() as u64 == size)
        };
        Some(kind).filter(fits)
    }

    /// The type and kind of elements as they lie in memory, where Fortran has them.
    pub fn of(dtype: DType) -> Option<(Self, u64)> {
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
    fn attributes_are_read_leniently() {
        let tag = Tag::new(&b"e x = '1' y=\"a 'b' > c\" bare z=3\n  w=\"4\" cut=\"5"[..]);
        let found: Vec<_> = tag.attributes().map(|a| (a.name, a.value, a.sound)).collect();
        let wanted: [(&[u8], &[u8], bool); 6] = [
            (b"x", b"1", true),
            (b"y", b"a 'b' > c", true),
            (b"bare", b"", false),
            (b"z", b"3", false),
            (b"w", b"4", true),
            (b"cut", b"5", false),
        ];
        assert_eq!(found, wanted);
        assert_eq!(tag.name(), b"e");
    }

    #[test]
    fn a_changed_tag_keeps_all_its_other_letters() {
        let tag = Tag::new(&b"x  type='real' size=\"3\"  units=\"Bohr\""[..]);
        let kind = tag.with("kind", "8", "size");
        assert_eq!(kind.text(), b"x  type='real' size=\"3\" kind=\"8\"  units=\"Bohr\"");
        assert_eq!(kind.without("kind"), tag);
        assert_eq!(kind.with("kind", "4", "").count("kind"), Some(4));
        assert_eq!(tag.renamed("units", "u").raw("u"), Some(&b"Bohr"[..]));
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
            assert_eq!(tag.text_of("v").as_deref(), Some(value));
        }
    }
}
