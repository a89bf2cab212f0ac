//! Encodings of a `DataArray`: text, Base64 or raw, with or without zlib, LZ4 or LZMA.

mod strings;

use std::sync::Arc;

use spile_codecs::{Pipeline, Step};
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::source::Source;
use spile_core::wire::ByteOrder;
use spile_core::with_number;

use crate::legacy;
use crate::xml::{self, Element};

/// Characters examined at once.
const CHUNK: u64 = 4 << 10;

/// Largest compression ratio of LZMA; those of zlib and LZ4 are smaller.
const MOST_RATIO: u64 = 1 << 14;

/// Encoding parameters of all arrays of a file.
pub(crate) struct Encoding<'a> {
    pub(crate) source: &'a Source,
    pub(crate) limits: &'a Limits,
    pub(crate) order: ByteOrder,
    /// Size of a length field in bytes: 4 or 8.
    pub(crate) header: usize,
    pub(crate) compressor: Option<Arc<Pipeline>>,
    /// First byte of the appended data, and whether they are Base64.
    pub(crate) appended: Option<(u64, bool)>,
    /// The file is a legacy file.
    legacy: bool,
}

/// An array of the file.
pub(crate) struct Data {
    pub(crate) dtype: DType,
    pub(crate) components: u64,
    /// Number of elements, including components.
    pub(crate) count: u64,
    /// Its bytes in the file.
    pub(crate) extent: Extent,
    /// Its layout in C order.
    pub(crate) layout: Layout,
}

const TYPES: [(&str, DType); 10] = [
    ("Int8", DType::I8),
    ("UInt8", DType::U8),
    ("Int16", DType::I16),
    ("UInt16", DType::U16),
    ("Int32", DType::I32),
    ("UInt32", DType::U32),
    ("Int64", DType::I64),
    ("UInt64", DType::U64),
    ("Float32", DType::F32),
    ("Float64", DType::F64),
];

/// VTK's name of a type; `None` if VTK does not have it.
pub(crate) fn type_name(dtype: DType) -> Option<&'static str> {
    let dtype = dtype.with_order(ByteOrder::Little);
    TYPES.iter().find(|(_, known)| *known == dtype).map(|(name, _)| *name)
}

impl<'a> Encoding<'a> {
    /// The parameters in the attributes of the root.
    pub(crate) fn new(
        source: &'a Source,
        document: &xml::Document,
        limits: &'a Limits,
    ) -> Result<Self> {
        let root = &document.root;
        let order = match root.attr("byte_order") {
            None | Some("LittleEndian") => ByteOrder::Little,
            Some("BigEndian") => ByteOrder::Big,
            Some(other) => return Err(root.malformed(format!("unknown byte_order \"{other}\""))),
        };
        let header = match root.attr("header_type") {
            None | Some("UInt32") => 4,
            Some("UInt64") => 8,
            Some(other) => return Err(root.malformed(format!("unknown header_type \"{other}\""))),
        };
        let compressor = match root.attr("compressor") {
            None | Some("") => None,
            Some("vtkZLibDataCompressor") => Some(Step::Zlib),
            Some("vtkLZ4DataCompressor") => Some(Step::Lz4),
            Some("vtkLZMADataCompressor") => Some(Step::Xz),
            Some(other) => {
                return Err(root.unsupported(format!("compressor {other} is not supported")));
            }
        };
        let compressor = compressor.and_then(|step| Pipeline::new(vec![step], "vtk-007"));
        let base64 = |element: &Element| element.attr("encoding") == Some("base64");
        let appended = document.appended.zip(root.child("AppendedData").map(base64));
        let (compressor, legacy) = (compressor.map(Arc::new), document.legacy);
        Ok(Self { source, limits, order, header, compressor, appended, legacy })
    }

    /// Locates an array of `tuples` tuples; without `tuples` the number follows from the data. Fails if the type is
    /// not numeric, or if the data do not have that number of elements.
    pub(crate) fn array(&self, element: &Element, tuples: Option<u64>) -> Result<Data> {
        let name = element.attr("type").unwrap_or_default();
        if name == "String" {
            return self.texts(element, tuples);
        }
        let known = TYPES.iter().find(|(known, _)| *known == name);
        let (_, dtype) = known.ok_or_else(|| {
            let message = format!("data type \"{name}\" is not supported");
            Error::unsupported("vtk-010", message).at(element.at)
        })?;
        let components = element.number("NumberOfComponents", Some(1))?.max(1);
        let tuples = match (tuples, element.attr("NumberOfTuples")) {
            (None, Some(_)) => Some(element.number("NumberOfTuples", None)?),
            _ => tuples,
        };
        let too_many = || element.malformed("number of elements overflows");
        let count = match tuples {
            Some(tuples) => Some(tuples.checked_mul(components).ok_or_else(too_many)?),
            None => None,
        };
        let dtype = dtype.with_order(self.order);
        let (layout, extent, bytes) = self.located(element, dtype, count)?;
        let size = dtype.size() as u64;
        let found = bytes / size;
        let count = count.unwrap_or(found);
        if found < count || (element.attr("Shape").is_none() && found > count) {
            let message = format!("expected {count} elements, found {found}");
            return Err(Error::malformed("vtk-005", message).at(extent.offset));
        }
        Ok(Data { dtype, components, count, extent, layout })
    }

    /// Layout, byte range and decoded length of an array of `count` elements, or as many as there are.
    fn located(
        &self,
        element: &Element,
        dtype: DType,
        count: Option<u64>,
    ) -> Result<(Layout, Extent, u64)> {
        match element.attr("format").unwrap_or("ascii") {
            _ if self.legacy => legacy::locate(element, dtype),
            "ascii" => self.ascii(element, dtype, count),
            "binary" => {
                let text = self.trimmed(element)?;
                self.base64(element, dtype, text, count)
            }
            "appended" => self.appended(element, dtype, count),
            other => {
                let message = format!("format \"{other}\" is not supported");
                Err(Error::unsupported("vtk-006", message).at(element.at))
            }
        }
    }

    /// Range of the text of an element, without white space around it.
    fn trimmed(&self, element: &Element) -> Result<Extent> {
        let Extent { mut offset, mut len } =
            element.text.unwrap_or(Extent { offset: element.at, len: 0 });
        for from_end in [false, true] {
            loop {
                let part = len.min(CHUNK);
                let at = if from_end { offset + len - part } else { offset };
                let text = self.source.read_vec(at, part)?;
                let rest = if from_end { text.trim_ascii_end() } else { text.trim_ascii_start() };
                let count = (text.len() - rest.len()) as u64;
                len -= count;
                offset += if from_end { 0 } else { count };
                if count < part || len == 0 {
                    break;
                }
            }
        }
        Ok(Extent { offset, len })
    }

    fn ascii(
        &self,
        element: &Element,
        dtype: DType,
        count: Option<u64>,
    ) -> Result<(Layout, Extent, u64)> {
        let extent = self.trimmed(element)?;
        let count = if let Some(count) = count {
            count
        } else {
            self.limits.allow(extent.len, "the text of an array")?;
            tokens(&self.source.read_vec(extent.offset, extent.len)?).count() as u64
        };
        // A number and the separator after it have at least two characters.
        if count > extent.len.div_ceil(2) {
            let message = format!("{} characters are too short for {count} numbers", extent.len);
            return Err(Error::malformed("vtk-005", message).at(extent.offset));
        }
        let codec = Arc::new(Ascii(dtype));
        let extents = Extents::one(extent.offset, extent.len);
        Ok((
            Layout::EncodedWhole { extents, codec, order: Order::C },
            extent,
            count * dtype.size() as u64,
        ))
    }

    fn appended(
        &self,
        element: &Element,
        dtype: DType,
        count: Option<u64>,
    ) -> Result<(Layout, Extent, u64)> {
        let (start, encoded) = self.appended.ok_or_else(|| {
            Error::truncated("vtk-002", "unexpected end of file: no appended data").at(element.at)
        })?;
        let offset = start.checked_add(element.number("offset", None)?);
        let offset = offset.filter(|at| *at < self.source.len());
        let offset = offset.ok_or_else(|| {
            Error::truncated("vtk-002", "offset of the array exceeds the file").at(element.at)
        })?;
        if encoded {
            let rest = Extent { offset, len: self.source.len() - offset };
            return self.base64(element, dtype, rest, count);
        }
        let header = self.header as u64;
        let Some(compressor) = self.compressor.clone() else {
            let bytes = self.lengths(offset, 1)?[0];
            let first = offset + header;
            self.require(first, bytes)?;
            let layout = Layout::Plain { extents: Extents::one(first, bytes), order: Order::C };
            return Ok((layout, Extent { offset, len: header + bytes }, bytes));
        };
        let blocks = self.lengths(offset, 1)?[0];
        let head = blocks.checked_add(3).and_then(|n| n.checked_mul(header));
        let head = head.ok_or_else(|| element.malformed("number of blocks overflows"))?;
        self.require(offset, head.max(3 * header))?;
        self.limits.allow(head.saturating_mul(4), "the table of blocks")?;
        let numbers = self.lengths(offset, blocks + 3)?;
        let table = Blocks::new(&numbers, element)?;
        let first = offset + head;
        self.require(first, table.stored())?;
        let stored = table.stored();
        let bytes = table.decoded.last().copied().unwrap_or(0);
        let layout = Layout::Encoded {
            starts: table.starts.into(),
            decoded: table.decoded.into(),
            data: Extents::one(first, stored),
            codec: compressor,
            order: Order::C,
        };
        Ok((layout, Extent { offset, len: head + stored }, bytes))
    }

    /// Fails if the range exceeds the file.
    fn require(&self, offset: u64, len: u64) -> Result<()> {
        let truncated = |e: Error| Error::truncated("vtk-002", e.message()).at(offset);
        self.source.require(offset, len).map_err(truncated)
    }

    /// Reads `count` length fields at `offset`.
    fn lengths(&self, offset: u64, count: u64) -> Result<Vec<u64>> {
        let bytes = self.source.read_vec(offset, count * self.header as u64);
        let bytes = bytes.map_err(|e| Error::truncated("vtk-002", e.message()).at(offset))?;
        Ok(lengths(&bytes, self.header, self.order))
    }

    /// Locates Base64 data at the beginning of `extent`, which may be longer than the array.
    fn base64(
        &self,
        element: &Element,
        dtype: DType,
        extent: Extent,
        count: Option<u64>,
    ) -> Result<(Layout, Extent, u64)> {
        if extent.len == 0 {
            // An array without elements may have no text.
            let layout = Layout::Plain { extents: Extents::one(extent.offset, 0), order: Order::C };
            return Ok((layout, extent, 0));
        }
        let header = self.header as u64;
        let cannot = || Error::malformed("vtk-007", "invalid Base64").at(extent.offset);
        // Decodes the first length fields; there is no white space between them.
        let peek = |numbers: u64| -> Result<Vec<u64>> {
            let chars = characters(numbers * header).min(extent.len);
            self.limits.allow(chars, "the table of blocks")?;
            let text = self.source.read_vec(extent.offset, chars)?;
            let bytes = decoded(&text).ok_or_else(cannot)?;
            let bytes = bytes.get(..(numbers * header) as usize).ok_or_else(cannot)?;
            Ok(lengths(bytes, self.header, self.order))
        };
        let (chars, bytes) = if self.compressor.is_some() {
            let blocks = peek(1)?[0];
            let head = blocks.checked_add(3).filter(|n| *n <= extent.len);
            let head =
                head.ok_or_else(|| element.malformed("number of blocks exceeds the data"))?;
            let table = Blocks::new(&peek(head)?, element)?;
            let stored = characters(head * header).saturating_add(characters(table.stored()));
            (stored, table.decoded.last().copied().unwrap_or(0))
        } else {
            let bytes = peek(1)?[0];
            (characters(bytes.saturating_add(header)), bytes)
        };
        self.require(extent.offset, chars)?;
        if chars > extent.len {
            let message = format!("expected {chars} characters of Base64, found {}", extent.len);
            return Err(Error::malformed("vtk-007", message).at(extent.offset));
        }
        let most = chars.saturating_mul(if self.compressor.is_some() { MOST_RATIO } else { 1 });
        if bytes > most || count.is_some_and(|n| n.saturating_mul(dtype.size() as u64) > bytes) {
            let message = format!("{chars} characters of Base64 do not match {bytes} bytes");
            return Err(Error::malformed("vtk-005", message).at(extent.offset));
        }
        let name =
            self.compressor.as_ref().map_or("base64".into(), |c| format!("{}+base64", c.name()));
        let (header, compressor) = (self.header, self.compressor.clone());
        let codec = Base64 { name, dtype, header, compressor };
        let extents = Extents::one(extent.offset, chars);
        let layout = Layout::EncodedWhole { extents, codec: Arc::new(codec), order: Order::C };
        Ok((layout, Extent { offset: extent.offset, len: chars }, bytes))
    }
}

/// Number of Base64 characters for `bytes` bytes.
fn characters(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Decodes Base64; `None` if it is invalid.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    base64_simd::STANDARD.decode_to_vec(text).ok()
}

/// Decodes length fields of `header` bytes.
fn lengths(bytes: &[u8], header: usize, order: ByteOrder) -> Vec<u64> {
    let one = |bytes: &[u8]| {
        let join = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
        match order {
            ByteOrder::Little => bytes.iter().rev().fold(0, join),
            ByteOrder::Big => bytes.iter().fold(0, join),
        }
    };
    bytes.chunks_exact(header).map(one).collect()
}

/// Offsets of compressed blocks. The table in the file has the number of blocks, the size of a block, the size of a
/// shorter last block, and the compressed size of each block.
struct Blocks {
    starts: Vec<u64>,
    decoded: Vec<u64>,
}

impl Blocks {
    fn new(numbers: &[u64], element: &Element) -> Result<Self> {
        let wrong = || element.malformed("invalid table of compressed blocks");
        let [blocks, size, last, stored @ ..] = numbers else { return Err(wrong()) };
        let mut table = Self { starts: vec![0], decoded: vec![0] };
        let (mut at, mut done) = (0_u64, 0_u64);
        for (k, stored) in (1..).zip(stored) {
            let len = if k == *blocks && *last != 0 { *last } else { *size };
            if len > stored.saturating_mul(MOST_RATIO).saturating_add(64) {
                return Err(wrong());
            }
            at = at.checked_add(*stored).ok_or_else(wrong)?;
            done = done.checked_add(len).ok_or_else(wrong)?;
            table.starts.push(at);
            table.decoded.push(done);
        }
        Ok(table)
    }

    /// Compressed size of all blocks.
    fn stored(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }
}

/// Codec of Base64 with length fields before the data; of compressed data they are encoded separately.
struct Base64 {
    name: String,
    dtype: DType,
    header: usize,
    compressor: Option<Arc<Pipeline>>,
}

impl Codec for Base64 {
    fn name(&self) -> &str {
        &self.name
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let wrong = || Error::malformed("vtk-007", "invalid Base64");
        if let Some(compressor) = &self.compressor {
            let order = self.dtype.order();
            let first = stored.get(..characters(self.header as u64) as usize).ok_or_else(wrong)?;
            let first = decoded(first).ok_or_else(wrong)?;
            let blocks = lengths(&first, self.header, order).first().copied().unwrap_or(0);
            let head = blocks.checked_add(3).and_then(|n| n.checked_mul(self.header as u64));
            let head = characters(head.ok_or_else(wrong)?) as usize;
            let numbers = stored.get(..head).and_then(decoded).ok_or_else(wrong)?;
            let table = Blocks::new(&lengths(&numbers, self.header, order), &Element::default())?;
            let data = stored.get(head..).and_then(decoded).ok_or_else(wrong)?;
            for (from, to) in table.starts.windows(2).zip(table.decoded.windows(2)) {
                let block = data.get(from[0] as usize..from[1] as usize).ok_or_else(wrong)?;
                let len = out.len();
                let block_out = out.get_mut(to[0] as usize..(to[1] as usize).min(len));
                compressor.decode(block, block_out.ok_or_else(wrong)?)?;
            }
        } else {
            let all = decoded(stored).ok_or_else(wrong)?;
            let bytes = all.get(self.header..).and_then(|b| b.get(..out.len()));
            out.copy_from_slice(bytes.ok_or_else(wrong)?);
        }
        convert::to_little(self.dtype, out);
        Ok(())
    }
}

/// The words of a text.
pub(crate) fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
}

/// Codec of numbers as text.
pub(crate) struct Ascii(pub(crate) DType);

impl Codec for Ascii {
    fn name(&self) -> &'static str {
        "ascii"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut tokens = tokens(stored);
        for slot in out.chunks_exact_mut(self.0.size()) {
            let token = tokens.next().and_then(|token| std::str::from_utf8(token).ok());
            token.and_then(|token| parse_element(self.0, token, slot)).ok_or_else(|| {
                let found = token.map_or("the end".into(), |token| format!("\"{token}\""));
                Error::malformed("vtk-007", format!("expected {}, found {found}", self.0))
            })?;
        }
        Ok(())
    }
}

/// Parses a number into little-endian bytes; `None` if it is not a value of `dtype`.
fn parse_element(dtype: DType, token: &str, out: &mut [u8]) -> Option<()> {
    with_number!(dtype, T => {
        out.copy_from_slice(&token.parse::<T>().ok()?.to_le_bytes());
        Some(())
    }, else None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_rejected() {
        let parse = |dtype: DType, token: &str| {
            let mut out = vec![0; dtype.size()];
            parse_element(dtype, token, &mut out).map(|()| out)
        };
        assert_eq!(parse(DType::I8, "-128"), Some(vec![128]));
        assert_eq!(parse(DType::I8, "128"), None);
        assert_eq!(parse(DType::U16, "65535"), Some(vec![255; 2]));
        assert_eq!(parse(DType::U16, "65536"), None);
        assert_eq!(parse(DType::U64, "18446744073709551615"), Some(vec![255; 8]));
        assert_eq!(parse(DType::F64, "-1.5e3"), Some((-1500.0_f64).to_le_bytes().to_vec()));
        assert_eq!(parse(DType::F64, "x"), None);
    }

    #[test]
    fn length_fields_have_the_byte_order_of_the_file() {
        assert_eq!(lengths(&[1, 2, 0, 0], 4, ByteOrder::Little), [513]);
        assert_eq!(lengths(&[0, 0, 1, 2, 9], 4, ByteOrder::Big), [258]);
    }
}
