//! Headings of columns. `"velocity[0] (m/s) {float32}"` is the first component of an array with units and an
//! explicit element type.

use spile_core::dtype::DType;

/// The heading of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heading {
    /// Path of the array.
    pub(crate) path: String,
    /// Index of the element within a row; empty if a row has one element.
    pub(crate) index: Vec<u64>,
    pub(crate) units: Option<String>,
    pub(crate) tag: Option<Tag>,
}

/// The tag in braces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tag {
    /// The element type.
    Type(DType),
    /// Uniform coordinate of the rows: `{0.0 + 0.5 k}`.
    Coordinate { start: f64, step: f64 },
}

impl Heading {
    /// Formats the heading, without quotes.
    pub(crate) fn text(&self) -> String {
        let mut text = self.path.clone();
        if !self.index.is_empty() {
            let index: Vec<String> = self.index.iter().map(ToString::to_string).collect();
            text.extend(["[", &index.join(","), "]"]);
        } else if split_index(&text).is_some() {
            // Keeps the end of the name from being parsed as an index.
            text.push_str("[]");
        }
        match (&self.units, text.ends_with([')', '}']) || square_units(&text).is_some()) {
            (Some(units), _) => text.extend([" (", units, ")"]),
            // Keeps brackets at the end of the name from being parsed as units.
            (None, true) => text.push_str(" ()"),
            (None, false) => {}
        }
        match self.tag {
            Some(Tag::Type(dtype)) => text.extend([" {", &dtype.to_string(), "}"]),
            Some(Tag::Coordinate { start, step }) => {
                let [mut a, mut b] = [zmij::Buffer::new(), zmij::Buffer::new()];
                text.extend([" {", a.format(start), " + ", b.format(step), " k}"]);
            }
            None => {}
        }
        text
    }

    /// Parses a heading without quotes. Suffixes that cannot be parsed remain part of the path.
    pub(crate) fn parse(text: &str) -> Self {
        let mut heading = Self::default();
        let mut rest = text;
        if let Some((before, tag)) = bracket(rest, " {", '}')
            && let Some(tag) = Tag::parse(tag)
        {
            (heading.tag, rest) = (Some(tag), before);
        }
        if let Some((before, units)) = bracket(rest, " (", ')') {
            heading.units = (!units.is_empty()).then(|| units.into());
            rest = before;
        } else if let Some((before, units)) = square_units(rest) {
            (heading.units, rest) = (Some(units.into()), before);
        }
        if let Some((before, index)) = split_index(rest) {
            (heading.index, rest) = (index, before);
        }
        heading.path = rest.into();
        heading
    }
}

/// Splits `name [units]`; an index in brackets is no unit.
fn square_units(text: &str) -> Option<(&str, &str)> {
    let is_index = |text: &str| text.split(',').all(|n| n.parse::<u64>().is_ok());
    bracket(text, " [", ']').filter(|(_, units)| !units.is_empty() && !is_index(units))
}

impl Tag {
    fn parse(text: &str) -> Option<Self> {
        if let Some((start, step)) = text.strip_suffix(" k").and_then(|t| t.split_once(" + ")) {
            return Some(Self::Coordinate { start: start.parse().ok()?, step: step.parse().ok()? });
        }
        text.parse().ok().map(Self::Type)
    }
}

/// Splits text that ends with an index, which may be empty, into the part before it and the index.
fn split_index(text: &str) -> Option<(&str, Vec<u64>)> {
    let (before, index) = bracket(text, "[", ']')?;
    let numbers =
        |index: &str| -> Option<Vec<u64>> { index.split(',').map(|n| n.parse().ok()).collect() };
    if index.is_empty() {
        // An empty index follows a name that ends with an index.
        let (_, index) = bracket(before.trim_end_matches("[]"), "[", ']')?;
        return numbers(index).map(|_| (before, Vec::new()));
    }
    Some((before, numbers(index)?))
}

/// Splits text that ends with a bracket into the part before it and its content, which may contain nested
/// brackets. `None` if the text does not end with such a bracket.
fn bracket<'a>(text: &'a str, open: &str, close: char) -> Option<(&'a str, &'a str)> {
    let inside = text.strip_suffix(close)?;
    let opening = open.chars().last()?;
    let mut depth = 1_usize;
    for (pos, c) in inside.char_indices().rev() {
        if c == close {
            depth += 1;
        } else if c == opening {
            depth -= 1;
            if depth == 0 {
                let before = &inside[..pos + c.len_utf8()];
                return Some((before.strip_suffix(open)?, &inside[pos + c.len_utf8()..]));
            }
        }
    }
    None
}

/// Whether arrays have coordinates of their own, so that column `name` is not the coordinate of all: `C2_time`.
pub(crate) fn is_one_of_several<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> bool {
    let mut others = others.filter_map(|other| other.strip_suffix(name));
    others.any(|stem| stem.ends_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headings_without_tags_are_parsed() {
        let heading = Heading::parse("Electric Field/Ex (V/m)");
        assert_eq!(
            (heading.path.as_str(), heading.units.as_deref()),
            ("Electric Field/Ex", Some("V/m"))
        );
        let heading = Heading::parse("v[1,2] (m (s)^-1) {float32}");
        assert_eq!((heading.path.as_str(), &heading.index[..]), ("v", &[1, 2][..]));
        assert_eq!(heading.units.as_deref(), Some("m (s)^-1"));
        assert_eq!(heading.tag, Some(Tag::Type(DType::F32)));
        let heading = Heading::parse("t (s) {0.0 + 1e-9 k}");
        assert_eq!(heading.tag, Some(Tag::Coordinate { start: 0.0, step: 1e-9 }));
        assert_eq!(Heading::parse("a {b}").path, "a {b}");
        assert_eq!(Heading::parse("x[a]").path, "x[a]");
        let heading = Heading::parse("T [K]");
        assert_eq!((heading.path.as_str(), heading.units.as_deref()), ("T", Some("K")));
        assert_eq!(Heading::parse(")").path, ")");
    }

    proptest! {
        #[test]
        fn headings_round_trip(
            path in "[a-z ()\\[\\]{}/,0-9é]{0,12}",
            units in proptest::option::of("[a-z/^ 0-9]{1,6}"),
            index in proptest::collection::vec(0_u64..30, 0..3),
            tag in 0_usize..3,
        ) {
            let tag = [None, Some(Tag::Type(DType::F32)), Some(Tag::Coordinate { start: -0.5, step: 1e-12 })][tag];
            let heading = Heading { path, index, units, tag };
            let back = Heading::parse(&heading.text());
            prop_assert_eq!(back, heading);
        }
    }
}
