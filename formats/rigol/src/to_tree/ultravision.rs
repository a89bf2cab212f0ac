//! DS1000Z, DS2000, DS4000 and DS6000: samples of 8 bits that increase with the voltage.

use std::sync::Arc;

use spile_core::layout::Codec;
use spile_core::recording::{Record, Recording, within};
use spile_core::{ArrayDesc, DType, Error, Extent, Extents, Layout, Order, Result, Shape, Source};

use super::{Settings, channel, coupling_of_code, lane, probe_of_code, recording, unit_of_code};
use crate::wire::Header;

/// ADC count of zero volts.
const ZERO: f64 = 127.0;

/// DS1000Z and MSO1000Z: the bytes of the enabled channels are interleaved.
pub(super) fn open_z(source: &Source) -> Result<Recording> {
    const HEADER: usize = 64;
    let header = Header::read(source, HEADER + 200)?;
    let (model, firmware) = (header.field(8).text(20)?, header.field(28).text(20)?);
    let enabled: Vec<usize> = enabled_channels(header.u8(HEADER + 24)?);
    let stride = match enabled.len() {
        0 => 2,
        3 => 4,
        other => other as u64,
    };
    let data = header.u32(HEADER + 192)? + header.u32(HEADER + 196)?;
    let points = header.u32(HEADER + 52)? / stride;
    let step = 1.0 / (header.f32(HEADER + 56)? * 1e9);
    let start = header.picoseconds(HEADER + 8)? - points as f64 * step / 2.0;
    let mut found = recording(&model, &firmware, data.min(source.len()));
    if enabled.is_empty() {
        for (lane_index, name) in ["logic_low", "logic_high"].into_iter().enumerate() {
            let array = lane(source, DType::U8, points, data + lane_index as u64, stride)?;
            found.records.push(Record::new(name, array).on_grid(start, step, "s"));
        }
    }
    for number in &enabled {
        let at = HEADER + 60 + 28 * (number - 1);
        let scale = header.f32(at + 8)?;
        let inverted = header.u8(at + 16)? != 0;
        let scale = if inverted { -scale } else { scale };
        let shift = header.f32(at + 12)?;
        // The zero of two channels is different in this firmware.
        let bias = match (firmware.as_str(), enabled.len()) {
            ("00.04.04.SP3", 2) if shift < 0.0 => scale / 5.0,
            ("00.04.04.SP3", 2) => 0.0,
            _ => scale,
        };
        let settings = Settings {
            coupling: coupling_of_code(header.u8(at + 1)?),
            bandwidth_limit: if header.u8(at + 2)? == 0 { "20 MHz" } else { "" },
            probe: probe_of_code(header.u8(at + 4)?),
            inverted,
            units: unit_of_code(header.u8(at + 17)?),
        };
        // Channels are stored in descending order.
        let position = match stride {
            1 => 0,
            2 => u64::from(enabled.first() == Some(number)),
            _ => 4 - *number as u64,
        };
        let array = lane(source, DType::U8, points, data + position, stride)?;
        let slope = scale / 20.0;
        let record = channel(*number, array, &settings)
            .scaled(bias - shift - ZERO * slope, slope)
            .on_grid(start, step, "s");
        found.records.push(record);
    }
    Ok(found)
}

/// DS2000, DS4000 and DS6000, by the model in the header.
pub(super) fn open(source: &Source) -> Result<Recording> {
    let header = Header::read(source, 576)?;
    let (model, firmware) = (header.field(4).text(20)?, header.field(24).text(20)?);
    match model.trim_start_matches("DS").trim_start_matches("MSO").chars().next() {
        Some('2') => open_2000(source, &header, &model, &firmware, false),
        Some('4') => open_4000(source, &header, &model, &firmware),
        Some('6') => open_2000(source, &header, &model, &firmware, true),
        _ => {
            let message = format!("unsupported model \"{model}\" of Rigol");
            Err(Error::unsupported("rigol-008", message).at(4))
        }
    }
}

/// DS2000, and DS6000 with the same offsets.
fn open_2000(
    source: &Source,
    header: &Header,
    model: &str,
    firmware: &str,
    ds6000: bool,
) -> Result<Recording> {
    let mask = enabled_channels(header.u8(64)?);
    let interwoven = !ds6000 && header.u8(65)? & 1 == 1;
    let offsets: Vec<u64> = (0..4).map(|k| header.u32(68 + 4 * k)).collect::<Result<_>>()?;
    let step = 1.0 / header.f32(96)?;
    let [depth, first, points] = [header.u32(244)?, header.u32(248)?, header.u32(252)?];
    // This firmware stores an offset that it does not apply.
    let ignored = model.starts_with("DS2A") && firmware == "00.03.00.01.03";
    let offset = if ignored { 0.0 } else { header.picoseconds(112)? };
    let start = offset + (first as f64 - depth as f64 / 2.0) * step;
    let mut found = recording(model, firmware, 256);
    for number in 1..=4 {
        let at = 120 + 28 * (number - 1);
        let state = header.u8(at)?;
        let stored = if ds6000 { mask.contains(&number) } else { state != 0 };
        if !stored || (offsets[number - 1] == 0 && !interwoven) {
            continue;
        }
        // Newer instruments write 8 as the state, and the unit before the inversion.
        let swapped = !ds6000 && state != 1;
        let (inverted, unit) = if swapped { (at + 17, at + 16) } else { (at + 16, at + 17) };
        let settings = Settings {
            coupling: coupling_of_code(header.u8(at + 1)? >> if ds6000 { 0 } else { 6 }),
            inverted: header.u8(inverted)? == 1,
            units: unit_of_code(header.u8(unit)?),
            ..modern_settings(header, at)?
        };
        let array = if interwoven {
            interleaved(source, points / 2, [offsets[0] + first, offsets[1] + first])?
        } else {
            lane(source, DType::U8, points, offsets[number - 1] + first, 1)?
        };
        found
            .records
            .push(rising(number, array, &settings, header, at, 25.0)?.on_grid(start, step, "s"));
    }
    Ok(found)
}

/// DS4000.
fn open_4000(source: &Source, header: &Header, model: &str, firmware: &str) -> Result<Recording> {
    let mask = enabled_channels(header.u8(64)?);
    let step = 1.0 / header.f32(100)?;
    let points = header.u32(268)?;
    let start = header.picoseconds(568)? - points as f64 * step / 2.0;
    let mut found = recording(model, firmware, 576);
    for number in mask {
        let at = 124 + 28 * (number - 1);
        if header.u8(at)? == 0 {
            continue;
        }
        let settings = Settings {
            coupling: coupling_of_code(header.u8(at + 1)?),
            inverted: header.u8(at + 16)? != 0,
            units: unit_of_code(header.u8(at + 17)?),
            ..modern_settings(header, at)?
        };
        let array = lane(source, DType::U8, points, header.u32(64 + 4 * number)?, 1)?;
        found
            .records
            .push(rising(number, array, &settings, header, at, 32.0)?.on_grid(start, step, "s"));
    }
    Ok(found)
}

/// Numbers of the channels whose bits are set.
fn enabled_channels(mask: u8) -> Vec<usize> {
    (1..=4).filter(|number| mask & (1 << (number - 1)) != 0).collect()
}

/// Probe and bandwidth of the channel whose settings are at offset `at`.
fn modern_settings(header: &Header, at: usize) -> Result<Settings> {
    let limits = ["", "20 MHz", "100 MHz", "200 MHz", "250 MHz"];
    Ok(Settings {
        bandwidth_limit: limits.get(usize::from(header.u8(at + 2)?)).copied().unwrap_or(""),
        probe: probe_of_code(header.u8(at + 4)?),
        ..Settings::default()
    })
}

/// Record of a channel with volts per division and an offset in volts in its settings at offset `at`.
fn rising(
    number: usize,
    array: ArrayDesc,
    settings: &Settings,
    header: &Header,
    at: usize,
    counts: f64,
) -> Result<Record> {
    let slope = header.f32(at + 8)? / counts;
    let slope = if settings.inverted { -slope } else { slope };
    let intercept = -ZERO * slope - header.f32(at + 12)?;
    Ok(channel(number, array, settings).scaled(intercept, slope))
}

/// A channel that uses the memory of two: `count` samples at each of two offsets, alternating.
fn interleaved(source: &Source, count: u64, offsets: [u64; 2]) -> Result<ArrayDesc> {
    for offset in offsets {
        within(source, offset, count, "the samples", "rigol-007")?;
    }
    let parts = offsets.map(|offset| Extent { offset, len: count }).to_vec();
    let extents = Extents::several(parts)?;
    let layout = Layout::EncodedWhole { extents, codec: Arc::new(Interleaved), order: Order::C };
    Ok(ArrayDesc::new(DType::U8, Shape::new([2 * count]), layout))
}

/// Alternating samples of two memories.
struct Interleaved;

impl Codec for Interleaved {
    fn name(&self) -> &'static str {
        "interleaved"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        if stored.len() != out.len() {
            let message = format!("expected {} bytes, found {}", out.len(), stored.len());
            return Err(Error::truncated("rigol-014", message));
        }
        let (even, odd) = stored.split_at(stored.len() / 2);
        for (pair, (a, b)) in out.chunks_exact_mut(2).zip(even.iter().zip(odd)) {
            pair.copy_from_slice(&[*a, *b]);
        }
        Ok(())
    }
}
