//! The comment line of a frame: `key=value` pairs, the list of columns, and values.

use spile_core::text_records::{is_float, is_integer, parse_float};

/// Columns of a file without `Properties`.
pub(crate) const DEFAULT_PROPERTIES: &str = "species:S:1:pos:R:3";

/// Most columns of a frame; bounds the memory for a number that comes from the file.
const MOST_COLUMNS: usize = 10_000;

/// Finds the end of the first line: its length without and with the terminator, LF or CRLF.
pub(crate) fn line_end(text: &[u8]) -> Option<(usize, usize)> {
    let end = memchr::memchr(b'\n', text)?;
    let bare = if end > 0 && text[end - 1] == b'\r' { end - 1 } else { end };
    Some((bare, end + 1))
}

/// The fields of a line, separated by blanks.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\r')).filter(|field| !field.is_empty())
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Letter {
    Text,
    Real,
    Integer,
    Logical,
}

impl Letter {
    /// The letter in `Properties`.
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Text => 'S',
            Self::Real => 'R',
            Self::Integer => 'I',
            Self::Logical => 'L',
        }
    }
}

/// A quantity of the atoms: adjacent columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) letter: Letter,
    /// Number of columns.
    pub(crate) columns: usize,
}

/// Parses `name:letter:columns` triplets; `None` if the text is not a list of them.
pub(crate) fn properties(text: &str) -> Option<Vec<Property>> {
    let parts: Vec<&str> = text.split(':').collect();
    let (triplets, rest) = parts.as_chunks::<3>();
    if triplets.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    let mut total = 0;
    for [name, letter, columns] in triplets {
        let letter = match *letter {
            "S" => Letter::Text,
            "R" => Letter::Real,
            "I" => Letter::Integer,
            "L" => Letter::Logical,
            _ => return None,
        };
        let columns: usize = columns.parse().ok().filter(|n| (1..=MOST_COLUMNS).contains(n))?;
        total += columns;
        all.push(Property { name: (*name).to_string(), letter, columns });
    }
    (total <= MOST_COLUMNS).then_some(all)
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Info {
    /// As written, without quotes and escapes.
    pub(crate) text: String,
    pub(crate) values: Values,
    /// Lengths of the dimensions of the values; none for a scalar.
    pub(crate) lengths: Vec<u64>,
}

/// Parsed values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Logicals(Vec<bool>),
    Text,
}

/// How a value is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bare,
    Quoted,
    Braced,
    Bracketed,
}

/// The pairs of a comment line. A key without value is true. A line without `=` is the value of `comment`.
pub(crate) fn pairs(line: &str) -> Vec<(String, Info)> {
    let line = line.trim();
    if !line.contains('=') {
        let text = Info { text: line.into(), values: Values::Text, lengths: Vec::new() };
        return if line.is_empty() { Vec::new() } else { vec![("comment".into(), text)] };
    }
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (key, _, _, after) = token(rest, true);
        rest = after.trim_start();
        let info = match rest.strip_prefix('=') {
            Some(value) => {
                let (text, form, escaped, after) = token(value.trim_start(), false);
                rest = after.trim_start();
                parse(text, form, escaped)
            }
            None => {
                Info { text: "T".into(), values: Values::Logicals(vec![true]), lengths: vec![] }
            }
        };
        if !key.is_empty() {
            found.push((key, info));
        }
    }
    found
}

/// The first token of a text, how it is delimited, whether it has an escape, and the text after it. A key ends
/// at `=`.
fn token(text: &str, key: bool) -> (String, Form, bool, &str) {
    let (form, close) = match text.chars().next() {
        Some('"') => (Form::Quoted, '"'),
        Some('\'') => (Form::Quoted, '\''),
        Some('{') => (Form::Braced, '}'),
        Some('[') => (Form::Bracketed, ']'),
        _ => (Form::Bare, ' '),
    };
    let (mut out, mut depth, mut escape, mut escaped) = (String::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        if form != Form::Bare && at == 0 {
            depth = 1;
            continue;
        }
        if escape {
            out.push(if c == 'n' { '\n' } else { c });
            escape = false;
        } else if c == '\\' {
            (escape, escaped) = (true, true);
        } else if form == Form::Bare && (c.is_whitespace() || (key && c == '=')) {
            return (out, form, escaped, &text[at..]);
        } else if form == Form::Bracketed && c == '[' {
            depth += 1;
            out.push(c);
        } else if form != Form::Bare && c == close {
            depth -= 1;
            if depth == 0 {
                return (out, form, escaped, &text[at + c.len_utf8()..]);
            }
            out.push(c);
        } else {
            out.push(c);
        }
    }
    (out, form, escaped, "")
}

fn parse(text: String, form: Form, escaped: bool) -> Info {
    let as_text = |text: String| Info { text, values: Values::Text, lengths: Vec::new() };
    let separator = |c: char| c.is_whitespace() || (form == Form::Bracketed && c == ',');
    let flat: String = match form {
        Form::Bracketed => text.replace(['[', ']'], " "),
        _ => text.clone(),
    };
    let words: Vec<&str> = flat.split(separator).filter(|word| !word.is_empty()).collect();
    // A quoted word is text; several quoted numbers are an array.
    if escaped || words.is_empty() || (form == Form::Quoted && words.len() == 1) {
        return as_text(text);
    }
    let Some(values) = numbers(&words) else { return as_text(text) };
    let count = words.len() as u64;
    let rows = text.matches('[').count() as u64;
    let lengths = match (form, count) {
        (Form::Bare, 1) => Vec::new(),
        (Form::Bracketed, _) if rows > 0 && count.is_multiple_of(rows) => vec![rows, count / rows],
        _ => vec![count],
    };
    Info { text, values, lengths }
}

/// The logical value of a word.
pub(crate) fn logical(word: &[u8]) -> Option<bool> {
    match word {
        b"T" | b"True" | b"TRUE" | b"true" => Some(true),
        b"F" | b"False" | b"FALSE" | b"false" => Some(false),
        _ => None,
    }
}

/// The values of words of one kind; integers and reals together are reals.
fn numbers(words: &[&str]) -> Option<Values> {
    let integer = |word: &&str| word.parse::<i64>().ok().filter(|_| is_integer(word.as_bytes()));
    if let Some(values) = words.iter().map(integer).collect() {
        return Some(Values::Integers(values));
    }
    let real = |word: &&str| {
        let fortran = word.bytes().any(|b| matches!(b, b'd' | b'D')) && word.len() > 2;
        let known = is_float(word.as_bytes()) || fortran;
        parse_float(word.as_bytes()).filter(|_| known)
    };
    if let Some(values) = words.iter().map(real).collect() {
        return Some(Values::Reals(values));
    }
    let values: Option<Vec<bool>> = words.iter().map(|word| logical(word.as_bytes())).collect();
    values.map(Values::Logicals)
}

/// Whether a text has to be escaped so that it is read as text inside quotes.
pub(crate) fn looks_like_values(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.len() > 1 && numbers(&words).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, key: &str) -> Info {
        let found = pairs(line).into_iter().find(|(name, _)| name == key);
        found.unwrap_or_else(|| panic!("{key} in {line}")).1
    }

    #[test]
    fn values_have_the_types_of_the_specification() {
        let line = "i=-3 r=1.5e-3 f=1.0D+02 t=T no=false s=Si2 flag q=\"two words\" 'a b'=1 \
                    old=\"1 2.5 3\" brace={1 2 3} new=[1, 2, 3] two=[[1, 2], [3.0, 4]] one=[5] \
                    word=\"7\" esc=\"\\1 2\" quote=\"say \\\"x\\\"\" spaced = 4";
        assert_eq!(of(line, "i").values, Values::Integers(vec![-3]));
        assert_eq!(of(line, "r").values, Values::Reals(vec![1.5e-3]));
        assert_eq!(of(line, "f").values, Values::Reals(vec![100.0]));
        assert_eq!(of(line, "t").values, Values::Logicals(vec![true]));
        assert_eq!(of(line, "no").values, Values::Logicals(vec![false]));
        assert_eq!(of(line, "flag").values, Values::Logicals(vec![true]));
        assert_eq!((of(line, "s").text.as_str(), of(line, "s").values), ("Si2", Values::Text));
        assert_eq!(of(line, "q").text, "two words");
        assert_eq!(of(line, "a b").values, Values::Integers(vec![1]));
        assert_eq!(of(line, "old").values, Values::Reals(vec![1.0, 2.5, 3.0]));
        assert_eq!(of(line, "brace").lengths, [3]);
        assert_eq!(of(line, "new").values, Values::Integers(vec![1, 2, 3]));
        assert_eq!(of(line, "two").lengths, [2, 2]);
        assert_eq!(of(line, "two").values, Values::Reals(vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(of(line, "one").lengths, [1]);
        assert_eq!(of(line, "word").values, Values::Text);
        assert_eq!((of(line, "esc").text.as_str(), of(line, "esc").values), ("1 2", Values::Text));
        assert_eq!(of(line, "quote").text, "say \"x\"");
        assert_eq!(of(line, "spaced").values, Values::Integers(vec![4]));
    }

    #[test]
    fn a_line_without_pairs_is_a_comment() {
        assert_eq!(of("  water, relaxed ", "comment").text, "water, relaxed");
        assert!(pairs("   ").is_empty());
        // Delimiters that are not closed end with the line.
        assert_eq!(of("a=\"x y", "a").text, "x y");
    }

    #[test]
    fn properties_are_triplets() {
        let found = properties("species:S:1:pos:R:3").unwrap();
        assert_eq!((found[1].name.as_str(), found[1].columns), ("pos", 3));
        for bad in ["", "pos", "pos:R", "pos:X:3", "pos:R:0", "pos:R:99999", "a:R:1:b", "pos:R:-1"]
        {
            assert_eq!(properties(bad), None, "{bad}");
        }
    }
}
