//! The first line: what each column is. `"velocity[0] (m/s) {float32}"` is the first component of an
//! array with units and an element type that the numbers do not show.

use spile_core::dtype::DType;

/// The heading of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// The path of the array.
    pub(crate) path: String,
    /// Which of the array's elements of a row; none where a row has one.
    pub(crate) index: Vec<u64>,
    pub(crate) units: Option<String>,
    pub(crate) tag: Option<Tag>,
}

/// What stands in braces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tag {
    /// The element type.
    Type(DType),
    /// The points of the rows, evenly spaced: `{0.0 + 0.5 k}`.
    Points { start: f64, step: f64 },
}

impl Cell {
    /// The cell as text, without its quotes.
    pub(crate) fn text(&self) -> String {
        let mut text = self.path.clone();
        if !self.index.is_empty() {
            let index: Vec<String> = self.index.iter().map(ToString::to_string).collect();
            text.extend(["[", &index.join(","), "]"]);
        }
        match (&self.units, text.ends_with([')', '}'])) {
            (Some(units), _) => text.extend([" (", units, ")"]),
            // What ends the name are no units.
            (None, true) => text.push_str(" ()"),
            (None, false) => {}
        }
        match self.tag {
            Some(Tag::Type(dtype)) => text.extend([" {", &dtype.to_string(), "}"]),
            Some(Tag::Points { start, step }) => {
                let [mut a, mut b] = [zmij::Buffer::new(), zmij::Buffer::new()];
                text.extend([" {", a.format(start), " + ", b.format(step), " k}"]);
            }
            None => {}
        }
        text
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut cell = Self::default();
        let mut rest = text;
        if let Some((before, tag)) = bracket(rest, " {", '}')
            && let Some(tag) = Tag::parse(tag)
        {
            (cell.tag, rest) = (Some(tag), before);
        }
        if let Some((before, units)) = bracket(rest, " (", ')') {
            cell.units = (!units.is_empty()).then(|| units.into());
            rest = before;
        }
        if let Some((before, index)) = bracket(rest, "[", ']') {
            let numbers: Option<Vec<u64>> = index.split(',').map(|n| n.parse().ok()).collect();
            if let Some(numbers) = numbers {
                (cell.index, rest) = (numbers, before);
            }
        }
        cell.path = rest.into();
        cell
    }
}

impl Tag {
    fn parse(text: &str) -> Option<Self> {
        if let Some((start, step)) = text.strip_suffix(" k").and_then(|t| t.split_once(" + ")) {
            return Some(Self::Points { start: start.parse().ok()?, step: step.parse().ok()? });
        }
        text.parse().ok().map(Self::Type)
    }
}

/// What stands before the last bracket, and in it, where the text ends with one. Brackets in it are its
/// own.
fn bracket<'a>(text: &'a str, open: &str, close: char) -> Option<(&'a str, &'a str)> {
    let inside = text.strip_suffix(close)?;
    let opening = open.chars().last()?;
    let mut depth = 1_usize;
    for (at, letter) in inside.char_indices().rev() {
        if letter == close {
            depth += 1;
        } else if letter == opening {
            depth -= 1;
            if depth == 0 {
                let before = &inside[..at + letter.len_utf8()];
                return Some((before.strip_suffix(open)?, &inside[at + letter.len_utf8()..]));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_are_read_as_people_write_them() {
        let cell = Cell::parse("Electric Field/Ex (V/m)");
        assert_eq!((cell.path.as_str(), cell.units.as_deref()), ("Electric Field/Ex", Some("V/m")));
        let cell = Cell::parse("v[1,2] (m (s)^-1) {float32}");
        assert_eq!((cell.path.as_str(), &cell.index[..]), ("v", &[1, 2][..]));
        assert_eq!(cell.units.as_deref(), Some("m (s)^-1"));
        assert_eq!(cell.tag, Some(Tag::Type(DType::F32)));
        let cell = Cell::parse("t (s) {0.0 + 1e-9 k}");
        assert_eq!(cell.tag, Some(Tag::Points { start: 0.0, step: 1e-9 }));
        assert_eq!(Cell::parse("a {b}").path, "a {b}");
        assert_eq!(Cell::parse("x[a]").path, "x[a]");
        assert_eq!(Cell::parse(")").path, ")");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            path in "[a-z ()\\[\\]{}/,0-9é]{0,12}",
            units in proptest::option::of("[a-z/^ 0-9]{1,6}"),
            index in proptest::collection::vec(0_u64..30, 0..3),
            tag in 0_usize..3,
        ) {
            let tag = [None, Some(Tag::Type(DType::F32)), Some(Tag::Points { start: -0.5, step: 1e-12 })][tag];
            let cell = Cell { path, index, units, tag };
            let back = Cell::parse(&cell.text());
            // A name that ends like an index is one.
            if cell.index.is_empty() && cell.path.ends_with(']') {
                return Ok(());
            }
            prop_assert_eq!(back, cell);
        }
    }
}
