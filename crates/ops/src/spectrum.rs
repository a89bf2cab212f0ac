//! Power spectra of traces: Welch's method, and the short-time Fourier transform.
//!
//! | module | content |
//! |---|---|
//! | `window` | window functions |
//! | `transform` | the power spectrum of one segment, of real and complex samples |
//! | `trace` | the samples of an array along its time |
//! | `spectrogram` | spectra of segments over time, as an array that is computed when it is read |
//!
//! Window functions, removal of the mean, scaling and one-sided spectra are those of `scipy.signal.welch` and
//! `scipy.signal.spectrogram`. Samples are read in pieces; memory does not grow with the trace. Results do not depend on
//! the number of threads.

mod spectrogram;
mod trace;
mod transform;
mod window;

use rayon::prelude::*;
use spile_core::{ArrayDesc, Attrs, Coord, DType, Dataset, Error, NodeId, Order, ROOT, Result};
use spile_core::{Layout, Role, Semantics, Shape, Tree};

use trace::Trace;
use transform::Transform;

pub use spectrogram::spectrogram;
pub use window::Window;

/// Samples read at once by a thread.
const PIECE: u64 = 1 << 18;

/// Parameters of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Number of samples of a segment (`nperseg`); by default a power of two that depends on the length of the trace.
    pub segment: Option<u64>,
    /// Number of samples that neighbouring segments share (`noverlap`); by default half of a segment.
    pub overlap: Option<u64>,
    /// Window function.
    pub window: Window,
    /// Whether the mean of each segment is removed (`detrend="constant"`).
    pub detrend: bool,
    /// Power per frequency interval; otherwise power (`scaling="spectrum"`).
    pub density: bool,
    /// Sampling rate; by default that of the coordinate of the trace.
    pub rate: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        let (segment, overlap, rate) = (None, None, None);
        Self { segment, overlap, window: Window::Hann, detrend: true, density: true, rate }
    }
}

impl Settings {
    /// Lengths of a segment and of the distance between segments, for a trace of `samples`.
    fn lengths(&self, samples: u64, default: u64) -> Result<(u64, u64)> {
        if samples == 0 {
            return Err(Error::argument("the trace has no samples"));
        }
        let segment = self.segment.unwrap_or(default).min(samples);
        let overlap = match self.overlap {
            // A shorter trace has a shorter segment.
            Some(overlap) if self.segment.is_none_or(|given| given == segment) => overlap,
            _ => segment / 2,
        };
        match segment.checked_sub(overlap).filter(|step| *step > 0) {
            Some(step) => Ok((segment, step)),
            None => Err(Error::argument(format!(
                "the overlap of {overlap} samples is not shorter than a segment of {segment}"
            ))),
        }
    }
}

/// Power spectra of arrays by Welch's method, as a dataset with an array of the same name each: the average over
/// overlapping segments. Along the frequency the coordinate is uniform; spectra of complex samples begin at negative
/// frequencies.
///
/// # Errors
/// An array has no numbers, more than two dimensions, or a coordinate that is not uniform; parameters do not fit.
pub fn welch(content: &Dataset, arrays: &[NodeId], settings: &Settings) -> Result<Dataset> {
    let mut tree = Tree::new(content.limits());
    for id in arrays {
        let node = content.tree().node(*id);
        let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
        let trace = Trace::of(content, *id, settings.rate).map_err(place)?;
        let (segment, step) = settings.lengths(trace.samples, welch_segment(trace.samples))?;
        let transform = Transform::new(settings, segment, &trace)?;
        content.limits().allow(transform.memory(step), "the transforms").map_err(place)?;
        let (rows, bins) = (trace.rows, transform.bins());
        let bytes = rows.saturating_mul(bins).saturating_mul(8);
        content.limits().allow(bytes, "the spectrum").map_err(place)?;
        let mut values = Vec::new();
        for row in 0..rows {
            let sum = sum(&trace, row, &transform, step).map_err(place)?;
            values.extend(sum.iter().flat_map(|value| value.to_le_bytes()));
        }
        let (shape, order) = trace.shape_with(bins);
        let mut desc = ArrayDesc::new(DType::F64, shape, Layout::Inline(values.into(), order));
        trace.describe(&mut desc, transform.frequencies());
        let attrs = attributes(&trace, settings, segment, segment - step);
        let name = node.path.replace('/', "_");
        let new = tree.add_array(ROOT, &name, desc.with_semantics(Semantics::role(Role::Trace)))?;
        tree.set_attrs(new, attrs)?;
    }
    Ok(content.with_tree(tree))
}

/// Default length of a segment: eight or more of them, from 256 to 65536 samples.
fn welch_segment(samples: u64) -> u64 {
    1 << (samples / 8).max(1).ilog2().clamp(8, 16)
}

/// The average over all segments of a row of a trace.
fn sum(trace: &Trace, row: u64, transform: &Transform, step: u64) -> Result<Vec<f64>> {
    let segment = transform.segment();
    let count = (trace.samples - segment) / step + 1;
    let at_once = (PIECE / step).max(1);
    let pieces = count.div_ceil(at_once);
    let threads = rayon::current_num_threads() as u64;
    let mut total = vec![0.0; transform.bins() as usize];
    // A group of pieces at a time, so that their sums do not accumulate; added in order.
    for group in (0..pieces).step_by(threads.max(1) as usize) {
        let sums: Vec<Vec<f64>> = (group..(group + threads).min(pieces))
            .into_par_iter()
            .map(|piece| {
                let (first, last) = (piece * at_once, ((piece + 1) * at_once).min(count));
                let end = (last - 1) * step + segment;
                let samples = trace.read(row, first * step, end - first * step)?;
                let mut worker = transform.worker();
                let mut sum = vec![0.0; transform.bins() as usize];
                for k in 0..last - first {
                    let from = (k * step) as usize;
                    worker.power(samples.part(from, segment as usize), |bin, power| {
                        sum[bin] += power;
                    })?;
                }
                Ok(sum)
            })
            .collect::<Result<_>>()?;
        for sum in sums {
            total.iter_mut().zip(sum).for_each(|(total, more)| *total += more);
        }
    }
    for value in &mut total {
        *value /= count as f64;
    }
    Ok(total)
}

/// Attributes of a spectrum.
fn attributes(trace: &Trace, settings: &Settings, segment: u64, overlap: u64) -> Attrs {
    let mut attrs = trace.attrs.clone();
    let square = match trace.units.as_str() {
        "" => "1".to_string(),
        units if units.chars().all(char::is_alphabetic) => format!("{units}^2"),
        units => format!("({units})^2"),
    };
    let frequency = trace.frequency_units();
    let units = match (settings.density, frequency.as_str()) {
        (false, _) if square == "1" => String::new(),
        (false, _) => square,
        (true, "") => square.trim_start_matches('1').to_string(),
        (true, frequency) => format!("{square}/{frequency}"),
    };
    let quantity = if settings.density { "power spectral density" } else { "power spectrum" };
    for (name, text) in [("units", units), ("frequency_units", frequency)] {
        if !text.is_empty() {
            attrs.set(name, text);
        }
    }
    attrs.set("long_name", format!("{quantity} of {}", trace.name));
    attrs.set("window", settings.window.name());
    attrs.set("segment", segment);
    attrs.set("overlap", overlap);
    attrs
}

/// Coordinate of frequencies.
fn frequency_coord((start, step): (f64, f64)) -> Coord {
    Coord::Uniform { start, step }
}

/// Shape and order of the result with the time replaced by `bins` frequencies; see [`Trace`].
fn shape_of(rows: Option<u64>, time_first: bool, bins: u64) -> (Shape, Order) {
    match (rows, time_first) {
        (None, _) => (Shape::new([bins]), Order::C),
        // A row of the trace is a column of the result.
        (Some(rows), true) => (Shape::new([bins, rows]), Order::F),
        (Some(rows), false) => (Shape::new([rows, bins]), Order::C),
    }
}

#[cfg(test)]
mod tests;
