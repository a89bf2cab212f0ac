//! Named, typed fields in an scda file: a convention of our own on top of the format, which knows
//! only bytes. `FORMAT.md` describes it.
//!
//! A field is two sections: a block with a description in JSON, and the data. A group is one block
//! with attributes. Whatever looks like this and does not conform is left as the plain sections it
//! is.

pub(crate) mod view;

use serde::{Deserialize, Serialize};
use spile_core::convert::Number;
use spile_core::description::{Map, Points, json};
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::shape::Shape;
use spile_core::tree::{Attrs, Value};

use crate::wire::{Kind, USER};

/// User string of the block that describes a field.
pub(crate) const FIELD: &[u8] = b"spile field 00";

/// User string of the block that describes a group; the root is one.
pub(crate) const GROUP: &[u8] = b"spile group 00";

/// What is said about a field: what a program writes, and what it expects when it reads.
///
/// ```
/// use spile_scda::Field;
/// let field = Field::of::<f64>("velocity").shaped(&[3]).version(2).attr("units", "m/s");
/// assert_eq!(field.dtype.to_string(), "float64");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name; slashes put it into groups.
    pub name: String,
    /// Type of a number, in NumPy's notation.
    #[serde(with = "json::dtype")]
    pub dtype: DType,
    /// Shape of one element; of one item, where elements have items of different number.
    pub shape: Vec<u64>,
    /// The first index runs fastest, and that of the elements comes last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fortran_order: bool,
    /// Names of the dimensions of the whole array; none, or all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dims: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) coords: Vec<Option<Points>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<Map>,
    /// What else is said about it: its version, its units.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json::attrs")]
    pub attrs: Attrs,
    /// The data are stored compressed.
    #[serde(skip)]
    pub compressed: bool,
}

/// What is said about a group, or in the group "" about the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) group: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json::attrs")]
    pub(crate) attrs: Attrs,
}

impl Field {
    /// A field of numbers of type `T`, one an element.
    pub fn of<T: Number>(name: &str) -> Self {
        Self::new(name, T::DTYPE)
    }

    /// A field of any type, one value an element.
    pub fn new(name: &str, dtype: DType) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: Vec::new(),
            fortran_order: false,
            dims: Vec::new(),
            coords: Vec::new(),
            map: None,
            attrs: Vec::new(),
            compressed: false,
        }
    }

    /// Each element is an array of this shape, the last index fastest.
    pub fn shaped(mut self, shape: &[u64]) -> Self {
        self.shape = shape.to_vec();
        self
    }

    /// The version of what the field means; a program of another version refuses to read it.
    pub fn version(self, version: u64) -> Self {
        self.attr("version", version)
    }

    /// Says something about the field, for example its `units`.
    pub fn attr(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attrs.retain(|(other, _)| other != name);
        self.attrs.push((name.into(), value.into()));
        self
    }

    /// Names the dimensions of the whole array: that of the elements first.
    pub fn dims(mut self, names: &[&str]) -> Self {
        self.dims = names.iter().map(ToString::to_string).collect();
        self
    }

    /// Each element is compressed on its own when it is written; makes no difference in reading.
    pub fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// Bytes of an element, or of an item of one.
    pub fn bytes(&self) -> Result<u64> {
        Shape::new(self.shape.clone()).bytes(self.dtype.size())
    }

    /// The user string of its data: as much of the name as fits.
    pub(crate) fn user(&self) -> &[u8] {
        let end = (0..=self.name.len().min(USER)).rev().find(|k| self.name.is_char_boundary(*k));
        &self.name.as_bytes()[..end.unwrap_or(0)]
    }

    /// The shape of the whole array, if a section of this type, number and size holds the field.
    pub(crate) fn whole(&self, kind: Kind, count: u64, size: u64) -> Result<Shape> {
        let bytes = self.bytes().map_err(|e| unfit(e.message()))?;
        let mut shape = self.shape.clone();
        match kind {
            Kind::Inline => return Err(unfit("an I section holds no field")),
            Kind::Varray => shape = vec![count],
            Kind::Block | Kind::Array if bytes != size => {
                return Err(unfit(format!("it needs {bytes} bytes, the section has {size}")));
            }
            Kind::Block => {}
            Kind::Array if self.fortran_order => shape.push(count),
            Kind::Array => shape.insert(0, count),
        }
        let (dims, coords, rank) = (self.dims.len(), self.coords.len(), shape.len());
        if (dims != 0 && dims != rank) || (coords != 0 && coords != rank) {
            let named = dims.max(coords);
            return Err(unfit(format!("it names {named} dimensions, there are {rank}")));
        }
        let shape = Shape::new(shape);
        shape.bytes(self.dtype.size()).map_err(|e| unfit(e.message()))?;
        Ok(shape)
    }

    /// A program that expects `wanted` can read this field.
    pub(crate) fn serves(&self, wanted: &Self) -> Result<()> {
        let differs = |what: &str, ours: String, theirs: String| {
            let message = format!("{what} {ours} in the file, {theirs} in the program");
            Err(Error::argument(message).in_object(self.title()))
        };
        let version = |field: &Self| {
            let found = field.attrs.iter().find(|(name, _)| name == "version");
            found.map_or("none".into(), |(_, value)| value.to_string())
        };
        if version(self) != version(wanted) {
            return differs("its version is", version(self), version(wanted));
        }
        // The byte order is the file's own business.
        if (self.dtype.kind(), self.dtype.size()) != (wanted.dtype.kind(), wanted.dtype.size()) {
            return differs("its numbers are", self.dtype.to_string(), wanted.dtype.to_string());
        }
        let shape = |field: &Self| {
            let order = if field.fortran_order { ", first index fastest" } else { "" };
            format!("{}{order}", Shape::new(field.shape.clone()))
        };
        if shape(self) != shape(wanted) {
            return differs("the shape of an element is", shape(self), shape(wanted));
        }
        Ok(())
    }

    pub(crate) fn title(&self) -> String {
        format!("field \"{}\"", self.name)
    }
}

/// A description that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Described {
    Field(Box<Field>),
    Group(Group),
}

impl Described {
    /// The section says that it is a description.
    pub(crate) fn announced(kind: Kind, user: &[u8]) -> bool {
        kind == Kind::Block && (user == FIELD || user == GROUP)
    }

    /// A description of `size` bytes may be read: lists of numbers take much more memory than
    /// their text.
    pub(crate) fn allow(size: u64, limits: &Limits) -> Result<()> {
        limits.allow(size.saturating_mul(40), "a description").map(drop)
    }

    /// Reads the text of a description.
    pub(crate) fn parse(user: &[u8], text: &[u8]) -> Result<Self> {
        let say = |e: serde_json::Error| unfit(e.to_string());
        let (described, named) = if user == GROUP {
            let group: Group = serde_json::from_slice(text).map_err(say)?;
            let named = group.group.is_empty() || is_name(&group.group);
            (Self::Group(group), named)
        } else {
            let field: Field = serde_json::from_slice(text).map_err(say)?;
            let named = is_name(&field.name);
            (Self::Field(Box::new(field)), named)
        };
        if named {
            Ok(described)
        } else {
            Err(unfit(format!("the {} has no name", described.title())))
        }
    }

    /// User string and text of the description. It is sure to be one: it was read back.
    pub(crate) fn text(&self) -> Result<(&'static [u8], String)> {
        let (user, text) = match self {
            Self::Field(field) => (FIELD, serde_json::to_string(field)),
            Self::Group(group) => (GROUP, serde_json::to_string(group)),
        };
        let cannot = |why: &str| {
            Error::unsupported("scda-031", format!("cannot be described: {why}"))
                .in_object(self.title())
        };
        let text = text.map_err(|e| cannot(&e.to_string()))?;
        Self::parse(user, text.as_bytes()).map_err(|e| cannot(e.message()))?;
        Ok((user, text))
    }

    fn title(&self) -> String {
        match self {
            Self::Field(field) => field.title(),
            Self::Group(group) => format!("group \"{}\"", group.group),
        }
    }
}

/// What looks like the convention and does not conform. Nobody fails with this: it is a note.
fn unfit(why: impl Into<String>) -> Error {
    Error::malformed("scda-023", why)
}

fn is_name(name: &str) -> bool {
    name.split('/').all(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::Real;
    use spile_core::layout::Linear;

    #[test]
    fn descriptions_come_back_whatever_is_in_them() {
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
            let uniform = Points::Uniform { start: Real(f64::NEG_INFINITY), step: Real(0.5) };
            field.coords = vec![None, Some(uniform), Some(Points::Field("x".into()))];
            field.map = Some(Linear::new(1.0, -2.5).into());
            field.fortran_order = true;
            let described = Described::Field(Box::new(field));
            let (user, text) = described.text().unwrap();
            assert_eq!(Described::parse(user, text.as_bytes()).unwrap(), described, "{text}");
        }
        // A NaN is not equal to itself.
        for bits in [f64::NAN.to_bits(), 0x7ff0_0000_0000_0001, u64::MAX] {
            let attrs = vec![("x".into(), Value::Float(f64::from_bits(bits)))];
            let described = Described::Group(Group { group: String::new(), attrs });
            let (user, text) = described.text().unwrap();
            let Ok(Described::Group(back)) = Described::parse(user, text.as_bytes()) else {
                panic!("{text}");
            };
            assert!(matches!(back.attrs[0].1, Value::Float(x) if x.to_bits() == bits), "{text}");
        }
    }

    #[test]
    fn namesakes_among_attributes_stay_in_order() {
        let attrs = vec![
            ("b".into(), Value::Bool(true)),
            ("a".into(), 1_u64.into()),
            ("b".into(), 2_u64.into()),
        ];
        let described = Described::Group(Group { group: "g".into(), attrs });
        let (user, text) = described.text().unwrap();
        assert_eq!(text, r#"{"group":"g","attrs":{"b":true,"a":1,"b":2}}"#);
        assert_eq!(Described::parse(user, text.as_bytes()).unwrap(), described);
    }

    #[test]
    fn what_is_no_description_says_why() {
        for (text, why) in [
            ("{}", "missing field `name`"),
            (r#"{"name":"a","dtype":"<f3","shape":[]}"#, "<f3"),
            (r#"{"name":"a//b","dtype":"<f8","shape":[]}"#, "has no name"),
            (r#"{"name":"","dtype":"<f8","shape":[]}"#, "has no name"),
            (r#"{"name":"a","dtype":"<f8","shape":[-1]}"#, "-1"),
            (r#"{"name":"a","dtype":"<f8","shape":[],"colour":1}"#, "colour"),
            (r#"{"name":"a","dtype":"<f8","shape":[],"attrs":{"x":null}}"#, "null"),
            (r#"{"name":"a","dtype":"<f8","shape":[],"attrs":{"x":{"hex":"0"}}}"#, "hex"),
        ] {
            let error = Described::parse(FIELD, text.as_bytes()).unwrap_err();
            assert!(error.message().contains(why), "{text}: {error}");
        }
        // What would not be read is not written.
        let deep = (0..200).fold(Value::Bool(true), |value, _| Value::List(vec![value]));
        let group = Group { group: String::new(), attrs: vec![("deep".into(), deep)] };
        assert_eq!(Described::Group(group).text().unwrap_err().code(), "scda-031");
    }
}
