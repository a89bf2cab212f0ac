//! `.wfm` of DHO800 and DHO1000: compressed metadata blocks, zeros, and interleaved samples of 16 bits.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use spile_core::recording::Recording;
use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Limits, Result, Source, Wire};

use super::{Settings, channel, lane, recording};

/// First byte of the metadata blocks.
const BLOCKS: u64 = 24;
/// Size of the header of a block in bytes.
const BLOCK_HEADER: usize = 12;
/// Size of the header of the samples in bytes.
const DATA_HEADER: usize = 40;
/// Types of the blocks with the settings of a channel.
const DHO800_CHANNEL: u16 = 5;
const DHO1000_CHANNEL: u16 = 9;
/// Bytes read at once in the search for the samples.
const SEARCH: usize = 1 << 16;

/// Scaling of a channel: intercept and slope.
type Scaling = (f64, f64);

pub(super) fn open(source: &Source, limits: &Limits) -> Result<Recording> {
    let metadata = Metadata::read(source, limits)?;
    let at = metadata.find_samples(source)?;
    let header = fetch(source, at, DATA_HEADER)?;
    let mut wire = Wire::new(&header, at, ByteOrder::Little, "rigol-002");
    let total = wire.u64()?;
    wire.skip(8)?;
    let ticks = wire.u32()?;
    wire.skip(4)?;
    let points = u64::from(wire.u32()?);
    wire.skip(DATA_HEADER - 28)?;
    // DHO1000 counts some samples more than there are.
    let channels = if points == 0 { 0 } else { (total as f64 / points as f64).round() as u64 };
    if !(1..=4).contains(&channels) {
        let message = format!("{total} samples in channels of {points}");
        return Err(Error::malformed("rigol-015", message).at(at));
    }
    let model = if metadata.dho800 { "DHO800" } else { "DHO1000" };
    let model = metadata.model.as_deref().unwrap_or(model);
    let mut found = recording(model, "", at + DATA_HEADER as u64);
    // Period of the clock that counts the interval between samples.
    let tick = if metadata.dho800 { 8e-10 } else { 1e-8 };
    let step = f64::from(ticks) * tick;
    for index in 0..channels {
        let number = index as usize + 1;
        let first = at + DATA_HEADER as u64 + 2 * index;
        let array = lane(source, DType::U16, points, first, channels)?;
        let settings = Settings { units: "V", ..Settings::default() };
        let mut record = channel(number, array, &settings);
        if let Some((intercept, slope)) = metadata.scaling.get(&number) {
            record = record.scaled(*intercept, *slope);
        } else {
            let message = format!("no scaling of channel {number}; stored values are shown");
            found.report.warn("rigol-016", message).at(BLOCKS);
        }
        // The trigger is in the middle of the record.
        found.records.push(record.on_grid(-(points as f64 / 2.0) * step, step, "s"));
    }
    Ok(found)
}

/// The metadata blocks.
struct Metadata {
    dho800: bool,
    model: Option<String>,
    scaling: BTreeMap<usize, Scaling>,
    /// End of the blocks in the file.
    end: u64,
}

impl Metadata {
    /// Reads all blocks; the last one is empty.
    fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let mut found = Self { dho800: false, model: None, scaling: BTreeMap::new(), end: BLOCKS };
        loop {
            let header = fetch(source, found.end, BLOCK_HEADER)?;
            let mut wire = Wire::new(&header, found.end, ByteOrder::Little, "rigol-002");
            let (id, kind) = (wire.u16()?, wire.u16()?);
            let (decoded, encoded, stored) = (wire.u16()?, wire.u16()?, wire.u16()?);
            if stored == 0 {
                return if found.scaling.is_empty() {
                    let message = "no metadata block has the scaling of a channel";
                    Err(Error::malformed("rigol-009", message).at(found.end))
                } else {
                    Ok(found)
                };
            }
            let at = found.end + BLOCK_HEADER as u64;
            limits.allow(u64::from(decoded) + u64::from(stored), "a metadata block")?;
            let bytes = source.read_vec(at, u64::from(encoded.min(stored)))?;
            let content =
                if encoded == decoded { bytes } else { inflate(&bytes, decoded.into(), at)? };
            let known = [DHO800_CHANNEL, DHO1000_CHANNEL].contains(&kind);
            if known && (1..=4).contains(&id) {
                found.add_channel(id.into(), kind == DHO800_CHANNEL, &content, at)?;
            }
            if found.model.is_none() {
                found.model = model_in(&content);
            }
            found.end = at + u64::from(stored);
        }
    }

    /// Settings of a channel. Blocks of DHO800 take precedence: its files also have blocks of the other type.
    fn add_channel(&mut self, number: usize, dho800: bool, content: &[u8], at: u64) -> Result<()> {
        if self.dho800 && !dho800 {
            return Ok(());
        }
        if dho800 && !self.dho800 {
            self.scaling.clear();
            self.dho800 = true;
        }
        let mut wire = Wire::new(content, at, ByteOrder::Little, "rigol-002");
        wire.skip(1)?;
        let scale = wire.i64()? as f64;
        wire.skip(29)?;
        let (slope, centre) = if dho800 {
            (scale / 7.5e12, f64::from(wire.i32()?) / 1e9)
        } else {
            (scale / 7.5e11, wire.i64()? as f64 / 1e8)
        };
        self.scaling.insert(number, (-centre - slope * 32768.0, slope));
        Ok(())
    }

    /// Offset of the header of the samples: the first byte after the blocks that is not zero.
    fn find_samples(&self, source: &Source) -> Result<u64> {
        let mut at = self.end;
        loop {
            let bytes = fetch(source, at, SEARCH)?;
            if bytes.is_empty() {
                let message = "unexpected end of file: no samples after the metadata";
                return Err(Error::truncated("rigol-007", message).at(source.len()));
            }
            if let Some(found) = bytes.iter().position(|byte| *byte != 0) {
                return Ok(at + found as u64);
            }
            at += bytes.len() as u64;
        }
    }
}

/// Content of a compressed block, of `len` bytes.
fn inflate(bytes: &[u8], len: usize, at: u64) -> Result<Vec<u8>> {
    let mut content = Vec::with_capacity(len);
    let read = ZlibDecoder::new(bytes).take(len as u64).read_to_end(&mut content);
    match read {
        Ok(found) if found == len => Ok(content),
        _ => {
            let message = format!("a metadata block is not a zlib stream of {len} bytes");
            Err(Error::malformed("rigol-017", message).at(at))
        }
    }
}

/// Model in the text of a block, such as `DHO1074`.
fn model_in(content: &[u8]) -> Option<String> {
    let at = content.windows(3).position(|window| window == b"DHO" || window == b"MSO")?;
    let end = content[at..].iter().position(|byte| !byte.is_ascii_alphanumeric());
    let text = &content[at..at + end.unwrap_or(content.len() - at)];
    let has_number = text.get(3).is_some_and(u8::is_ascii_digit);
    has_number.then(|| String::from_utf8_lossy(text).into_owned())
}
