//! Named, typed fields and groups: a convention on top of scda, which itself has only bytes. See
//! `FORMAT.md`.
//!
//! A field is two sections: a block with a description in JSON, and the data. A group is one block
//! with attributes. Sections that do not follow the convention stay plain sections.

pub(crate) mod checkpoint;
pub(crate) mod restart;

use serde::{Deserialize, Serialize};
use spile_core::convert::Number;
use spile_core::metadata::{CoordMeta, Scaling, json};
use spile_core::{Attrs, ByteOrder, DType, Error, ErrorKind, Limits, Result, Shape, Value};

use crate::wire::{Kind, USER};

/// User string of the block that describes a field.
pub(crate) const FIELD: &[u8] = b"spile field 00";

/// User string of the block that describes a group; the root is the group "".
pub(crate) const GROUP: &[u8] = b"spile group 00";

/// Description of a field: written by [`Checkpoint`](crate::Checkpoint), and compared with the file by
/// [`Restart`](crate::Restart).
///
/// ```
/// use spile_scda::Field;
/// let field = Field::of::<f64>("velocity").shaped(&[3]).version(2).attr("units", "m/s");
/// assert_eq!(field.dtype.to_string(), "float64");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Path of the field; slashes separate groups.
    pub name: String,
    /// Data type.
    #[serde(with = "json::dtype")]
    pub dtype: DType,
    /// Shape of one element; of one item if the elements have different numbers of items.
    pub shape: Vec<u64>,
    /// The first index is the fastest, and the element index the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fortran_order: bool,
    /// Names of all dimensions of the array, that of the elements first; or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dims: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) coords: Vec<Option<CoordMeta>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<Scaling>,
    /// Attributes, such as version and units.
    #[serde(default, skip_serializing_if = "Attrs::is_empty", with = "json::attrs")]
    pub attrs: Attrs,
    /// The data are compressed.
    #[serde(skip)]
    pub compressed: bool,
}

/// Attributes of a group; of the file if the path is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) group: String,
    #[serde(default, skip_serializing_if = "Attrs::is_empty", with = "json::attrs")]
    pub(crate) attrs: Attrs,
}

/// Attributes as a JSON object, in the notation of descriptions.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct AttrsText(#[serde(with = "json::attrs")] Attrs);

/// Parses attributes in the notation of descriptions: a JSON object.
pub fn attrs_from_json(text: &str) -> Result<Attrs> {
    let parsed: AttrsText = serde_json::from_str(text)
        .map_err(|e| Error::argument(format!("invalid attributes: {e}")))?;
    Ok(parsed.0)
}

fn not_described(why: &str) -> Error {
    Error::unsupported("scda-031", format!("cannot be described in JSON: {why}"))
}

/// Attributes in the notation of descriptions: a JSON object.
pub fn attrs_to_json(attrs: &Attrs) -> Result<String> {
    serde_json::to_string(&AttrsText(attrs.clone())).map_err(|e| not_described(&e.to_string()))
}

impl Field {
    /// A field with one value of type `T` per element.
    pub fn of<T: Number>(name: &str) -> Self {
        Self::new(name, T::DTYPE)
    }

    /// A field with one value of any type per element.
    pub fn new(name: &str, dtype: DType) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: Vec::new(),
            fortran_order: false,
            dims: Vec::new(),
            coords: Vec::new(),
            map: None,
            attrs: Attrs::new(),
            compressed: false,
        }
    }

    /// Sets the shape of one element; the last index is the fastest.
    pub fn shaped(mut self, shape: &[u64]) -> Self {
        self.shape = shape.to_vec();
        self
    }

    /// Sets the version of the field. Reading fails if program and file have different versions.
    pub fn version(self, version: u64) -> Self {
        self.attr("version", version)
    }

    /// Sets an attribute, for example `units`.
    pub fn attr(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attrs.set(name, value);
        self
    }

    /// Sets the names of all dimensions of the array, that of the elements first.
    pub fn dims(mut self, names: &[&str]) -> Self {
        self.dims = names.iter().map(ToString::to_string).collect();
        self
    }

    /// Compresses each element when the field is written. Ignored when reading.
    pub fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// Bytes of one element, or of one item. Fails if the number overflows.
    pub fn bytes(&self) -> Result<u64> {
        Shape::new(self.shape.clone()).bytes(self.dtype.size())
    }

    /// User string of the data section: the first 58 bytes of the name.
    pub(crate) fn user(&self) -> &[u8] {
        let end = (0..=self.name.len().min(USER)).rev().find(|k| self.name.is_char_boundary(*k));
        &self.name.as_bytes()[..end.unwrap_or(0)]
    }

    /// Shape of the array in a data section of this type, element count and element size. Fails if the
    /// section does not fit the field.
    pub(crate) fn array_shape(&self, kind: Kind, count: u64, size: u64) -> Result<Shape> {
        let bytes = self.bytes().map_err(|e| mismatch(e.message()))?;
        let mut shape = self.shape.clone();
        match kind {
            Kind::Inline => {
                return Err(mismatch("expected a B, A or V section with the data, found I"));
            }
            Kind::Varray => shape = vec![count],
            Kind::Block | Kind::Array if bytes != size => {
                return Err(mismatch(format!(
                    "expected a data section of {bytes} bytes, found {size}"
                )));
            }
            Kind::Block => {}
            Kind::Array if self.fortran_order => shape.push(count),
            Kind::Array => shape.insert(0, count),
        }
        let (dims, coords, rank) = (self.dims.len(), self.coords.len(), shape.len());
        if (dims != 0 && dims != rank) || (coords != 0 && coords != rank) {
            let named = dims.max(coords);
            return Err(mismatch(format!("expected {rank} dimensions, found {named}")));
        }
        let shape = Shape::new(shape);
        shape.bytes(self.dtype.size()).map_err(|e| mismatch(e.message()))?;
        Ok(shape)
    }

    /// Fails unless version, type and element shape are those of `expected`.
    pub(crate) fn check_expected(&self, expected: &Self) -> Result<()> {
        let version =
            |field: &Self| field.attrs.get("version").map_or("none".into(), Value::to_string);
        // Bytes are swapped on reading.
        let dtype = |field: &Self| field.dtype.with_order(ByteOrder::Little).to_string();
        let shape = |field: &Self| {
            let order = if field.fortran_order { " in Fortran order" } else { "" };
            format!("{}{order}", Shape::new(field.shape.clone()))
        };
        for (name, expected, found) in [
            ("version", version(expected), version(self)),
            ("type", dtype(expected), dtype(self)),
            ("element shape", shape(expected), shape(self)),
        ] {
            if expected != found {
                let message = format!("expected {name} {expected}, found {found}");
                return Err(Error::argument(message).in_object(self.title()));
            }
        }
        Ok(())
    }

    pub(crate) fn title(&self) -> String {
        format!("field \"{}\"", self.name)
    }
}

/// The content of a description section.
#[derive(Debug, PartialEq)]
pub(crate) enum Description {
    Field(Box<Field>),
    Group(Group),
}

impl Description {
    /// Whether a section of this type and user string is a description.
    pub(crate) fn is_one(kind: Kind, user: &[u8]) -> bool {
        kind == Kind::Block && (user == FIELD || user == GROUP)
    }

    /// Fails if parsing a description of `size` bytes may exceed the memory limit. Parsed lists take
    /// much more memory than their text.
    pub(crate) fn allow(size: u64, limits: &Limits) -> Result<()> {
        limits.allow(size.saturating_mul(40), "a description").map(drop)
    }

    /// Parses a description section.
    pub(crate) fn parse(user: &[u8], text: &[u8]) -> Result<Self> {
        let invalid = |e: serde_json::Error| mismatch(e.to_string());
        let (described, named) = if user == GROUP {
            let group: Group = serde_json::from_slice(text).map_err(invalid)?;
            let named = group.group.is_empty() || is_path(&group.group);
            (Self::Group(group), named)
        } else {
            let field: Field = serde_json::from_slice(text).map_err(invalid)?;
            let named = is_path(&field.name);
            (Self::Field(Box::new(field)), named)
        };
        if named {
            Ok(described)
        } else {
            Err(mismatch(format!("{} is not a valid path", described.title())))
        }
    }

    /// User string and text of the description section. Fails if the text does not parse.
    pub(crate) fn text(&self) -> Result<(&'static [u8], String)> {
        let (user, text) = match self {
            Self::Field(field) => (FIELD, serde_json::to_string(field)),
            Self::Group(group) => (GROUP, serde_json::to_string(group)),
        };
        let unsupported = |why: &str| not_described(why).in_object(self.title());
        let text = text.map_err(|e| unsupported(&e.to_string()))?;
        Self::parse(user, text.as_bytes()).map_err(|e| unsupported(e.message()))?;
        Ok((user, text))
    }

    fn title(&self) -> String {
        match self {
            Self::Field(field) => field.title(),
            Self::Group(group) => format!("group \"{}\"", group.group),
        }
    }
}

/// A description that does not follow the convention, or does not fit the data. Never fails a file.
pub(crate) fn mismatch(why: impl Into<String>) -> Error {
    Error::malformed("scda-023", why)
}

fn is_path(name: &str) -> bool {
    name.split('/').all(|part| !part.is_empty())
}

/// Supplies the sections of a file in order and receives the fields, groups and plain sections found
/// in them.
pub(crate) trait Visitor {
    /// A section that was read.
    type Section;

    /// The next section; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Self::Section>>;

    /// Type, user string, element count and element size.
    fn header<'s>(&'s self, section: &'s Self::Section) -> (Kind, &'s [u8], u64, u64);

    /// The bytes of a description, which is the section that was read last.
    fn text(&mut self, section: &Self::Section) -> Result<Vec<u8>>;

    /// A section that is not part of a field or group.
    fn plain(&mut self, section: &Self::Section) -> Result<()>;

    fn group(&mut self, group: Group) -> Result<()>;

    /// A field and its data section; `shape` is that of the array.
    fn field(&mut self, field: Field, shape: Shape, data: &Self::Section) -> Result<()>;

    /// A description that cannot be used. It is passed to [`Visitor::plain`], too.
    fn reject(&mut self, section: &Self::Section, why: &Error) -> Result<()>;
}

/// Combines descriptions with the data sections that follow them. A description that cannot be used is
/// a plain section; only an I/O error, or an error of `plain` or `reject`, fails.
pub(crate) fn visit<V: Visitor>(visitor: &mut V) -> Result<()> {
    let mut next = visitor.next()?;
    while let Some(section) = next.take() {
        let (kind, user, ..) = visitor.header(&section);
        if !Description::is_one(kind, user) {
            visitor.plain(&section)?;
            next = visitor.next()?;
            continue;
        }
        let user = user.to_vec();
        let parsed = visitor.text(&section).and_then(|text| Description::parse(&user, &text));
        next = visitor.next()?;
        let used = parsed.and_then(|description| match (description, &next) {
            (Description::Group(group), _) => visitor.group(group).map(|()| false),
            (Description::Field(_), None) => Err(mismatch("expected a section with the data")),
            (Description::Field(field), Some(data)) => {
                let (kind, _, count, size) = visitor.header(data);
                let shape = field.array_shape(kind, count, size)?;
                visitor.field(*field, shape, data).map(|()| true)
            }
        });
        match used {
            Ok(false) => {}
            Ok(true) => next = visitor.next()?,
            Err(e) if e.kind() == ErrorKind::Io => return Err(e),
            Err(e) => {
                visitor.reject(&section, &e)?;
                visitor.plain(&section)?;
            }
        }
    }
    Ok(())
}

/// `text` with at most 200 characters: names and keys of a file may be of any length.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::Real;
    use spile_core::layout::Linear;

    #[test]
    fn descriptions_round_trip() {
        let list = Value::List(vec![
            Value::Int(5),
            Value::Int(-5),
            Value::UInt(u64::MAX),
            Value::Bool(true),
            Value::Float(-0.0),
            Value::Float(f64::INFINITY),
            Value::Float(0.1 + 0.2),
            Value::Float(5e-324),
            Value::Float(1e300),
            Value::Complex(1.0, f64::NEG_INFINITY),
            Value::Bytes(vec![0, 255]),
            Value::Text("\u{0} \"ü\"".into()),
            Value::List(Vec::new()),
        ]);
        for dtype in ["float64", "int16-be", "float128", "bool32-be", "text[7]", "complex-x87"] {
            let mut field = Field::new("a/ü b", dtype.parse().unwrap()).shaped(&[2, 3]);
            field = field.version(3).attr("units", "K").attr("all", list.clone());
            field.dims = vec!["x".into()];
            let uniform = CoordMeta::Uniform { start: Real(f64::NEG_INFINITY), step: Real(0.5) };
            field.coords = vec![None, Some(uniform), Some(CoordMeta::Field("x".into()))];
            field.map = Some(Linear::new(1.0, -2.5).into());
            field.fortran_order = true;
            let described = Description::Field(Box::new(field));
            let (user, text) = described.text().unwrap();
            assert_eq!(Description::parse(user, text.as_bytes()).unwrap(), described, "{text}");
        }
        // A NaN is not equal to itself.
        for bits in [f64::NAN.to_bits(), 0x7ff0_0000_0000_0001, u64::MAX] {
            let attrs = Attrs::from([("x", Value::Float(f64::from_bits(bits)))]);
            let described = Description::Group(Group { group: String::new(), attrs });
            let (user, text) = described.text().unwrap();
            let Ok(Description::Group(back)) = Description::parse(user, text.as_bytes()) else {
                panic!("{text}");
            };
            assert!(
                matches!(back.attrs.get("x"), Some(Value::Float(x)) if x.to_bits() == bits),
                "{text}"
            );
        }
    }

    #[test]
    fn attributes_of_the_same_name_keep_their_order() {
        let attrs = Attrs::from([("b", true.into()), ("a", 1_u64.into()), ("b", 2_u64.into())]);
        let described = Description::Group(Group { group: "g".into(), attrs });
        let (user, text) = described.text().unwrap();
        assert_eq!(text, r#"{"group":"g","attrs":{"b":true,"a":1,"b":2}}"#);
        assert_eq!(Description::parse(user, text.as_bytes()).unwrap(), described);
    }

    #[test]
    fn an_invalid_description_is_explained() {
        for (text, why) in [
            ("{}", "missing field `name`"),
            (r#"{"name":"a","dtype":"<f3","shape":[]}"#, "<f3"),
            (r#"{"name":"a//b","dtype":"<f8","shape":[]}"#, "is not a valid path"),
            (r#"{"name":"","dtype":"<f8","shape":[]}"#, "is not a valid path"),
            (r#"{"name":"a","dtype":"<f8","shape":[-1]}"#, "-1"),
            (r#"{"name":"a","dtype":"<f8","shape":[],"colour":1}"#, "colour"),
            (r#"{"name":"a","dtype":"<f8","shape":[],"attrs":{"x":null}}"#, "null"),
            (r#"{"name":"a","dtype":"<f8","shape":[],"attrs":{"x":{"hex":"0"}}}"#, "hex"),
        ] {
            let error = Description::parse(FIELD, text.as_bytes()).unwrap_err();
            assert!(error.message().contains(why), "{text}: {error}");
        }
        // A description that cannot be read is not written.
        let deep = (0..200).fold(Value::Bool(true), |value, _| Value::List(vec![value]));
        let group = Group { group: String::new(), attrs: Attrs::from([("deep", deep)]) };
        assert_eq!(Description::Group(group).text().unwrap_err().code(), "scda-031");
    }
}
