//! Spectra of segments over time.

use std::sync::Arc;

use rayon::prelude::*;
use spile_core::computed::{Computed, Function};
use spile_core::{
    Array, ArrayDesc, Coord, DType, Dataset, Error, Layout, NodeId, Order, ROOT, Result, Role,
    Semantics, Shape, Tree,
};

use super::trace::{FREQUENCY, Trace};
use super::transform::Transform;
use super::{PIECE, Settings, attributes, frequency_coord};

/// Spectrograms of arrays, as a dataset with an array of the same name each: the power spectrum of every segment. The
/// dimensions are the time of the centre of a segment, and the frequency. Values are computed when they are read; memory
/// does not grow with the trace.
///
/// # Errors
/// An array has no numbers, several rows, or a coordinate that is not uniform; parameters do not fit.
pub fn spectrogram(content: &Dataset, arrays: &[NodeId], settings: &Settings) -> Result<Dataset> {
    let mut tree = Tree::new(content.limits());
    for id in arrays {
        let node = content.tree().node(*id);
        let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
        let trace = Trace::of(content, *id, settings.rate).map_err(place)?;
        if trace.rows != 1 {
            let message =
                format!("a spectrogram requires one row of samples, found {}", trace.rows);
            return Err(place(Error::argument(message).hint("select a segment or a column")));
        }
        let (segment, step) = settings.lengths(trace.samples, segment_of(trace.samples))?;
        let transform = Transform::new(settings, segment, &trace)?;
        content.limits().allow(transform.memory(step), "the transforms").map_err(place)?;
        let (bins, count) = (transform.bins(), (trace.samples - segment) / step + 1);
        let start = trace.start + segment as f64 / 2.0 / trace.rate;
        let frequencies = frequency_coord(transform.frequencies());
        let times = Coord::Uniform { start, step: step as f64 / trace.rate };
        let mut attrs = attributes(&trace, settings, segment, segment - step);
        let (time, unit) = trace.time.clone();
        let time = if time == FREQUENCY { "time".to_string() } else { time };
        if !unit.is_empty() {
            attrs.set(format!("{time}_units"), unit);
        }
        let rows = (PIECE / step).clamp(1, count);
        let function = Arc::new(Stft { trace, transform, step, count });
        let layout = Layout::Computed(Arc::new(Computed {
            inputs: Vec::new(),
            function,
            piece: rows * bins,
            order: Order::C,
        }));
        let mut desc = ArrayDesc::new(DType::F64, Shape::new([count, bins]), layout);
        (desc.dims, desc.coords) = (vec![time, FREQUENCY.into()], vec![times, frequencies]);
        let name = node.path.replace('/', "_");
        let new = tree.add_array(ROOT, &name, desc.with_semantics(Semantics::role(Role::Trace)))?;
        tree.set_attrs(new, attrs)?;
    }
    Ok(content.with_tree(tree))
}

/// Default length of a segment: about as many segments as frequencies, from 64 to 4096 samples.
fn segment_of(samples: u64) -> u64 {
    1 << (samples.max(1).ilog2().div_ceil(2)).clamp(6, 12)
}

/// Computes the spectra of segments.
struct Stft {
    trace: Trace,
    transform: Transform,
    step: u64,
    count: u64,
}

impl Function for Stft {
    fn name(&self) -> &'static str {
        "spectrogram"
    }

    fn memory(&self, count: u64) -> u64 {
        let rows = count / self.transform.bins().max(1) + 2;
        (rows.saturating_mul(self.step) + self.transform.segment()).saturating_mul(24)
    }

    fn compute(&self, _: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let (bins, segment) = (self.transform.bins(), self.transform.segment());
        let row = first / bins;
        let rows = (out.len() as u64 / 8).div_ceil(bins).min(self.count - row);
        let samples = self.trace.read(0, row * self.step, (rows - 1) * self.step + segment)?;
        let parts = out.par_chunks_mut((8 * bins) as usize).enumerate();
        parts.try_for_each_init(
            || self.transform.worker(),
            |worker, (k, out)| {
                let from = k * self.step as usize;
                let values = out.as_chunks_mut::<8>().0;
                worker.power(samples.part(from, segment as usize), |bin, power| {
                    if let Some(value) = values.get_mut(bin) {
                        *value = power.to_le_bytes();
                    }
                })
            },
        )
    }
}
