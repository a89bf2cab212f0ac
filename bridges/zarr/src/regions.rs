//! The chunk files of a new store, written independently of each other: by all threads, or by several processes.

use std::io::Write as _;
use std::ops::Range;

use rayon::prelude::*;
use spile_codecs::crc32c;
use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{RegionFile, Regions, WriteOptions};
use spile_core::shape::Shape;
use spile_core::sink::{FolderSink, Sink};
use spile_interchange::grid::{chunk_part, padded, unravel};

use crate::decode::divided;
use crate::from_tree::{Reader, Stored, Values, Writer};
use crate::write::{ChunkWriter, is_slab};

/// The chunk files of all arrays.
pub(crate) struct ChunkFiles {
    writer: Writer,
    arrays: Vec<Stored>,
    files: Vec<RegionFile>,
    /// The array of each file, and index of the file in its grid.
    places: Vec<(usize, Vec<u64>)>,
    /// Numbers of the files of each array.
    ranges: Vec<Range<usize>>,
}

impl ChunkFiles {
    /// Fails if the options do not fit the content.
    pub(crate) fn new(content: &Dataset, options: &WriteOptions) -> Result<Self> {
        let mut writer = Writer::new(content, options)?;
        let arrays = writer.describe_all()?;
        let (mut files, mut places, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
        for (k, array) in arrays.iter().enumerate() {
            let grid = divided(&array.shape, array.grid.file());
            let count = grid.count();
            let count =
                count.ok_or_else(|| Error::limit("the number of chunks exceeds 64 bits"))?;
            // A name and an index per file.
            let bytes = count.saturating_add(files.len() as u64);
            let bytes = bytes.saturating_mul(array.path.len() as u64 + 256);
            content.limits().allow(bytes, "the list of chunks")?;
            let first = files.len();
            for number in 0..count {
                let index = unravel(number, grid.lengths());
                let (_, lengths) = array.part(&index, array.grid.file());
                let bytes = Shape::new(lengths).bytes(array.size)?;
                let mut name = vec![array.path.clone(), "c".to_string()];
                name.extend(index.iter().map(u64::to_string));
                files.push(RegionFile { name: name.join("/"), bytes });
                places.push((k, index));
            }
            ranges.push(first..files.len());
        }
        Ok(Self { writer, arrays, files, places, ranges })
    }

    /// Writes all files, with all threads.
    pub(crate) fn write_all(&self, folder: &FolderSink) -> Result<()> {
        let limits = self.writer.content.limits();
        for (array, numbers) in self.arrays.iter().zip(&self.ranges) {
            let Stored { path, shape, grid, order, size, .. } = array;
            let is_plain = grid.shard.is_none() && self.writer.settings.encoder.is_none();
            if let Values::Node(id) = array.values
                && is_plain
                && is_slab(shape, &grid.chunk, *order)
            {
                let object = || format!("\"{}\"", self.writer.flat.tree().node(id).path);
                let slabs = ChunkWriter::new(folder, path, shape, &grid.chunk, *size, *order)?;
                let each = |first, block: &[u8]| slabs.write(first * *size as u64, block);
                let done = self.writer.flat.for_each(id, *order, each);
                done.map_err(|e| e.in_object(object()))?;
                continue;
            }
            // As many files at once as fit into half of the memory.
            let memory = self.memory(array)?;
            let at_once = (limits.memory / 2 / memory.max(1)).max(1);
            let threads = rayon::current_num_threads() as u64;
            let batch = if at_once >= threads { usize::MAX } else { at_once as usize };
            let numbers: Vec<usize> = numbers.clone().collect();
            let reader = self.writer.open(array)?;
            for batch in numbers.chunks(batch) {
                batch.par_iter().try_for_each(|number| {
                    let mut file = folder.file(&self.files[*number].name)?;
                    self.write(*number, &reader, &mut file)
                })?;
            }
        }
        Ok(())
    }

    /// Writes a file of the array of `reader`.
    fn write(&self, number: usize, reader: &Reader<'_>, sink: &mut Sink) -> Result<()> {
        let (array, index) = &self.places[number];
        let array = &self.arrays[*array];
        self.writer.content.limits().allow(self.memory(array)?, "a chunk")?;
        match &array.grid.shard {
            Some(shard) => self.write_shard(array, reader, index, shard, sink),
            None => Ok(sink.write_all(&self.chunk(array, reader, index)?)?),
        }
    }

    /// Memory in bytes to write a file of an array: values, a complete chunk, and the encoded chunks.
    fn memory(&self, array: &Stored) -> Result<u64> {
        let chunk = array.grid.chunk.bytes(array.size)?;
        let encoder = self.writer.settings.encoder;
        let encoded = encoder.map_or(0, |encoder| encoder.memory(chunk));
        let each = chunk.saturating_mul(2).saturating_add(encoded);
        let Some(shard) = &array.grid.shard else { return Ok(each) };
        let chunks = divided(shard, &array.grid.chunk).count().unwrap_or(u64::MAX);
        let at_once = chunks.min(rayon::current_num_threads() as u64);
        // Encoded chunks, and their places.
        let all = shard.bytes(array.size)?.saturating_add(chunks.saturating_mul(64));
        Ok(each.saturating_mul(at_once).saturating_add(all))
    }

    /// A chunk as it is stored.
    fn chunk(&self, array: &Stored, reader: &Reader<'_>, index: &[u64]) -> Result<Vec<u8>> {
        let (start, lengths) = array.part(index, &array.grid.chunk);
        let values = reader.read(&start, &lengths)?;
        let chunk = array.grid.chunk.lengths();
        let values = padded(values, &lengths, chunk, array.order, array.size);
        match self.writer.settings.encoder {
            Some(encoder) => encoder.encode(&values),
            None => Ok(values),
        }
    }

    /// Writes the chunks of a shard and their index: offset and length of each, 2^64 - 1 for those outside of the
    /// array.
    fn write_shard(
        &self,
        array: &Stored,
        reader: &Reader<'_>,
        index: &[u64],
        shard: &Shape,
        sink: &mut Sink,
    ) -> Result<()> {
        let inner = divided(shard, &array.grid.chunk);
        let all = divided(&array.shape, &array.grid.chunk);
        let count = inner.count().unwrap_or(u64::MAX);
        let chunks = (0..count).into_par_iter().map(|number| {
            let inside = unravel(number, inner.lengths());
            let index: Vec<u64> =
                (0..index.len()).map(|k| index[k] * inner.lengths()[k] + inside[k]).collect();
            let is_inside = index.iter().zip(all.lengths()).all(|(k, n)| k < n);
            is_inside.then(|| self.chunk(array, reader, &index)).transpose()
        });
        let chunks: Vec<Option<Vec<u8>>> = chunks.collect::<Result<_>>()?;
        let mut table = Vec::with_capacity(chunks.len() * 16 + 4);
        for chunk in &chunks {
            let range = match chunk {
                Some(chunk) => [sink.position(), chunk.len() as u64],
                None => [u64::MAX; 2],
            };
            table.extend(range.iter().flat_map(|word| word.to_le_bytes()));
            sink.write_all(chunk.as_deref().unwrap_or_default())?;
        }
        table.extend(crc32c(&table).to_le_bytes());
        Ok(sink.write_all(&table)?)
    }
}

impl Regions for ChunkFiles {
    fn write_layout(&mut self, folder: &FolderSink) -> Result<()> {
        self.writer.write_groups(folder)
    }

    fn files(&self) -> &[RegionFile] {
        &self.files
    }

    fn write_region(&self, number: usize, sink: &mut Sink) -> Result<()> {
        let reader = self.writer.open(&self.arrays[self.places[number].0])?;
        self.write(number, &reader, sink)
    }
}

impl Stored {
    /// First index and lengths of the part of the array in a chunk or shard of this `shape`.
    fn part(&self, index: &[u64], shape: &Shape) -> (Vec<u64>, Vec<u64>) {
        chunk_part(self.shape.lengths(), shape.lengths(), index)
    }
}
