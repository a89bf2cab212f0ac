//! The subset of Thrift's compact protocol used by Parquet metadata.
//!
//! Lengths are checked against the available bytes before memory is allocated.

use spile_core::error::{Error, Result};
use spile_core::limits::Budget;

/// Maximum nesting depth.
const MAX_DEPTH: u32 = 24;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    /// An integer of up to 32 bits; readers distinguish the width.
    Short(i32),
    /// An integer of 64 bits.
    Int(i64),
    Double(f64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Struct(Struct),
}

impl Value {
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Self::Short(n) => Some(i64::from(*n)),
            Self::Int(n) => Some(*n),
            _ => None,
        }
    }
}

/// Fields with their ids, in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Struct(pub(crate) Vec<(i16, Value)>);

impl Struct {
    pub(crate) fn get(&self, id: i16) -> Option<&Value> {
        self.0.iter().find(|(own, _)| *own == id).map(|(_, value)| value)
    }

    pub(crate) fn int(&self, id: i16) -> Option<i64> {
        self.get(id)?.int()
    }

    /// An integer that is not negative.
    pub(crate) fn size(&self, id: i16) -> Option<u64> {
        self.int(id).and_then(|n| u64::try_from(n).ok())
    }

    pub(crate) fn flag(&self, id: i16) -> Option<bool> {
        if let Some(Value::Bool(flag)) = self.get(id) { Some(*flag) } else { None }
    }

    pub(crate) fn text(&self, id: i16) -> Option<String> {
        match self.get(id) {
            Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub(crate) fn list(&self, id: i16) -> &[Value] {
        if let Some(Value::List(list)) = self.get(id) { list } else { &[] }
    }

    pub(crate) fn inner(&self, id: i16) -> Option<&Self> {
        if let Some(Value::Struct(inner)) = self.get(id) { Some(inner) } else { None }
    }

    /// Appends a field. Ids must be ascending.
    pub(crate) fn with(mut self, id: i16, value: Value) -> Self {
        self.0.push((id, value));
        self
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.into())
    }
}

/// Reads consecutive structures.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// File offset of the first byte.
    base: u64,
    /// Charged for values and bytes.
    memory: Budget,
}

/// Memory charged for a value.
const VALUE: u64 = 48;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64, memory: Budget) -> Self {
        Self { bytes, at: 0, base, memory }
    }

    /// Number of bytes read.
    pub(crate) fn position(&self) -> u64 {
        self.at as u64
    }

    pub(crate) fn read_struct(&mut self) -> Result<Struct> {
        self.fields(0)
    }

    fn bad(&self, message: &str) -> Error {
        Error::malformed("parquet-003", message).at(self.base + self.at as u64)
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| {
            Error::truncated("parquet-002", "unexpected end of the metadata")
                .at(self.base + self.at as u64 - 1)
        })
    }

    fn unsigned(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.bad("integer of more than 64 bits"))
    }

    fn signed(&mut self) -> Result<i64> {
        let n = self.unsigned()?;
        Ok((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
    }

    fn fields(&mut self, depth: u32) -> Result<Struct> {
        if depth > MAX_DEPTH {
            return Err(self.bad("structures nested too deeply"));
        }
        let mut fields = Struct::default();
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(fields);
            }
            id = match head >> 4 {
                0 => i16::try_from(self.signed()?).map_err(|_| self.bad("invalid field id"))?,
                step => {
                    id.checked_add(i16::from(step)).ok_or_else(|| self.bad("invalid field id"))?
                }
            };
            self.memory.charge(VALUE, "the metadata")?;
            let value = match head & 15 {
                1 => Value::Bool(true),
                2 => Value::Bool(false),
                kind => self.value(kind, depth)?,
            };
            fields.0.push((id, value));
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Result<Value> {
        if depth > MAX_DEPTH {
            return Err(self.bad("lists nested too deeply"));
        }
        Ok(match kind {
            1 | 2 => Value::Bool(self.byte()? == 1),
            3 => Value::Short(i32::from(self.byte()?.cast_signed())),
            4 | 5 => {
                let n = self.signed()?;
                Value::Short(
                    i32::try_from(n).map_err(|_| self.bad("integer of more than 32 bits"))?,
                )
            }
            6 => Value::Int(self.signed()?),
            7 => {
                let mut raw = [0; 8];
                for byte in &mut raw {
                    *byte = self.byte()?;
                }
                Value::Double(f64::from_le_bytes(raw))
            }
            8 => {
                let len = usize::try_from(self.unsigned()?).unwrap_or(usize::MAX);
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let bytes =
                    rest.get(..len).ok_or_else(|| self.bad("string exceeds the metadata"))?;
                self.at += len;
                self.memory.charge(len as u64, "the metadata")?;
                Value::Bytes(bytes.to_vec())
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = match head >> 4 {
                    15 => self.unsigned()?,
                    len => u64::from(len),
                };
                // An element has at least one byte.
                if len > (self.bytes.len() - self.at.min(self.bytes.len())) as u64 {
                    return Err(self.bad("list exceeds the metadata"));
                }
                let mut list = Vec::new();
                for _ in 0..len {
                    self.memory.charge(VALUE, "the metadata")?;
                    list.push(self.value(head & 15, depth + 1)?);
                }
                Value::List(list)
            }
            12 => Value::Struct(self.fields(depth + 1)?),
            _ => return Err(self.bad("unknown field type")),
        })
    }
}

/// Appends a structure.
pub(crate) fn write(fields: &Struct, out: &mut Vec<u8>) {
    let mut before = 0;
    for (id, value) in &fields.0 {
        let kind = match value {
            Value::Bool(true) => 1,
            other => kind(other),
        };
        if let Ok(step @ 1..=15) = u8::try_from(id - before) {
            out.push(step << 4 | kind);
        } else {
            out.push(kind);
            signed(i64::from(*id), out);
        }
        before = *id;
        if !matches!(value, Value::Bool(_)) {
            write_value(value, out);
        }
    }
    out.push(0);
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Bool(_) => 2,
        Value::Short(_) => 5,
        Value::Int(_) => 6,
        Value::Double(_) => 7,
        Value::Bytes(_) => 8,
        Value::List(_) => 9,
        Value::Struct(_) => 12,
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(v) => out.push(if *v { 1 } else { 2 }),
        Value::Short(v) => signed(i64::from(*v), out),
        Value::Int(v) => signed(*v, out),
        Value::Double(v) => out.extend(v.to_le_bytes()),
        Value::Bytes(v) => {
            unsigned(v.len() as u64, out);
            out.extend(v);
        }
        Value::List(v) => {
            let kind = v.first().map_or(12, kind);
            if v.len() < 15 {
                out.push((v.len() as u8) << 4 | kind);
            } else {
                out.push(0xf0 | kind);
                unsigned(v.len() as u64, out);
            }
            for v in v {
                write_value(v, out);
            }
        }
        Value::Struct(v) => write(v, out),
    }
}

/// Appends an integer of variable length, seven bits per byte.
pub(crate) fn unsigned(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn signed(n: i64, out: &mut Vec<u8>) {
    unsigned(((n << 1) ^ (n >> 63)).cast_unsigned(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use spile_core::limits::Limits;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new(bytes, 0, Budget::new(&Limits::default()))
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::Int),
            any::<i32>().prop_map(Value::Short),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
        ];
        leaf.prop_recursive(3, 40, 20, |inner| {
            prop_oneof![
                proptest::collection::vec(any::<i64>().prop_map(Value::Int), 0..20)
                    .prop_map(Value::List),
                proptest::collection::vec((1_i16..40, inner), 0..5).prop_map(|mut fields| {
                    fields.sort_by_key(|f| f.0);
                    fields.dedup_by_key(|f| f.0);
                    Value::Struct(Struct(fields))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn structures_round_trip(value in value(), yes in any::<bool>()) {
            let all = Struct::default().with(1, Value::Bool(yes)).with(30, value);
            let mut bytes = Vec::new();
            write(&all, &mut bytes);
            let mut reader = reader(&bytes);
            prop_assert_eq!(reader.read_struct().unwrap(), all);
            prop_assert_eq!(reader.position(), bytes.len() as u64);
        }

        #[test]
        fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = reader(&bytes).read_struct();
        }
    }

    #[test]
    fn depth_and_lengths_are_limited() {
        assert!(reader(&vec![0x19; 100_000]).read_struct().is_err());
        assert!(reader(&vec![0x1c; 100_000]).read_struct().is_err());
        assert!(reader(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]).read_struct().is_err());
        assert!(reader(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]).read_struct().is_err());
    }
}
