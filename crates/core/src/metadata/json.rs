//! Attribute values as JSON and back, bit for bit. Integers are `UInt`, negative ones `Int`, numbers with
//! a point or an exponent `Float`; values that JSON lacks are objects with one entry.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::Value;

/// Serialises a value.
struct Encode<'a>(&'a Value);

impl Serialize for Encode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::UInt(v) => serializer.serialize_u64(*v),
            Value::Int(v) if *v < 0 => serializer.serialize_i64(*v),
            Value::Int(v) => tagged(serializer, "int", &v.unsigned_abs()),
            Value::Float(v) => Real(*v).serialize(serializer),
            Value::Complex(re, im) => tagged(serializer, "complex", &[Real(*re), Real(*im)]),
            Value::Text(v) => serializer.serialize_str(v),
            Value::Bytes(v) => {
                let digits = v.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                let hex = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
                tagged(serializer, "hex", &hex.collect::<String>())
            }
            Value::List(v) => serializer.collect_seq(v.iter().map(Encode)),
        }
    }
}

fn tagged<S: Serializer>(
    serializer: S,
    tag: &str,
    value: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(tag, value)?;
    map.end()
}

/// A deserialised value.
struct Decode(Value);

impl<'de> Deserialize<'de> for Decode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a boolean, a string, a list, or {\"int\" | \"float\" | \"complex\" | \"hex\": ...}")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::UInt(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Decode(value)) = seq.next_element()? {
            list.push(value);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let entry = map.next_entry::<String, Decode>()?;
        let more = map.next_key::<String>()?.is_some();
        let value = entry.filter(|_| !more).and_then(|(tag, Decode(value))| untag(&tag, value));
        value.ok_or_else(|| {
            de::Error::custom("expected an object with one of int, float, complex, hex")
        })
    }
}

fn untag(tag: &str, value: Value) -> Option<Value> {
    match (tag, value) {
        ("int", Value::UInt(v)) => i64::try_from(v).ok().map(Value::Int),
        ("float", Value::Text(word)) => special(&word).map(Value::Float),
        ("complex", Value::List(parts)) => match parts[..] {
            [Value::Float(re), Value::Float(im)] => Some(Value::Complex(re, im)),
            _ => None,
        },
        ("hex", Value::Text(text)) => unhex(&text).map(Value::Bytes),
        _ => None,
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

/// A float that JSON cannot express: a word, or the bits in hexadecimal.
fn special(word: &str) -> Option<f64> {
    match word {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        bits => {
            let bits = unhex(bits)?.try_into().ok()?;
            Some(f64::from_be_bytes(bits)).filter(|v| v.is_nan())
        }
    }
}

/// A real number, finite or not; equal bit for bit.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match self.0 {
            f64::INFINITY => "inf".into(),
            f64::NEG_INFINITY => "-inf".into(),
            v if v.to_bits() == f64::NAN.to_bits() => "nan".into(),
            v if v.is_nan() => format!("{:016x}", v.to_bits()),
            v => return serializer.serialize_f64(v),
        };
        tagged(serializer, "float", &word)
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Decode::deserialize(deserializer)?.0 {
            Value::Float(v) => Ok(Self(v)),
            Value::UInt(v) => Ok(Self(v as f64)),
            Value::Int(v) => Ok(Self(v as f64)),
            other => Err(de::Error::custom(format!("{other} is not a number"))),
        }
    }
}

/// Attributes as a JSON object; order and repeated names are kept.
pub mod attrs {
    use super::{AnyValue, Decode, Deserializer, Encode, MapAccess, Serializer, Visitor, fmt};
    use crate::tree::Attrs;

    /// For serde's `with`.
    pub fn serialize<S: Serializer>(attrs: &Attrs, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(attrs.iter().map(|(name, value)| (name, Encode(value))))
    }

    /// For serde's `with`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Attrs, D::Error> {
        deserializer.deserialize_map(Object)
    }

    struct Object;

    impl<'de> Visitor<'de> for Object {
        type Value = Attrs;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object whose values are each ")?;
            AnyValue.expecting(f)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attrs, A::Error> {
            let mut attrs = Attrs::new();
            while let Some((name, Decode(value))) = map.next_entry::<String, _>()? {
                attrs.push(name, value);
            }
            Ok(attrs)
        }
    }
}

/// Element types in NumPy's notation; types that NumPy lacks by spile's names.
pub mod dtype {
    use super::{Deserialize as _, Deserializer, Serializer, de};
    use crate::dtype::DType;

    /// For serde's `with`, which wants a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn serialize<S: Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&dtype.numpy().unwrap_or_else(|| dtype.to_string()))
    }

    /// For serde's `with`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        let text = String::deserialize(deserializer)?;
        DType::from_numpy(&text)
            .or_else(|| text.parse().ok())
            .ok_or_else(|| de::Error::custom(format!("\"{text}\" is not an element type")))
    }
}
