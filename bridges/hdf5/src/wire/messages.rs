//! Dataset messages except the datatype: dataspace, fill value, filter pipeline, data layout, external
//! files.

use spile_core::error::Result;

use super::Fields;

/// Largest rank of a dataspace (H5S_MAX_RANK); also used for the number of filters (H5Z_MAX_NFILTERS).
const MAX_RANK: u8 = 32;

/// The dataspace of a dataset or an attribute (section IV.A.2.b).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dataspace {
    pub(crate) dims: Vec<u64>,
    /// Maximum lengths; `None` is unlimited.
    pub(crate) max_dims: Vec<Option<u64>>,
    /// A null dataspace: no elements.
    pub(crate) null: bool,
}

impl Dataspace {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let version = fields.version(&[1, 2], "dataspace")?;
        let rank = fields.u8()?;
        if rank > MAX_RANK {
            return Err(
                fields.malformed(format!("dataspace of rank {rank}, the maximum is {MAX_RANK}"))
            );
        }
        let flags = fields.u8()?;
        let kind = fields.u8()?;
        let null = version == 2 && kind == 2;
        if version == 1 {
            fields.skip(4)?;
        }
        let dims: Vec<u64> = (0..rank).map(|_| fields.length()).collect::<Result<_>>()?;
        let unlimited =
            if fields.sizes.length == 8 { u64::MAX } else { (1 << (8 * fields.sizes.length)) - 1 };
        let max_dims = if flags & 1 != 0 {
            let lengths: Vec<u64> = (0..rank).map(|_| fields.length()).collect::<Result<_>>()?;
            lengths.into_iter().map(|n| (n != unlimited).then_some(n)).collect()
        } else {
            dims.iter().copied().map(Some).collect()
        };
        Ok(Self { dims, max_dims, null })
    }
}

/// A filter of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) values: Vec<u32>,
}

/// The filter pipeline, in the order of encoding (section IV.A.2.l).
pub(crate) fn filter_pipeline(fields: &mut Fields<'_>) -> Result<Vec<Filter>> {
    let version = fields.version(&[1, 2], "filter pipeline")?;
    let count = fields.u8()?;
    if count > MAX_RANK {
        return Err(
            fields.malformed(format!("pipeline of {count} filters, the maximum is {MAX_RANK}"))
        );
    }
    if version == 1 {
        fields.skip(6)?;
    }
    let mut found = Vec::new();
    for _ in 0..count {
        let id = fields.u16()?;
        let name_len = if version == 1 || id >= 256 { fields.u16()? } else { 0 };
        fields.u16()?;
        let values = fields.u16()?;
        let name_len = usize::from(name_len);
        let padded = if version == 1 { name_len.next_multiple_of(8) } else { name_len };
        let name = fields.string(padded)?;
        let count = values;
        let values = (0..count).map(|_| fields.u32()).collect::<Result<_>>()?;
        if version == 1 && count % 2 == 1 {
            fields.skip(4)?;
        }
        found.push(Filter { id, name, values });
    }
    Ok(found)
}

/// The bytes of the fill value, if one is defined (sections IV.A.2.e and f). `old` selects the old
/// message type.
pub(crate) fn fill_value(fields: &mut Fields<'_>, old: bool) -> Result<Option<Vec<u8>>> {
    let defined = if old {
        true
    } else {
        match fields.version(&[1, 2, 3], "fill value")? {
            3 => fields.u8()? & 0x20 != 0,
            version => {
                fields.skip(2)?;
                let defined = fields.u8()? != 0;
                version == 1 || defined
            }
        }
    };
    if !defined || (old && fields.remaining() < 4) {
        return Ok(None);
    }
    let size = fields.u32()? as usize;
    let value = fields.take(size)?.to_vec();
    Ok((!value.is_empty()).then_some(value))
}

/// External data files (section IV.A.2.h).
#[derive(Clone, Debug)]
pub(crate) struct ExternalFiles {
    pub(crate) heap: u64,
    /// Offset of the file name in the heap, offset in the file, length in bytes.
    pub(crate) slots: Vec<(u64, u64, u64)>,
}

impl ExternalFiles {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        fields.version(&[1], "external data files message")?;
        fields.skip(3)?;
        fields.u16()?;
        let used = fields.u16()?;
        let heap = fields.required_address("heap of external file names")?;
        let slot = |fields: &mut Fields<'_>| -> Result<_> {
            Ok((fields.length()?, fields.length()?, fields.length()?))
        };
        let slots = (0..used).map(|_| slot(fields)).collect::<Result<_>>()?;
        Ok(Self { heap, slots })
    }
}

/// The data layout of a dataset (section IV.A.2.i).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataLayout {
    /// Data in the message itself.
    Compact(Vec<u8>),
    /// Data at one address; `None` if storage was never allocated.
    Contiguous(Option<u64>),
    Chunked(ChunkedLayout),
    /// A mapping to parts of other datasets: address and index of the global heap object with the mappings.
    Virtual(Option<u64>, u32),
}

/// Chunks of equal shape and their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkedLayout {
    /// Lengths of a chunk.
    pub(crate) dims: Vec<u64>,
    /// Size of an element in bytes.
    pub(crate) element: u64,
    pub(crate) index: ChunkIndex,
    pub(crate) address: Option<u64>,
    /// Partial chunks at the edges are stored without filters.
    pub(crate) unfiltered_edges: bool,
}

/// Types of chunk indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChunkIndex {
    BTreeV1,
    /// One chunk; its stored size and filter mask if there are filters.
    Single(Option<(u64, u32)>),
    Implicit,
    FixedArray,
    ExtensibleArray,
    BTreeV2,
}

impl DataLayout {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        // Version 5 differs only in the records of the indexes.
        let version = fields.version(&[1, 2, 3, 4, 5], "data layout")?;
        // Before version 3, the rank precedes the class.
        let old_rank = if version < 3 { Some(fields.u8()?) } else { None };
        let class = fields.u8()?;
        fields.skip(if version < 3 { 5 } else { 0 })?;
        match class {
            0 => {
                let size = match old_rank {
                    Some(rank) => {
                        lengths(fields, rank, 4)?;
                        fields.u32()? as usize
                    }
                    None => usize::from(fields.u16()?),
                };
                Ok(Self::Compact(fields.take(size)?.to_vec()))
            }
            1 => Ok(Self::Contiguous(fields.address()?)),
            2 if version > 3 => Self::chunked_version_4(fields),
            2 => {
                let rank = old_rank.map_or_else(|| fields.u8(), Ok)?;
                let address = fields.address()?;
                let dims = lengths(fields, rank, 4)?;
                chunked(fields, dims, ChunkIndex::BTreeV1, address, false)
            }
            3 if version > 2 => Ok(Self::Virtual(fields.address()?, fields.u32()?)),
            other => Err(fields.malformed(format!("unknown data layout class {other}"))),
        }
    }

    fn chunked_version_4(fields: &mut Fields<'_>) -> Result<Self> {
        let flags = fields.u8()?;
        let rank = fields.u8()?;
        let width = fields.u8()?;
        if !(1..=8).contains(&width) {
            return Err(
                fields.malformed(format!("chunk lengths of {width} bytes, expected 1 to 8"))
            );
        }
        let dims = lengths(fields, rank, usize::from(width))?;
        let index = match fields.u8()? {
            1 if flags & 2 != 0 => ChunkIndex::Single(Some((fields.length()?, fields.u32()?))),
            1 => ChunkIndex::Single(None),
            2 => ChunkIndex::Implicit,
            3 => {
                fields.skip(1)?;
                ChunkIndex::FixedArray
            }
            4 => {
                fields.skip(5)?;
                ChunkIndex::ExtensibleArray
            }
            5 => {
                fields.skip(6)?;
                ChunkIndex::BTreeV2
            }
            other => return Err(fields.malformed(format!("unknown chunk index type {other}"))),
        };
        let address = fields.address()?;
        chunked(fields, dims, index, address, flags & 1 != 0)
    }
}

fn lengths(fields: &mut Fields<'_>, rank: u8, width: usize) -> Result<Vec<u64>> {
    if rank > MAX_RANK + 1 {
        return Err(fields.malformed(format!("chunks of rank {rank}")));
    }
    (0..rank).map(|_| fields.uint(width)).collect()
}

/// The last of `dims` is the size of an element.
fn chunked(
    fields: &Fields<'_>,
    mut dims: Vec<u64>,
    index: ChunkIndex,
    address: Option<u64>,
    unfiltered_edges: bool,
) -> Result<DataLayout> {
    let element = dims.pop().filter(|_| dims.iter().all(|n| *n > 0));
    let element = element.ok_or_else(|| fields.malformed("chunk with a length of 0"))?;
    Ok(DataLayout::Chunked(ChunkedLayout { dims, element, index, address, unfiltered_edges }))
}
