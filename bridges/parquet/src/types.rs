//! Types of leaf columns: element type, representation, units of times, scaling of decimals, missing values.

use spile_core::dtype::{DType, Kind};
use spile_core::layout::Linear;
use spile_core::wire::ByteOrder;

use crate::stored::{Digits, Stored, wide};
use crate::thrift::Struct;
use crate::wire::{BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED, FLOAT, INT32, INT64, INT96};

/// Digits that float64 keeps.
const FLOAT_DIGITS: u64 = 15;

/// Digits that int64 keeps.
const INTEGER_DIGITS: u64 = 18;

/// Digits of the longest decimal numbers that are supported.
const MOST_DIGITS: u64 = 38;

/// The type of a leaf column.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    /// Element type. The length of strings is 0 unless spile wrote the file.
    pub(crate) dtype: DType,
    pub(crate) stored: Stored,
    /// Attributes of the array: `units` and `calendar`.
    pub(crate) attrs: Vec<(&'static str, String)>,
    /// Scaling of decimal numbers.
    pub(crate) map: Option<Linear>,
    /// What the element type does not keep.
    pub(crate) warning: Option<String>,
    /// Byte arrays without the annotation as strings: bytes if all have the same length.
    pub(crate) binary: bool,
}

/// Logical types of `parquet.thrift`, from the logical or the converted type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logical {
    None,
    Text,
    Decimal {
        scale: i64,
        precision: u64,
    },
    Date,
    /// With the name of the unit.
    Time(&'static str),
    Timestamp {
        unit: &'static str,
        utc: bool,
    },
    Integer {
        bytes: u32,
        signed: bool,
    },
    Null,
    Binary,
    Uuid,
    Half,
    Interval,
    Other,
}

const UNITS: [&str; 3] = ["milliseconds", "microseconds", "nanoseconds"];

fn logical(schema: &Struct) -> Logical {
    let union = schema.inner(10).and_then(|union| union.0.first());
    if let Some((id, crate::thrift::Value::Struct(own))) = union {
        let unit = || {
            let (unit, _) = own.inner(2)?.0.first()?;
            UNITS.get(usize::try_from(*unit).ok()?.checked_sub(1)?).copied()
        };
        let known = match id {
            1 | 4 | 12 => Some(Logical::Text),
            5 => own
                .int(1)
                .zip(own.size(2))
                .map(|(scale, n)| Logical::Decimal { scale, precision: n }),
            6 => Some(Logical::Date),
            7 => unit().map(Logical::Time),
            8 => unit().map(|unit| Logical::Timestamp { unit, utc: own.flag(1) == Some(true) }),
            10 => own.size(1).filter(|bits| [8, 16, 32, 64].contains(bits)).map(|bits| {
                let signed = own.flag(2) != Some(false);
                Logical::Integer { bytes: bits as u32 / 8, signed }
            }),
            11 => Some(Logical::Null),
            13 => Some(Logical::Binary),
            14 => Some(Logical::Uuid),
            15 => Some(Logical::Half),
            _ => None,
        };
        return known.unwrap_or(Logical::Other);
    }
    let integer = |bytes, signed| Logical::Integer { bytes, signed };
    match schema.int(6) {
        None => Logical::None,
        Some(0 | 4 | 19) => Logical::Text,
        Some(5) => match schema.size(8) {
            Some(precision) => Logical::Decimal { scale: schema.int(7).unwrap_or(0), precision },
            None => Logical::Other,
        },
        Some(6) => Logical::Date,
        Some(7) => Logical::Time(UNITS[0]),
        Some(8) => Logical::Time(UNITS[1]),
        // Without the logical type, times are taken as UTC.
        Some(9) => Logical::Timestamp { unit: UNITS[0], utc: true },
        Some(10) => Logical::Timestamp { unit: UNITS[1], utc: true },
        Some(11) => integer(1, false),
        Some(12) => integer(2, false),
        Some(13) => integer(4, false),
        Some(14) => integer(8, false),
        Some(15) => integer(1, true),
        Some(16) => integer(2, true),
        Some(17) => integer(4, true),
        Some(18) => integer(8, true),
        Some(20) => Logical::Binary,
        Some(21) => Logical::Interval,
        Some(_) => Logical::Other,
    }
}

/// The type of a leaf column. The error is the name of a type that is not supported.
pub(crate) fn column_type(schema: &Struct) -> Result<Type, String> {
    let physical = schema.int(1).and_then(|code| i32::try_from(code).ok());
    let logical = logical(schema);
    let size = schema.size(2).and_then(|size| u32::try_from(size).ok());
    let other = || type_name(schema);
    let physical = physical.ok_or_else(other)?;
    match (physical, logical) {
        (_, Logical::Decimal { scale, precision }) => {
            decimal(physical, size, scale, precision).ok_or_else(other)
        }
        // A column in which every value is missing.
        (_, Logical::Null) => {
            let stored = match physical {
                BOOLEAN => Stored::FloatBits,
                INT64 => Stored::Integers(DType::I64),
                _ => Stored::Integers(DType::I32),
            };
            Ok(Type::new(DType::F64, stored))
        }
        (BOOLEAN, _) => {
            let bool = DType::new(Kind::Bool, 1, ByteOrder::Little).ok_or_else(other)?;
            Ok(Type::new(bool, Stored::Bits))
        }
        (INT32, Logical::None) => Ok(Type::new(DType::I32, Stored::Plain)),
        (INT64, Logical::None) => Ok(Type::new(DType::I64, Stored::Plain)),
        (INT32 | INT64, Logical::Integer { bytes, signed }) => {
            let most = if physical == INT32 { 4 } else { 8 };
            let kind = if signed { Kind::Int } else { Kind::UInt };
            // Only INT64 stores 64 bits, and INT32 the others.
            let valid = (bytes == 8) == (most == 8);
            let dtype = DType::new(kind, bytes, ByteOrder::Little).filter(|_| valid);
            let stored = if bytes == most { Stored::Plain } else { Stored::Wide };
            Ok(Type::new(dtype.ok_or_else(other)?, stored))
        }
        (INT32, Logical::Date) => Ok(Type::new(DType::I32, Stored::Plain).since_1970("days")),
        (INT32 | INT64, Logical::Time(unit)) => {
            let dtype = if physical == INT32 { DType::I32 } else { DType::I64 };
            Ok(Type::new(dtype, Stored::Plain).with("units", unit))
        }
        (INT64, Logical::Timestamp { unit, utc }) => {
            let own = Type::new(DType::I64, Stored::Plain).since_1970(unit);
            Ok(if utc { own.with("timezone", "UTC") } else { own })
        }
        (INT96, Logical::None) => {
            Ok(Type::new(DType::I64, Stored::JulianDays).since_1970("nanoseconds"))
        }
        (FLOAT, Logical::None) => Ok(Type::new(DType::F32, Stored::Plain)),
        (DOUBLE, Logical::None) => Ok(Type::new(DType::F64, Stored::Plain)),
        // Only spile writes the length of opaque bytes.
        (BYTE_ARRAY, Logical::None) if size.is_some_and(|size| size > 0) => {
            Ok(Type::new(DType::opaque(size.unwrap_or(1)), Stored::ByteArrays))
        }
        (BYTE_ARRAY, Logical::Text) => {
            Ok(Type::new(DType::text(size.unwrap_or(0)), Stored::ByteArrays))
        }
        (BYTE_ARRAY, Logical::None | Logical::Binary) => {
            let own = Type::new(DType::text(0), Stored::ByteArrays);
            Ok(Type { binary: true, ..own })
        }
        (FIXED, Logical::Half) if size == Some(2) => {
            let half = DType::new(Kind::Float, 2, ByteOrder::Little).ok_or_else(other)?;
            Ok(Type::new(half, Stored::Plain))
        }
        (FIXED, Logical::None | Logical::Uuid | Logical::Binary) => match size {
            Some(size @ 1..) => Ok(Type::new(DType::opaque(size), Stored::Plain)),
            _ => Err(other()),
        },
        _ => Err(other()),
    }
}

/// The type of decimal numbers: float64 where it keeps all digits, else int64 with a scaling, else float64 with a
/// warning. `None` if they are not supported.
fn decimal(physical: i32, size: Option<u32>, scale: i64, precision: u64) -> Option<Type> {
    let digits = match physical {
        INT32 => Digits::Int32,
        INT64 => Digits::Int64,
        FIXED => Digits::Fixed(size.filter(|size| *size > 0)?),
        BYTE_ARRAY => Digits::ByteArrays,
        _ => return None,
    };
    let scale = u32::try_from(scale).ok().filter(|scale| u64::from(*scale) <= MOST_DIGITS)?;
    let stored = Stored::Decimal { digits, scale };
    match (precision, scale) {
        (MOST_DIGITS.., _) if precision > MOST_DIGITS => None,
        (..=INTEGER_DIGITS, 0) => Some(Type::new(DType::I64, stored)),
        (..=FLOAT_DIGITS, _) => Some(Type::new(DType::F64, stored)),
        (..=INTEGER_DIGITS, _) => {
            let slope = format!("1e-{scale}").parse().ok()?;
            let map = Some(Linear::new(0.0, slope));
            Some(Type { map, ..Type::new(DType::I64, stored) })
        }
        _ => {
            let warning = format!(
                "decimal numbers of {precision} digits are read as float64, which keeps {FLOAT_DIGITS}"
            );
            Some(Type { warning: Some(warning), ..Type::new(DType::F64, stored) })
        }
    }
}

impl Type {
    fn new(dtype: DType, stored: Stored) -> Self {
        Self { dtype, stored, attrs: Vec::new(), map: None, warning: None, binary: false }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attrs.push((name, value.into()));
        self
    }

    /// Times as CF writes them.
    fn since_1970(self, unit: &str) -> Self {
        self.with("units", format!("{unit} since 1970-01-01"))
            .with("calendar", "proleptic_gregorian")
    }

    /// The type for a column with missing values. Integers of up to 32 bits and booleans become float64, as in
    /// pandas.
    pub(crate) fn with_missing(mut self) -> Self {
        let float = match (self.stored, self.dtype.kind(), self.dtype.size()) {
            (Stored::Plain, Kind::Int | Kind::UInt, 4) => Some(Stored::Integers(self.dtype)),
            (Stored::Wide, ..) => Some(Stored::Integers(wide(self.dtype))),
            (Stored::Bits, ..) => Some(Stored::FloatBits),
            _ => None,
        };
        if let Some(stored) = float {
            (self.dtype, self.stored) = (DType::F64, stored);
        }
        if [Kind::Text, Kind::Opaque].contains(&self.dtype.kind()) {
            let text = if self.dtype.kind() == Kind::Text { "empty strings" } else { "zeros" };
            self.warning = Some(format!("missing values are read as {text}"));
        }
        self
    }
}

/// Name of the logical or physical type of a leaf column, for messages.
fn type_name(schema: &Struct) -> String {
    let logical = schema.inner(10).and_then(|union| union.0.first());
    let name = match (logical.map(|(id, _)| *id), schema.int(6), schema.int(1)) {
        (Some(5), ..) | (_, Some(5), _) => "DECIMAL",
        (Some(6), ..) | (_, Some(6), _) => "DATE",
        (Some(7), ..) | (_, Some(7 | 8), _) => "TIME",
        (Some(8), ..) | (_, Some(9 | 10), _) => "TIMESTAMP",
        (Some(13), ..) | (_, Some(20), _) => "BSON",
        (Some(14), ..) => "UUID",
        (Some(15), ..) => "FLOAT16",
        (Some(16), ..) => "VARIANT",
        (Some(17), ..) => "GEOMETRY",
        (Some(18), ..) => "GEOGRAPHY",
        (_, Some(21), _) => "INTERVAL",
        (_, _, Some(3)) => "INT96",
        (_, _, Some(7)) => "FIXED_LEN_BYTE_ARRAY",
        (_, converted, physical) => {
            let text = |code: Option<i64>| code.map_or("none".into(), |code| code.to_string());
            return format!("{} (converted type {})", text(physical), text(converted));
        }
    };
    name.into()
}
