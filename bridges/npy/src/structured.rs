//! Structured data types: `[('x', '<f8'), ('tag', '|S4')]`.

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::limits::Limits;

/// A field of a structured type.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    /// Path of the field; nested fields are separated by slashes.
    pub(crate) name: String,
    pub(crate) dtype: DType,
    /// Byte offset in the record.
    pub(crate) offset: usize,
}

/// Memory charged for a field, without its name.
const FIELD: u64 = 1 << 10;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 16;

/// The fields of a type, the size of a record in bytes, and the length of the parsed text.
type Structured = (Vec<Field>, usize, usize);

/// Parses a type. `None` if a field has an unsupported type or a shape. Fails if the fields exceed the memory
/// budget.
pub(crate) fn parse(text: &str, limits: &Limits) -> Result<Option<Structured>> {
    let budget = limits.memory;
    let mut reader = Reader { rest: text, fields: Vec::new(), size: 0, memory: 0, budget };
    let parsed = reader.list("", 0);
    limits.allow(reader.memory, "the fields")?;
    Ok(parsed.map(|()| (reader.fields, reader.size, text.len() - reader.rest.len())))
}

struct Reader<'a> {
    rest: &'a str,
    fields: Vec<Field>,
    size: usize,
    /// Memory charged for the fields.
    memory: u64,
    budget: u64,
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
            // Title and name.
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
            if depth == MAX_DEPTH {
                return None;
            }
            self.list(&format!("{above}{name}/"), depth + 1)?;
        } else {
            let dtype = DType::from_numpy(&self.text()?)?;
            // A field without a name is padding.
            if !name.is_empty() {
                self.memory += FIELD + 4 * (above.len() + name.len()) as u64;
                if self.memory > self.budget {
                    return None;
                }
                let field = Field { name: format!("{above}{name}"), dtype, offset: self.size };
                self.fields.push(field);
            }
            self.size = self.size.checked_add(dtype.size())?;
        }
        // A third item is the shape of an array field, which is not supported.
        let _ = self.take(',');
        self.take(')')
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(c)?;
        Some(())
    }

    /// Parses a Python string; `None` if it contains escapes.
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
    fn fields_after_padding_and_nested_fields_have_offsets() {
        let text = "[('id', '<i4'), ('', '|V4'), (('Length', 'x'), '<f8'), ('in', [('a', '|S3'), ('b', '>u2')])], 'f";
        let (fields, size, length) = parse(text, &Limits::default()).unwrap().unwrap();
        let seen: Vec<_> =
            fields.iter().map(|f| (f.name.as_str(), f.dtype.size(), f.offset)).collect();
        assert_eq!(seen, [("id", 4, 0), ("x", 8, 8), ("in/a", 3, 16), ("in/b", 2, 19)]);
        assert_eq!((size, &text[length..]), (21, ", 'f"));
    }

    #[test]
    fn unsupported_fields_are_rejected() {
        let limits = Limits::default();
        for text in [
            "[",
            "[(",
            "[('a', '<f8', (3,))]",
            "[('a', 'O')]",
            "[('a\\'', '<f8')]",
            "[('a' '<f8')]",
        ] {
            assert_eq!(parse(text, &limits).unwrap(), None, "{text}");
        }
        assert_eq!(parse(&"[('a', ".repeat(10_000), &limits).unwrap(), None);
        let padding = parse("[('', '|V3')]", &limits).unwrap();
        assert_eq!(padding.map(|r| r.1), Some(3));
        let many = format!("[{}]", "('a', '<f8'),".repeat(50_000));
        assert!(parse(&many, &limits).is_ok());
        assert!(parse(&many, &limits.with_memory(1 << 20)).is_err());
    }
}
