//! Attribute values and their conversion to Rust types.

use std::fmt;

use crate::{Error, Result};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is never negative.
    UInt(u64),
    /// A real number.
    Float(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
    /// Text.
    Text(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// Several values.
    List(Vec<Value>),
}

impl Value {
    /// Approximate memory in bytes beyond the value itself.
    pub fn memory(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => {
                let item = |value: &Self| size_of::<Self>() as u64 + value.memory();
                list.iter().map(item).sum()
            }
            _ => 0,
        }
    }

    /// Whether two values are equal content: integers of any type by their number, NaN equal to NaN.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::Int(a), Self::UInt(b)) | (Self::UInt(b), Self::Int(a)) => {
                u64::try_from(*a) == Ok(*b)
            }
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (a, b) => a == b,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(v) => write!(f, "{v}"),
            Self::Int(v) => write!(f, "{v}"),
            Self::UInt(v) => write!(f, "{v}"),
            Self::Float(v) => f.write_str(zmij::Buffer::new().format(*v)),
            Self::Complex(re, im) => write!(f, "{re}{im:+}j"),
            Self::Text(v) => f.write_str(v),
            Self::Bytes(v) => write!(f, "{}", v.escape_ascii()),
            Self::List(v) => {
                f.write_str("[")?;
                for (k, item) in v.iter().enumerate() {
                    write!(f, "{}{item}", if k == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

macro_rules! from {
    ($($T:ty: $variant:ident),*) => {$(
        impl From<$T> for Value {
            fn from(value: $T) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(&str: Text, String: Text, f64: Float, u64: UInt, i64: Int, bool: Bool);

impl TryFrom<&Value> for u64 {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        match value {
            Value::UInt(v) => Ok(*v),
            Value::Int(v) if *v >= 0 => Ok(v.unsigned_abs()),
            other => Err(Error::argument(format!("{other} is not an integer >= 0"))),
        }
    }
}

impl TryFrom<&Value> for i64 {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        let number = match value {
            Value::Int(v) => Some(*v),
            Value::UInt(v) => Self::try_from(*v).ok(),
            _ => None,
        };
        number.ok_or_else(|| Error::argument(format!("{value} is not an integer")))
    }
}

impl TryFrom<&Value> for f64 {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        match value {
            Value::Float(v) => Ok(*v),
            Value::Int(v) => Ok(*v as Self),
            Value::UInt(v) => Ok(*v as Self),
            other => Err(Error::argument(format!("{other} is not a number"))),
        }
    }
}

impl TryFrom<&Value> for bool {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        match value {
            Value::Bool(v) => Ok(*v),
            other => Err(Error::argument(format!("{other} is not a boolean"))),
        }
    }
}

impl TryFrom<&Value> for String {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        match value {
            Value::Text(v) => Ok(v.clone()),
            other => Err(Error::argument(format!("{other} is not text"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_convert_to_rust_types_or_fail_with_their_text() {
        let whole = [Value::UInt(7), Value::Int(7)];
        assert!(whole.iter().all(|v| u64::try_from(v).unwrap() == 7));
        assert!(whole.iter().all(|v| i64::try_from(v).unwrap() == 7));
        assert!(whole.iter().all(|v| f64::try_from(v).unwrap() == 7.0));
        assert!(u64::try_from(&Value::Int(-1)).is_err());
        assert!(i64::try_from(&Value::UInt(u64::MAX)).is_err());
        let error = f64::try_from(&Value::from("fast")).unwrap_err();
        assert_eq!(error.message(), "fast is not a number");
        assert!(bool::try_from(&Value::from(true)).unwrap());
        assert_eq!(String::try_from(&Value::from("K")).unwrap(), "K");
    }
}
