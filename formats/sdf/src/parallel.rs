//! The writer of a parallel program: every rank writes its part of a variable, straight to where it
//! belongs. The bytes of the file do not depend on the number of ranks, and are those that
//! [`Writer`](crate::Writer) writes alone.

use std::path::Path;

use spile_core::comm::{Comm, SharedSink, agree, agree_alike, gather_numbers};
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::sink::Overwrite;
use spile_core::wire::ByteOrder;

use crate::kind::BlockType;
use crate::meta::Meta;
use crate::wire::{DataType, FileHeader};
use crate::write::{LAST_FIELDS, Outline, Placed};

/// What one rank has of a variable: a box of grid points, or a range of particles. The parts of all
/// ranks together are the whole, and none of it twice.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Index of its first point, in every direction.
    pub start: &'a [u64],
    /// Number of its points, in every direction; 0 where a rank has none.
    pub count: &'a [u64],
    /// Its elements, little-endian, the first direction running fastest.
    pub data: &'a [u8],
}

/// An SDF file being written by all ranks of a job. Every method is collective, and after an error,
/// which all ranks get alike, the file is given up.
pub struct SharedWriter<'c> {
    comm: &'c dyn Comm,
    file: Box<dyn SharedSink + 'c>,
    outline: Outline,
}

impl<'c> SharedWriter<'c> {
    /// Starts a file.
    pub fn create(
        comm: &'c dyn Comm,
        path: &Path,
        header: &FileHeader,
        overwrite: Overwrite,
    ) -> Result<Self> {
        let begun = Outline::new(header).and_then(|outline| Ok((outline.file.encode()?, outline)));
        let (bytes, outline) = agree(comm, begun)?;
        agree_alike(comm, Ok(()), &bytes)?;
        let file = comm.create(path, overwrite)?;
        let writer = Self { comm, file, outline };
        writer.write_at_root(0, &bytes)?;
        Ok(writer)
    }

    /// Writes a block whose data all ranks know, or `root` does: a mesh, a constant, a deck. The
    /// others give as many bytes, whatever they are. The identifier it got is given back.
    pub fn block(
        &mut self,
        root: usize,
        id: &str,
        name: &str,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        data: &[u8],
    ) -> Result<String> {
        let (id, placed) = self.place(id, name, (kind, datatype), meta, data.len() as u64)?;
        let here = self.comm.rank() == root;
        let mine = if here { self.stored(datatype, data) } else { Vec::new() };
        self.file.write_at_all(placed.data.offset, &mine)?;
        Ok(id)
    }

    /// Writes a variable of which every rank has a part: on a grid (its metadata have the points of
    /// all ranks), of particles, an array, or the positions of particles (two directions: particle
    /// and axis). The identifier it got is given back.
    pub fn variable(
        &mut self,
        id: &str,
        name: &str,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        part: Part<'_>,
    ) -> Result<String> {
        let dims = dims_of(meta);
        let size = datatype.dtype(self.outline.file.order).map_or(0, |dtype| dtype.size() as u64);
        let points = agree(self.comm, check(&dims, size, part, id))?;
        // Parts that overlap leave a hole elsewhere, unless somebody's arithmetic is very unlucky.
        let all: u64 = gather_numbers(self.comm, points)?.iter().sum();
        let whole = dims.iter().product::<u64>();
        let complete = if all == whole {
            Ok(())
        } else {
            let message = format!("the ranks have {all} points of {whole} together");
            Err(Error::argument(message).in_object(format!("block \"{id}\"")))
        };
        agree(self.comm, complete)?;
        let (id, placed) = self.place(id, name, (kind, datatype), meta, whole * size)?;
        let bytes = self.stored(datatype, part.data);
        let mut runs = runs(&dims, size, part)
            .zip(bytes.chunks(run_length(&dims, size, part).max(1)))
            .map(|(at, run)| (placed.data.offset + at, run));
        self.file.write_parts(placed.data.offset + placed.data.len, &mut runs)?;
        Ok(id)
    }

    /// Gives a block its place, the same on all ranks, and writes its header.
    fn place(
        &mut self,
        id: &str,
        name: &str,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        length: u64,
    ) -> Result<(String, Placed)> {
        let header = self.outline.header(id, name, kind, datatype, meta, length);
        let placed = header.and_then(|header| {
            let id = header.id.clone();
            Ok((id, self.outline.place(header, meta, length, None)?))
        });
        let (id, placed) = agree(self.comm, placed)?;
        agree_alike(self.comm, Ok(()), (&placed.head, placed.at, length))?;
        self.write_at_root(placed.at, &placed.head)?;
        Ok((id, placed))
    }

    /// Elements in the file's byte order.
    fn stored(&self, datatype: DataType, data: &[u8]) -> Vec<u8> {
        let order = self.outline.file.order;
        let mut bytes = data.to_vec();
        if order == ByteOrder::Big {
            convert::swap(&mut bytes, datatype.dtype(order).map_or(1, DType::word));
        }
        bytes
    }

    fn write_at_root(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mine = if self.comm.rank() == 0 { bytes } else { &[] };
        self.file.write_at_all(offset, mine)
    }

    /// Writes the summary and, last of all, the number of blocks; then the file appears.
    pub fn close(self) -> Result<()> {
        let Self { comm, file, outline } = self;
        let end = outline.end;
        let finished =
            outline.finish().and_then(|(header, summary)| Ok((header.encode()?, summary)));
        let (header, summary) = agree(comm, finished)?;
        let root = |bytes: &'_ [u8]| if comm.rank() == 0 { bytes.to_vec() } else { Vec::new() };
        file.write_at_all(end, &root(&summary))?;
        for (at, len) in LAST_FIELDS {
            file.write_at_all(at, &root(&header[at as usize..at as usize + len]))?;
        }
        file.finish()
    }
}

/// The directions in which a variable can be split, the fastest first; none for other blocks.
fn dims_of(meta: &Meta) -> Vec<u64> {
    match meta {
        Meta::PlainVariable(variable) => variable.dims.clone(),
        Meta::PointVariable(variable) => vec![variable.np],
        Meta::PointMesh(points) => vec![points.np, points.mesh.labels.len() as u64],
        Meta::Array(dims) => dims.clone(),
        _ => Vec::new(),
    }
}

/// A part lies inside the whole and has the bytes it says; gives the number of its points.
fn check(dims: &[u64], size: u64, part: Part<'_>, id: &str) -> Result<u64> {
    let wrong = |message: &str| Err(Error::argument(message).in_object(format!("block \"{id}\"")));
    if dims.is_empty() || size == 0 {
        return wrong("blocks of this type are not written in parts");
    }
    if part.start.len() != dims.len() || part.count.len() != dims.len() {
        return wrong("a part has another number of directions than the variable");
    }
    let ends = part.start.iter().zip(part.count).map(|(start, count)| start.checked_add(*count));
    if ends.zip(dims).any(|(end, dim)| end.is_none_or(|end| end > *dim)) {
        return wrong("a part reaches beyond the variable");
    }
    let whole = dims.iter().try_fold(size, |product, dim| product.checked_mul(*dim));
    if whole.is_none_or(|bytes| bytes >> 62 != 0) {
        return wrong("the variable is larger than any file");
    }
    let points = part.count.iter().product::<u64>();
    if points * size != part.data.len() as u64 {
        return wrong("a part has not as many bytes as it has points");
    }
    Ok(points)
}

/// Directions that a part has whole, from the first on, and the one behind them: what lies there is
/// one run of bytes.
fn run_directions(dims: &[u64], part: Part<'_>) -> usize {
    let whole = part.count.iter().zip(dims).take_while(|(count, dim)| count == dim).count();
    (whole + 1).min(dims.len())
}

fn run_length(dims: &[u64], size: u64, part: Part<'_>) -> usize {
    let points: u64 = part.count[..run_directions(dims, part)].iter().product();
    (points * size) as usize
}

/// Where the runs of a part begin in the data of the variable, in the order of the part's elements.
fn runs<'a>(dims: &'a [u64], size: u64, part: Part<'a>) -> impl Iterator<Item = u64> + 'a {
    let inside = run_directions(dims, part);
    let outer: u64 = part.count[inside..].iter().product();
    (0..outer).map(move |run| {
        let (mut left, mut stride, mut at) = (run, size, 0);
        for (k, dim) in dims.iter().enumerate() {
            let mut index = part.start[k];
            if k >= inside {
                index += left % part.count[k];
                left /= part.count[k];
            }
            at += index * stride;
            stride *= dim;
        }
        at
    })
}
