//! Division of new arrays into chunks and shards.

use std::collections::BTreeSet;

use spile_codecs::Encoder;
use spile_core::error::{Error, Result};
use spile_core::format::{Compression, Compressor, WriteOptions};
use spile_core::shape::{Order, Shape};

/// Target size in bytes of a file with uncompressed chunks, or with a shard.
const FILE_BYTES: u64 = 64 << 20;

/// Target size in bytes of the values of a compressed chunk: readers decode it as a whole.
const COMPRESSED_BYTES: u64 = 16 << 20;

/// The options of a new store.
pub(crate) struct Settings {
    pub(crate) encoder: Option<Encoder>,
    chunks: Vec<(String, u64)>,
    shards: Vec<(String, u64)>,
}

/// Chunks and shards of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) chunk: Shape,
    /// Shape of a shard, a multiple of that of a chunk.
    pub(crate) shard: Option<Shape>,
}

impl Grid {
    /// Shape of the part of the array in a file.
    pub(crate) fn file(&self) -> &Shape {
        self.shard.as_ref().unwrap_or(&self.chunk)
    }
}

impl Settings {
    /// Fails if an option does not exist in Zarr, or a dimension is not in `names`.
    pub(crate) fn new(options: &WriteOptions, names: &BTreeSet<&str>) -> Result<Self> {
        let WriteOptions { compression, chunks, shards, .. } = options;
        for (name, _) in chunks.iter().chain(shards) {
            if !names.contains(name.as_str()) {
                let names = names.iter().copied().collect::<Vec<_>>().join(", ");
                let message = format!("unknown dimension \"{name}\"; the dimensions are {names}");
                return Err(Error::argument(message));
            }
        }
        for (name, shard) in shards {
            let chunk = find(chunks, &[name]);
            let chunk = chunk.ok_or_else(|| {
                Error::argument(format!(
                    "the shard length of {name} needs a chunk length of {name}"
                ))
            })?;
            if !shard.is_multiple_of(chunk) {
                return Err(Error::argument(format!(
                    "the shard length {shard} of {name} is not a multiple of the chunk length {chunk}"
                )));
            }
        }
        let encoder = compression.map(encoder).transpose()?.flatten();
        Ok(Self { encoder, chunks: chunks.clone(), shards: shards.clone() })
    }

    /// Chunks of an array with elements of `size` bytes. Dimension `k` has the `names[k]`. Dimensions without
    /// chunk lengths are divided evenly, the slowest first, so that a file has about the target size.
    pub(crate) fn grid<S: AsRef<[N]>, N: AsRef<str>>(
        &self,
        shape: &Shape,
        size: usize,
        order: Order,
        names: &[S],
    ) -> Result<Grid> {
        let requested = |list: &[(String, u64)], k: usize| find(list, names.get(k)?.as_ref());
        let is_sharded = (0..shape.rank()).any(|k| requested(&self.shards, k).is_some());
        let mut chunk: Vec<u64> = shape.lengths().iter().map(|n| (*n).max(1)).collect();
        let mut file = chunk.clone();
        for (k, length) in shape.lengths().iter().enumerate() {
            let Some(own) = requested(&self.chunks, k) else { continue };
            chunk[k] = own.min((*length).max(1));
            // Not longer than the array.
            let most = length.div_ceil(chunk[k]).max(1);
            let chunks = requested(&self.shards, k).map_or(1, |shard| shard / own);
            file[k] = chunk[k] * chunks.min(most);
        }
        let is_whole = self.encoder.is_none() || is_sharded;
        let target = if is_whole { FILE_BYTES } else { COMPRESSED_BYTES };
        for k in order.slowest_first(shape.rank()) {
            let bytes = Shape::new(file.as_slice()).bytes(size)?;
            if bytes > target && requested(&self.chunks, k).is_none() {
                let parts = bytes.div_ceil(target).clamp(1, file[k]);
                file[k] = file[k].div_ceil(parts);
                chunk[k] = file[k];
            }
        }
        Ok(Grid { chunk: Shape::new(chunk), shard: is_sharded.then(|| Shape::new(file)) })
    }
}

/// The length with one of these names.
fn find<N: AsRef<str>>(list: &[(String, u64)], names: &[N]) -> Option<u64> {
    let is_named = |own: &str| names.iter().any(|name| name.as_ref() == own);
    list.iter().find(|(own, _)| is_named(own)).map(|(_, length)| *length)
}

/// The encoder of a compression. The default levels are 3, that of Zstandard, and 5, that of zarr-python for gzip.
fn encoder(compression: Compression) -> Result<Option<Encoder>> {
    let Compression { compressor, level } = compression;
    match compressor {
        Compressor::None => Ok(None),
        Compressor::Gzip => Ok(Some(Encoder::Gzip(level.unwrap_or(5)))),
        Compressor::Zstd => Ok(Some(Encoder::Zstd(level.unwrap_or(3)))),
        other => {
            let name = format!("{other:?}").to_lowercase();
            Err(Error::argument(format!("Zarr stores are not written with {name}"))
                .hint("supported are none, gzip[:1-9] and zstd[:1-22]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(chunks: &[(&str, u64)], shards: &[(&str, u64)]) -> Result<Settings> {
        let owned = |list: &[(&str, u64)]| list.iter().map(|(n, k)| ((*n).into(), *k)).collect();
        let mut options = WriteOptions::default();
        (options.chunks, options.shards) = (owned(chunks), owned(shards));
        Settings::new(&options, &["x", "y", "t"].into())
    }

    fn grid(settings: &Settings, shape: [u64; 3]) -> (Vec<u64>, Option<Vec<u64>>) {
        let names = [["t"], ["y"], ["x"]];
        let grid = settings.grid(&Shape::new(shape), 8, Order::C, &names).unwrap();
        (grid.chunk.lengths().to_vec(), grid.shard.map(|shard| shard.lengths().to_vec()))
    }

    #[test]
    fn chunks_and_shards_end_with_the_array() {
        let both = settings(&[("x", 64), ("y", 64)], &[("x", 256), ("y", 128)]).unwrap();
        assert_eq!(grid(&both, [3, 500, 500]), (vec![3, 64, 64], Some(vec![3, 128, 256])));
        assert_eq!(grid(&both, [3, 100, 10]), (vec![3, 64, 10], Some(vec![3, 128, 10])));
        assert_eq!(grid(&both, [0, 0, 0]), (vec![1, 1, 1], Some(vec![1, 1, 1])));
        // 64 MiB, not 600 MiB.
        assert_eq!(grid(&both, [2400, 500, 500]), (vec![240, 64, 64], Some(vec![240, 128, 256])));
    }

    #[test]
    fn dimensions_are_divided_from_the_slowest_on() {
        let none = settings(&[], &[]).unwrap();
        assert_eq!(grid(&none, [4, 1 << 21, 4]).0, [1, 1 << 21, 4]);
        assert_eq!(grid(&none, [4, 1 << 23, 4]).0, [1, 1 << 21, 4]);
        assert_eq!(grid(&none, [1, 1, 3 << 23]).0, [1, 1, 1 << 23]);
    }

    #[test]
    fn invalid_lengths_are_errors_with_the_names() {
        let message = |chunks: &[(&str, u64)], shards: &[(&str, u64)]| {
            settings(chunks, shards).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(message(&[("q", 4)], &[]).contains("the dimensions are t, x, y"));
        assert!(message(&[("x", 4)], &[("x", 6)]).contains("not a multiple"));
        assert!(message(&[], &[("x", 6)]).contains("needs a chunk length"));
        assert_eq!(message(&[("x", 4)], &[("x", 8)]), "");
    }
}
