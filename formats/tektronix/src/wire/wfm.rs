//! Headers of `WFM#001`, `WFM#002` and `WFM#003`.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Result, Source, Wire};

/// Size of an update specification in bytes.
pub(crate) const UPDATE_BYTES: u64 = 24;

/// Size of a curve specification in bytes.
const CURVE_BYTES: u64 = 30;

/// Offsets of the structures of a version.
struct Offsets {
    /// Explicit dimension 1: the values.
    values: usize,
    /// Implicit dimension 1: the time.
    time: usize,
    /// Update specification of the first frame, followed by its curve specification.
    update: usize,
}

const OFFSETS: [Offsets; 3] = [
    Offsets { values: 166, time: 478, update: 766 },
    Offsets { values: 168, time: 480, update: 768 },
    Offsets { values: 168, time: 488, update: 784 },
];

/// Byte order of a file that starts with a byte order mark and a version; `None` for other files.
pub(crate) fn byte_order(head: &[u8]) -> Option<ByteOrder> {
    let order = match head.get(..2)? {
        [0x0f, 0x0f] => ByteOrder::Little,
        [0xf0, 0xf0] => ByteOrder::Big,
        _ => return None,
    };
    let version = head.get(2..10)?;
    let version = version.strip_prefix(b":").unwrap_or(version);
    version.starts_with(b"WFM#").then_some(order)
}

/// Curve specification: offsets of the samples of a frame, relative to its slot, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Curve {
    pub(crate) start: u32,
    pub(crate) stop: u32,
    pub(crate) end: u32,
}

/// Update specification: trigger of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Update {
    /// Fraction of a sample interval.
    pub(crate) trigger_offset: f64,
    /// Fraction of a second.
    pub(crate) fraction: f64,
    /// Seconds since 1970.
    pub(crate) seconds: i32,
}

/// File and waveform header.
pub(crate) struct Header {
    pub(crate) order: ByteOrder,
    pub(crate) version: usize,
    /// End of the waveform file; instruments can append other data.
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
    /// Offset of the specifications of the other frames.
    pub(crate) tables_offset: u64,
}

impl Header {
    /// Reads the header and the specifications of the first frame.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 838)?;
        let order = byte_order(&head).ok_or_else(|| {
            let message = "expected a byte order mark and a version at the start of the file";
            Error::not_this_format("tektronix-001", message).at(0)
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
                let message = format!("unknown version \"{other}\"");
                let error = Error::unsupported("tektronix-008", message).at(2);
                return Err(error.hint("supported versions: WFM#001, WFM#002, WFM#003"));
            }
        };
        let offsets = &OFFSETS[version - 1];
        let non_negative = |offset: usize, what: &str| -> Result<u64> {
            let value = at(offset).i32()?;
            u64::try_from(value).map_err(|_| {
                Error::malformed("tektronix-009", format!("negative {what}: {value}"))
                    .at(offset as u64)
            })
        };
        let data_type = at(122).i32()?;
        if !matches!(data_type, 2 | 6) {
            let name = match data_type {
                0 | 1 => " (scalar)",
                5 => " (pixel map)",
                _ => "",
            };
            let message = format!("unsupported data type {data_type}{name}");
            let error = Error::unsupported("tektronix-005", message).at(122);
            return Err(error.hint("supported data types: 2 (waveform), 6 (digital)"));
        }
        let size = at(15).u8()?;
        let format = at(offsets.values + 72).i32()?;
        let dtype = sample_type(format, size, version).ok_or_else(|| {
            let message =
                format!("unsupported sample format {format} with {size} bytes per sample");
            Error::unsupported("tektronix-005", message).at(offsets.values as u64 + 72)
        })?;
        let mut update = at(offsets.update);
        let mut curve = at(offsets.update + UPDATE_BYTES as usize);
        Ok(Self {
            order,
            version,
            end: 15 + non_negative(11, "number of remaining bytes")?,
            curve_offset: non_negative(16, "sample offset")?,
            label: at(40).text(32)?,
            frames: u64::from(at(72).u32()?) + 1,
            data_type,
            summary_frame: if version == 1 { 0 } else { at(154).u16()? },
            dtype: dtype.with_order(order),
            storage: at(offsets.values + 76).i32()?,
            scale: at(offsets.values).f64()?,
            offset: at(offsets.values + 8).f64()?,
            units: at(offsets.values + 20).text(20)?,
            step: at(offsets.time).f64()?,
            start: at(offsets.time + 8).f64()?,
            time_units: at(offsets.time + 20).text(20)?,
            update: Update::read(&mut update)?,
            curve: Curve::read(&mut curve)?,
            tables_offset: offsets.update as u64 + UPDATE_BYTES + CURVE_BYTES,
        })
    }

    /// Size in bytes of the specifications of all frames except the first.
    pub(crate) fn table_bytes(&self) -> u64 {
        (self.frames - 1).saturating_mul(UPDATE_BYTES + CURVE_BYTES)
    }
}

impl Update {
    pub(crate) fn read(wire: &mut Wire<'_>) -> Result<Self> {
        wire.skip(4)?;
        Ok(Self { trigger_offset: wire.f64()?, fraction: wire.f64()?, seconds: wire.i32()? })
    }

    /// Seconds since the trigger `first`.
    pub(crate) fn since(&self, first: &Self) -> f64 {
        f64::from(self.seconds) - f64::from(first.seconds) + (self.fraction - first.fraction)
    }
}

impl Curve {
    /// Skips state flags, checksum type and value, and the start of the precharge.
    pub(crate) fn read(wire: &mut Wire<'_>) -> Result<Self> {
        wire.skip(14)?;
        let [start, stop, postcharge, end] = [wire.u32()?, wire.u32()?, wire.u32()?, wire.u32()?];
        Ok(Self { start, stop, end: end.max(postcharge) })
    }
}

/// Sample type for the field "format" of the explicit dimension; `None` if unknown or of another size than
/// `size`.
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
