//! Versions 0.1 to 5: one header with the fields of all traces, then their samples, one trace after the other.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, samples};
use spile_core::{ByteOrder, DType, Linear, Result, Source};

use crate::wire::{Fields, Layout, More};

/// Counts per division, and divisions of the screen, where the file does not have them.
const COUNTS: f64 = 25.0;
const DIVISIONS: f64 = 14.0;

/// Settings of a trace.
struct Trace {
    name: String,
    count: u64,
    /// Interval of the samples in seconds.
    step: f64,
    /// Units per division, and the offset, without the probe.
    scale: f64,
    offset: f64,
    /// Counts per division.
    counts: f64,
    probe: Option<f64>,
    units: String,
}

/// The traces that are on as records.
pub(super) fn recording(source: &Source, layout: &Layout, fields: Fields<'_>) -> Result<Recording> {
    let traces = traces(layout, fields).map_err(recording::in_header)?;
    let times = times(layout, fields).map_err(recording::in_header)?;
    let first = layout.first(fields).map_err(recording::in_header)?;
    let (size, mut at) = (layout.size(fields), first);
    let (dtype, middle) = match size {
        1 => (DType::U8, 128.0),
        _ => (DType::U16.with_order(times.order), 32_768.0),
    };
    let mut found = Recording::default();
    for trace in traces {
        let array = samples(source, dtype, trace.count, at, "siglent-004")?;
        at = at.saturating_add(trace.count.saturating_mul(size));
        // Instruments of version 4 subtract the offset and multiply both with the probe; the manual has another formula.
        let (factor, offset) = match layout.more {
            Some(_) => (trace.probe.unwrap_or(1.0), -trace.offset),
            None => (1.0, trace.offset),
        };
        let slope = factor * trace.scale / trace.counts;
        let mut record = Record::new(trace.name, array)
            .mapped(Linear { intercept: factor * offset, slope, origin: middle })
            .on_grid(times.start, trace.step, "s")
            .attr("vertical_scale", format!("{} {}/div", factor * trace.scale, trace.units))
            .attr("units", trace.units);
        if let Some(probe) = trace.probe {
            record = record.attr("probe_attenuation", probe);
        }
        if times.delay != 0.0 {
            record = record.attr("trigger_delay", times.delay);
        }
        found.records.push(record);
    }
    let is_on = |at: usize| fields.u32(at).is_ok_and(|on| on == 1);
    let math = layout.math.filter(|_| layout.more.is_none());
    let others = [
        (layout.digital.is_some_and(is_on), "digital lines"),
        (math.is_some_and(|at| (0..4).any(|k| is_on(at + 4 * k))), "calculated channels"),
    ];
    for (_, what) in others.into_iter().filter(|(on, _)| *on) {
        let message = format!("{what} of Siglent oscilloscopes are not read");
        found.report.warn("siglent-005", message).at(at.min(source.len()));
    }
    found.headers = vec![Region::new(0, first.min(source.len()), RegionKind::Header, "header", "")];
    found.summary.push("version", layout.name);
    Ok(found)
}

/// The traces that are on, in the order of their samples.
fn traces(layout: &Layout, fields: Fields<'_>) -> Result<Vec<Trace>> {
    let on = layout.channels(fields)?;
    let count = u64::from(fields.u32(layout.length)?);
    let step = 1.0 / fields.quantity(layout.rate)?;
    let mut traces = Vec::new();
    for k in (0..4).filter(|k| on[*k]) {
        traces.push(Trace {
            name: format!("CH{}", k + 1),
            count,
            step,
            scale: fields.quantity(layout.scale[k])?,
            offset: fields.quantity(layout.offset[k])?,
            counts: match layout.settings {
                Some([.., counts]) => f64::from(fields.i32(counts + 4 * k)?),
                None => COUNTS,
            },
            probe: match layout.probe {
                Some(probe) => attenuation(fields, probe + 8 * k)?,
                None => None,
            },
            units: layout.unit(fields, layout.scale[k]),
        });
    }
    let Some(more) = layout.more else { return Ok(traces) };
    for k in 0..4 {
        if fields.u32(more.on[k]).is_ok_and(|on| on == 1) {
            traces.push(Trace {
                name: format!("CH{}", k + 5),
                count,
                step,
                scale: fields.quantity(more.scale[k])?,
                offset: fields.quantity(more.offset[k])?,
                counts: f64::from(fields.i32(more.counts[k])?),
                probe: attenuation(fields, more.probe[k])?,
                units: layout.unit(fields, more.scale[k]),
            });
        }
    }
    if let Some(switch) = layout.math {
        for k in 0..4 {
            if fields.u32(switch + 4 * k)? == 1 {
                traces.push(calculated(layout, more, fields, k)?);
            }
        }
    }
    Ok(traces)
}

/// Calculated channel number `k`, from 0.
fn calculated(layout: &Layout, more: &More, fields: Fields<'_>, k: usize) -> Result<Trace> {
    Ok(Trace {
        name: format!("F{}", k + 1),
        count: u64::from(fields.u32(more.math_length[k])?),
        step: fields.f64(more.math_step[k])?,
        scale: fields.quantity(more.math_scale[k])?,
        offset: fields.quantity(more.math_offset[k])?,
        counts: f64::from(fields.i32(more.math_counts)?),
        probe: None,
        units: layout.unit(fields, more.math_scale[k]),
    })
}

/// Attenuation of a probe; `None` if it is not set.
fn attenuation(fields: Fields<'_>, at: usize) -> Result<Option<f64>> {
    let probe = fields.f64(at)?;
    Ok(Some(probe).filter(|probe| probe.is_finite() && *probe != 0.0))
}

/// Time of the first sample, delay of the trigger, and byte order of samples of two bytes.
struct Times {
    start: f64,
    delay: f64,
    order: ByteOrder,
}

fn times(layout: &Layout, fields: Fields<'_>) -> Result<Times> {
    let scale = fields.quantity(layout.time_scale)?;
    let Some([order, divisions, _]) = layout.settings else {
        let start = -(scale * DIVISIONS / 2.0);
        return Ok(Times { start, delay: 0.0, order: ByteOrder::Little });
    };
    let order = if fields.at(order).u8()? == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let divisions = f64::from(fields.i32(divisions)?);
    if let Some(more) = layout.more
        && fields.u32(more.zoom).is_ok_and(|on| on == 1)
    {
        let window = fields.quantity(more.zoom_scale)? * divisions;
        let start = fields.quantity(more.zoom_centre)? - window / 2.0;
        return Ok(Times { start, delay: 0.0, order });
    }
    // From version 3 on, the delay is subtracted.
    let delay = fields.quantity(layout.delay)?;
    Ok(Times { start: -(scale * divisions / 2.0) - delay, delay, order })
}
