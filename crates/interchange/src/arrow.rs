//! The Arrow schema of a table: part of Arrow files, and of Parquet files, from which pyarrow restores the metadata of
//! fields. Field numbers are those of `Message.fbs` and `Schema.fbs`.

use std::collections::HashMap;

use spile_core::dtype::Kind;
use spile_core::error::Result;
use spile_core::limits::{Budget, Limits};

use crate::flatbuffers::{self, Item};
use crate::table::{Field, Table};

/// Marks the beginning of a message.
pub const CONTINUATION: [u8; 4] = [0xff; 4];

/// Version 5 of the metadata.
pub const VERSION: i16 = 4;

/// Header type of a message with a schema.
pub const SCHEMA: u8 = 1;

/// Key of the length of strings, which Arrow does not have.
pub const LENGTH: &str = "spile.length";

/// Units of times and durations by their number.
pub const TIME_UNITS: [&str; 4] = ["seconds", "milliseconds", "microseconds", "nanoseconds"];

/// Type of durations.
const DURATION: u8 = 18;

/// The fields of a FlatBuffers table by their number.
pub type Fields = Vec<(usize, Item)>;

/// Encodes a message without its body of `body` bytes.
pub fn message(kind: u8, header: Fields, body: u64) -> Vec<u8> {
    let bytes = flatbuffers::write(vec![
        (0, Item::I16(VERSION)),
        (1, Item::U8(kind)),
        (2, Item::Table(header)),
        (3, Item::I64(body.cast_signed())),
    ]);
    let len = (bytes.len() as u32).to_le_bytes();
    [&CONTINUATION[..], &len, &bytes].concat()
}

/// The schema of a table with these keys and values. Units are in the metadata of fields, under `units`.
pub fn schema(table: &Table<'_>, metadata: &[(String, String)]) -> Fields {
    let fields = table.fields.iter().zip(table.titles());
    let fields = fields.map(|(field, title)| schema_field(field, title)).collect();
    let pairs = metadata.iter().map(|(key, value)| pair(key, value)).collect();
    vec![(0, Item::I16(0)), (1, Item::Tables(fields)), (2, Item::Tables(pairs))]
}

fn pair(key: &str, value: &str) -> Fields {
    vec![(0, Item::Text(key.into())), (1, Item::Text(value.into()))]
}

fn schema_field(field: &Field, title: String) -> Fields {
    let size = field.dtype.size() as i32;
    let (code, own) = match field.dtype.kind() {
        Kind::Int => (2, vec![(0, Item::I32(8 * size)), (1, Item::U8(1))]),
        Kind::UInt => (2, vec![(0, Item::I32(8 * size)), (1, Item::U8(0))]),
        Kind::Float => (3, vec![(0, Item::I16(size.ilog2() as i16 - 1))]),
        Kind::Bool => (6, Vec::new()),
        Kind::Opaque => (15, vec![(0, Item::I32(size))]),
        _ => (5, Vec::new()),
    };
    let mut pairs = Vec::new();
    if let Some(units) = &field.units {
        pairs.push(pair("units", units));
    }
    if field.dtype.kind() == Kind::Text {
        pairs.push(pair(LENGTH, &size.to_string()));
    }
    vec![
        (0, Item::Text(title)),
        (1, Item::U8(u8::from(field.optional))),
        (2, Item::U8(code)),
        (3, Item::Table(own)),
        // Readers require the list of children.
        (5, Item::Tables(Vec::new())),
        (6, Item::Tables(pairs)),
    ]
}

/// The value of a key in the metadata of a schema or field, which is its field number `number`.
pub fn value_of(table: flatbuffers::Table<'_>, number: usize, key: &str) -> Option<String> {
    let pairs = table.tables(number);
    pairs.iter().find(|pair| pair.text(0).as_deref() == Some(key))?.text(1)
}

/// Units of the fields of a message with a schema, by name: those of durations, and `units` in the metadata of fields.
/// `None` for a name of several fields. Fails with `Limit` if the names exceed the memory limit.
pub fn read_units(message: &[u8], limits: &Limits) -> Result<HashMap<String, Option<String>>> {
    let (mut units, mut memory) = (HashMap::new(), Budget::new(limits));
    let bytes = message.strip_prefix(&CONTINUATION).unwrap_or(message);
    let header = bytes.get(4..).and_then(flatbuffers::Table::root);
    let Some(schema) = header.and_then(|header| header.table(2)) else { return Ok(units) };
    for field in schema.tables(1) {
        let name = field.text(0).unwrap_or_default();
        // Fields of a damaged file may share names and metadata.
        let size = name.len() + 32 * field.tables(6).len();
        memory.charge(64 + size as u64, "the Arrow schema")?;
        let duration = || {
            let unit = field.table(3).filter(|_| field.u8(2) == Some(DURATION))?.i16(0);
            TIME_UNITS.get(usize::try_from(unit.unwrap_or(1)).ok()?).map(ToString::to_string)
        };
        let own = value_of(field, 6, "units").or_else(duration);
        memory.charge(own.as_ref().map_or(0, String::len) as u64, "the Arrow schema")?;
        units.entry(name).and_modify(|units| *units = None).or_insert(own);
    }
    Ok(units)
}
