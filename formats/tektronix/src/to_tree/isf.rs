//! `.isf`: one record per preamble.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, samples};
use spile_core::wire::fetch;
use spile_core::{
    ArrayDesc, Attrs, Coord, Linear, OpenOptions, Parsed, Report, Result, Shape, Source, Value,
};

use super::isf_text::TextSamples;
use crate::wire::isf::{Preamble, is_preamble};

/// Opens a file as a recording with one record per preamble.
pub(super) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let mut report = Report::default();
    let (mut records, mut headers) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        recording::allow(records.len() as u64 + 1, limits)?;
        let (preamble, start, binary) = Preamble::read(&source, at)?;
        let dtype = preamble.dtype()?;
        headers.push(Region::new(at, start - at, RegionKind::Header, "preamble", ""));
        let len = if let Some(len) = binary {
            let array_of = |count| samples(&source, dtype, count, start, "tektronix-006");
            let count = len / dtype.size() as u64;
            records.push(record(&preamble, count, array_of, &mut report)?);
            len
        } else {
            let text = TextSamples::scan(&source, start)?;
            let array_of = |count| Ok(text.array(dtype, count));
            records.push(record(&preamble, text.count, array_of, &mut report)?);
            text.len
        };
        at = start + len;
        // White space, semicolons and another preamble can follow.
        let next = fetch(&source, at, 64)?;
        let skipped = next.iter().take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
        at += skipped as u64;
        if !is_preamble(&next[skipped..]) {
            break;
        }
    }
    let summary = Attrs::from([("kind", Value::from("ISF"))]);
    Recording { records, headers, summary, report, ..Recording::default() }.parsed(source, options)
}

/// The record of a preamble with `count` samples, whose array `array_of` returns. Warns if `NR_PT` is not
/// `count`.
fn record(
    preamble: &Preamble,
    count: u64,
    array_of: impl Fn(u64) -> Result<ArrayDesc>,
    report: &mut Report,
) -> Result<Record> {
    if let Some(expected) = preamble.count("NR_P", "NR_PT")?.filter(|n| *n != count) {
        let message = format!("expected {expected} samples (NR_PT), found {count}");
        report.warn("tektronix-010", message).at(preamble.at);
    }
    let step = preamble.number("XIN", "XINCR")?.ok_or_else(|| preamble.missing("XINCR"))?;
    let start = preamble.number("XZE", "XZERO")?.unwrap_or(0.0)
        - preamble.number("PT_O", "PT_OFF")?.unwrap_or(0.0) * step;
    let envelope = preamble.get("PT_F", "PT_FMT").is_some_and(|f| f.eq_ignore_ascii_case("ENV"));
    let array = if envelope {
        // Pairs of minimum and maximum over two intervals.
        let mut array = array_of(count / 2 * 2)?;
        array.shape = Shape::new([count / 2, 2]);
        array.dims.push("extreme".into());
        array.coords.push(Coord::None);
        array
    } else {
        array_of(count)?
    };
    let slope = preamble.number("YMU", "YMULT")?.unwrap_or(1.0);
    let zero = preamble.number("YZE", "YZERO")?.unwrap_or(0.0);
    let origin = preamble.number("YOF", "YOFF")?.unwrap_or(0.0);
    let text = |short, long| preamble.get(short, long).unwrap_or_default();
    let id = text("WFI", "WFID");
    let channel = id.split(',').next().unwrap_or_default().trim();
    Ok(Record::new(channel, array)
        .mapped(Linear { intercept: zero, slope, origin })
        .on_grid(start, if envelope { 2.0 * step } else { step }, text("XUN", "XUNIT"))
        .attr("units", text("YUN", "YUNIT"))
        .attr("label", id)
        .attr("point_format", if envelope { "envelope: smallest, largest" } else { "" }))
}
