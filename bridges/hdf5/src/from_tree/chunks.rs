//! Shapes of chunks.

use std::collections::BTreeSet;

use spile_core::error::{Error, Result};
use spile_core::format::{Compression, Compressor, WriteOptions};

use crate::write::Chunking;

/// Target size of a chunk in bytes.
const CHUNK_BYTES: u64 = 1 << 20;

/// Frames from this size in bytes on are chunks of their own.
const FRAME_BYTES: u64 = 1 << 16;

/// Compression and chunks of a new file.
pub(super) struct ChunkOptions {
    compression: Option<Compression>,
    chunks: Vec<(String, u64)>,
    /// Names of dimensions of all arrays.
    known: BTreeSet<String>,
}

/// A dimension of a dataset: its length and its names in the source and in the file.
pub(super) struct NamedDim<'a> {
    pub(super) len: u64,
    pub(super) names: Vec<&'a str>,
}

impl ChunkOptions {
    /// Fails with an argument error if the format has no such compression.
    pub(super) fn new(
        options: &WriteOptions,
        format: &str,
        supported: &[Compressor],
    ) -> Result<Self> {
        let compression = options.compression.filter(|c| c.compressor != Compressor::None);
        if let Some(Compression { compressor, .. }) = compression
            && !supported.contains(&compressor)
        {
            let names: Vec<String> =
                supported.iter().map(|c| format!("{c:?}").to_lowercase()).collect();
            let message = format!(
                "{format} files are not compressed with {}",
                format!("{compressor:?}").to_lowercase()
            );
            return Err(Error::argument(message).hint(format!("use {}", names.join(" or "))));
        }
        Ok(Self { compression, chunks: options.chunks.clone(), known: BTreeSet::new() })
    }

    /// Whether datasets may be chunked.
    pub(super) fn is_set(&self) -> bool {
        self.compression.is_some() || !self.chunks.is_empty()
    }

    /// The chunks of a dataset; `None` if it is contiguous. Dimensions without a given length are complete from the
    /// last one on, up to about 1 MiB. With `frames`, the first dimension is that of the frames.
    pub(super) fn chunking(
        &mut self,
        dims: &[NamedDim<'_>],
        element: usize,
        shuffle: bool,
        frames: bool,
    ) -> Option<Chunking> {
        self.known.extend(dims.iter().flat_map(|dim| &dim.names).map(ToString::to_string));
        let given = dims.iter().map(|dim| {
            let own = self.chunks.iter().find(|(name, _)| dim.names.contains(&name.as_str()));
            own.map(|(_, length)| (*length).clamp(1, dim.len.max(1)))
        });
        let given: Vec<Option<u64>> = given.collect();
        let applies = self.compression.is_some() || given.iter().any(Option::is_some);
        if !applies || dims.is_empty() || dims.iter().any(|dim| dim.len == 0) {
            return None;
        }
        let mut bytes = given
            .iter()
            .flatten()
            .fold(element.max(1) as u64, |bytes, length| bytes.saturating_mul(*length));
        let mut lengths = vec![1; dims.len()];
        for (k, dim) in dims.iter().enumerate().rev() {
            lengths[k] = given[k].unwrap_or_else(|| {
                let most = if k == 0 && frames && dims.len() > 1 && bytes >= FRAME_BYTES {
                    1
                } else {
                    (CHUNK_BYTES / bytes).clamp(1, dim.len)
                };
                // Chunks of equal lengths, so that the last one is not mostly after the end.
                let length = dim.len.div_ceil(dim.len.div_ceil(most));
                bytes = bytes.saturating_mul(length);
                length
            });
            // Lengths of chunks have 32 bits.
            lengths[k] = lengths[k].min(u64::from(u32::MAX));
        }
        Some(Chunking { lengths, element, shuffle, compression: self.compression })
    }

    /// Fails with an argument error if a given name is not a dimension of any array.
    pub(super) fn check(&self) -> Result<()> {
        match self.chunks.iter().find(|(name, _)| !self.known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
                let message = format!("chunks: no array has a dimension \"{name}\"");
                Err(Error::argument(message).hint(format!("dimensions: {}", known.join(", "))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(dims: &[u64], chunks: &[(&str, u64)], frames: bool) -> Vec<u64> {
        let mut options = WriteOptions::default();
        options.compression = Some("gzip".parse().unwrap());
        options.chunks = chunks.iter().map(|(name, n)| (name.to_string(), *n)).collect();
        let mut options = ChunkOptions::new(&options, "HDF5", &[Compressor::Gzip]).unwrap();
        let names = ["t", "x", "y"];
        let dims =
            dims.iter().zip(names).map(|(len, name)| NamedDim { len: *len, names: vec![name] });
        let dims: Vec<NamedDim<'_>> = dims.collect();
        options.chunking(&dims, 8, true, frames).unwrap().lengths
    }

    #[test]
    fn chunks_have_about_1_mib_and_complete_trailing_dimensions() {
        assert_eq!(lengths(&[100], &[], false), [100]);
        assert_eq!(lengths(&[1 << 20], &[], false), [1 << 17]);
        assert_eq!(lengths(&[1000, 512, 256], &[], false), [1, 512, 256]);
        assert_eq!(lengths(&[10, 1000, 1000], &[], false), [1, 125, 1000]);
        // Even division: 2 x 65 instead of 128 + 2.
        assert_eq!(lengths(&[130, 1024], &[], false), [65, 1024]);
        // Frames of 80 kB, and of 80 bytes.
        assert_eq!(lengths(&[100, 100, 100], &[], true), [1, 100, 100]);
        assert_eq!(lengths(&[1000, 10], &[], true), [1000, 10]);
        assert_eq!(lengths(&[50, 1000, 1000], &[("x", 64), ("y", 64)], false), [25, 64, 64]);
        assert_eq!(lengths(&[50, 10, 10], &[("t", 99)], false), [50, 10, 10]);
    }
}
