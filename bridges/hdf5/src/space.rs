//! Messages about the elements of a dataset but their type: how many, what fills them, what is done
//! to them before they are stored.

use spile_core::error::{Error, Result};

use crate::wire::Fields;

/// More dimensions than the library allows.
const MOST: u8 = 32;

/// Extents of a dataset or an attribute (section IV.A.2.b).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) dims: Vec<u64>,
    /// How far each may grow; nothing is without end.
    pub(crate) most: Vec<Option<u64>>,
    /// No elements at all, not even one.
    pub(crate) null: bool,
}

impl Space {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let version = fields.version(&[1, 2], "a dataspace")?;
        let rank = fields.u8()?;
        if rank > MOST {
            return Err(fields.broken(format!("{rank} dimensions")));
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
        let most = if flags & 1 != 0 {
            let most: Vec<u64> = (0..rank).map(|_| fields.length()).collect::<Result<_>>()?;
            most.into_iter().map(|n| (n != unlimited).then_some(n)).collect()
        } else {
            dims.iter().copied().map(Some).collect()
        };
        Ok(Self { dims, most, null })
    }
}

/// One step of what is done to a chunk before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) values: Vec<u32>,
}

/// Filters, first to last when writing (section IV.A.2.l).
pub(crate) fn filters(fields: &mut Fields<'_>) -> Result<Vec<Filter>> {
    let version = fields.version(&[1, 2], "a filter pipeline")?;
    let count = fields.u8()?;
    if count > MOST {
        return Err(fields.broken(format!("{count} filters")));
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
        let name = fields.name(padded)?;
        let count = values;
        let values = (0..count).map(|_| fields.u32()).collect::<Result<_>>()?;
        if version == 1 && count % 2 == 1 {
            fields.skip(4)?;
        }
        found.push(Filter { id, name, values });
    }
    Ok(found)
}

/// The value of elements that were never written, where one is given (sections IV.A.2.e and f).
pub(crate) fn fill(fields: &mut Fields<'_>, old: bool) -> Result<Option<Vec<u8>>> {
    let defined = if old {
        true
    } else {
        match fields.version(&[1, 2, 3], "a fill value")? {
            3 => fields.u8()? & 0x20 != 0,
            version => {
                fields.skip(2)?;
                let defined = fields.u8()? != 0;
                version == 1 || defined
            }
        }
    };
    if !defined || (old && fields.wire.remaining() < 4) {
        return Ok(None);
    }
    let size = fields.u32()? as usize;
    let value = fields.take(size)?.to_vec();
    Ok((!value.is_empty()).then_some(value))
}

/// A file that holds raw data, and which part of it (section IV.A.2.h).
#[derive(Clone, Debug)]
pub(crate) struct External {
    pub(crate) heap: u64,
    /// Place of the name in the heap, first byte, number of bytes.
    pub(crate) slots: Vec<(u64, u64, u64)>,
}

impl External {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        fields.version(&[1], "a list of external files")?;
        fields.skip(3)?;
        fields.u16()?;
        let used = fields.u16()?;
        let heap = fields.needed("the names of external files")?;
        let slot = |fields: &mut Fields<'_>| -> Result<_> {
            Ok((fields.length()?, fields.length()?, fields.length()?))
        };
        let slots = (0..used).map(|_| slot(fields)).collect::<Result<_>>()?;
        Ok(Self { heap, slots })
    }
}

/// How a dataset's elements are kept (section IV.A.2.i).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the message itself.
    Compact(Vec<u8>),
    /// In one place; nothing was written yet without an address.
    Contiguous(Option<u64>),
    /// In pieces.
    Chunked(Chunking),
    /// Mosaics of other datasets.
    Virtual,
}

/// Pieces of equal shape and the index that finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunking {
    /// Lengths of a piece.
    pub(crate) dims: Vec<u64>,
    /// Bytes of an element.
    pub(crate) element: u64,
    pub(crate) index: Index,
    pub(crate) address: Option<u64>,
    /// Pieces that reach over the edge are stored as they are.
    pub(crate) plain_edges: bool,
}

/// Kinds of indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    FirstTree,
    /// One piece; its stored bytes and mask where filters were used.
    Single(Option<(u64, u32)>),
    Implicit,
    FixedArray,
    ExtensibleArray,
    SecondTree,
}

impl Storage {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        // Version 5 only differs in the records of the indexes.
        match fields.version(&[1, 2, 3, 4, 5], "a data layout")? {
            1 | 2 => Self::first(fields),
            version => {
                let class = fields.u8()?;
                match (class, version) {
                    (0, _) => {
                        let size = usize::from(fields.u16()?);
                        Ok(Self::Compact(fields.take(size)?.to_vec()))
                    }
                    (1, _) => Ok(Self::Contiguous(fields.address()?)),
                    (2, 3) => {
                        let rank = fields.u8()?;
                        let address = fields.address()?;
                        let dims = lengths(fields, rank, 4)?;
                        chunking(fields, dims, Index::FirstTree, address, false)
                    }
                    (2, _) => Self::fourth(fields),
                    (3, _) => Ok(Self::Virtual),
                    (other, _) => Err(fields.broken(format!("a data layout of class {other}"))),
                }
            }
        }
    }

    fn first(fields: &mut Fields<'_>) -> Result<Self> {
        let rank = fields.u8()?;
        let class = fields.u8()?;
        fields.skip(5)?;
        match class {
            0 => {
                lengths(fields, rank, 4)?;
                let size = fields.u32()? as usize;
                Ok(Self::Compact(fields.take(size)?.to_vec()))
            }
            1 => Ok(Self::Contiguous(fields.address()?)),
            2 => {
                let address = fields.address()?;
                let dims = lengths(fields, rank, 4)?;
                chunking(fields, dims, Index::FirstTree, address, false)
            }
            other => Err(fields.broken(format!("a data layout of class {other}"))),
        }
    }

    fn fourth(fields: &mut Fields<'_>) -> Result<Self> {
        let flags = fields.u8()?;
        let rank = fields.u8()?;
        let width = fields.u8()?;
        if !(1..=8).contains(&width) {
            return Err(fields.broken(format!("lengths of chunks in {width} bytes")));
        }
        let dims = lengths(fields, rank, usize::from(width))?;
        let index = match fields.u8()? {
            1 if flags & 2 != 0 => Index::Single(Some((fields.length()?, fields.u32()?))),
            1 => Index::Single(None),
            2 => Index::Implicit,
            3 => {
                fields.skip(1)?;
                Index::FixedArray
            }
            4 => {
                fields.skip(5)?;
                Index::ExtensibleArray
            }
            5 => {
                fields.skip(6)?;
                Index::SecondTree
            }
            other => return Err(fields.broken(format!("a chunk index of type {other}"))),
        };
        let address = fields.address()?;
        chunking(fields, dims, index, address, flags & 1 != 0)
    }
}

fn lengths(fields: &mut Fields<'_>, rank: u8, width: usize) -> Result<Vec<u64>> {
    if rank > MOST + 1 {
        return Err(fields.broken(format!("{rank} dimensions of chunks")));
    }
    (0..rank).map(|_| fields.uint(width)).collect()
}

/// The last length is that of an element.
fn chunking(
    fields: &Fields<'_>,
    mut dims: Vec<u64>,
    index: Index,
    address: Option<u64>,
    plain_edges: bool,
) -> Result<Storage> {
    let element = dims.pop().filter(|_| dims.iter().all(|n| *n > 0));
    let element = element.ok_or_else(|| fields.broken("chunks without elements"))?;
    Ok(Storage::Chunked(Chunking { dims, element, index, address, plain_edges }))
}

/// Something that is legal and not read here.
pub(crate) fn unsupported(at: u64, message: impl Into<String>) -> Error {
    Error::unsupported("hdf5-010", message).at(at)
}
