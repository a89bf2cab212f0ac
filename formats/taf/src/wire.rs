//! On-disk structures: opening and header (report sections 2.1 and 2.2).

use spile_core::error::human_bytes;
use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Hint, Limits, Linear, Result, Shape, Source, Wire};

/// First four bytes (section 2.1).
pub const MAGIC: &[u8; 4] = b"TAF ";

/// Version written by this crate. The report defines none; see "version" in FORMAT.md.
pub const VERSION: (u8, u8) = (1, 0);

/// Byte offset of the header (section 2.2).
pub const HEADER_OFFSET: u64 = 1024;

/// Byte offset of the first dimension entry, after four eight-byte header fields.
pub const DIMENSIONS_OFFSET: u64 = HEADER_OFFSET + 32;

/// Size of a dimension entry in bytes: length, grid start, grid step.
pub const DIMENSION_BYTES: u64 = 24;

/// Byte offset of the entry of the dimension with zero-based `index`.
pub(crate) fn dimension_offset(index: usize) -> u64 {
    DIMENSIONS_OFFSET + DIMENSION_BYTES * index as u64
}

/// Memory per dimension in bytes, including its name and coordinate.
const DIMENSION_COST: u64 = 400;

/// Value of both coefficients of unmapped data (section 2.2; the bit pattern printed there is a
/// NaN).
pub const NO_MAP: f64 = f64::INFINITY;

/// Description of the format for human readers (Figure 2-1 with joined lines), padded with spaces
/// up to [`HEADER_OFFSET`].
pub const SYNOPSIS: &str = "\
This file contains a numeric array in little-endian binary format. \
Starting at byte offset 1024 is a binary header. The first value:
    Data format (8 characters)
indicates how array elements are stored in the file. \
Short names and bit size indicate standard integer (uint8, uint16, etc.) \
or floating point (flt32, or flt64) data types. \
Null characters (ASCII 0) are used on the right side as placeholders.

The next two values:
    Data intercept (64-bit float)
    Data slope (64-bit float)
define linear mapping of stored integers (x) to array data (y).
    y=intercept+slope*x
Infinite slope indicates data mapping is *not* used.

The next value and subsequent 3N values define the array size.
    Dimensions N >= 2 (uint64)
    Dimension 1 length (uint64)
    Dimension 1 grid start (64-bit float)
    Dimension 1 grid step (64-bit float)
    ...
Array data is stored column wise immediately after the dimension N grid step.

The remainder of the file holds optional text comments.
";

/// Element types with their names in the type field.
pub const TYPES: [(&str, DType); 10] = [
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("flt32", DType::F32),
    ("flt64", DType::F64),
];

/// Spelling of the type field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// A name of [`TYPES`], padded with NUL.
    Canonical,
    /// `float32` or `float64`.
    LongFloat,
    /// Padded with spaces instead of NUL.
    SpacePadded,
    /// A number of bits instead of a name (footnote 2).
    Legacy,
}

/// A dimension: its length and its implicit grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimension {
    /// Number of elements.
    pub length: u64,
    /// Grid value of the first element.
    pub start: f64,
    /// Difference between consecutive grid values.
    pub step: f64,
}

impl Dimension {
    /// A dimension with the default grid 1, 2, 3, ...
    pub fn with_default_grid(length: u64) -> Self {
        Self { length, start: 1.0, step: 1.0 }
    }

    /// Grid value `start + index * step` of the element with zero-based `index`.
    pub fn grid_value(&self, index: u64) -> f64 {
        self.start + index as f64 * self.step
    }
}

/// Opening and header: everything before the array.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Major and minor version.
    pub version: (u8, u8),
    /// Array type code; 0 is a generic array.
    pub type_code: u8,
    /// Element type.
    pub dtype: DType,
    /// Spelling of the element type.
    pub spelling: Spelling,
    /// Map intercept a.
    pub intercept: f64,
    /// Map slope b.
    pub slope: f64,
    /// Dimensions, first index fastest.
    pub dimensions: Vec<Dimension>,
}

impl Header {
    /// A header of the current version. The caller ensures at least two dimensions and an element
    /// type of [`TYPES`]. TAF has two coefficients: the origin of `map` is added to the intercept.
    pub fn new(dtype: DType, map: Option<Linear>, dimensions: Vec<Dimension>) -> Self {
        let (intercept, slope) = map.map_or((NO_MAP, NO_MAP), Linear::coefficients);
        Self {
            version: VERSION,
            type_code: 0,
            dtype,
            spelling: Spelling::Canonical,
            intercept,
            slope,
            dimensions,
        }
    }

    /// Reads the header and checks that the file contains the complete array.
    ///
    /// # Errors
    /// Not TAF (taf-001), malformed (taf-002, taf-004 to taf-006), truncated (taf-003, taf-007), or
    /// a header larger than `limits`.
    pub fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let header = Self::parse(source, limits)?;
        header.check_array_size(source)?;
        Ok(header)
    }

    /// Reads the header without comparing the size of the array with the size of the file. Memory
    /// is allocated only for dimensions that are inside the file.
    pub(crate) fn parse(source: &Source, limits: &Limits) -> Result<Self> {
        let opening = fetch(source, 0, DIMENSIONS_OFFSET as usize)?;
        let mut wire = Wire::new(&opening, 0, ByteOrder::Little, "taf-003");
        let common = MAGIC.iter().zip(&opening).take_while(|(a, b)| a == b).count();
        if common < MAGIC.len().min(opening.len()) || opening.is_empty() {
            let message = "expected \"TAF \" at the start of the file";
            return Err(Error::not_this_format("taf-001", message).at(common as u64));
        }
        wire.skip(MAGIC.len())?;
        let version = (wire.u8()?, wire.u8()?);
        let type_code = wire.u8()?;
        wire.expect(b"\n", "taf-002")?;
        wire.skip(HEADER_OFFSET as usize - 8)?;
        let (dtype, spelling) = parse_type_field(wire.array::<8>()?)?;
        let (intercept, slope) = (wire.f64()?, wire.f64()?);
        let rank = wire.u64()?;
        if rank < 2 {
            let message = format!("expected at least 2 dimensions, found {rank}");
            return Err(Error::malformed("taf-005", message).at(HEADER_OFFSET + 24));
        }
        let bytes = rank.checked_mul(DIMENSION_BYTES).filter(|bytes| *bytes < 1 << 48);
        let bytes = bytes.ok_or_else(|| {
            let message = format!("impossible number of dimensions: {rank}");
            let hint = match rank.swap_bytes() {
                2..=64 => "the header seems to be big-endian; TAF is little-endian",
                _ => "the header is damaged",
            };
            Error::malformed("taf-005", message).at(HEADER_OFFSET + 24).hint(hint)
        })?;
        source.require(DIMENSIONS_OFFSET, bytes).map_err(|_| {
            let message = format!(
                "unexpected end of file: expected {bytes} bytes for {rank} dimensions, found {}",
                source.len().saturating_sub(DIMENSIONS_OFFSET)
            );
            Error::truncated("taf-003", message).at(DIMENSIONS_OFFSET)
        })?;
        limits.allow(rank.saturating_mul(DIMENSION_COST), "the header")?;
        let entries = fetch(source, DIMENSIONS_OFFSET, bytes as usize)?;
        let mut wire = Wire::new(&entries, DIMENSIONS_OFFSET, ByteOrder::Little, "taf-003");
        let dimensions = (0..rank)
            .map(|_| Ok(Dimension { length: wire.u64()?, start: wire.f64()?, step: wire.f64()? }))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { version, type_code, dtype, spelling, intercept, slope, dimensions })
    }

    /// Fails if the file ends before the end of the array.
    fn check_array_size(&self, source: &Source) -> Result<()> {
        let bytes = self.array_bytes();
        let end = bytes.and_then(|b| b.checked_add(self.data_offset()));
        match end {
            Some(end) if end <= source.len() => Ok(()),
            Some(_) => Err(Error::truncated(
                "taf-007",
                format!(
                    "unexpected end of file: the {} array needs {}, found {}",
                    self.shape(),
                    human_bytes(bytes.unwrap_or(0)),
                    human_bytes(source.len().saturating_sub(self.data_offset()))
                ),
            )
            .in_object("array")
            .at(self.data_offset())
            .hint(Hint::salvage("recovers the complete columns"))),
            None => {
                // The first dimension at which the size in bytes exceeds 64 bits.
                let mut product = self.dtype.size() as u128;
                let overflow = self.dimensions.iter().position(|d| {
                    product = product.saturating_mul(u128::from(d.length));
                    product > u128::from(u64::MAX)
                });
                let message = format!("the size of a {} array exceeds 64 bits", self.shape());
                let offset = dimension_offset(overflow.unwrap_or(0));
                Err(Error::malformed("taf-006", message).in_object("array").at(offset))
            }
        }
    }

    /// Opening and header as bytes, with the canonical type name and synopsis.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data_offset() as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[self.version.0, self.version.1, self.type_code, b'\n']);
        out.extend_from_slice(SYNOPSIS.as_bytes());
        out.resize(HEADER_OFFSET as usize, b' ');
        let mut name = [0; 8];
        let canonical = type_name(self.dtype).as_bytes();
        name[..canonical.len()].copy_from_slice(canonical);
        out.extend_from_slice(&name);
        out.extend_from_slice(&self.intercept.to_le_bytes());
        out.extend_from_slice(&self.slope.to_le_bytes());
        out.extend_from_slice(&(self.dimensions.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.encode_dimensions());
        out
    }

    /// The dimension entries as bytes.
    pub fn encode_dimensions(&self) -> Vec<u8> {
        let entry = |d: &Dimension| {
            [d.length.to_le_bytes(), d.start.to_le_bytes(), d.step.to_le_bytes()].concat()
        };
        self.dimensions.iter().flat_map(entry).collect()
    }

    /// The linear map `value = intercept + slope * stored`; `None` unless both coefficients are
    /// finite (see "not mapped" in FORMAT.md).
    pub fn map(&self) -> Option<Linear> {
        let finite = self.intercept.is_finite() && self.slope.is_finite();
        finite.then_some(Linear::new(self.intercept, self.slope))
    }

    /// Lengths of the dimensions, first index fastest.
    pub fn shape(&self) -> Shape {
        Shape::new(self.dimensions.iter().map(|d| d.length).collect::<Vec<_>>())
    }

    /// Byte offset of the first element (section 2.3): D in FORMAT.md.
    pub fn data_offset(&self) -> u64 {
        dimension_offset(self.dimensions.len())
    }

    /// Size of the array in bytes; `None` if it exceeds 64 bits.
    pub fn array_bytes(&self) -> Option<u64> {
        self.shape().count()?.checked_mul(self.dtype.size() as u64)
    }

    /// Byte offset of the comments (section 2.4): C in FORMAT.md. Requires an array size below 64
    /// bits, which [`Header::read`] ensures.
    pub fn comment_offset(&self) -> u64 {
        self.data_offset() + self.array_bytes().unwrap_or(0)
    }
}

/// Name of an element type in the type field; empty if TAF has no such type.
pub fn type_name(dtype: DType) -> &'static str {
    TYPES.iter().find(|(_, d)| *d == dtype).map_or("", |(name, _)| name)
}

/// Parses an element type given by a user: a TAF name, an alias (`single`, `double`, `float32`,
/// `float64`) or a number of bits (8, 16, 32, 64).
///
/// # Errors
/// Any other name.
pub fn parse_type(name: &str) -> Result<DType> {
    // Footnote 2 and section 3.1: 8 and 16 are unsigned, 32 and 64 are floats.
    let alias = match name {
        "8" => "uint8",
        "16" => "uint16",
        "32" | "single" | "float32" => "flt32",
        "64" | "double" | "float64" => "flt64",
        other => other,
    };
    TYPES.iter().find(|(known, _)| *known == alias).map(|(_, dtype)| *dtype).ok_or_else(|| {
        let known: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
        Error::argument(format!("unknown TAF element type \"{name}\""))
            .hint(format!("use {}, 8, 16, 32, 64, single or double", known.join(", ")))
    })
}

fn parse_type_field(field: [u8; 8]) -> Result<(DType, Spelling)> {
    let end = field.iter().rposition(|b| *b != 0 && *b != b' ').map_or(0, |last| last + 1);
    let (name, padding) = field.split_at(end);
    let bits = if field[1..] == [0; 7] { field[0] } else { 0 };
    let (short, spelling): (&[u8], _) = match (bits, name) {
        (8, _) => (b"uint8", Spelling::Legacy),
        (16, _) => (b"uint16", Spelling::Legacy),
        (32, _) => (b"flt32", Spelling::Legacy),
        (64, _) => (b"flt64", Spelling::Legacy),
        (_, b"float32") => (b"flt32", Spelling::LongFloat),
        (_, b"float64") => (b"flt64", Spelling::LongFloat),
        _ if padding.contains(&b' ') => (name, Spelling::SpacePadded),
        _ => (name, Spelling::Canonical),
    };
    let found = TYPES.iter().find(|(known, _)| known.as_bytes() == short);
    found.map(|(_, dtype)| (*dtype, spelling)).ok_or_else(|| {
        let message = format!("unknown element type \"{}\"", field.escape_ascii());
        Error::malformed("taf-004", message)
            .at(HEADER_OFFSET)
            .hint("TAF defines uint8 to uint64, int8 to int64, flt32 and flt64")
    })
}
