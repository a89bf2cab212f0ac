//! The wave descriptor as it lies in the file. Offsets count from the letters "WAVEDESC".

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::recording::date_time;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// The first eight letters of a descriptor.
const NAME: &[u8] = b"WAVEDESC";

/// How far into the file a descriptor is looked for: instruments put a few letters of their remote control
/// before it.
const SEARCHED: usize = 4096;

/// Where a descriptor begins.
pub(crate) fn find(head: &[u8]) -> Option<usize> {
    head.windows(NAME.len()).position(|window| window == NAME)
}

/// Which fields are where.
struct Template {
    /// Bytes of the descriptor.
    size: usize,
    /// Lengths of trigger times, RIS times, both arrays; 1_0 has no RIS times.
    lengths: [Option<usize>; 4],
    instrument: usize,
    serial: usize,
    label: usize,
    count: usize,
    subarrays: usize,
    gain: usize,
    /// What is subtracted from the scaled samples.
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

/// What the descriptor says.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// Byte of the file at which it begins.
    pub(crate) at: u64,
    pub(crate) template: String,
    pub(crate) order: ByteOrder,
    /// Of the samples (`COMM_TYPE`).
    pub(crate) dtype: DType,
    /// Lengths of the blocks behind it: descriptor, user text, trigger times, RIS times, both arrays.
    pub(crate) blocks: [u64; 6],
    pub(crate) instrument: String,
    pub(crate) serial: i32,
    pub(crate) label: String,
    /// Samples of an array, of all segments together.
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
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, SEARCHED + LECROY_2_3.size)?;
        let searched = &head[..head.len().min(SEARCHED)];
        let at = find(searched).ok_or_else(|| {
            Error::not_this_format("lecroy-001", "there is no wave descriptor (\"WAVEDESC\")").at(0)
        })?;
        let bytes = &head[at..];
        let base = at as u64;
        let field = |offset: usize, order: ByteOrder| {
            let rest = bytes.get(offset..).unwrap_or(&[]);
            Wire::new(rest, base + offset as u64, order, "lecroy-002")
        };
        // The order is told by a field that is stored in it; its first byte is 1 in one of them only.
        let order = match field(34, ByteOrder::Little).u8()? {
            1 => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let at = |offset: usize| field(offset, order);
        let template = at(16).text(16)?;
        let places = match template.as_str() {
            "LECROY_1_0" => &LECROY_1_0,
            name if name.starts_with("LECROY_2_") => &LECROY_2_3,
            other => {
                let message = format!("the template \"{other}\" is not known");
                let error = Error::unsupported("lecroy-003", message).at(base + 16);
                return Err(error.hint("LECROY_2_3 and LECROY_1_0 are read"));
            }
        };
        let dtype = match at(32).i16()? {
            0 => DType::I8,
            1 => DType::I16.with_order(order),
            other => {
                let message = format!("samples are bytes (0) or words (1), not {other}");
                return Err(Error::malformed("lecroy-004", message).at(base + 32));
            }
        };
        let number = |offset: usize, what: &str| -> Result<u64> {
            let value = at(offset).i32()?;
            u64::try_from(value).map_err(|_| {
                let message = format!("the {what} is {value}");
                Error::malformed("lecroy-005", message).at(base + offset as u64)
            })
        };
        let length =
            |place: Option<usize>| place.map_or(Ok(0), |at| number(at, "length of a block"));
        let [triggers, ris, first, second] = places.lengths;
        let descriptor = number(36, "length of the descriptor")?;
        if descriptor < places.size as u64 {
            let message = format!("a descriptor has {} bytes, not {descriptor}", places.size);
            return Err(Error::malformed("lecroy-005", message).at(base + 36));
        }
        let blocks = [
            descriptor,
            number(40, "length of the user text")?,
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
            instrument: at(places.instrument).text(16)?,
            serial: at(places.serial).i32()?,
            label: at(places.label).text(16)?,
            count: number(places.count, "number of samples")?,
            // Older instruments write none for one.
            segments: number(places.subarrays, "number of segments")?.max(1),
            gain: at(places.gain).f32()?.into(),
            offset: at(places.offset).f32()?.into(),
            interval: at(places.interval).f32()?.into(),
            start: at(places.start).f64()?,
            units: at(places.units[0]).text(48)?,
            x_units: at(places.units[1]).text(48)?,
            trigger_time: trigger_time(&mut at(places.trigger))?,
            record_type: at(places.record_type).i16()?,
            template,
        })
    }
}

/// Seconds, minutes, hours, days, months, year.
fn trigger_time(wire: &mut Wire<'_>) -> Result<String> {
    let second = wire.f64()?;
    let [minute, hour, day, month] = wire.array::<4>()?.map(u32::from);
    let year = i64::from(wire.i16()?);
    Ok(date_time((year, month, day), (hour, minute, second)))
}

/// `RECORD_TYPE` in words.
pub(crate) fn record_type(number: i16) -> String {
    const WORDS: [&str; 10] = [
        "single sweep",
        "interleaved",
        "histogram",
        "graph",
        "filter coefficients",
        "complex",
        "extrema",
        "sequence",
        "centred RIS",
        "peak detect",
    ];
    let word = usize::try_from(number).ok().and_then(|k| WORDS.get(k));
    word.map_or_else(|| number.to_string(), ToString::to_string)
}
