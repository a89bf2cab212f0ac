//! `LLWFM`: a file with one record.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, samples};
use spile_core::{Attrs, ByteOrder, DType, OpenOptions, Parsed, Report, Result, Source, Value};

use crate::wire::llwfm::{CHARGE_BYTES, Header, PRECHARGE_OFFSET};

/// Opens a file as a recording with one record.
pub(super) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let header = Header::read(&source).map_err(recording::in_header)?;
    let dtype = DType::I16.with_order(ByteOrder::Big);
    let array = samples(&source, dtype, header.count, header.samples_offset(), "tektronix-006")?;
    // The gain is per division of the screen, which has 25 levels of 256 steps.
    let slope = header.gain / 25.0 / 256.0;
    let start = -f64::from(header.trigger) / 100.0 * header.count as f64 * header.step;
    let record = Record::new("", array)
        .scaled(header.offset - header.position * header.gain, slope)
        .on_grid(start, header.step, &unit_of_code(header.x_unit))
        .attr("units", unit_of_code(header.unit));
    let mut report = Report::default();
    let found = header.base.saturating_add(header.length);
    let expected = header.checksum_offset() + 2;
    if found != expected || source.len() < found {
        let message = format!("expected an end at byte {expected}, found {found}");
        report.warn("tektronix-013", message).at(header.base);
    }
    let base = header.base;
    let postcharge = header.samples_offset() + 2 * header.count;
    let headers = vec![
        Region::new(0, base, RegionKind::Text, "name and length", ""),
        Region::new(base, PRECHARGE_OFFSET, RegionKind::Header, "header", ""),
        Region::new(base + PRECHARGE_OFFSET, CHARGE_BYTES, RegionKind::Unknown, "precharge", ""),
        Region::new(postcharge, CHARGE_BYTES, RegionKind::Unknown, "postcharge", ""),
        Region::new(header.checksum_offset(), 2, RegionKind::Header, "checksum", ""),
    ];
    let summary = Attrs::from([
        ("kind", Value::from("LLWFM")),
        ("magic", i64::from(header.magic).into()),
        ("samples", header.count.into()),
    ]);
    let records = vec![record];
    Recording { records, headers, summary, report, ..Recording::default() }.parsed(source, options)
}

/// Unit symbol of a code in an LLWFM file; only volts and seconds are known.
fn unit_of_code(code: i16) -> String {
    match code {
        609 => "V".into(),
        610 => "s".into(),
        0 => String::new(),
        other => format!("unit {other}"),
    }
}
