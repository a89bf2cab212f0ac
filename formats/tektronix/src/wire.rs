//! The structures of `WFM#001`, `WFM#002` and `WFM#003` as they lie in the file.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// Bytes of an update specification and of a curve specification.
const UPDATE: u64 = 24;
const CURVE: u64 = 30;

/// Where the blocks of a version are.
struct Places {
    /// Explicit dimension 1: the values.
    values: usize,
    /// Implicit dimension 1: the time.
    time: usize,
    /// Update specification of the first frame; its curve specification follows.
    update: usize,
}

const PLACES: [Places; 3] = [
    Places { values: 166, time: 478, update: 766 },
    Places { values: 168, time: 480, update: 768 },
    Places { values: 168, time: 488, update: 784 },
];

/// The byte order of a file that begins with the mark of one and a version.
pub(crate) fn mark(head: &[u8]) -> Option<ByteOrder> {
    let order = match head.get(..2)? {
        [0x0f, 0x0f] => ByteOrder::Little,
        [0xf0, 0xf0] => ByteOrder::Big,
        _ => return None,
    };
    let version = head.get(2..10)?;
    let version = version.strip_prefix(b":").unwrap_or(version);
    version.starts_with(b"WFM#").then_some(order)
}

/// Where the samples of a frame are, from the beginning of its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Curve {
    pub(crate) start: u32,
    pub(crate) stop: u32,
    pub(crate) end: u32,
}

/// When a frame was triggered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Update {
    /// Part of a sample interval.
    pub(crate) trigger_offset: f64,
    pub(crate) fraction: f64,
    /// Seconds since 1970.
    pub(crate) seconds: i32,
}

/// Everything before the samples.
pub(crate) struct Header {
    pub(crate) order: ByteOrder,
    pub(crate) version: usize,
    /// The file without what instruments append to it.
    pub(crate) end: u64,
    pub(crate) curve_offset: u64,
    pub(crate) label: String,
    pub(crate) frames: u64,
    pub(crate) data_type: i32,
    pub(crate) summary_frame: u16,
    pub(crate) dtype: DType,
    pub(crate) storage: i32,
    pub(crate) scale: f64,
    pub(crate) offset: f64,
    pub(crate) units: String,
    pub(crate) step: f64,
    pub(crate) start: f64,
    pub(crate) time_units: String,
    pub(crate) update: Update,
    pub(crate) curve: Curve,
    /// Byte of the update specifications of the other frames.
    pub(crate) tables: u64,
}

impl Header {
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 838)?;
        let order = mark(&head).ok_or_else(|| {
            Error::not_this_format("tektronix-001", "no mark of a byte order and a version").at(0)
        })?;
        let at = |offset: usize| {
            Wire::new(head.get(offset..).unwrap_or(&[]), offset as u64, order, "tektronix-007")
        };
        let name = at(2).text(8)?;
        let version = match name.trim_start_matches(':') {
            "WFM#001" => 1,
            "WFM#002" => 2,
            "WFM#003" => 3,
            other => {
                let message = format!("the version \"{other}\" is not known");
                return Err(Error::unsupported("tektronix-008", message).at(2));
            }
        };
        let places = &PLACES[version - 1];
        let positive = |offset: usize, what: &str| -> Result<u64> {
            let value = at(offset).i32()?;
            u64::try_from(value).map_err(|_| {
                Error::malformed("tektronix-009", format!("the {what} is {value}"))
                    .at(offset as u64)
            })
        };
        let data_type = at(122).i32()?;
        if !matches!(data_type, 2 | 6) {
            let name = match data_type {
                0 | 1 => "a single number",
                5 => "a map of pixels",
                _ => "not a kind that is known",
            };
            let message = format!("the data (type {data_type}) are {name}, which is not read");
            let error = Error::unsupported("tektronix-005", message).at(122);
            return Err(error.hint("waveforms (2) and digital channels (6) are"));
        }
        let size = at(15).u8()?;
        let dtype = sample_type(at(places.values + 72).i32()?, size, version).ok_or_else(|| {
            let message =
                format!("samples of this format do not have {size} bytes, or are not known");
            Error::unsupported("tektronix-005", message).at(places.values as u64 + 72)
        })?;
        let mut update = at(places.update);
        let mut curve = at(places.update + UPDATE as usize);
        Ok(Self {
            order,
            version,
            end: 15 + positive(11, "number of bytes to the end")?,
            curve_offset: positive(16, "place of the samples")?,
            label: at(40).text(32)?,
            frames: u64::from(at(72).u32()?) + 1,
            data_type,
            summary_frame: if version == 1 { 0 } else { at(154).u16()? },
            dtype: dtype.with_order(order),
            storage: at(places.values + 76).i32()?,
            scale: at(places.values).f64()?,
            offset: at(places.values + 8).f64()?,
            units: at(places.values + 20).text(20)?,
            step: at(places.time).f64()?,
            start: at(places.time + 8).f64()?,
            time_units: at(places.time + 20).text(20)?,
            update: Update::read(&mut update)?,
            curve: Curve::read(&mut curve)?,
            tables: places.update as u64 + UPDATE + CURVE,
        })
    }

    /// Bytes of the tables of the frames behind the first.
    pub(crate) fn table_bytes(&self) -> u64 {
        (self.frames - 1).saturating_mul(UPDATE + CURVE)
    }
}

impl Update {
    pub(crate) fn read(wire: &mut Wire<'_>) -> Result<Self> {
        wire.skip(4)?;
        Ok(Self { trigger_offset: wire.f64()?, fraction: wire.f64()?, seconds: wire.i32()? })
    }
}

impl Curve {
    /// State flags, checksum type and value, start of the precharge; the rest is what counts.
    pub(crate) fn read(wire: &mut Wire<'_>) -> Result<Self> {
        wire.skip(14)?;
        let [start, stop, postcharge, end] = [wire.u32()?, wire.u32()?, wire.u32()?, wire.u32()?];
        Ok(Self { start, stop, end: end.max(postcharge) })
    }
}

/// The type of samples (explicit dimension, field "format"); the size that the file gives must agree.
fn sample_type(format: i32, size: u8, version: usize) -> Option<DType> {
    let dtype = match format {
        0 => DType::I16,
        1 => DType::I32,
        2 => DType::U32,
        3 => DType::U64,
        4 => DType::F32,
        5 => DType::F64,
        6 if version == 3 => DType::U8,
        7 if version == 3 => DType::I8,
        _ => return None,
    };
    (dtype.size() == usize::from(size)).then_some(dtype)
}
