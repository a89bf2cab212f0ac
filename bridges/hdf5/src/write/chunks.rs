//! Chunked data of a new file: encoded chunks and their index, a B-tree of version 1 (section III.A.1), which all
//! versions of the HDF5 library read.

use rayon::prelude::*;

use spile_codecs::{Encoder, shuffle};
use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{Compression, Compressor};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_interchange::grid::{chunk_part, padded, unravel};

use super::datatype::Bytes;
use super::{Addresses, FilePlan, NONE, ObjectKind};

/// Largest number of children of a node; half of it is the default of the library.
const CHILDREN: usize = 64;

/// Largest size of a chunk in bytes; its stored size has 32 bits.
const MAX_CHUNK: u64 = 1 << 31;

/// How a dataset is split into chunks and compressed.
#[derive(Clone, Debug)]
pub(crate) struct Chunking {
    /// Lengths of a chunk.
    pub(crate) lengths: Vec<u64>,
    /// Size of an element in bytes.
    pub(crate) element: usize,
    /// Bytes of elements are shuffled before they are compressed.
    pub(crate) shuffle: bool,
    pub(crate) compression: Option<Compression>,
}

impl Chunking {
    /// Registered identifier, level and encoder of the compression filter.
    fn compression(&self) -> Option<(u16, i32, Encoder)> {
        let Compression { compressor, level } = self.compression?;
        match compressor {
            Compressor::Gzip => {
                let level = level.unwrap_or(4);
                Some((1, level, Encoder::Zlib(level)))
            }
            Compressor::Zstd => {
                let level = level.unwrap_or(3);
                Some((32015, level, Encoder::Zstd(level)))
            }
            _ => None,
        }
    }

    /// Identifiers and parameters of the filters, in the order of encoding.
    fn filters(&self) -> Vec<(u16, u32)> {
        let compression = self.compression().map(|(id, level, _)| (id, level.unsigned_abs()));
        let shuffle = self.is_shuffled().then_some((2, self.element as u32));
        shuffle.into_iter().chain(compression).collect()
    }

    fn is_shuffled(&self) -> bool {
        self.shuffle && self.element > 1 && self.compression().is_some()
    }

    /// The filter pipeline message, version 2 (section IV.A.2.l); `None` without filters.
    pub(super) fn pipeline(&self) -> Option<Bytes> {
        let filters = self.filters();
        let mut out = vec![2, filters.len() as u8];
        for (id, value) in &filters {
            out.extend(id.to_le_bytes());
            // Registered filters have a name, which may be empty.
            out.extend(if *id < 256 { &[][..] } else { &[0, 0] });
            // Not optional; one parameter.
            out.extend([0, 0, 1, 0]);
            out.extend(value.to_le_bytes());
        }
        (!filters.is_empty()).then_some(out)
    }

    /// The data layout message, version 3, with the address of the index.
    pub(super) fn layout(&self, index: u64) -> Bytes {
        let mut out = vec![3, 2, self.lengths.len() as u8 + 1];
        out.extend(index.to_le_bytes());
        let lengths = self.lengths.iter().copied().chain([self.element as u64]);
        out.extend(lengths.flat_map(|n| (n as u32).to_le_bytes()));
        out
    }

    fn encode(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        if self.is_shuffled() {
            bytes = shuffle(self.element, &bytes);
        }
        match self.compression() {
            Some((.., encoder)) => encoder.encode(&bytes),
            None => Ok(bytes),
        }
    }
}

/// Number of the first chunk of a child, and address of the child.
type Child = (u64, u64);

/// The chunks of a dataset.
struct Grid<'a> {
    chunking: &'a Chunking,
    dims: &'a [u64],
    /// Number of chunks along each dimension.
    counts: Shape,
    /// Size of an encoded chunk in bytes, by its number.
    stored: Vec<u32>,
}

impl FilePlan {
    /// Writes the chunks of a dataset and their index at the end of the file. `read` returns the elements in C order
    /// from a start index on, of the given lengths; it is called on all threads.
    pub(crate) fn write_chunks(
        &self,
        sink: &Sink,
        addresses: &mut Addresses,
        object: usize,
        content: &Dataset,
        read: impl Fn(&[u64], &[u64]) -> Result<Vec<u8>> + Sync,
    ) -> Result<()> {
        let ObjectKind::Dataset { dims, .. } = &self.objects[object].kind else { return Ok(()) };
        let Some(chunking) = &self.objects[object].chunking else { return Ok(()) };
        let bytes = Shape::new(&chunking.lengths[..]).bytes(chunking.element)?;
        if bytes > MAX_CHUNK {
            return Err(Error::argument(format!("a chunk of {bytes} bytes exceeds 2 GiB")));
        }
        let counts = dims.iter().zip(&chunking.lengths).map(|(n, c)| n.div_ceil(*c));
        let counts = Shape::new(counts.collect::<Vec<_>>());
        let count = counts.count().ok_or_else(|| Error::limit("too many chunks"))?;
        // Sizes and addresses of all chunks, and buffers: as read, padded or shuffled, compressed.
        let (limits, index) = (content.limits(), count.saturating_mul(32));
        limits.allow(index.saturating_add(3 * bytes), "the chunks of an array")?;
        let fit = (limits.memory - index) / (3 * bytes.max(1));
        let batch = fit.clamp(1, 2 * rayon::current_num_threads() as u64);
        let mut grid = Grid { chunking, dims, counts, stored: Vec::new() };
        let mut children: Vec<Child> = Vec::new();
        for first in (0..count).step_by(batch as usize) {
            let encode = |number: u64| {
                let (start, lengths) = grid.region(number);
                let part = read(&start, &lengths)?;
                let part = padded(part, &lengths, &chunking.lengths, Order::C, chunking.element);
                chunking.encode(part)
            };
            let numbers = first..count.min(first + batch);
            let encoded: Vec<Vec<u8>> =
                numbers.into_par_iter().map(encode).collect::<Result<_>>()?;
            for chunk in encoded {
                sink.write_all_at(self.user_block + addresses.end, &chunk)?;
                children.push((children.len() as u64, addresses.end));
                grid.stored.push(chunk.len() as u32);
                addresses.end += chunk.len() as u64;
            }
        }
        addresses.data[object] = NONE;
        let mut level = 0;
        while !children.is_empty() {
            addresses.end = addresses.end.next_multiple_of(8);
            let (nodes, bytes) = grid.level(level, &children, addresses.end);
            sink.write_all_at(self.user_block + addresses.end, &bytes)?;
            addresses.end += bytes.len() as u64;
            if let [(_, root)] = nodes[..] {
                addresses.data[object] = root;
                break;
            }
            (children, level) = (nodes, level + 1);
        }
        Ok(())
    }
}

impl Grid<'_> {
    /// Index of the first element of a chunk, and the lengths of its part within the array.
    fn region(&self, number: u64) -> (Vec<u64>, Vec<u64>) {
        let index = unravel(number, self.counts.lengths());
        chunk_part(self.dims, &self.chunking.lengths, &index)
    }

    /// The key of a chunk: stored size, filter mask, first index, 0. After the last chunk: the end of the last chunk.
    fn key(&self, number: Option<u64>) -> Bytes {
        let (size, mut start, last) = if let Some(number) = number {
            (self.stored[number as usize], self.region(number).0, 0)
        } else {
            let (start, _) = self.region(self.stored.len() as u64 - 1);
            let end = start.iter().zip(&self.chunking.lengths).map(|(at, n)| at + n);
            (0, end.collect(), self.chunking.element as u64)
        };
        start.push(last);
        let mut out = size.to_le_bytes().to_vec();
        out.extend([0; 4]);
        out.extend(start.iter().flat_map(|at| at.to_le_bytes()));
        out
    }

    /// The nodes of a level, which are written at `at`: their first chunks and addresses, and their bytes.
    fn level(&self, level: u8, children: &[Child], at: u64) -> (Vec<Child>, Bytes) {
        let key = 8 * (self.dims.len() + 2);
        let size = 24 + CHILDREN * 8 + (CHILDREN + 1) * key;
        let count = children.len().div_ceil(CHILDREN);
        let address = |k: usize| at + (k * size) as u64;
        let (mut nodes, mut out) = (Vec::with_capacity(count), Vec::with_capacity(count * size));
        for (k, own) in children.chunks(CHILDREN).enumerate() {
            nodes.push((own[0].0, address(k)));
            out.extend(b"TREE\x01");
            out.push(level);
            out.extend((own.len() as u16).to_le_bytes());
            let left = k.checked_sub(1).map_or(NONE, address);
            let right = if k + 1 < count { address(k + 1) } else { NONE };
            out.extend([left, right].iter().flat_map(|sibling| sibling.to_le_bytes()));
            for (first, child) in own {
                out.extend(self.key(Some(*first)));
                out.extend(child.to_le_bytes());
            }
            out.extend(self.key(children.get((k + 1) * CHILDREN).map(|(first, _)| *first)));
            out.resize((k + 1) * size, 0);
        }
        (nodes, out)
    }
}
