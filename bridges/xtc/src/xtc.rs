//! XTC: positions in nanometres, multiplied by 1000 and rounded. Those of more than nine atoms are compressed.

use std::path::Path;

use molly::XTCWriter;
use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::{Dataset, Error, Result, Sink};

use crate::Xtc;
use crate::plan::{Plan, Target};

const TARGET: Target =
    Target { name: "XTC", unit: 10.0, rounding: "positions are rounded to three decimals" };

/// Factor of positions before they are rounded.
const PRECISION: f32 = 1000.0;

/// The encoder adds three differences of rounded positions in 32 bits: they are less than 2^28.
const MAX: f64 = 268_435.0;

/// Atoms in a file of the magic number 1995.
const MAX_ATOMS: u64 = molly::XTC_1995_MAX_NATOMS as u64;

impl FormatWriter for Xtc {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        plan(content)?.losses()
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let plan = plan(content)?;
        let mut file = XTCWriter::new(sink);
        for frame in 0..plan.frames {
            let moment = plan.moment(frame).map_err(|e| e.in_frame(frame))?;
            let mut positions = Vec::with_capacity(moment.positions.len());
            for (k, value) in moment.positions.iter().enumerate() {
                if value.is_nan() || value.abs() >= MAX {
                    let message = format!("position {value} of atom {} is too large", k / 3);
                    return Err(Error::unsupported("xtc-004", message).in_frame(frame));
                }
                positions.push(*value as f32);
            }
            let mut cell = [0.0; 9];
            let vectors = moment.cell.unwrap_or_default();
            for (new, length) in cell.iter_mut().zip(vectors.as_flattened()) {
                *new = *length as f32;
            }
            file.write_frame(&molly::Frame {
                step: moment.step.unsigned_abs(),
                // Programs order frames by their time.
                time: moment.time.unwrap_or(f64::from(moment.step)) as f32,
                boxvec: cell,
                precision: PRECISION,
                positions,
            })?;
        }
        Ok(Vec::new())
    }
}

fn plan(content: &Dataset) -> Result<Plan<'_>> {
    let plan = Plan::new(content, TARGET)?;
    if plan.atoms > MAX_ATOMS {
        let message = format!("expected at most {MAX_ATOMS} atoms, found {}", plan.atoms);
        return Err(Error::unsupported("xtc-005", message));
    }
    Ok(plan)
}
