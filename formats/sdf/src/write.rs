//! Native writer: blocks in sequence, then the summary. The number of blocks is 0 until everything
//! else is written (section 3), which marks a file that was not closed.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spile_core::read::Selected;
use spile_core::{DType, Error, Extent, Overwrite, Result, Sink, Source};

use crate::wire::block_type::BlockType;
use crate::wire::fields::{Encoder, truncated};
use crate::wire::meta::Meta;
use crate::wire::{
    BlockHeader, DataType, FILE_HEADER, FileHeader, ID, NBLOCKS_AT, REVISION, SUMMARY_LOCATION_AT,
    SUMMARY_SIZE_AT, VERSION,
};

/// Offset and length of the file header fields that are written last, the number of blocks at the
/// end.
pub(crate) const LAST_FIELDS: [(u64, usize); 3] =
    [(SUMMARY_LOCATION_AT, 8), (SUMMARY_SIZE_AT, 4), (NBLOCKS_AT, 4)];

/// Layout of a file being written: offsets, headers and identifiers. It writes nothing; the serial
/// and the parallel writer share it.
pub(crate) struct FileLayout {
    pub(crate) file: FileHeader,
    /// Offset of the first byte after the last block.
    pub(crate) end: u64,
    blocks: Vec<(BlockHeader, Vec<u8>)>,
    ids: HashSet<String>,
    /// The last number appended to each identifier, so that many equal ones stay linear.
    numbers: HashMap<String, u64>,
}

/// Location and encoded header of a block.
pub(crate) struct BlockLayout {
    /// Offset of header and metadata.
    pub(crate) at: u64,
    /// Encoded header and metadata.
    pub(crate) head: Vec<u8>,
    /// Location of the data.
    pub(crate) data: Extent,
}

impl FileLayout {
    /// An empty file; lengths and offsets in `header` are replaced. Fails if the string length is 0
    /// or 1 MiB and more.
    pub(crate) fn new(header: &FileHeader) -> Result<Self> {
        let mut file = FileHeader {
            version: VERSION,
            revision: header.revision.min(REVISION),
            first_block: FILE_HEADER,
            summary_location: FILE_HEADER,
            summary_size: 0,
            nblocks: 0,
            ..header.clone()
        };
        file.block_header_length = file.string_length + if file.revision >= 1 { 72 } else { 68 };
        // The lengths of the metadata are 4-byte fields.
        if !(1..1 << 20).contains(&file.string_length) {
            let found = file.string_length;
            let message = format!("expected a string length of 1 to 1048575 bytes, found {found}");
            return Err(Error::argument(message));
        }
        Ok(Self {
            file,
            end: FILE_HEADER,
            blocks: Vec::new(),
            ids: HashSet::new(),
            numbers: HashMap::new(),
        })
    }

    /// The header of a block with `length` bytes of data. The identifier is truncated and made
    /// unique. Fails if `meta` is not of type `kind` or `length` does not match `meta`.
    pub(crate) fn header(
        &mut self,
        id: &str,
        name: &str,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
        length: u64,
    ) -> Result<BlockHeader> {
        let wrong =
            |message: String| Err(Error::argument(message).in_object(format!("block \"{id}\"")));
        if std::mem::discriminant(&Meta::of(kind)) != std::mem::discriminant(meta) {
            return wrong(format!("expected metadata of a {}", kind.name()));
        }
        let dtype = datatype.dtype(self.file.order);
        let expected = match meta {
            Meta::Station(s) => s.nelements.checked_mul(s.entry_len),
            _ => meta.elements(kind).and_then(|n| n.checked_mul(dtype?.size() as u64)),
        };
        if let Some(expected) = expected.filter(|expected| *expected != length) {
            return wrong(format!("expected {expected} bytes of data, found {length}"));
        }
        Ok(BlockHeader {
            id: self.unique_id(id),
            name: name.into(),
            blocktype: kind.code(),
            datatype,
            ndims: meta.ndims(),
            ..BlockHeader::default()
        })
    }

    /// Appends a block with `data` bytes of data, which follow its metadata unless they are
    /// `inside` the data of another block.
    pub(crate) fn append(
        &mut self,
        mut header: BlockHeader,
        meta: &Meta,
        data: u64,
        inside: Option<Extent>,
    ) -> Result<BlockLayout> {
        let too_long = || Error::limit("the file exceeds 2^63 bytes");
        header.info_length = Some(meta_length(meta));
        let bytes = meta.encode(&header, &self.file)?;
        header.info_length = Some(bytes.len() as u64);
        let at = self.end;
        let meta_end = at + self.file.block_header_length + bytes.len() as u64;
        let data = inside.unwrap_or(Extent { offset: meta_end, len: data });
        let own = if inside.is_some() { 0 } else { data.len };
        let next = meta_end.checked_add(own).filter(|n| i64::try_from(*n).is_ok());
        self.end = next.ok_or_else(too_long)?;
        (header.data_location, header.data_length, header.next) = (data.offset, data.len, self.end);
        let head = self.encode(&mut header, &bytes)?;
        self.ids.insert(header.id.clone());
        self.blocks.push((header, bytes));
        Ok(BlockLayout { at, head, data })
    }

    /// Header and metadata as bytes.
    fn encode(&self, header: &mut BlockHeader, meta: &[u8]) -> Result<Vec<u8>> {
        let mut out = Encoder::new(self.file.order);
        header.fields(&mut out, &self.file)?;
        out.bytes.extend_from_slice(meta);
        Ok(out.bytes)
    }

    /// `id` truncated to 32 bytes; a number is appended if it is in use, replacing the last
    /// characters of an identifier of 32 bytes.
    fn unique_id(&mut self, id: &str) -> String {
        let id = truncated(id, ID);
        if !self.ids.contains(id) {
            return id.to_string();
        }
        let number = self.numbers.entry(id.to_string()).or_insert(1);
        loop {
            let digits = number.to_string();
            let unique = format!("{}{digits}", truncated(id, ID - digits.len()));
            if !self.ids.contains(&unique) {
                return unique;
            }
            *number += 1;
        }
    }

    /// Returns the final file header and the encoded summary.
    pub(crate) fn finish(mut self) -> Result<(FileHeader, Vec<u8>)> {
        let nblocks = i32::try_from(self.blocks.len());
        self.file.nblocks = nblocks.map_err(|_| Error::limit("more than 2^31 blocks"))?;
        let mut summary = Vec::new();
        // Rows are appended to a station file; it has no summary.
        if !self.file.station {
            for (mut header, meta) in std::mem::take(&mut self.blocks) {
                let length = self.file.block_header_length + meta.len() as u64;
                header.next = self.end + summary.len() as u64 + length;
                summary.extend(self.encode(&mut header, &meta)?);
            }
        }
        // A summary of 2 GiB does not fit its length field; readers do not need it.
        if i32::try_from(summary.len()).is_err() {
            summary.clear();
        }
        if !summary.is_empty() {
            self.file.summary_location = self.end;
            self.file.summary_size = summary.len() as u64;
        }
        Ok((self.file, summary))
    }
}

/// Length in bytes of metadata of an unknown type; 0 for others, which define their length.
fn meta_length(meta: &Meta) -> u64 {
    if let Meta::Other(bytes) = meta { bytes.len() as u64 } else { 0 }
}

/// An SDF file being written.
pub struct Writer<'s> {
    sink: &'s mut Sink,
    layout: FileLayout,
}

/// Writes the file at `path` atomically; `body` writes the blocks. Revision, byte order, string
/// length and the description of the run are taken from `header`; lengths and offsets are computed.
///
/// ```
/// use spile_core::{Dataset, OpenOptions, sink::Overwrite};
/// use spile_sdf::{BlockType, Meta, Sdf, wire::{DataType, FileHeader}};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("0000.sdf");
/// let header = FileHeader { code_name: "example".into(), step: 7, ..FileHeader::default() };
/// spile_sdf::write_file(&path, &header, Overwrite::Never, |file| {
///     let values: Vec<u8> = [1.5_f64, 2.5].iter().flat_map(|v| v.to_le_bytes()).collect();
///     let meta = Meta::Array(vec![2]);
///     file.block("a", "Some/Array", BlockType::Array, DataType::Real8, &meta, &values)?;
///     Ok(())
/// })?;
///
/// let file = Dataset::open_path(&Sdf, &path, &OpenOptions::default())?;
/// assert_eq!(file.attrs().get_i64("step"), Some(7));
/// assert_eq!(file.array("Some/Array")?.read::<Vec<f64>>(":")?, [1.5, 2.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_file(
    path: impl AsRef<Path>,
    header: &FileHeader,
    overwrite: Overwrite,
    body: impl FnOnce(&mut Writer<'_>) -> Result<()>,
) -> Result<()> {
    let mut sink = Sink::create(path, overwrite)?;
    let mut writer = Writer::new(&mut sink, header)?;
    body(&mut writer)?;
    writer.finish()?;
    sink.commit()
}

impl<'s> Writer<'s> {
    /// Writes the file header to `sink`, which must be empty.
    pub fn new(sink: &'s mut Sink, header: &FileHeader) -> Result<Self> {
        let layout = FileLayout::new(header)?;
        sink.write_all_at(0, &layout.file.encode()?)?;
        Ok(Self { sink, layout })
    }

    /// Writes a block. `data` are little-endian elements, first index fastest; none for a constant, whose
    /// value is in the metadata. Returns the identifier, which is `id` truncated to 32 bytes and made unique,
    /// and the location of the data. Fails if the length of `data` does not match `meta`.
    pub fn block(
        &mut self,
        id: &str,
        name: &str,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
        data: &[u8],
    ) -> Result<(String, Extent)> {
        let length = data.len() as u64;
        let header = self.layout.header(id, name, kind, datatype, meta, length)?;
        let id = header.id.clone();
        let extent = self.reserve(header, meta, length, None)?;
        self.fill(extent.offset, datatype.dtype(self.layout.file.order), data)?;
        Ok((id, extent))
    }

    /// Writes a block whose data are `inside` those of a contiguous block that was written before.
    pub fn member(
        &mut self,
        id: &str,
        name: &str,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
        inside: Extent,
    ) -> Result<()> {
        let header = self.layout.header(id, name, kind, datatype, meta, inside.len)?;
        self.reserve(header, meta, inside.len, Some(inside)).map(drop)
    }

    /// Writes header and metadata and reserves `length` bytes for the data. Returns the location of
    /// the data.
    pub(crate) fn reserve(
        &mut self,
        header: BlockHeader,
        meta: &Meta,
        length: u64,
        inside: Option<Extent>,
    ) -> Result<Extent> {
        let block = self.layout.append(header, meta, length, inside)?;
        self.sink.write_all_at(block.at, &block.head)?;
        Ok(block.data)
    }

    /// Writes little-endian elements at offset `at` in the byte order of the file.
    pub(crate) fn fill(&mut self, at: u64, dtype: Option<DType>, bytes: &[u8]) -> Result<()> {
        self.sink.write_all_at(at, &self.layout.file.in_order(dtype, bytes))
    }

    /// Writes the elements of an array at offset `at` in the byte order of the file.
    pub(crate) fn fill_from(&mut self, at: u64, selected: &Selected<'_>) -> Result<()> {
        let dtype = selected.array().dtype();
        let (sink, file): (&Sink, _) = (self.sink, &self.layout.file);
        selected.for_each(|block, bytes| {
            let offset = at + block.first * dtype.size() as u64;
            sink.write_all_at(offset, &file.in_order(Some(dtype), bytes))
        })
    }

    /// Copies a block of a file with the same byte order without changing its data. Returns the new
    /// location of the data.
    pub(crate) fn copy(
        &mut self,
        source: &Source,
        header: &BlockHeader,
        meta: &Meta,
        inside: Option<Extent>,
    ) -> Result<Extent> {
        let extent = self.reserve(header.clone(), meta, header.data_length, inside)?;
        if inside.is_none() {
            self.sink.seek(extent.offset);
            self.sink.copy_from(source, header.data_location, header.data_length)?;
        }
        Ok(extent)
    }

    /// Offsets, headers and identifiers.
    pub(crate) fn layout(&mut self) -> &mut FileLayout {
        &mut self.layout
    }

    /// The current file header; the fields written by [`Writer::finish`] are not set.
    pub fn header(&self) -> &FileHeader {
        &self.layout.file
    }

    /// Writes the summary, then the number of blocks. The caller commits the sink.
    pub fn finish(self) -> Result<()> {
        let end = self.layout.end;
        let (file, summary) = self.layout.finish()?;
        self.sink.write_all_at(end, &summary)?;
        if summary.is_empty() {
            // Reserved data at the end may not have been written.
            self.sink.set_len(end)?;
        }
        let header = file.encode()?;
        for (at, len) in LAST_FIELDS {
            self.sink.write_all_at(at, &header[at as usize..at as usize + len])?;
        }
        Ok(())
    }
}
