//! On-disk structures: the wave descriptor. Offsets are relative to its name "WAVEDESC".

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::recording::date_time;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// Name at the start of a descriptor.
const NAME: &[u8] = b"WAVEDESC";

/// Number of bytes searched for a descriptor, which can follow a remote control header.
const SEARCH_BYTES: usize = 4096;

/// Offset of the descriptor in `head`.
pub(crate) fn find_descriptor(head: &[u8]) -> Option<usize> {
    head.windows(NAME.len()).position(|window| window == NAME)
}

/// Field offsets of a template.
struct Template {
    /// Size of the descriptor in bytes.
    size: usize,
    /// Lengths of trigger times, RIS times, first and second array; 1_0 has no RIS times.
    lengths: [Option<usize>; 4],
    instrument: usize,
    serial: usize,
    label: usize,
    count: usize,
    subarrays: usize,
    gain: usize,
    /// Vertical offset, subtracted from the scaled samples.
    offset: usize,
    interval: usize,
    start: usize,
    units: [usize; 2],
    trigger: usize,
    record_type: usize,
}

const LECROY_2_3: Template = Template {
    size: 346,
    lengths: [Some(48), Some(52), Some(60), Some(64)],
    instrument: 76,
    serial: 92,
    label: 96,
    count: 116,
    subarrays: 144,
    gain: 156,
    offset: 160,
    interval: 176,
    start: 180,
    units: [196, 244],
    trigger: 296,
    record_type: 316,
};

const LECROY_1_0: Template = Template {
    size: 320,
    lengths: [Some(44), None, Some(48), Some(52)],
    instrument: 56,
    serial: 72,
    label: 76,
    count: 92,
    subarrays: 108,
    gain: 120,
    offset: 290,
    interval: 134,
    start: 138,
    units: [154, 202],
    trigger: 250,
    record_type: 270,
};

/// Contents of a wave descriptor.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// Offset in the file.
    pub(crate) at: u64,
    pub(crate) template: String,
    pub(crate) order: ByteOrder,
    /// Sample type (`COMM_TYPE`).
    pub(crate) dtype: DType,
    /// Lengths in bytes: descriptor, user text, trigger times, RIS times, first array, second array.
    pub(crate) blocks: [u64; 6],
    pub(crate) instrument: String,
    pub(crate) serial: i32,
    pub(crate) label: String,
    /// Number of samples of an array, in all segments.
    pub(crate) count: u64,
    pub(crate) segments: u64,
    pub(crate) gain: f64,
    pub(crate) offset: f64,
    pub(crate) interval: f64,
    pub(crate) start: f64,
    pub(crate) units: String,
    pub(crate) x_units: String,
    pub(crate) trigger_time: String,
    pub(crate) record_type: i16,
}

impl Descriptor {
    /// Finds and parses the descriptor.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, SEARCH_BYTES + LECROY_2_3.size)?;
        let searched = &head[..head.len().min(SEARCH_BYTES)];
        let at = find_descriptor(searched).ok_or_else(|| {
            let message = format!("no \"WAVEDESC\" in the first {SEARCH_BYTES} bytes");
            Error::not_this_format("lecroy-001", message).at(0)
        })?;
        let bytes = &head[at..];
        let base = at as u64;
        let field = |offset: usize, order: ByteOrder| {
            let rest = bytes.get(offset..).unwrap_or(&[]);
            Wire::new(rest, base + offset as u64, order, "lecroy-002")
        };
        // COMM_ORDER is 0 or 1 in the byte order of the file; its first byte is 1 only if little-endian.
        let order = match field(34, ByteOrder::Little).u8()? {
            1 => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let at = |offset: usize| field(offset, order);
        let template = at(16).text(16)?;
        let offsets = match template.as_str() {
            "LECROY_1_0" => &LECROY_1_0,
            name if name.starts_with("LECROY_2_") => &LECROY_2_3,
            other => {
                let message = format!("unknown template \"{other}\"");
                let error = Error::unsupported("lecroy-003", message).at(base + 16);
                return Err(error.hint("supported templates: LECROY_2_3, LECROY_1_0"));
            }
        };
        let dtype = match at(32).i16()? {
            0 => DType::I8,
            1 => DType::I16.with_order(order),
            other => {
                let message = format!("expected sample type 0 (byte) or 1 (word), found {other}");
                return Err(Error::malformed("lecroy-004", message).at(base + 32));
            }
        };
        let non_negative = |offset: usize, what: &str| -> Result<u64> {
            let value = at(offset).i32()?;
            u64::try_from(value).map_err(|_| {
                let message = format!("negative {what}: {value}");
                Error::malformed("lecroy-005", message).at(base + offset as u64)
            })
        };
        let length =
            |offset: Option<usize>| offset.map_or(Ok(0), |at| non_negative(at, "block length"));
        let [triggers, ris, first, second] = offsets.lengths;
        let descriptor = non_negative(36, "descriptor length")?;
        if descriptor < offsets.size as u64 {
            let message = format!(
                "expected a descriptor of at least {} bytes, found {descriptor}",
                offsets.size
            );
            return Err(Error::malformed("lecroy-005", message).at(base + 36));
        }
        let blocks = [
            descriptor,
            non_negative(40, "user text length")?,
            length(triggers)?,
            length(ris)?,
            length(first)?,
            length(second)?,
        ];
        Ok(Self {
            at: base,
            order,
            dtype,
            blocks,
            instrument: at(offsets.instrument).text(16)?,
            serial: at(offsets.serial).i32()?,
            label: at(offsets.label).text(16)?,
            count: non_negative(offsets.count, "number of samples")?,
            // Older instruments write 0 for a single segment.
            segments: non_negative(offsets.subarrays, "number of segments")?.max(1),
            gain: at(offsets.gain).f32()?.into(),
            offset: at(offsets.offset).f32()?.into(),
            interval: at(offsets.interval).f32()?.into(),
            start: at(offsets.start).f64()?,
            units: at(offsets.units[0]).text(48)?,
            x_units: at(offsets.units[1]).text(48)?,
            trigger_time: trigger_time(&mut at(offsets.trigger))?,
            record_type: at(offsets.record_type).i16()?,
            template,
        })
    }
}

/// Trigger time in ISO 8601, stored as seconds, minutes, hours, days, months, year.
fn trigger_time(wire: &mut Wire<'_>) -> Result<String> {
    let second = wire.f64()?;
    let [minute, hour, day, month] = wire.array::<4>()?.map(u32::from);
    let year = i64::from(wire.i16()?);
    Ok(date_time((year, month, day), (hour, minute, second)))
}
