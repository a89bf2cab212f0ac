//! On-disk structures: file header, block header, data types.

pub(crate) mod block_type;
pub(crate) mod fields;
pub(crate) mod meta;

use std::borrow::Cow;

use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Kind, Result, Source, Wire, convert};

use fields::{Encoder, Fields};

/// First bytes of every file (section 3).
pub const MAGIC: &[u8; 4] = b"SDF1";

/// Byte-order mark: bytes 0F 0E 02 01 in a little-endian file.
pub const ENDIANNESS: u32 = 16_911_887;

/// Length of the file header as written, in bytes. Readers use the stored `first_block_location`.
pub const FILE_HEADER: u64 = 112;

/// Length of the file header of version 1.1, in bytes.
const OLD_FILE_HEADER: usize = 106;

/// The only version defined; readers must refuse a higher one (section 3).
pub const VERSION: u32 = 1;

/// The newest supported revision.
pub const REVISION: u32 = 4;

/// Length of identifiers, units and labels, in bytes.
pub const ID: usize = 32;

/// Offset of the location of the summary, one of the three fields written when a file is closed.
pub const SUMMARY_LOCATION_AT: u64 = 56;
/// Offset of the length of the summary.
pub const SUMMARY_SIZE_AT: u64 = 64;
/// Offset of the number of blocks, the last field written when a file is closed.
pub const NBLOCKS_AT: u64 = 68;

/// Element type of a block (section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Not specified.
    #[default]
    Null,
    /// 4-byte integer.
    Integer4,
    /// 8-byte integer.
    Integer8,
    /// Single precision.
    Real4,
    /// Double precision.
    Real8,
    /// Quadruple precision.
    Real16,
    /// Character.
    Character,
    /// One byte, 0 or 1.
    Logical,
    /// Defined by the block type.
    Other,
    /// Not defined in any supported revision.
    Unknown(i32),
}

/// Data types in the order of their codes.
const DATA_TYPES: [(DataType, &str); 9] = [
    (DataType::Null, "null"),
    (DataType::Integer4, "integer4"),
    (DataType::Integer8, "integer8"),
    (DataType::Real4, "real4"),
    (DataType::Real8, "real8"),
    (DataType::Real16, "real16"),
    (DataType::Character, "character"),
    (DataType::Logical, "logical"),
    (DataType::Other, "other"),
];

impl DataType {
    /// The data type with the stored `code`.
    pub fn from_code(code: i32) -> Self {
        let known = usize::try_from(code).ok().and_then(|k| DATA_TYPES.get(k));
        known.map_or(Self::Unknown(code), |(this, _)| *this)
    }

    /// The stored code.
    pub fn code(self) -> i32 {
        match self {
            Self::Unknown(code) => code,
            _ => DATA_TYPES.iter().position(|(this, _)| *this == self).unwrap_or(0) as i32,
        }
    }

    /// Name in the specification, or `datatype N` for an unknown code.
    pub fn name(self) -> String {
        match self {
            Self::Unknown(code) => format!("datatype {code}"),
            _ => DATA_TYPES[self.code() as usize].1.to_string(),
        }
    }

    /// The data type whose [`DataType::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = DATA_TYPES.iter().find(|(_, known)| *known == name).map(|(this, _)| *this);
        known.or_else(|| Some(Self::Unknown(name.strip_prefix("datatype ")?.parse().ok()?)))
    }

    /// Element type in byte order `order`; `None` for null, other and unknown data types.
    pub fn dtype(self, order: ByteOrder) -> Option<DType> {
        let (kind, size) = match self {
            Self::Integer4 => (Kind::Int, 4),
            Self::Integer8 => (Kind::Int, 8),
            Self::Real4 => (Kind::Float, 4),
            Self::Real8 => (Kind::Float, 8),
            Self::Real16 => (Kind::Float, 16),
            Self::Character => (Kind::UInt, 1),
            Self::Logical => (Kind::Bool, 1),
            Self::Null | Self::Other | Self::Unknown(_) => return None,
        };
        DType::new(kind, size, order)
    }

    /// The data type that stores elements of `dtype`; `None` if SDF has no such type.
    pub fn of(dtype: DType) -> Option<Self> {
        Some(match (dtype.kind(), dtype.size()) {
            (Kind::Int, 4) => Self::Integer4,
            (Kind::Int, 8) => Self::Integer8,
            (Kind::Float, 4) => Self::Real4,
            (Kind::Float, 8) => Self::Real8,
            (Kind::Float, 16) => Self::Real16,
            (Kind::Bool, 1) => Self::Logical,
            (Kind::UInt | Kind::Opaque, 1) | (Kind::Text, _) => Self::Character,
            _ => return None,
        })
    }
}

/// File header (section 3); the byte at offset 106 was added after version 1.1.
#[derive(Clone, Debug, PartialEq)]
pub struct FileHeader {
    /// Byte order of the file.
    pub order: ByteOrder,
    /// Always 1.
    pub version: u32,
    /// Revision of the version.
    pub revision: u32,
    /// Name of the program that wrote the file.
    pub code_name: String,
    /// Offset of the first block.
    pub first_block: u64,
    /// Offset of the summary.
    pub summary_location: u64,
    /// Length of the summary in bytes; 0 if the file has none.
    pub summary_size: u64,
    /// Number of blocks: 0 until the file is closed, negative if writing failed.
    pub nblocks: i32,
    /// Length of a block header without its metadata, in bytes.
    pub block_header_length: u64,
    /// Simulation step.
    pub step: i32,
    /// Simulation time in seconds.
    pub time: f64,
    /// Start time of the job that wrote the file: seconds since 1970 and milliseconds.
    pub jobid: (i32, i32),
    /// Length of long strings, in bytes.
    pub string_length: u64,
    /// Version of the program's output.
    pub code_io_version: i32,
    /// The file is a restart dump.
    pub restart: bool,
    /// The file contains one subdomain only.
    pub subdomain: bool,
    /// The file contains time histories at stations.
    pub station: bool,
}

impl Default for FileHeader {
    /// A header as EPOCH writes it: little-endian, revision 4, strings of 64 bytes.
    fn default() -> Self {
        Self {
            order: ByteOrder::Little,
            version: VERSION,
            revision: REVISION,
            code_name: String::new(),
            first_block: FILE_HEADER,
            summary_location: FILE_HEADER,
            summary_size: 0,
            nblocks: 0,
            block_header_length: 0,
            step: 0,
            time: 0.0,
            jobid: (0, 0),
            string_length: 64,
            code_io_version: 1,
            restart: false,
            subdomain: false,
            station: false,
        }
    }
}

impl FileHeader {
    /// Reads the header and validates its lengths. Fails if the file is not SDF (sdf-001, sdf-002),
    /// shorter than its header (sdf-003), of a higher version (sdf-004) or malformed (sdf-005).
    pub fn read(source: &Source) -> Result<Self> {
        let bytes = fetch(source, 0, FILE_HEADER as usize)?;
        let mut wire = Wire::new(&bytes, 0, ByteOrder::Little, "sdf-003");
        if let Some(k) = MAGIC.iter().zip(&bytes).position(|(expected, found)| expected != found) {
            let message = "not an SDF file: expected \"SDF1\" at the start";
            return Err(Error::not_this_format("sdf-001", message).at(k as u64));
        }
        wire.skip(MAGIC.len())?;
        let order = ByteOrder::detect(wire.array()?, ENDIANNESS).ok_or_else(|| {
            let message = "not an SDF file: invalid byte-order mark";
            Error::not_this_format("sdf-002", message).at(4)
        })?;
        wire.set_order(order);
        let version = wire.u32()?;
        if version > VERSION {
            let message =
                format!("expected SDF version {VERSION}, found {version}, which is not supported");
            return Err(Error::unsupported("sdf-004", message)
                .at(8)
                .hint("a newer release of spile may read this file"));
        }
        let mut header = Self { order, version, ..Self::default() };
        header.fields(&mut wire)?;
        header.validate()?;
        if bytes.len() > OLD_FILE_HEADER && header.first_block > OLD_FILE_HEADER as u64 {
            header.station = bytes[OLD_FILE_HEADER] != 0;
        }
        Ok(header)
    }

    /// Reads or writes the fields after the version.
    fn fields(&mut self, f: &mut impl Fields) -> Result<()> {
        let mut revision = u64::from(self.revision);
        f.count(&mut revision)?;
        self.revision = revision as u32;
        f.text(&mut self.code_name, ID)?;
        f.long_count(&mut self.first_block)?;
        f.long_count(&mut self.summary_location)?;
        f.count(&mut self.summary_size)?;
        f.i4(&mut self.nblocks)?;
        f.count(&mut self.block_header_length)?;
        f.i4(&mut self.step)?;
        f.r8(&mut self.time)?;
        f.i4(&mut self.jobid.0)?;
        f.i4(&mut self.jobid.1)?;
        f.count(&mut self.string_length)?;
        f.i4(&mut self.code_io_version)?;
        f.flag(&mut self.restart)?;
        f.flag(&mut self.subdomain)
    }

    fn validate(&self) -> Result<()> {
        let error = |message: String, at| Err(Error::malformed("sdf-005", message).at(at));
        if self.first_block < OLD_FILE_HEADER as u64 {
            let message = format!(
                "offset of the first block, {}, is inside the file header",
                self.first_block
            );
            return error(message, 48);
        }
        if self.string_length == 0 {
            return error("string length is 0".into(), 96);
        }
        let min = self.string_length + 68;
        if self.block_header_length < min {
            let found = self.block_header_length;
            let message = format!("expected block headers of at least {min} bytes, found {found}");
            return error(message, 72);
        }
        Ok(())
    }

    /// Encodes the header, [`FILE_HEADER`] bytes.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Encoder::new(self.order);
        out.bytes.extend_from_slice(MAGIC);
        out.i4(&mut (ENDIANNESS as i32))?;
        out.i4(&mut (self.version as i32))?;
        self.clone().fields(&mut out)?;
        out.bytes.push(u8::from(self.station));
        out.bytes.push(0);
        out.bytes.resize(FILE_HEADER as usize, b' ');
        Ok(out.bytes)
    }

    /// Little-endian elements of type `dtype` in the byte order of the file.
    pub(crate) fn in_order<'b>(&self, dtype: Option<DType>, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let word = dtype.map_or(1, DType::word);
        if self.order == ByteOrder::Little || word == 1 {
            return Cow::Borrowed(bytes);
        }
        let mut swapped = bytes.to_vec();
        convert::swap(&mut swapped, word);
        Cow::Owned(swapped)
    }

    /// Block headers contain the length of their metadata (since revision 1).
    pub(crate) fn has_info_length(&self) -> bool {
        self.revision >= 1 && self.block_header_length >= self.string_length + 72
    }
}

/// Block header (section 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockHeader {
    /// Offset of the next header; for a header in the summary, of the next one in the summary.
    pub next: u64,
    /// Offset of the data.
    pub data_location: u64,
    /// Identifier; should be unique in the file.
    pub id: String,
    /// Length of the data in bytes.
    pub data_length: u64,
    /// Code of the block type.
    pub blocktype: i32,
    /// Element type.
    pub datatype: DataType,
    /// Number of dimensions, or of members of a group.
    pub ndims: u64,
    /// Descriptive name; `/` separates groups.
    pub name: String,
    /// Length of the metadata in bytes (since revision 1).
    pub info_length: Option<u64>,
}

impl BlockHeader {
    /// Reads or writes the header, `file.block_header_length` bytes.
    pub(crate) fn fields(&mut self, f: &mut impl Fields, file: &FileHeader) -> Result<()> {
        f.long_count(&mut self.next)?;
        f.long_count(&mut self.data_location)?;
        f.text(&mut self.id, ID)?;
        f.long_count(&mut self.data_length)?;
        f.i4(&mut self.blocktype)?;
        f.datatype(&mut self.datatype)?;
        f.count(&mut self.ndims)?;
        f.text(&mut self.name, file.string_length as usize)?;
        let mut known = file.string_length + 68;
        if file.has_info_length() {
            let mut length = self.info_length.unwrap_or(0);
            f.count(&mut length)?;
            self.info_length = Some(length);
            known += 4;
        }
        // A later revision may append fields.
        f.bytes(&mut Vec::new(), (file.block_header_length - known) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_in_both_byte_orders() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let header = FileHeader {
                order,
                code_name: "Epoch3d".into(),
                nblocks: -235,
                time: 1e-15,
                block_header_length: 136,
                station: true,
                ..FileHeader::default()
            };
            let bytes = header.encode().unwrap();
            assert_eq!(bytes.len() as u64, FILE_HEADER);
            assert_eq!(FileHeader::read(&Source::memory(bytes)).unwrap(), header);
        }
    }

    #[test]
    fn a_higher_version_is_refused_whatever_follows() {
        let mut bytes = FileHeader::default().encode().unwrap();
        bytes[8] = 2;
        let error = FileHeader::read(&Source::memory(&bytes[..12])).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("sdf-004", Some(8)));
    }

    #[test]
    fn data_type_codes_round_trip() {
        for code in -3..20 {
            assert_eq!(DataType::from_code(code).code(), code);
        }
        assert_eq!(DataType::from_name("real16"), Some(DataType::Real16));
    }
}
