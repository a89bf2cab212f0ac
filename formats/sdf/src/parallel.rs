//! Parallel writer: every rank writes its part of a variable directly to its location in the file.
//! The file does not depend on the number of ranks and equals that of [`Writer`](crate::Writer).

use std::path::Path;

use spile_core::comm::{
    Comm, SharedSink, agree, agree_alike, gather_numbers, write_at_root, write_parts,
};
use spile_core::{Error, Overwrite, Result};

use crate::wire::block_type::BlockType;
use crate::wire::meta::Meta;
use crate::wire::{DataType, FileHeader};
use crate::write::{BlockLayout, FileLayout, LAST_FIELDS};

/// The part of a variable on one rank: a box of grid points or a range of particles. The parts of
/// all ranks must cover the variable without overlap.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Index of the first point in each direction.
    pub start: &'a [u64],
    /// Number of points in each direction; 0 on ranks without points.
    pub count: &'a [u64],
    /// Elements, little-endian, first direction fastest.
    pub data: &'a [u8],
}

/// An SDF file being written by all ranks of a job. Every method is collective. All ranks get the
/// same error, after which the file is discarded.
pub struct SharedWriter<'c> {
    comm: &'c dyn Comm,
    file: Box<dyn SharedSink + 'c>,
    layout: FileLayout,
}

impl<'c> SharedWriter<'c> {
    /// Creates the file and writes the file header. Fails if `header` differs between ranks.
    pub fn create(
        comm: &'c dyn Comm,
        path: &Path,
        header: &FileHeader,
        overwrite: Overwrite,
    ) -> Result<Self> {
        let layout = FileLayout::new(header).and_then(|layout| Ok((layout.file.encode()?, layout)));
        let (bytes, layout) = agree(comm, layout)?;
        agree_alike(comm, Ok(()), &bytes)?;
        let file = comm.create(path, overwrite)?;
        let writer = Self { comm, file, layout };
        writer.write_at_root(0, &bytes)?;
        Ok(writer)
    }

    /// Writes a block with the data of rank `root`: a mesh, a constant, an input deck. The other
    /// ranks pass `data` of the same length, which is ignored. Returns the identifier.
    pub fn block(
        &mut self,
        root: usize,
        id: &str,
        name: &str,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        data: &[u8],
    ) -> Result<String> {
        let (id, block) = self.append(id, name, (kind, datatype), meta, data.len() as u64)?;
        let file = &self.layout.file;
        let bytes = file.in_order(datatype.dtype(file.order), data);
        write_at_root(self.comm, &*self.file, root, block.data.offset, &bytes)?;
        Ok(id)
    }

    /// Writes a variable in parts: a plain variable, a point variable, an array, or a point mesh
    /// (two directions: particle and axis). `meta` describes the complete variable. Returns the
    /// identifier. Fails if the parts do not cover the variable.
    pub fn variable(
        &mut self,
        id: &str,
        name: &str,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        part: Part<'_>,
    ) -> Result<String> {
        let dims = dims_of(meta);
        let size = datatype.dtype(self.layout.file.order).map_or(0, |dtype| dtype.size() as u64);
        let points = agree(self.comm, validate(&dims, size, part, id))?;
        // The total detects gaps, and overlaps unless a gap of the same size exists.
        let found: u64 = gather_numbers(self.comm, points)?.iter().sum();
        let expected = dims.iter().product::<u64>();
        let complete = if found == expected {
            Ok(())
        } else {
            let message = format!("expected {expected} points on all ranks, found {found}");
            Err(Error::argument(message).in_object(format!("block \"{id}\"")))
        };
        agree(self.comm, complete)?;
        let (id, block) = self.append(id, name, (kind, datatype), meta, expected * size)?;
        let file = &self.layout.file;
        let bytes = file.in_order(datatype.dtype(file.order), part.data);
        let runs = runs(&dims, size, part, &bytes).map(|(at, run)| (block.data.offset + at, run));
        let end = block.data.offset + block.data.len;
        write_parts(self.comm, &*self.file, end, runs)?;
        Ok(id)
    }

    /// Appends a block to the layout of all ranks and writes its header.
    fn append(
        &mut self,
        id: &str,
        name: &str,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        length: u64,
    ) -> Result<(String, BlockLayout)> {
        let header = self.layout.header(id, name, kind, datatype, meta, length);
        let block = header.and_then(|header| {
            let id = header.id.clone();
            Ok((id, self.layout.append(header, meta, length, None)?))
        });
        let (id, block) = agree(self.comm, block)?;
        agree_alike(self.comm, Ok(()), (&block.head, block.at, length))?;
        self.write_at_root(block.at, &block.head)?;
        Ok((id, block))
    }

    fn write_at_root(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        write_at_root(self.comm, &*self.file, 0, offset, bytes)
    }

    /// Writes the summary, then the number of blocks, and moves the file to its path.
    pub fn close(self) -> Result<()> {
        let Self { comm, file, layout } = self;
        let end = layout.end;
        let finished =
            layout.finish().and_then(|(header, summary)| Ok((header.encode()?, summary)));
        let (header, summary) = agree(comm, finished)?;
        write_at_root(comm, &*file, 0, end, &summary)?;
        for (at, len) in LAST_FIELDS {
            write_at_root(comm, &*file, 0, at, &header[at as usize..at as usize + len])?;
        }
        file.finish()
    }
}

/// Dimensions along which a variable can be divided, fastest first; empty for other blocks.
fn dims_of(meta: &Meta) -> Vec<u64> {
    match meta {
        Meta::PlainVariable(variable) => variable.dims.clone(),
        Meta::PointVariable(variable) => vec![variable.np],
        Meta::PointMesh(points) => vec![points.np, points.mesh.labels.len() as u64],
        Meta::Array(dims) => dims.clone(),
        _ => Vec::new(),
    }
}

/// Returns the number of points of a part. Fails if it is not inside the variable or the length of
/// its data is wrong.
fn validate(dims: &[u64], size: u64, part: Part<'_>, id: &str) -> Result<u64> {
    let wrong =
        |message: String| Err(Error::argument(message).in_object(format!("block \"{id}\"")));
    if dims.is_empty() || size == 0 {
        return wrong("blocks of this type cannot be written in parts".into());
    }
    if part.start.len() != dims.len() || part.count.len() != dims.len() {
        let (expected, found) = (dims.len(), part.start.len());
        return wrong(format!("expected a part with {expected} dimensions, found {found}"));
    }
    let ends = part.start.iter().zip(part.count).map(|(start, count)| start.checked_add(*count));
    if ends.zip(dims).any(|(end, dim)| end.is_none_or(|end| end > *dim)) {
        return wrong("the part extends beyond the variable".into());
    }
    let bytes = dims.iter().try_fold(size, |product, dim| product.checked_mul(*dim));
    if bytes.is_none_or(|bytes| bytes >> 62 != 0) {
        return wrong("the variable exceeds 2^62 bytes".into());
    }
    let points = part.count.iter().product::<u64>();
    let (expected, found) = (points * size, part.data.len() as u64);
    if expected != found {
        return wrong(format!("expected {expected} bytes for {points} points, found {found}"));
    }
    Ok(points)
}

/// Contiguous runs of a part, whose elements are `bytes`: offset in the data of the variable, and bytes.
fn runs<'a>(
    dims: &'a [u64],
    size: u64,
    part: Part<'a>,
    bytes: &'a [u8],
) -> impl Iterator<Item = (u64, &'a [u8])> {
    // The dimensions that the part covers completely and the next one are contiguous.
    let complete = part.count.iter().zip(dims).take_while(|(count, dim)| count == dim).count();
    let points: u64 = part.count[..(complete + 1).min(dims.len())].iter().product();
    let runs = bytes.chunks((points * size).max(1) as usize);
    (0..).step_by(points.max(1) as usize).zip(runs).map(move |(first, run)| {
        let (mut left, mut stride, mut at) = (first, size, 0);
        for (k, dim) in dims.iter().enumerate() {
            at += (part.start[k] + left % part.count[k]) * stride;
            left /= part.count[k];
            stride *= dim;
        }
        (at, run)
    })
}
