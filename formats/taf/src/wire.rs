//! The opening and the header as they lie in the file (report sections 2.1 and 2.2).

use spile_core::dtype::DType;
use spile_core::error::{Error, Result, human_bytes};
use spile_core::layout::Linear;
use spile_core::limits::Limits;
use spile_core::shape::Shape;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// First four bytes (section 2.1).
pub const MAGIC: &[u8; 4] = b"TAF ";

/// The version we write. The report gives none; see ruling 10 in FORMAT.md.
pub const VERSION: (u8, u8) = (1, 0);

/// Byte of the header (section 2.2).
pub const HEADER: u64 = 1024;

/// Byte of the first dimension's entry: four eight-byte fields follow [`HEADER`].
pub const DIMENSIONS: u64 = HEADER + 32;

/// Bytes of a dimension's entry: length, grid start, grid step.
pub const DIMENSION: u64 = 24;

/// Memory that a dimension takes once it is read, names and coordinates included.
const DIMENSION_COST: u64 = 400;

/// "No map": both coefficients infinite (section 2.2; the bit pattern printed there is a NaN).
pub const NO_MAP: f64 = f64::INFINITY;

/// The words that explain the file to whoever has no reader (Figure 2-1, its lines joined).
/// Spaces follow to [`HEADER`].
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

/// The element types of TAF with the names they are written under.
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

/// How the type field was spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As we write it.
    Plain,
    /// `float32`, `float64`.
    LongFloat,
    /// Padded with spaces instead of NUL.
    Spaces,
    /// A number of bits instead of a name (footnote 2).
    Legacy,
}

/// One dimension: its length and its implicit grid `start + (i - 1) * step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimension {
    /// Number of elements.
    pub length: u64,
    /// Grid value of the first element.
    pub start: f64,
    /// Distance between grid values.
    pub step: f64,
}

impl Dimension {
    /// A dimension whose grid counts 1, 2, 3.
    pub fn counting(length: u64) -> Self {
        Self { length, start: 1.0, step: 1.0 }
    }

    /// The grid value of element `index`, counted from zero.
    pub fn at(&self, index: u64) -> f64 {
        self.start + index as f64 * self.step
    }
}

/// Everything before the array.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Major and minor version.
    pub version: (u8, u8),
    /// What the array is; 0 is a generic one.
    pub type_code: u8,
    /// Element type.
    pub dtype: DType,
    /// How the element type was spelled.
    pub spelling: Spelling,
    /// Map intercept a.
    pub intercept: f64,
    /// Map slope b.
    pub slope: f64,
    /// Dimensions, first index fastest.
    pub dimensions: Vec<Dimension>,
}

impl Header {
    /// A header as we write it. At least two dimensions; the caller sees to that.
    pub fn new(dtype: DType, map: Option<Linear>, dimensions: Vec<Dimension>) -> Self {
        Self {
            version: VERSION,
            type_code: 0,
            dtype,
            spelling: Spelling::Plain,
            intercept: map.map_or(NO_MAP, |m| m.intercept),
            slope: map.map_or(NO_MAP, |m| m.slope),
            dimensions,
        }
    }

    /// Reads everything before the array and makes sure that the array is there.
    pub fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let header = Self::parse(source, limits)?;
        header.fits(source)?;
        Ok(header)
    }

    /// Reads and checks everything before the array. Nothing is allocated for a length that the
    /// file does not have.
    pub(crate) fn parse(source: &Source, limits: &Limits) -> Result<Self> {
        let opening = fetch(source, 0, DIMENSIONS as usize)?;
        let mut wire = Wire::new(&opening, 0, ByteOrder::Little, "taf-003");
        let common = MAGIC.iter().zip(&opening).take_while(|(a, b)| a == b).count();
        if common < MAGIC.len().min(opening.len()) || opening.is_empty() {
            let message = "a TAF file begins with \"TAF \"";
            return Err(Error::not_this_format("taf-001", message).at(common as u64));
        }
        wire.skip(MAGIC.len())?;
        let version = (wire.u8()?, wire.u8()?);
        let type_code = wire.u8()?;
        wire.expect(b"\n", "taf-002")?;
        wire.skip(HEADER as usize - 8)?;
        let (dtype, spelling) = parse_type(wire.array::<8>()?)?;
        let (intercept, slope) = (wire.f64()?, wire.f64()?);
        let rank = wire.u64()?;
        if rank < 2 {
            let message = format!("{rank} dimensions; there are always two or more");
            return Err(Error::malformed("taf-005", message).at(HEADER + 24));
        }
        let bytes = match rank.checked_mul(DIMENSION) {
            Some(bytes) if bytes < 1 << 48 => bytes,
            _ => {
                let error = Error::malformed("taf-005", format!("{rank} dimensions fit no file"));
                return Err(match rank.swap_bytes() {
                    2..=64 => error.hint("the numbers look big-endian; TAF is little-endian"),
                    _ => error.hint("the header is damaged"),
                }
                .at(HEADER + 24));
            }
        };
        source.require(DIMENSIONS, bytes).map_err(|_| {
            let message = format!(
                "{rank} dimensions need a header of {bytes} bytes, the file ends after {}",
                source.len()
            );
            Error::truncated("taf-003", message).at(DIMENSIONS)
        })?;
        // Entry, name and coordinate of each dimension will be held in memory.
        limits.allow(rank.saturating_mul(DIMENSION_COST), "the header")?;
        let entries = fetch(source, DIMENSIONS, bytes as usize)?;
        let mut wire = Wire::new(&entries, DIMENSIONS, ByteOrder::Little, "taf-003");
        let dimensions = (0..rank)
            .map(|_| Ok(Dimension { length: wire.u64()?, start: wire.f64()?, step: wire.f64()? }))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { version, type_code, dtype, spelling, intercept, slope, dimensions })
    }

    /// The file holds the whole array (a file shorter than its comments' offset is refused).
    fn fits(&self, source: &Source) -> Result<()> {
        let bytes = self.array_bytes();
        let end = bytes.and_then(|b| b.checked_add(self.data_offset()));
        match end {
            Some(end) if end <= source.len() => Ok(()),
            Some(_) => Err(Error::truncated(
                "taf-007",
                format!(
                    "the {} array needs {}, the file ends {} after its start",
                    self.shape(),
                    human_bytes(bytes.unwrap_or(0)),
                    human_bytes(source.len().saturating_sub(self.data_offset()))
                ),
            )
            .in_object("array")
            .at(self.data_offset())
            .hint("`spile salvage` keeps the whole columns that are left")),
            None => {
                // The first length at which the product leaves 64 bits.
                let mut product = self.dtype.size() as u128;
                let culprit = self.dimensions.iter().position(|d| {
                    product = product.saturating_mul(u128::from(d.length));
                    product > u128::from(u64::MAX)
                });
                let message = format!("a {} array fits no file", self.shape());
                let offset = DIMENSIONS + DIMENSION * culprit.unwrap_or(0) as u64;
                Err(Error::malformed("taf-006", message).in_object("array").at(offset))
            }
        }
    }

    /// The bytes before the array, as they are written.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data_offset() as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[self.version.0, self.version.1, self.type_code, b'\n']);
        out.extend_from_slice(SYNOPSIS.as_bytes());
        out.resize(HEADER as usize, b' ');
        let mut name = [0; 8];
        let spelled = type_name(self.dtype).as_bytes();
        name[..spelled.len()].copy_from_slice(spelled);
        out.extend_from_slice(&name);
        out.extend_from_slice(&self.intercept.to_le_bytes());
        out.extend_from_slice(&self.slope.to_le_bytes());
        out.extend_from_slice(&(self.dimensions.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.encode_dimensions());
        out
    }

    /// The entries of the dimensions alone.
    pub fn encode_dimensions(&self) -> Vec<u8> {
        let entry = |d: &Dimension| {
            [d.length.to_le_bytes(), d.start.to_le_bytes(), d.step.to_le_bytes()].concat()
        };
        self.dimensions.iter().flat_map(entry).collect()
    }

    /// The map, if it is in use: both coefficients finite (ruling 6).
    pub fn map(&self) -> Option<Linear> {
        let finite = self.intercept.is_finite() && self.slope.is_finite();
        finite.then_some(Linear::new(self.intercept, self.slope))
    }

    /// Lengths.
    pub fn shape(&self) -> Shape {
        Shape::new(self.dimensions.iter().map(|d| d.length).collect::<Vec<_>>())
    }

    /// Byte of the first element (section 2.3): D in FORMAT.md.
    pub fn data_offset(&self) -> u64 {
        DIMENSIONS + DIMENSION * self.dimensions.len() as u64
    }

    /// Bytes of the array, or nothing if they fit no file.
    pub fn array_bytes(&self) -> Option<u64> {
        self.shape().count()?.checked_mul(self.dtype.size() as u64)
    }

    /// Byte of the first comment (section 2.4): C in FORMAT.md. Only meaningful for a header that
    /// was read from a file or is about to be written.
    pub fn comment_offset(&self) -> u64 {
        self.data_offset() + self.array_bytes().unwrap_or(0)
    }
}

/// The name a type is written under.
pub fn type_name(dtype: DType) -> &'static str {
    TYPES.iter().find(|(_, d)| *d == dtype).map_or("", |(name, _)| name)
}

/// A type by the name or the number of bits that people use: `uint8`, `single`, `64`.
pub fn type_named(name: &str) -> Result<DType> {
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
        Error::argument(format!("\"{name}\" is not a TAF element type"))
            .hint(format!("one of {}, or 8, 16, 32, 64, single, double", known.join(", ")))
    })
}

fn parse_type(field: [u8; 8]) -> Result<(DType, Spelling)> {
    let bad = || {
        let message = format!("element type \"{}\" is unknown", field.escape_ascii());
        Error::malformed("taf-004", message)
            .at(HEADER)
            .hint("uint8 to uint64, int8 to int64, flt32 and flt64 exist")
    };
    if field[1..].iter().all(|b| *b == 0) {
        let dtype = match field[0] {
            8 => DType::U8,
            16 => DType::U16,
            32 => DType::F32,
            64 => DType::F64,
            _ => return Err(bad()),
        };
        return Ok((dtype, Spelling::Legacy));
    }
    let end = field.iter().rposition(|b| *b != 0 && *b != b' ').map_or(0, |last| last + 1);
    let (name, padding) = field.split_at(end);
    let mut spelling = if padding.contains(&b' ') { Spelling::Spaces } else { Spelling::Plain };
    let short = match name {
        b"float32" => b"flt32",
        b"float64" => b"flt64",
        other => other,
    };
    if short.len() != name.len() {
        spelling = Spelling::LongFloat;
    }
    let found = TYPES.iter().find(|(known, _)| known.as_bytes() == short);
    found.map(|(_, dtype)| (*dtype, spelling)).ok_or_else(bad)
}
