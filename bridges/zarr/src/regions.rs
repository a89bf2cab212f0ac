//! The chunk files of a new store, written independently of each other, by several processes.

use std::io::Write as _;

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{RegionFile, Regions};
use spile_core::shape::{Order, Shape};
use spile_core::sink::{FolderSink, Sink};

use crate::from_tree::{Stored, Writer};

/// The chunk files of all arrays.
pub(crate) struct ChunkFiles {
    writer: Writer,
    arrays: Vec<Stored>,
    files: Vec<RegionFile>,
    /// Number of the array of each file, and index of its chunk in the grid.
    chunks: Vec<(usize, Vec<u64>)>,
}

impl ChunkFiles {
    pub(crate) fn new(content: &Dataset) -> Result<Self> {
        let mut writer = Writer::new(content)?;
        let ids: Vec<_> = writer.flat.tree().arrays().map(|(id, ..)| id).collect();
        let mut arrays = Vec::new();
        for id in ids {
            let object = format!("\"{}\"", writer.flat.tree().node(id).path);
            arrays.extend(writer.describe(id).map_err(|e| e.in_object(object))?);
        }
        let (mut files, mut chunks) = (Vec::new(), Vec::new());
        for (k, array) in arrays.iter().enumerate() {
            let lengths = array.shape.lengths().iter().zip(array.chunk.lengths());
            let grid: Vec<u64> = lengths.map(|(length, chunk)| length.div_ceil(*chunk)).collect();
            let count = Shape::new(grid.as_slice()).count();
            let count =
                count.ok_or_else(|| Error::limit("the number of chunks exceeds 64 bits"))?;
            // A name and an index per file.
            let bytes = count.saturating_mul(array.path.len() as u64 + 256);
            content.limits().allow(bytes, "the list of chunks")?;
            for number in 0..count {
                let index = unravel(number, &grid);
                let (_, lengths) = array.region(&index);
                let bytes = Shape::new(lengths).bytes(array.size)?;
                let mut name = vec![array.path.clone(), "c".to_string()];
                name.extend(index.iter().map(u64::to_string));
                files.push(RegionFile { name: name.join("/"), bytes });
                chunks.push((k, index));
            }
        }
        Ok(Self { writer, arrays, files, chunks })
    }
}

impl Regions for ChunkFiles {
    fn write_layout(&mut self, folder: &FolderSink) -> Result<()> {
        self.writer.write_uniform_coordinates(folder)?;
        self.writer.write_groups(folder)
    }

    fn files(&self) -> &[RegionFile] {
        &self.files
    }

    fn write_region(&self, number: usize, sink: &mut Sink) -> Result<()> {
        let (array, index) = &self.chunks[number];
        let array = &self.arrays[*array];
        let (start, lengths) = array.region(index);
        let object = || format!("\"{}\"", self.writer.flat.tree().node(array.id).path);
        let region = self.writer.flat.read_region(array.id, array.order, &start, &lengths);
        let region = region.map_err(|e| e.in_object(object()))?;
        let (chunk, order) = (array.chunk.lengths(), array.order);
        let limits = self.writer.content.limits();
        if is_leading(&lengths, chunk, order) {
            sink.write_all(&region)?;
            // The part after the end of the array stays sparse.
            return sink.set_len(array.chunk.bytes(array.size)?);
        }
        let mut padded = vec![0; limits.allow(array.chunk.bytes(array.size)?, "a chunk")?];
        pad(&region, &lengths, &mut padded, chunk, order, array.size);
        Ok(sink.write_all(&padded)?)
    }
}

impl Stored {
    /// First index and lengths of the part of the array in a chunk.
    fn region(&self, index: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let chunk = self.chunk.lengths();
        let start: Vec<u64> = index.iter().zip(chunk).map(|(k, n)| k * n).collect();
        let ends = start.iter().zip(self.shape.lengths());
        let lengths = ends.zip(chunk).map(|((start, end), n)| (end - start).min(*n)).collect();
        (start, lengths)
    }
}

/// The index in a grid, in C order.
fn unravel(mut number: u64, grid: &[u64]) -> Vec<u64> {
    let mut index = vec![0; grid.len()];
    for (k, length) in grid.iter().enumerate().rev() {
        index[k] = number % length;
        number /= length;
    }
    index
}

/// Whether a part of a chunk is contiguous at its beginning.
fn is_leading(lengths: &[u64], chunk: &[u64], order: Order) -> bool {
    let axes = order.slowest_first(chunk.len());
    let mut axes = axes.into_iter().skip_while(|axis| chunk[*axis] == 1);
    axes.next();
    axes.all(|axis| lengths[axis] == chunk[axis])
}

/// Copies the elements of a part at the beginning of a chunk along all dimensions.
fn pad(part: &[u8], lengths: &[u64], padded: &mut [u8], chunk: &[u64], order: Order, size: usize) {
    let axes = order.slowest_first(chunk.len());
    let lengths: Vec<u64> = axes.iter().map(|axis| lengths[*axis]).collect();
    let chunk: Vec<u64> = axes.iter().map(|axis| chunk[*axis]).collect();
    let Some((row, outer)) = lengths.split_last() else { return };
    for (number, row) in part.chunks_exact((*row as usize * size).max(1)).enumerate() {
        let index = unravel(number as u64, outer);
        let first = index.iter().zip(&chunk).fold(0, |at, (k, n)| at * n + k);
        let at = (first * chunk[chunk.len() - 1]) as usize * size;
        padded[at..at + row.len()].copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_padded_along_all_dimensions() {
        let mut padded = vec![0; 12];
        pad(&[1, 2, 3, 4], &[2, 2], &mut padded, &[3, 4], Order::C, 1);
        assert_eq!(padded, [1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0]);
        let mut padded = vec![0; 12];
        pad(&[1, 2, 3, 4], &[2, 2], &mut padded, &[3, 4], Order::F, 1);
        assert_eq!(padded, [1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_part_is_contiguous_if_only_the_slowest_dimension_is_shorter() {
        assert!(is_leading(&[1, 4], &[3, 4], Order::C));
        assert!(is_leading(&[1, 1, 4], &[1, 3, 4], Order::C));
        assert!(!is_leading(&[1, 3], &[3, 4], Order::C));
        assert!(is_leading(&[3, 3], &[3, 4], Order::F));
        assert!(is_leading(&[], &[], Order::C));
    }
}
