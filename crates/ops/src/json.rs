//! Values, errors and elements as JSON. NaN and infinities, which JSON lacks, are the strings `"NaN"`,
//! `"Infinity"` and `"-Infinity"`. Integers keep all 64 bits.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, Serializer};
use spile_core::{Attrs, DType, Error, Kind, Value, convert};

/// A number that may be NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Real(pub f64);

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match name(self.0) {
            Some(word) => serializer.serialize_str(word),
            None => serializer.serialize_f64(self.0),
        }
    }
}

/// The string for NaN or an infinity; none for finite numbers.
fn name(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// An attribute's value.
pub struct Attr<'a>(pub &'a Value);

impl Serialize for Attr<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Int(v) => serializer.serialize_i64(*v),
            Value::UInt(v) => serializer.serialize_u64(*v),
            Value::Float(v) => Real(*v).serialize(serializer),
            Value::Complex(re, im) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("re", &Real(*re))?;
                map.serialize_entry("im", &Real(*im))?;
                map.end()
            }
            Value::Text(v) => serializer.serialize_str(v),
            Value::Bytes(v) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("hex", &hex(v))?;
                map.end()
            }
            Value::List(v) => serializer.collect_seq(v.iter().map(Attr)),
        }
    }
}

/// Named values in file order. Repeated names are numbered: a second `x` is `x~2`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs(pub Attrs);

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        let mut seen: HashMap<&str, u64> = HashMap::new();
        for (name, value) in &self.0 {
            let count = seen.entry(name).or_insert(0);
            *count += 1;
            match *count {
                1 => map.serialize_entry(name, &Attr(value))?,
                k => map.serialize_entry(&format!("{name}~{k}"), &Attr(value))?,
            }
        }
        map.end()
    }
}

/// An error, as under `"error"` in JSON output.
#[derive(serde::Serialize)]
pub struct Failure<'a> {
    /// The kind, for example `malformed`.
    pub kind: &'static str,
    /// The code, where there is one.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub code: &'static str,
    /// The message.
    pub message: &'a str,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<&'static str>,
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<&'a str>,
    /// The frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// Byte offset in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// A suggestion, as the front end renders it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl<'a> From<&'a Error> for Failure<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            kind: error.kind().name(),
            code: error.code(),
            message: error.message(),
            file: error.path().map(|p| p.to_string_lossy().into_owned()),
            format: error.format(),
            object: error.object(),
            frame: error.frame(),
            offset: error.offset(),
            hint: error.suggestion().map(ToString::to_string),
        }
    }
}

/// Appends one little-endian element.
pub fn write_element(dtype: DType, element: &[u8], out: &mut String) {
    match dtype.kind() {
        Kind::Int | Kind::UInt | Kind::Bool => convert::write_element(dtype, element, out),
        Kind::Float | Kind::X87 => match name(convert::element_f64(dtype, element)) {
            Some(word) => write_string(word, out),
            None => convert::write_element(dtype, element, out),
        },
        Kind::Complex | Kind::ComplexX87 => {
            let half = convert::part(dtype);
            let (re, im) = element.split_at(half.size());
            out.push('[');
            write_element(half, re, out);
            out.push(',');
            write_element(half, im, out);
            out.push(']');
        }
        Kind::Text => write_string(&convert::text_of(element), out),
        Kind::Opaque => write_string(&hex(element), out),
    }
}

fn write_string(text: &str, out: &mut String) {
    // Strings can always be serialised.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_words_and_integers_stay_whole() {
        let list = Value::List(vec![
            Value::Float(f64::NAN),
            Value::Float(f64::NEG_INFINITY),
            Value::UInt(u64::MAX),
            Value::Int(i64::MIN),
            Value::Bytes(vec![0, 255]),
            Value::Complex(1.0, f64::INFINITY),
        ]);
        let text = serde_json::to_string(&Attr(&list)).unwrap();
        assert_eq!(
            text,
            "[\"NaN\",\"-Infinity\",18446744073709551615,-9223372036854775808,\
             {\"hex\":\"00ff\"},{\"re\":1.0,\"im\":\"Infinity\"}]"
        );
    }

    #[test]
    fn a_repeated_name_does_not_hide_the_first() {
        let pairs = Pairs(Attrs::from([("x", Value::Int(1)), ("x", Value::Int(2))]));
        assert_eq!(serde_json::to_string(&pairs).unwrap(), r#"{"x":1,"x~2":2}"#);
    }

    #[test]
    fn elements_of_every_kind_are_json() {
        let show = |dtype: &str, bytes: &[u8]| {
            let mut out = String::new();
            write_element(dtype.parse().unwrap(), bytes, &mut out);
            out
        };
        assert_eq!(show("float32", &0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(show("float32", &f32::NAN.to_le_bytes()), "\"NaN\"");
        assert_eq!(show("bool8", &[3]), "true");
        assert_eq!(show("text[4]", b"a\"b "), r#""a\"b""#);
        assert_eq!(show("opaque[2]", &[1, 0xab]), "\"01ab\"");
        let z: Vec<u8> = [1.5_f64, f64::INFINITY].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(show("complex128", &z), "[1.5,\"Infinity\"]");
    }
}
