//! Types of columns.

use spile_core::dtype::{DType, Kind};
use spile_core::layout::Linear;
use spile_core::wire::ByteOrder;

use spile_interchange::arrow::TIME_UNITS;
use spile_interchange::flatbuffers::Table;

/// Buffers of a type after the validity bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// No buffers: every value is missing.
    Null,
    /// Elements of this many bytes.
    Fixed(usize),
    /// One bit per element.
    Bits,
    /// Offsets of this many bytes, and bytes.
    Offsets(usize),
    /// Views of 16 bytes, and any number of buffers.
    Views,
}

/// Conversion of a stored value to an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// Returns the bytes with zeros appended.
    Copy,
    /// An integer of this type as float64.
    Float(DType),
    /// A decimal number with this many digits after the point.
    Decimal(u32),
}

/// The type of a column.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) dtype: DType,
    pub(crate) storage: Storage,
    pub(crate) conversion: Conversion,
    pub(crate) attrs: Vec<(&'static str, String)>,
    pub(crate) map: Option<Linear>,
    pub(crate) warning: Option<String>,
    /// Byte strings: bytes if all have the same length.
    pub(crate) binary: bool,
}

/// The type of a field, without regard to a dictionary. The error is the name of a type that is not supported.
pub(crate) fn column_type(field: Table<'_>) -> Result<Type, String> {
    let code = field.u8(2).unwrap_or(0);
    let Some(own) = field.table(3) else { return Err(type_name(code)) };
    let number =
        |kind, size| DType::new(kind, size, ByteOrder::Little).ok_or_else(|| type_name(code));
    let fixed = |dtype: DType| Type::new(dtype, Storage::Fixed(dtype.size()));
    let unit = |default: i16| {
        let unit = usize::try_from(own.i16(0).unwrap_or(default)).ok();
        unit.and_then(|unit| TIME_UNITS.get(unit)).copied().ok_or_else(|| type_name(code))
    };
    Ok(match code {
        1 => Type::new(DType::F64, Storage::Null),
        2 => {
            let kind = if own.u8(1) == Some(1) { Kind::Int } else { Kind::UInt };
            match own.i32(0) {
                Some(bits @ (8 | 16 | 32 | 64)) => fixed(number(kind, bits as u32 / 8)?),
                _ => return Err(type_name(code)),
            }
        }
        3 => match own.i16(0).unwrap_or(0) {
            size @ 0..=2 => fixed(number(Kind::Float, 2 << size)?),
            _ => return Err(type_name(code)),
        },
        4 | 19 | 23 => Type { binary: true, ..Type::new(DType::text(0), strings(code)) },
        5 | 20 | 24 => Type::new(DType::text(0), strings(code)),
        6 => Type::new(number(Kind::Bool, 1)?, Storage::Bits),
        7 => decimal(own).ok_or_else(|| type_name(code))?,
        8 if own.i16(0) == Some(0) => fixed(DType::I32).since_1970("days"),
        8 => fixed(DType::I64).since_1970("milliseconds"),
        9 => {
            let dtype = if own.i32(1) == Some(64) { DType::I64 } else { DType::I32 };
            fixed(dtype).with("units", unit(1)?)
        }
        10 => {
            let own_type = fixed(DType::I64).since_1970(unit(0)?);
            match own.text(1).filter(|zone| !zone.is_empty()) {
                // Values are in UTC; the zone is the one to show them in.
                Some(_) => own_type.with("timezone", "UTC"),
                None => own_type,
            }
        }
        15 => match own.i32(0).and_then(|size| u32::try_from(size).ok()) {
            Some(size @ 1..) => fixed(DType::opaque(size)),
            _ => return Err(type_name(code)),
        },
        18 => fixed(DType::I64).with("units", unit(1)?),
        _ => return Err(type_name(code)),
    })
}

fn strings(code: u8) -> Storage {
    match code {
        4 | 5 => Storage::Offsets(4),
        19 | 20 => Storage::Offsets(8),
        _ => Storage::Views,
    }
}

/// The type of decimal numbers: float64 where it keeps all digits, else int64 with a scaling, else float64 with a
/// warning.
fn decimal(own: Table<'_>) -> Option<Type> {
    let (precision, scale) = (own.i32(0)?, own.i32(1).unwrap_or(0));
    let width = usize::try_from(own.i32(2).unwrap_or(128)).ok()? / 8;
    let scale = u32::try_from(scale).ok().filter(|scale| *scale <= 38)?;
    if !(1..=38).contains(&precision) || ![4, 8, 16, 32].contains(&width) {
        return None;
    }
    let of = |dtype| Type {
        conversion: Conversion::Decimal(scale),
        ..Type::new(dtype, Storage::Fixed(width))
    };
    Some(match (precision, scale) {
        (..=18, 0) => of(DType::I64),
        (..=15, _) => of(DType::F64),
        (..=18, _) => {
            let slope = format!("1e-{scale}").parse().ok()?;
            Type { map: Some(Linear::new(0.0, slope)), ..of(DType::I64) }
        }
        _ => {
            let warning = format!(
                "decimal numbers of {precision} digits are read as float64, which keeps 15"
            );
            Type { warning: Some(warning), ..of(DType::F64) }
        }
    })
}

impl Type {
    fn new(dtype: DType, storage: Storage) -> Self {
        let (attrs, conversion) = (Vec::new(), Conversion::Copy);
        Self { dtype, storage, conversion, attrs, map: None, warning: None, binary: false }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
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
    pub(crate) fn with_missing(&mut self) {
        let own = self.dtype;
        match own.kind() {
            Kind::Int | Kind::UInt | Kind::Bool if own.size() < 8 => {
                (self.dtype, self.conversion) = (DType::F64, Conversion::Float(own));
            }
            Kind::Text => self.warning = Some("missing values are read as empty strings".into()),
            Kind::Opaque => self.warning = Some("missing values are read as zeros".into()),
            _ => {}
        }
    }
}

/// Number of buffers of a field without its children; `None` for types with any number of them (views) or unknown ones.
pub(crate) fn buffer_count(field: Table<'_>) -> Option<usize> {
    if field.table(4).is_some() {
        return Some(2);
    }
    Some(match field.u8(2)? {
        1 | 22 => 0,
        13 | 16 => 1,
        4 | 5 | 19 | 20 | 25 | 26 => 3,
        // Sparse unions have types, dense ones offsets, too.
        14 => 1 + usize::from(field.table(3).and_then(|own| own.i16(0)) == Some(1)),
        2 | 3 | 6..=12 | 15 | 17 | 18 | 21 => 2,
        _ => return None,
    })
}

fn type_name(code: u8) -> String {
    let names = [
        "none",
        "null",
        "int",
        "float",
        "binary",
        "utf8",
        "bool",
        "decimal",
        "date",
        "time",
        "timestamp",
        "interval",
        "list",
        "struct",
        "union",
        "fixed_size_binary",
        "fixed_size_list",
        "map",
        "duration",
        "large_binary",
        "large_utf8",
        "large_list",
        "run_end_encoded",
        "binary_view",
        "utf8_view",
        "list_view",
        "large_list_view",
    ];
    names.get(usize::from(code)).map_or_else(|| code.to_string(), ToString::to_string)
}
