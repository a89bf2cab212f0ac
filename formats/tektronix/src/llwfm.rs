//! `LLWFM`, the `.wfm` of older instruments: always big-endian 16-bit samples.
//!
//! `LLWFM #`, a digit, as many digits of a length; then magic, length, 32 bytes about the display, a header
//! of 80 bytes, 16 samples before and 16 behind those that count, and the sum of all of them.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Role;
use spile_core::limits::Limits;
use spile_core::recording::{self, Record, Recording, region, samples};
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// The first letters, behind a colon that may be there.
pub(crate) const NAME: &[u8] = b"LLWFM #";

/// From the magic to the header, and from there to the samples before those that count.
const HEADER: u64 = 8 + 32;
const CHARGE: u64 = HEADER + 80;

/// Bytes of 16 samples.
pub(crate) const SIXTEEN: u64 = 32;

/// Codes of the two units that these instruments have for time and voltage.
const VOLTS: i16 = 609;
const SECONDS: i16 = 610;

/// Everything before the samples.
pub(crate) struct Header {
    /// Byte of the magic number.
    pub(crate) base: u64,
    /// Bytes from there on, as the file says.
    length: u64,
    magic: i32,
    x_unit: i16,
    step: f64,
    unit: i16,
    offset: f64,
    position: f64,
    gain: f64,
    pub(crate) count: u64,
    /// Part of the record before the trigger, in percent.
    trigger: i16,
}

impl Header {
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 256)?;
        let colon = usize::from(head.first() == Some(&b':'));
        let bad = || {
            let message = "LLWFM # is followed by a digit and a length";
            Error::malformed("tektronix-012", message).at(colon as u64 + NAME.len() as u64)
        };
        let text = head.get(colon + NAME.len()..).unwrap_or(&[]);
        let [digits @ b'1'..=b'9', rest @ ..] = text else { return Err(bad()) };
        let digits = usize::from(digits - b'0');
        let length =
            rest.get(..digits).and_then(|d| std::str::from_utf8(d).ok()).ok_or_else(bad)?;
        let length = length.parse().map_err(|_| bad())?;
        let base = (colon + NAME.len() + 1 + digits) as u64;
        let at = |offset: u64| {
            let rest = head.get((base + offset) as usize..).unwrap_or(&[]);
            Wire::new(rest, base + offset, ByteOrder::Big, "tektronix-007")
        };
        Ok(Self {
            base,
            length,
            magic: at(0).i32()?,
            x_unit: at(HEADER + 14).i16()?,
            step: at(HEADER + 16).f64()?,
            unit: at(HEADER + 24).i16()?,
            offset: at(HEADER + 26).f64()?,
            position: at(HEADER + 34).f64()?,
            gain: at(HEADER + 42).f64()?,
            count: at(HEADER + 50).u32()?.into(),
            trigger: at(HEADER + 54).i16()?,
        })
    }

    /// Byte of the first sample that counts.
    pub(crate) fn samples(&self) -> u64 {
        self.base + CHARGE + SIXTEEN
    }

    /// Byte of the sum.
    pub(crate) fn sum(&self) -> u64 {
        self.samples() + 2 * self.count + SIXTEEN
    }
}

pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    let header = Header::read(&source).map_err(recording::in_header)?;
    let dtype = DType::I16.with_order(ByteOrder::Big);
    let array = samples(&source, dtype, header.count, header.samples(), "tektronix-006")?;
    // Gain is a division of the screen, which has 25 steps of 256.
    let slope = header.gain / 25.0 / 256.0;
    let start = -f64::from(header.trigger) / 100.0 * header.count as f64 * header.step;
    let x_units = unit(header.x_unit);
    let record = Record::new("", array)
        .scaled(header.offset - header.position * header.gain, slope)
        .on_grid(start, header.step, &x_units)
        .say("units", unit(header.unit));
    let mut report = Report::default();
    let end = header.base.saturating_add(header.length);
    if end != header.sum() + 2 || source.len() < end {
        let message =
            format!("the length leads to byte {end}, the samples to {}", header.sum() + 2);
        report.warn("tektronix-013", message).at(header.base);
    }
    let base = header.base;
    let headers = vec![
        region(0, base, Role::Text, "name and length", ""),
        region(base, CHARGE, Role::Header, "header", ""),
        region(base + CHARGE, SIXTEEN, Role::Unknown, "samples before", ""),
        region(header.samples() + 2 * header.count, SIXTEEN, Role::Unknown, "samples behind", ""),
        region(header.sum(), 2, Role::Header, "sum of the samples", ""),
    ];
    let summary = vec![
        ("kind".to_string(), Value::from("LLWFM")),
        ("magic".into(), i64::from(header.magic).into()),
        ("samples".into(), header.count.into()),
    ];
    let file = Recording::new(source, vec![record], headers, limits)?;
    Ok(file.with_summary(summary).with_findings(report))
}

fn unit(code: i16) -> String {
    match code {
        VOLTS => "V".into(),
        SECONDS => "s".into(),
        0 => String::new(),
        other => format!("unit {other}"),
    }
}
