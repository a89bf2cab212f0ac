//! The header of a file. Names of fields are those of the grammar in the specification.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// Bytes of the header that are read at first.
const FIRST_READ: u64 = 64 << 10;

/// Largest number of dimensions of a variable (`NC_MAX_VAR_DIMS`).
const MAX_RANK: u64 = 1024;

/// Memory for a parsed header, in multiples of its size in the file.
const PARSED: u64 = 12;

/// The element type of an `nc_type`; `None` for a number that is not a type of this version.
fn nc_type(number: u32, version: u8) -> Option<DType> {
    let (kind, size) = match number {
        1 => (Kind::Int, 1),
        2 => return Some(DType::text(1)),
        3 => (Kind::Int, 2),
        4 => (Kind::Int, 4),
        5 => (Kind::Float, 4),
        6 => (Kind::Float, 8),
        7 if version == 5 => (Kind::UInt, 1),
        8 if version == 5 => (Kind::UInt, 2),
        9 if version == 5 => (Kind::UInt, 4),
        10 if version == 5 => (Kind::Int, 8),
        11 if version == 5 => (Kind::UInt, 8),
        _ => return None,
    };
    DType::new(kind, size, ByteOrder::Big)
}

/// A dimension; the record dimension has length 0 in the header.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) length: u64,
}

/// An attribute with its values as stored.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    dtype: DType,
    bytes: Vec<u8>,
}

impl Attribute {
    /// Memory of the decoded value, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let items = self.bytes.len() / self.dtype.size().max(1);
        let one = if self.dtype.kind() == Kind::Text { 1 } else { size_of::<Value>() };
        (items * one + self.name.len() + 64) as u64
    }

    /// Text, a number, or a list of numbers.
    pub(crate) fn value(&self) -> Value {
        let dtype = self.dtype;
        if dtype.kind() == Kind::Text {
            let end = self.bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
            return Value::Text(String::from_utf8_lossy(&self.bytes[..end]).into_owned());
        }
        let mut values: Vec<Value> =
            self.bytes.chunks_exact(dtype.size()).map(|bytes| number(dtype, bytes)).collect();
        match values.len() {
            1 => values.remove(0),
            _ => Value::List(values),
        }
    }
}

/// A big-endian number.
fn number(dtype: DType, bytes: &[u8]) -> Value {
    let bits = bytes.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    match (dtype.kind(), bytes.len()) {
        (Kind::Int, _) => Value::Int((bits << unused) as i64 >> unused),
        (Kind::Float, 4) => Value::Float(f64::from(f32::from_bits(bits as u32))),
        (Kind::Float, _) => Value::Float(f64::from_bits(bits)),
        _ => Value::UInt(bits),
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Indices of its dimensions, slowest first.
    pub(crate) dims: Vec<u64>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) dtype: DType,
    /// Size in bytes as stored; it is not used, because it has too few bits for large variables.
    pub(crate) vsize: u64,
    /// Offset of the first value.
    pub(crate) begin: u64,
    /// Offset of the description in the header.
    pub(crate) at: u64,
}

/// The header of a file.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// 1, 2 or 5.
    pub(crate) version: u8,
    /// Number of records; `None` if the writer did not know it (`STREAMING`).
    pub(crate) numrecs: Option<u64>,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) variables: Vec<Variable>,
    /// Length of the header in bytes.
    pub(crate) len: u64,
    /// Offset of the first byte of padding that is not 0.
    pub(crate) padding: Option<u64>,
}

impl Header {
    /// Reads the header. Fails if it is not a header of CDF-1, CDF-2 or CDF-5, or exceeds the limits.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let mut len = FIRST_READ.min(source.len());
        loop {
            limits.allow(len.saturating_mul(PARSED), "the header")?;
            let bytes = fetch(source, 0, len as usize)?;
            match Self::parse(&bytes) {
                // The header may be longer than what was read.
                Err(error) if error.kind() == ErrorKind::Truncated && len < source.len() => {
                    len = len.saturating_mul(4).min(source.len());
                }
                parsed => return parsed,
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut wire = Wire::new(bytes, 0, ByteOrder::Big, "netcdf3-002");
        if !bytes.starts_with(b"CDF") {
            let message = "the file does not begin with \"CDF\"";
            return Err(Error::not_this_format("netcdf3-001", message).at(0));
        }
        wire.skip(3)?;
        let version = wire.u8()?;
        if !matches!(version, 1 | 2 | 5) {
            let message = format!("version {version} of the classic format is not supported");
            return Err(Error::unsupported("netcdf3-003", message).at(3));
        }
        let mut fields = Fields { wire, version, padding: None };
        let streaming = if version == 5 { u64::MAX } else { u64::from(u32::MAX) };
        let numrecs = Some(fields.count()?).filter(|n| *n != streaming);
        let dimensions = fields.list(0x0a, Fields::dimension)?;
        let attributes = fields.attributes()?;
        let variables = fields.list(0x0b, Fields::variable)?;
        let (len, padding) = (fields.wire.offset(), fields.padding);
        Ok(Self { version, numrecs, dimensions, attributes, variables, len, padding })
    }
}

struct Fields<'a> {
    wire: Wire<'a>,
    version: u8,
    padding: Option<u64>,
}

impl Fields<'_> {
    /// `NON_NEG`: 32 bits, or 64 bits in CDF-5.
    fn count(&mut self) -> Result<u64> {
        if self.version == 5 { self.wire.u64() } else { self.wire.u32().map(u64::from) }
    }

    /// A list that begins with `tag`, or an absent list.
    fn list<T>(
        &mut self,
        tag: u32,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let at = self.wire.offset();
        let found = self.wire.u32()?;
        let count = self.count()?;
        if found != tag && (found, count) != (0, 0) {
            let message = format!("list with tag {found} and {count} items, expected tag {tag}");
            return Err(Error::malformed("netcdf3-004", message).at(at));
        }
        // Each item takes bytes, so that the bytes limit their number.
        (0..count).map(|_| item(self)).collect()
    }

    /// Bytes that are padded to a multiple of 4.
    fn padded(&mut self, len: u64) -> Result<Vec<u8>> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let bytes = self.wire.take(len)?.to_vec();
        let at = self.wire.offset();
        let padding = self.wire.take(len.next_multiple_of(4) - len)?;
        if padding.iter().any(|b| *b != 0) {
            self.padding = self.padding.or(Some(at));
        }
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String> {
        let len = self.count()?;
        Ok(String::from_utf8_lossy(&self.padded(len)?).into_owned())
    }

    fn dtype(&mut self) -> Result<DType> {
        let at = self.wire.offset();
        let number = self.wire.u32()?;
        nc_type(number, self.version).ok_or_else(|| {
            let message = format!("type {number} does not exist in CDF-{}", self.version);
            Error::malformed("netcdf3-005", message).at(at)
        })
    }

    fn dimension(&mut self) -> Result<Dimension> {
        Ok(Dimension { name: self.name()?, length: self.count()? })
    }

    fn attributes(&mut self) -> Result<Vec<Attribute>> {
        self.list(0x0c, |fields| {
            let name = fields.name()?;
            let dtype = fields.dtype()?;
            let count = fields.count()?;
            let bytes = fields.padded(count.saturating_mul(dtype.size() as u64))?;
            Ok(Attribute { name, dtype, bytes })
        })
    }

    fn variable(&mut self) -> Result<Variable> {
        let at = self.wire.offset();
        let name = self.name()?;
        let rank = self.count()?;
        if rank > MAX_RANK {
            let message = format!("variable of rank {rank}, the maximum is {MAX_RANK}");
            return Err(Error::malformed("netcdf3-006", message).at(at));
        }
        let dims = (0..rank).map(|_| self.count()).collect::<Result<_>>()?;
        let attributes = self.attributes()?;
        let dtype = self.dtype()?;
        let vsize = self.count()?;
        let begin =
            if self.version == 1 { self.wire.u32().map(u64::from) } else { self.wire.u64() };
        Ok(Variable { name, dims, attributes, dtype, vsize, begin: begin?, at })
    }
}
