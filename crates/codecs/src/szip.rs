//! The HDF5 filter szip: the adaptive entropy coder of CCSDS 121.0-B (extended Rice coding).

use spile_core::error::Result;

use crate::packed::Bits;
use crate::shuffle::unshuffle;
use crate::{expect_length, invalid, take, too_short};

/// Bits of the options mask.
const BIG_ENDIAN: u32 = 16;
const NEAREST_NEIGHBOUR: u32 = 32;

/// Longest run of zero blocks ends at a multiple of this number of blocks.
const SEGMENT: usize = 64;

/// Parameters of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Szip {
    /// Options mask.
    pub options: u32,
    /// Samples per block.
    pub block: u32,
    /// Bits per sample.
    pub bits: u32,
    /// Samples per scanline.
    pub scanline: u32,
}

/// Decodes a chunk: its decoded length (32 bits, little-endian) and the coded samples.
pub(crate) fn decode(szip: Szip, mut stored: &[u8], out: &mut [u8]) -> Result<()> {
    expect_length(u32::from_le_bytes(*take(&mut stored)?) as usize, out)?;
    let (block, scanline) = (szip.block as usize, szip.scanline as usize);
    // Samples of 32 and 64 bits are coded as bytes, after a byte shuffle.
    let word = match szip.bits {
        32 => 4,
        64 => 8,
        _ => 1,
    };
    let bits = if word > 1 { 8 } else { szip.bits };
    if !(1..=24).contains(&bits)
        || block == 0
        || block > 64
        || !block.is_multiple_of(2)
        || scanline == 0
    {
        return Err(invalid("szip: invalid parameters"));
    }
    let size = if bits > 16 { 4 } else { bits.div_ceil(8) as usize };
    let coder = Coder {
        bits,
        block,
        blocks: scanline.div_ceil(block),
        is_predicted: szip.options & NEAREST_NEIGHBOUR != 0,
    };
    let is_big = szip.options & BIG_ENDIAN != 0;
    let mut plain = if word > 1 { vec![0; out.len()] } else { Vec::new() };
    let target = if word > 1 { &mut plain[..] } else { &mut *out };
    let mut input = Bits::new(stored);
    let mut samples = Vec::new();
    // A scanline is padded to complete blocks.
    for line in target.chunks_mut(scanline.saturating_mul(size)) {
        let count = line.len().div_ceil(size);
        coder.scanline(&mut input, count, &mut samples).ok_or_else(too_short)?;
        for (bytes, sample) in line.chunks_mut(size).zip(&samples) {
            let (little, big) = (sample.to_le_bytes(), sample.to_be_bytes());
            let own = if is_big { &big[4 - size..] } else { &little[..size] };
            bytes.copy_from_slice(&own[..bytes.len()]);
        }
    }
    if word > 1 {
        unshuffle(word, &plain, out);
    }
    Ok(())
}

/// The coder of blocks of samples.
struct Coder {
    bits: u32,
    block: usize,
    /// Blocks between reference samples: those of a scanline.
    blocks: usize,
    is_predicted: bool,
}

impl Coder {
    /// Decodes the blocks of a scanline, up to at least `count` samples. `None` at the end of the input.
    fn scanline(&self, input: &mut Bits<'_>, count: usize, out: &mut Vec<u32>) -> Option<()> {
        out.clear();
        let id_bits = match self.bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        while out.len() < count {
            let number = out.len() / self.block;
            let end = out.len() + self.block;
            let id = input.take(id_bits)?;
            let is_low_entropy = id == 0;
            let is_extension = is_low_entropy && input.take(1)? == 1;
            let is_raw = id == (1 << id_bits) - 1;
            if self.is_predicted && number == 0 && !is_raw {
                out.push(input.take(self.bits)? as u32);
            }
            if is_raw {
                for _ in 0..self.block {
                    out.push(input.take(self.bits)? as u32);
                }
            } else if is_extension {
                while out.len() < end {
                    let pair = input.unary()?;
                    // The sum of the pair, and the sum of all numbers below it.
                    let mut sum = 0_u64;
                    while (sum + 1) * (sum + 2) / 2 <= u64::from(pair) {
                        sum += 1;
                    }
                    let second = u64::from(pair) - sum * (sum + 1) / 2;
                    if out.len().is_multiple_of(2) {
                        out.push((sum - second) as u32);
                    }
                    out.push(second as u32);
                }
            } else if is_low_entropy {
                let run = input.unary()? as usize + 1;
                let run = match run {
                    5 => (self.blocks - number).min(SEGMENT - number % SEGMENT),
                    6.. => run - 1,
                    _ => run,
                };
                let last = number.checked_add(run)?.min(self.blocks);
                out.resize(last * self.block, 0);
            } else {
                let low = id as u32 - 1;
                let first = out.len();
                while out.len() < end {
                    let high = input.unary()?;
                    out.push(high.checked_shl(low).unwrap_or(0));
                }
                for sample in &mut out[first..] {
                    *sample |= input.take(low)? as u32;
                }
            }
        }
        if self.is_predicted {
            self.add_differences(out);
        }
        Some(())
    }

    /// Replaces mapped differences by samples; the first is a sample.
    fn add_differences(&self, samples: &mut [u32]) {
        let max = ((1_u64 << self.bits) - 1) as u32;
        let Some((first, rest)) = samples.split_first_mut() else { return };
        let mut value = *first;
        for sample in rest {
            let mapped = *sample;
            let is_high = value > max / 2;
            let room = if is_high { max - value.min(max) } else { value };
            let half = mapped / 2 + mapped % 2;
            value = if half <= room {
                if mapped % 2 == 0 { value.wrapping_add(half) } else { value.wrapping_sub(half) }
            } else if is_high {
                max.wrapping_sub(mapped)
            } else {
                mapped
            } & max;
            *sample = value;
        }
    }
}
