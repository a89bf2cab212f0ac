//! Index of the identifiers of a species: for each frame the identifiers in ascending order, and their rows. With it,
//! particles are found without reading the identifiers of all frames.
//!
//! ```text
//! "spileids", version (u32), frames (u32), digest of the run (32 bytes)
//! frames * { number of particles (u64), offset (u64) }
//! frames * { first identifier of each block (u64), identifiers (u64), rows (u64) }
//! ```
//!
//! All numbers are little-endian. A block has [`BLOCK`] identifiers.

use std::io::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};
use spile_core::{ByteOrder, Dataset, Error, Limits, Overwrite, Result, Sink, Source, Wire, wire};

use spile_core::source::Part;

use super::Species;
use super::track::{for_blocks, identifiers};

const MAGIC: &[u8; 8] = b"spileids";
const VERSION: u32 = 1;

/// Length of the header without the table of frames.
const HEADER: usize = 48;

/// Length of an entry of the table of frames.
const ENTRY: usize = 16;

/// Number of identifiers read at once.
const BLOCK: u64 = 1 << 12;

/// Memory in bytes per particle while a frame is sorted.
const PARTICLE_BYTES: u64 = 16;

/// An index of identifiers.
pub struct IdIndex {
    source: Source,
    limits: Limits,
    /// Number of particles and offset of each frame.
    frames: Vec<(u64, u64)>,
}

impl IdIndex {
    /// Opens the index at `path`; `None` if there is none, or if it is not that of the species in this state: a file of
    /// the run has been added, removed or written since. Fails if the file is not an index.
    pub fn open(path: &Path, species: &Species) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let source = Source::open(path)?;
        let limits = *species.dataset().limits();
        let head = wire::fetch(&source, 0, HEADER)?;
        let mut fields = Wire::new(&head, 0, ByteOrder::Little, "core-id-index");
        fields.expect(MAGIC, "core-id-index")?;
        let (version, count) = (fields.u32()?, fields.u32()?);
        if version != VERSION || fields.take(32)? != digest(species) {
            return Ok(None);
        }
        if u64::from(count) != species.frames() {
            return Ok(None);
        }
        let size = limits.allow(u64::from(count) * ENTRY as u64, "the index of identifiers")?;
        let table = wire::fetch(&source, HEADER as u64, size)?;
        let mut fields = Wire::new(&table, HEADER as u64, ByteOrder::Little, "core-id-index");
        let mut frames = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (particles, offset) = (fields.u64()?, fields.u64()?);
            let size = frame_bytes(particles).ok_or_else(|| {
                fields
                    .malformed("core-id-index", format!("invalid number of particles: {particles}"))
            })?;
            source.require(offset, size)?;
            frames.push((particles, offset));
        }
        Ok(Some(Self { source, limits, frames }))
    }

    /// Writes the index of a species and opens it. The identifiers of one frame are in memory.
    pub fn create(path: &Path, species: &Species) -> Result<Self> {
        let limits = *species.dataset().limits();
        let count = u32::try_from(species.frames())
            .map_err(|_| Error::argument("too many frames for an index of identifiers"))?;
        let mut sink = Sink::create(path, Overwrite::Replace)?;
        let mut at = HEADER as u64 + u64::from(count) * ENTRY as u64;
        let mut frames = Vec::new();
        for frame in 0..u64::from(count) {
            let sorted = sorted(species, frame).map_err(|e| e.in_frame(frame))?;
            let particles = sorted.len() as u64;
            frames.push((particles, at));
            sink.seek(at);
            let firsts = sorted.iter().step_by(BLOCK as usize).map(|(id, _)| *id);
            put(&mut sink, firsts)?;
            put(&mut sink, sorted.iter().map(|(id, _)| *id))?;
            put(&mut sink, sorted.iter().map(|(_, row)| *row))?;
            at = sink.position();
        }
        sink.seek(0);
        sink.write_all(MAGIC)?;
        sink.write_all(&VERSION.to_le_bytes())?;
        sink.write_all(&count.to_le_bytes())?;
        sink.write_all(&digest(species))?;
        put(&mut sink, frames.iter().flat_map(|(particles, offset)| [*particles, *offset]))?;
        sink.commit()?;
        let source = Source::open(path)?;
        Ok(Self { source, limits, frames })
    }

    /// Opens the index at `path`, or writes it if there is none or if the run has changed.
    pub fn open_or_create(path: &Path, species: &Species) -> Result<Self> {
        match Self::open(path, species)? {
            Some(index) => Ok(index),
            None => Self::create(path, species),
        }
    }

    /// The rows of the identifiers in a frame, ascending, with the position of each in `ids`. `ids` are sorted.
    pub(super) fn rows(&self, frame: u64, ids: &[(u64, usize)]) -> Result<Vec<(u64, usize)>> {
        let entry = usize::try_from(frame).ok().and_then(|frame| self.frames.get(frame));
        let Some((particles, offset)) = entry.copied().filter(|(particles, _)| *particles > 0)
        else {
            return Ok(Vec::new());
        };
        let blocks = particles.div_ceil(BLOCK);
        let firsts = self.numbers(offset, blocks)?;
        let (at_ids, at_rows) = (offset + 8 * blocks, offset + 8 * (blocks + particles));
        let mut found = Vec::new();
        let block_of = |id: u64| firsts.partition_point(|first| *first <= id).checked_sub(1);
        for group in ids.chunk_by(|a, b| block_of(a.0) == block_of(b.0)) {
            let Some(block) = group.first().and_then(|(id, _)| block_of(*id)) else { continue };
            let start = block as u64 * BLOCK;
            let known = self.numbers(at_ids + 8 * start, BLOCK.min(particles - start))?;
            for (id, place) in group {
                if let Ok(k) = known.binary_search(id) {
                    let row = self.numbers(at_rows + 8 * (start + k as u64), 1)?;
                    found.extend(row.first().map(|row| (*row, *place)));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn numbers(&self, offset: u64, count: u64) -> Result<Vec<u64>> {
        let size = self.limits.allow(count.saturating_mul(8), "the index of identifiers")?;
        let bytes = wire::fetch(&self.source, offset, size)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }
}

/// Length of the entries of a frame in bytes.
fn frame_bytes(particles: u64) -> Option<u64> {
    particles.checked_mul(2)?.checked_add(particles.div_ceil(BLOCK))?.checked_mul(8)
}

fn put(sink: &mut Sink, numbers: impl Iterator<Item = u64>) -> Result<()> {
    let mut bytes = Vec::with_capacity(8 * BLOCK as usize);
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
        if bytes.len() >= 8 * BLOCK as usize {
            sink.write_all(&bytes)?;
            bytes.clear();
        }
    }
    sink.write_all(&bytes)?;
    Ok(())
}

/// The identifiers of a frame with their rows, in ascending order. Fails if an identifier is there twice.
fn sorted(species: &Species, frame: u64) -> Result<Vec<(u64, u64)>> {
    let Some(array) = identifiers(species, frame)? else { return Ok(Vec::new()) };
    let particles = array.shape().count().unwrap_or(u64::MAX);
    let limits = species.dataset().limits();
    limits.allow(particles.saturating_mul(PARTICLE_BYTES), "the identifiers of a frame")?;
    let mut sorted = Vec::new();
    for_blocks(&array, |first, ids| {
        sorted.extend(ids.into_iter().zip(first..));
        true
    })?;
    sorted.sort_unstable();
    if let Some([(id, _), _]) = sorted.array_windows::<2>().find(|[a, b]| a.0 == b.0) {
        return Err(Error::argument(format!("identifier {id} is not unique")));
    }
    Ok(sorted)
}

/// Digest of the species and the files of the run: names, lengths and times of modification.
fn digest(species: &Species) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(species.name.as_bytes());
    let source = species.dataset().source();
    let parts = source.parts();
    let single = source.path().filter(|_| parts.is_empty());
    for path in parts.iter().map(Part::path).chain(single) {
        let name = path.file_name().unwrap_or_default();
        digest.update(name.as_encoded_bytes());
        let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        let modified = about.as_ref().and_then(|about| about.modified().ok());
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let version = (about.map_or(0, |about| about.len()), since.unwrap_or_default().as_nanos());
        digest.update(version.0.to_le_bytes());
        digest.update(version.1.to_le_bytes());
    }
    digest.finalize().into()
}

/// The name of the index of a species beside its run.
fn index_name(species: &Species) -> String {
    let name = species.name.replace(|c: char| !(c.is_alphanumeric() || c == '-'), "_");
    format!("{name}.spileids")
}

/// The default path of the index of a species: in the folder of the run.
pub fn index_path(dataset: &Dataset, species: &Species) -> Option<std::path::PathBuf> {
    let source = dataset.source();
    let folder = match source.parts().first() {
        Some(part) => part.path().parent(),
        None => source.path().and_then(Path::parent),
    };
    folder.map(|folder| folder.join(index_name(species)))
}
