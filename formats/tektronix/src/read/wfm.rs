//! `WFM#001` to `WFM#003`: one record per frame.
//!
//! The specifications of the first frame are followed by the update specifications of all other frames, their
//! curve specifications, and the samples: one slot per frame, all with the length of the first.

use spile_core::error::{Error, Result};
use spile_core::format::RegionKind;
use spile_core::limits::Limits;
use spile_core::recording::{self, Record, Recording, region, samples, within};
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::{Attrs, Value};
use spile_core::wire::Wire;

use crate::semantics::{iso_time, storage_type};
use crate::wire::wfm::{Curve, Header, UPDATE_BYTES, Update};

/// Opens a file as a recording with one record per frame.
pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    let header = Header::read(&source).map_err(recording::in_header)?;
    let frames = frames(&source, &header, limits)?;
    let slot = u64::from(header.curve.end);
    let size = header.dtype.size() as u64;
    let mut records = Vec::new();
    for (k, (update, curve)) in (0_u64..).zip(frames) {
        let object = || format!("frame {}", k + 1);
        let read_samples = || {
            let bytes =
                curve.stop.checked_sub(curve.start).filter(|_| u64::from(curve.stop) <= slot);
            let bytes = bytes.ok_or_else(|| {
                let Curve { start, stop, .. } = curve;
                let message =
                    format!("samples at bytes {start} to {stop} exceed a slot of {slot} bytes");
                Error::malformed("tektronix-009", message).at(header.tables_offset)
            })?;
            let first =
                k.saturating_mul(slot).saturating_add(header.curve_offset + u64::from(curve.start));
            samples(&source, header.dtype, u64::from(bytes) / size, first, "tektronix-006")
        };
        let array = read_samples().map_err(|e| e.in_object(object()))?;
        let record = Record::new(header.label.as_str(), array)
            .scaled(header.offset, header.scale)
            .on_grid(header.start, header.step, &header.time_units)
            .attr("units", header.units.as_str())
            .attr("label", header.label.as_str())
            .attr("trigger_time", iso_time(update.seconds, update.fraction))
            .attr("storage", storage_type(header.storage));
        let part = if header.frames > 1 { format!("segment{}", k + 1) } else { String::new() };
        records.push(record.part(part));
    }
    let mut report = Report::default();
    if header.end > source.len() {
        let message = format!("expected a file of {} bytes, found {}", header.end, source.len());
        report.error("tektronix-011", message).at(source.len());
    }
    let mut headers = vec![
        region(0, 78, RegionKind::Header, "file information", ""),
        region(78, header.tables_offset - 78, RegionKind::Header, "waveform header", ""),
        region(
            header.tables_offset,
            header.table_bytes(),
            RegionKind::Header,
            "frame specifications",
            "",
        ),
    ];
    if header.end >= 8 && header.end <= source.len() {
        headers.push(region(header.end - 8, 8, RegionKind::Header, "checksum", ""));
    }
    let order = format!("{:?} endian", header.order).to_lowercase();
    let summary = Attrs::from([
        ("kind", Value::from(format!("WFM#00{}", header.version))),
        ("byte order", order.into()),
        ("frames", header.frames.into()),
        ("summary frame", u64::from(header.summary_frame).into()),
        ("digital", (header.data_type == 6).into()),
    ]);
    let file = Recording::new(source, records, headers, limits)?;
    Ok(file.with_summary(summary).with_findings(report))
}

/// Specifications of all frames. A curve specification that is all zero is replaced by that of the first
/// frame.
fn frames(source: &Source, header: &Header, limits: &Limits) -> Result<Vec<(Update, Curve)>> {
    let more = header.frames - 1;
    let bytes = header.table_bytes();
    within(source, header.tables_offset, bytes, "the frame specifications", "tektronix-007")?;
    recording::allow(header.frames, limits)?;
    let tables = source.read_vec(header.tables_offset, bytes)?;
    let (updates, curves) = tables.split_at((UPDATE_BYTES * more) as usize);
    let mut update = Wire::new(updates, header.tables_offset, header.order, "tektronix-007");
    let at = header.tables_offset + updates.len() as u64;
    let mut curve = Wire::new(curves, at, header.order, "tektronix-007");
    let mut frames = vec![(header.update, header.curve)];
    for _ in 0..more {
        let own = Curve::read(&mut curve)?;
        let curve = if own == Curve::default() { header.curve } else { own };
        frames.push((Update::read(&mut update)?, curve));
    }
    Ok(frames)
}
