//! On-disk structures: the wave descriptor. Offsets are relative to its name "WAVEDESC".

mod settings;

use spile_core::recording::date_time;
use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Result, Source, Wire};

/// Name at the start of a descriptor.
const NAME: &[u8] = b"WAVEDESC";

/// Number of bytes searched for a descriptor, which can follow a remote control header.
const SEARCH_BYTES: usize = 4096;

/// Offset of the descriptor in `head`.
pub(crate) fn find_descriptor(head: &[u8]) -> Option<usize> {
    head.windows(NAME.len()).position(|window| window == NAME)
}

/// Field offsets of a template.
pub(crate) struct Template {
    /// Size of the descriptor in bytes.
    size: usize,
    /// Lengths of trigger times, RIS times, first and second array; 1_0 has no RIS times.
    lengths: [Option<usize>; 4],
    pub(crate) instrument: usize,
    pub(crate) serial: usize,
    pub(crate) label: usize,
    count: usize,
    subarrays: usize,
    pub(crate) gain: usize,
    /// Vertical offset, subtracted from the scaled samples.
    pub(crate) offset: usize,
    pub(crate) interval: usize,
    pub(crate) start: usize,
    /// Units of the values and of the time.
    pub(crate) units: [usize; 2],
    trigger: usize,
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
};

/// A wave descriptor; fields are read at their offsets in the template.
pub(crate) struct Descriptor {
    bytes: Vec<u8>,
    /// Offset in the file.
    pub(crate) at: u64,
    pub(crate) order: ByteOrder,
    pub(crate) template: &'static Template,
    /// Sample type (`COMM_TYPE`).
    pub(crate) dtype: DType,
    /// Lengths in bytes: descriptor, user text, trigger times, RIS times, first array, second array.
    pub(crate) blocks: [u64; 6],
    /// Number of samples of an array, in all segments.
    pub(crate) count: u64,
    pub(crate) segments: u64,
}

impl Descriptor {
    /// Finds the descriptor and reads the types and lengths.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let mut bytes = fetch(source, 0, SEARCH_BYTES + LECROY_2_3.size)?;
        let at = find_descriptor(&bytes[..bytes.len().min(SEARCH_BYTES)]).ok_or_else(|| {
            let message = format!("no \"WAVEDESC\" in the first {SEARCH_BYTES} bytes");
            Error::not_this_format("lecroy-001", message).at(0)
        })?;
        bytes.drain(..at);
        let (at, order, template) = (at as u64, ByteOrder::Little, &LECROY_2_3);
        let (dtype, blocks, count, segments) = (DType::I8, [0; 6], 0, 1);
        let mut desc = Self { bytes, at, order, template, dtype, blocks, count, segments };
        // COMM_ORDER is 0 or 1 in the byte order of the file; its first byte is 1 only if little-endian.
        if desc.field(34).u8()? != 1 {
            desc.order = ByteOrder::Big;
        }
        desc.template = match desc.template_name()?.as_str() {
            "LECROY_1_0" => &LECROY_1_0,
            name if name.starts_with("LECROY_2_") => &LECROY_2_3,
            other => {
                let message = format!("unknown template \"{other}\"");
                let error = Error::unsupported("lecroy-003", message).at(at + 16);
                return Err(error.hint("supported templates: LECROY_2_3, LECROY_1_0"));
            }
        };
        desc.dtype = match desc.field(32).i16()? {
            0 => DType::I8,
            1 => DType::I16.with_order(desc.order),
            other => {
                let message = format!("expected sample type 0 (byte) or 1 (word), found {other}");
                return Err(Error::malformed("lecroy-004", message).at(at + 32));
            }
        };
        let Template { size, lengths: [triggers, ris, first, second], .. } = *desc.template;
        let fields = [Some(36), Some(40), triggers, ris, first, second];
        for (block, field) in fields.into_iter().enumerate() {
            if let Some(field) = field {
                desc.blocks[block] = desc.non_negative(field, "block length")?;
            }
        }
        if desc.blocks[0] < size as u64 {
            let message =
                format!("expected a descriptor of at least {size} bytes, found {}", desc.blocks[0]);
            return Err(Error::malformed("lecroy-009", message).at(at + 36));
        }
        desc.count = desc.non_negative(desc.template.count, "number of samples")?;
        // Older instruments write 0 for a single segment.
        desc.segments = desc.non_negative(desc.template.subarrays, "number of segments")?.max(1);
        Ok(desc)
    }

    /// The bytes from the field at `offset` on.
    pub(crate) fn field(&self, offset: usize) -> Wire<'_> {
        let rest = self.bytes.get(offset..).unwrap_or(&[]);
        Wire::new(rest, self.at + offset as u64, self.order, "lecroy-002")
    }

    pub(crate) fn template_name(&self) -> Result<String> {
        self.field(16).text(16)
    }

    fn non_negative(&self, offset: usize, what: &str) -> Result<u64> {
        let value = self.field(offset).i32()?;
        u64::try_from(value).map_err(|_| {
            let message = format!("negative {what}: {value}");
            Error::malformed("lecroy-005", message).at(self.at + offset as u64)
        })
    }

    /// Trigger time in ISO 8601, stored as seconds, minutes, hours, days, months, year.
    pub(crate) fn trigger_time(&self) -> Result<String> {
        let mut wire = self.field(self.template.trigger);
        let second = wire.f64()?;
        let [minute, hour, day, month] = wire.array::<4>()?.map(u32::from);
        let year = i64::from(wire.i16()?);
        Ok(date_time((year, month, day), (hour, minute, second)))
    }
}
