//! The native writer: blocks one after the other, then the summary. The number of blocks stays
//! zero until everything else is written (section 3), so a file that was never closed shows it.

use std::collections::HashSet;
use std::path::Path;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::Extent;
use spile_core::read::Selected;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::wire::ByteOrder;

use crate::fields::{Out, cut};
use crate::kind::BlockType;
use crate::meta::Meta;
use crate::wire::{
    BlockHeader, DataType, FILE_HEADER, FileHeader, ID, NBLOCKS_AT, REVISION, SUMMARY_LOCATION_AT,
    SUMMARY_SIZE_AT, VERSION,
};

/// Elements whose byte order changes are written in pieces of this length.
const SWAP: usize = 256 << 10;

/// Fields of the file header that are written when everything else is there, the number of blocks
/// last: where they are, and how long.
pub(crate) const LAST_FIELDS: [(u64, usize); 3] =
    [(SUMMARY_LOCATION_AT, 8), (SUMMARY_SIZE_AT, 4), (NBLOCKS_AT, 4)];

/// Where everything of a file goes. It only computes: whoever writes, alone or with others, puts
/// the bytes there.
pub(crate) struct Outline {
    pub(crate) file: FileHeader,
    /// The byte behind the last block.
    pub(crate) end: u64,
    blocks: Vec<(BlockHeader, Vec<u8>)>,
    ids: HashSet<String>,
}

/// A block that has its place.
pub(crate) struct Placed {
    /// Where header and metadata go.
    pub(crate) at: u64,
    /// Header and metadata.
    pub(crate) head: Vec<u8>,
    /// Where the data go.
    pub(crate) data: Extent,
}

impl Outline {
    /// A file with this header; lengths and places in it are set here.
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
        // Strings of the longest length would still fit the four bytes of their lengths.
        if !(1..1 << 20).contains(&file.string_length) {
            return Err(Error::argument(format!("strings of {} bytes", file.string_length)));
        }
        Ok(Self { file, end: FILE_HEADER, blocks: Vec::new(), ids: HashSet::new() })
    }

    /// The header of a block with `length` bytes of data, which must be as many as the metadata
    /// say. Its identifier is cut and made unique.
    pub(crate) fn header(
        &self,
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
            return wrong(format!("these are not the metadata of a {}", kind.name()));
        }
        let dtype = datatype.dtype(self.file.order);
        let wanted = match meta {
            Meta::Station(s) => s.nelements.checked_mul(s.entry_len),
            _ => meta.elements(kind).and_then(|n| n.checked_mul(dtype?.size() as u64)),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != length) {
            return wrong(format!("{length} bytes of data, {wanted} are promised"));
        }
        Ok(BlockHeader {
            id: self.unique(id),
            name: name.into(),
            blocktype: kind.code(),
            datatype,
            ndims: meta.ndims(),
            ..BlockHeader::default()
        })
    }

    /// Gives a block its place: behind the others, its data behind its metadata unless they are
    /// `inside` those of another block.
    pub(crate) fn place(
        &mut self,
        mut header: BlockHeader,
        meta: &Meta,
        data: u64,
        inside: Option<Extent>,
    ) -> Result<Placed> {
        let too_long = || Error::limit("more bytes than any file holds");
        header.info_length = Some(meta_length(meta));
        let bytes = meta.encode(&header, &self.file)?;
        header.info_length = Some(bytes.len() as u64);
        let at = self.end;
        let behind = at + self.file.block_header_length + bytes.len() as u64;
        let data = inside.unwrap_or(Extent { offset: behind, len: data });
        let own = if inside.is_some() { 0 } else { data.len };
        let next = behind.checked_add(own).filter(|n| i64::try_from(*n).is_ok());
        self.end = next.ok_or_else(too_long)?;
        (header.data_location, header.data_length, header.next) = (data.offset, data.len, self.end);
        let head = self.head(&mut header, &bytes)?;
        self.ids.insert(header.id.clone());
        self.blocks.push((header, bytes));
        Ok(Placed { at, head, data })
    }

    fn head(&self, header: &mut BlockHeader, meta: &[u8]) -> Result<Vec<u8>> {
        let mut out = Out::new(self.file.order);
        header.fields(&mut out, &self.file)?;
        out.bytes.extend_from_slice(meta);
        Ok(out.bytes)
    }

    /// An identifier that is free: cut to its field, and if taken with a number at its end, which
    /// overwrites its tail where there is no room.
    pub(crate) fn unique(&self, id: &str) -> String {
        let id = cut(id, ID);
        let mut free = id.to_string();
        let mut number = 0_u64;
        while self.ids.contains(&free) {
            number += 1;
            let digits = number.to_string();
            free = format!("{}{digits}", cut(id, ID - digits.len()));
        }
        free
    }

    /// The summary, and the file header that knows it.
    pub(crate) fn finish(mut self) -> Result<(FileHeader, Vec<u8>)> {
        let nblocks = i32::try_from(self.blocks.len());
        self.file.nblocks = nblocks.map_err(|_| Error::limit("more blocks than can be counted"))?;
        let mut summary = Vec::new();
        // A station file grows by rows; nothing may follow them.
        if !self.file.station {
            for (mut header, meta) in std::mem::take(&mut self.blocks) {
                let length = self.file.block_header_length + meta.len() as u64;
                header.next = self.end + summary.len() as u64 + length;
                summary.extend(self.head(&mut header, &meta)?);
            }
        }
        // One that is too long for its field is left out: readers find the blocks without it.
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

/// The length that metadata of an unknown type are given; others know theirs.
fn meta_length(meta: &Meta) -> u64 {
    if let Meta::Other(bytes) = meta { bytes.len() as u64 } else { 0 }
}

/// The data of a block.
#[derive(Clone, Copy)]
pub enum Data<'a> {
    /// None, or the value of a constant, which is in the metadata.
    None,
    /// Little-endian elements in memory, first index fastest.
    Bytes(&'a [u8]),
    /// Elements of an array of any file, as many as memory never needs to hold.
    Array(&'a Selected<'a>),
    /// Inside the data of a block that was written before: a part of a contiguous one.
    Inside(Extent),
}

/// An SDF file being written.
pub struct Writer<'s> {
    sink: &'s mut Sink,
    outline: Outline,
}

/// Writes a file, whole or not at all. Lengths and places in `header` are set by the writer;
/// revision, byte order and string length are taken from it.
///
/// ```
/// use spile_core::{limits::Limits, sink::Overwrite};
/// use spile_sdf::{BlockType, Data, View, Meta, wire::{DataType, FileHeader}};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("0000.sdf");
/// let header = FileHeader { code_name: "example".into(), step: 7, ..FileHeader::default() };
/// spile_sdf::write_file(&path, &header, Overwrite::Never, |file| {
///     let values: Vec<u8> = [1.5_f64, 2.5].iter().flat_map(|v| v.to_le_bytes()).collect();
///     let meta = Meta::Array(vec![2]);
///     file.block("a", "Some/Array", BlockType::Array, DataType::Real8, &meta, Data::Bytes(&values))?;
///     Ok(())
/// })?;
///
/// let file = View::open(&path, &Limits::default())?;
/// assert_eq!((file.header().step, file.blocks().len()), (7, 1));
/// assert_eq!(file.array("Some/Array")?.shape().to_string(), "2");
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
    /// Begins a file in `sink`, which must be empty.
    pub fn new(sink: &'s mut Sink, header: &FileHeader) -> Result<Self> {
        let outline = Outline::new(header)?;
        sink.write_all_at(0, &outline.file.encode()?)?;
        Ok(Self { sink, outline })
    }

    /// Writes a block. The identifier is cut to 32 bytes and made unique; the one it got and the
    /// place of the data are given back. The data must be as many as the metadata say.
    pub fn block(
        &mut self,
        id: &str,
        name: &str,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
        data: Data<'_>,
    ) -> Result<(String, Extent)> {
        let length = match data {
            Data::None => 0,
            Data::Bytes(bytes) => bytes.len() as u64,
            Data::Array(selected) => {
                selected.count().saturating_mul(selected.array().dtype().size() as u64)
            }
            Data::Inside(extent) => extent.len,
        };
        let header = self.outline.header(id, name, kind, datatype, meta, length)?;
        let dtype = datatype.dtype(self.outline.file.order);
        let id = header.id.clone();
        let inside = if let Data::Inside(extent) = data { Some(extent) } else { None };
        let extent = self.reserve(header, meta, length, inside)?;
        match data {
            Data::None | Data::Inside(_) => {}
            Data::Bytes(bytes) => self.fill(extent.offset, dtype, bytes)?,
            Data::Array(selected) => self.fill_from(extent.offset, selected)?,
        }
        Ok((id, extent))
    }

    /// Writes header and metadata and leaves room for the data.
    pub(crate) fn reserve(
        &mut self,
        header: BlockHeader,
        meta: &Meta,
        length: u64,
        inside: Option<Extent>,
    ) -> Result<Extent> {
        let placed = self.outline.place(header, meta, length, inside)?;
        self.sink.write_all_at(placed.at, &placed.head)?;
        Ok(placed.data)
    }

    /// Writes little-endian elements into room that was left for them.
    pub(crate) fn fill(&mut self, at: u64, dtype: Option<DType>, bytes: &[u8]) -> Result<()> {
        let word = dtype.map_or(1, DType::word);
        if self.outline.file.order == ByteOrder::Little || word == 1 {
            return self.sink.write_all_at(at, bytes);
        }
        let mut offset = at;
        for part in bytes.chunks(SWAP) {
            let mut part = part.to_vec();
            convert::swap(&mut part, word);
            self.sink.write_all_at(offset, &part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes the elements of an array into room that was left for them.
    pub(crate) fn fill_from(&mut self, at: u64, selected: &Selected<'_>) -> Result<()> {
        let dtype = selected.array().dtype();
        let size = dtype.size() as u64;
        let big = self.outline.file.order == ByteOrder::Big && dtype.word() > 1;
        let sink: &Sink = self.sink;
        selected.for_each(|block, bytes| {
            let offset = at + block.first * size;
            if !big {
                return sink.write_all_at(offset, bytes);
            }
            let mut swapped = bytes.to_vec();
            convert::swap(&mut swapped, dtype.word());
            sink.write_all_at(offset, &swapped)
        })
    }

    /// Copies a block of a file in the same byte order, its data byte for byte.
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

    /// The identifier that [`Writer::block`] would give a block.
    pub fn unique(&self, id: &str) -> String {
        self.outline.unique(id)
    }

    /// The file header as it stands.
    pub fn header(&self) -> &FileHeader {
        &self.outline.file
    }

    /// Writes the summary and, last of all, the number of blocks. The sink is left to be committed.
    pub fn finish(self) -> Result<()> {
        let end = self.outline.end;
        let (file, summary) = self.outline.finish()?;
        self.sink.write_all_at(end, &summary)?;
        if summary.is_empty() {
            // Room left for data that nobody filled would otherwise be missing.
            self.sink.set_len(end)?;
        }
        let header = file.encode()?;
        for (at, len) in LAST_FIELDS {
            self.sink.write_all_at(at, &header[at as usize..at as usize + len])?;
        }
        Ok(())
    }
}
