//! Records of several fields: `[('x', '<f8'), ('tag', '|S4')]`.

use spile_core::dtype::DType;

/// One field of a record.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    /// Fields of a field have its name and a slash before theirs.
    pub(crate) name: String,
    pub(crate) dtype: DType,
    /// Bytes of the record before it.
    pub(crate) offset: usize,
}

/// Records in records, as deep as they are read.
const DEEPEST: usize = 16;

/// The fields, the bytes of a record and the length of the text; nothing where a field has a type or a
/// shape that is not read.
pub(crate) fn parse(text: &str) -> Option<(Vec<Field>, usize, usize)> {
    let mut reader = Reader { rest: text, fields: Vec::new(), size: 0 };
    reader.list("", 0)?;
    Some((reader.fields, reader.size, text.len() - reader.rest.len()))
}

struct Reader<'a> {
    rest: &'a str,
    fields: Vec<Field>,
    size: usize,
}

impl Reader<'_> {
    fn list(&mut self, above: &str, depth: usize) -> Option<()> {
        self.take('[')?;
        while self.take(']').is_none() {
            self.field(above, depth)?;
            let _ = self.take(',');
        }
        Some(())
    }

    fn field(&mut self, above: &str, depth: usize) -> Option<()> {
        self.take('(')?;
        let name = if self.take('(').is_some() {
            // A title, and the name.
            self.text()?;
            self.take(',')?;
            let name = self.text()?;
            self.take(')')?;
            name
        } else {
            self.text()?
        };
        self.take(',')?;
        if self.rest.trim_start().starts_with('[') {
            if depth == DEEPEST {
                return None;
            }
            self.list(&format!("{above}{name}/"), depth + 1)?;
        } else {
            let dtype = DType::from_numpy(&self.text()?)?;
            // Bytes without a name are padding.
            if !name.is_empty() {
                let field = Field { name: format!("{above}{name}"), dtype, offset: self.size };
                self.fields.push(field);
            }
            self.size = self.size.checked_add(dtype.size())?;
        }
        // What follows is the shape of a field that is an array, which is not read.
        let _ = self.take(',');
        self.take(')')
    }

    fn take(&mut self, letter: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(letter)?;
        Some(())
    }

    /// A Python string; names with letters that it writes as escapes are not read.
    fn text(&mut self) -> Option<String> {
        let text = self.rest.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (inside, rest) = text[1..].split_once(quote)?;
        self.rest = rest;
        (!inside.contains('\\')).then(|| inside.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_padding_and_in_other_fields() {
        let text = "[('id', '<i4'), ('', '|V4'), (('Length', 'x'), '<f8'), ('in', [('a', '|S3'), ('b', '>u2')])], 'f";
        let (fields, size, length) = parse(text).unwrap();
        let seen: Vec<_> =
            fields.iter().map(|f| (f.name.as_str(), f.dtype.size(), f.offset)).collect();
        assert_eq!(seen, [("id", 4, 0), ("x", 8, 8), ("in/a", 3, 16), ("in/b", 2, 19)]);
        assert_eq!((size, &text[length..]), (21, ", 'f"));
    }

    #[test]
    fn what_is_not_read_is_nothing() {
        for text in [
            "[",
            "[(",
            "[('a', '<f8', (3,))]",
            "[('a', 'O')]",
            "[('a\\'', '<f8')]",
            "[('a' '<f8')]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"[('a', ".repeat(10_000)), None);
        assert_eq!(parse("[('', '|V3')]").map(|r| r.1), Some(3));
    }
}
