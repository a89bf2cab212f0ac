//! DCD: Fortran records with the positions in ångström, and the lengths and angles of the cell.

use std::io::Write as _;
use std::path::Path;

use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::{Dataset, Error, Result, Sink};

use crate::Dcd;
use crate::plan::{Plan, Target};

const TARGET: Target =
    Target { name: "DCD", unit: 1.0, rounding: "positions are written in single precision" };

/// Version of CHARMM whose layout the file has.
const VERSION: i32 = 24;

const TITLE: &str = "Created by spile";

impl FormatWriter for Dcd {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let plan = plan(content)?;
        let mut losses = plan.losses()?;
        if steps(&plan)?.2 {
            let reason = "DCD has the first step and one distance of steps";
            losses.push(Loss::new("", LossKind::Frames, reason));
        }
        Ok(losses)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let plan = plan(content)?;
        let (first, distance, _) = steps(&plan)?;
        let frames = i32::try_from(plan.frames).map_err(|_| {
            Error::unsupported(
                "xtc-005",
                format!("expected less than 2^31 frames, found {}", plan.frames),
            )
        })?;
        let mut numbers = [0_i32; 20];
        let span = distance.saturating_mul(frames);
        (numbers[0], numbers[1], numbers[2], numbers[3]) = (frames, first, distance, span);
        // The time of a step as float: unknown.
        numbers[9] = i32::from_le_bytes(1.0_f32.to_le_bytes());
        // Every frame has a cell.
        (numbers[10], numbers[19]) = (1, VERSION);
        let mut header = b"CORD".to_vec();
        header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        record(sink, &header)?;
        let mut title = 1_i32.to_le_bytes().to_vec();
        title.extend_from_slice(format!("{TITLE:80}").as_bytes());
        record(sink, &title)?;
        record(sink, &(plan.atoms as u32).to_le_bytes())?;
        let mut rotated = Vec::new();
        for frame in 0..plan.frames {
            let moment = plan.moment(frame).map_err(|e| e.in_frame(frame))?;
            let cell = moment.cell.unwrap_or_default();
            if rotated.is_empty() && is_rotated(&cell) {
                let reason = "DCD has lengths and angles of the cell, the first vector is along x";
                rotated.push(Loss::new("", LossKind::Values, reason));
            }
            record(sink, &lengths_and_angles(&cell).map(f64::to_le_bytes).concat())?;
            for axis in 0..3 {
                let values = moment.positions.iter().skip(axis).step_by(3);
                let bytes: Vec<u8> = values.flat_map(|x| (*x as f32).to_le_bytes()).collect();
                record(sink, &bytes)?;
            }
        }
        Ok(rotated)
    }
}

fn plan(content: &Dataset) -> Result<Plan<'_>> {
    let plan = Plan::new(content, TARGET)?;
    if plan.atoms >= 1 << 29 {
        let message = format!("expected less than 2^29 atoms, found {}", plan.atoms);
        return Err(Error::unsupported("xtc-005", message));
    }
    Ok(plan)
}

/// The first step, the distance of steps, and whether there are other steps.
fn steps(plan: &Plan<'_>) -> Result<(i32, i32, bool)> {
    if plan.frames == 0 {
        return Ok((0, 1, false));
    }
    let first = plan.stored_step(0)?;
    let mut distance = 1;
    for frame in 1..plan.frames {
        let step = plan.stored_step(frame)?;
        if frame == 1 {
            distance = step.saturating_sub(first).max(1);
        }
        let expected = u64::from(distance.unsigned_abs()).saturating_mul(frame);
        if u64::from(step.unsigned_abs())
            != expected.saturating_add(u64::from(first.unsigned_abs()))
        {
            return Ok((first, distance, true));
        }
    }
    Ok((first, distance, false))
}

/// Writes a Fortran record.
fn record(sink: &mut Sink, bytes: &[u8]) -> Result<()> {
    let len = (bytes.len() as u32).to_le_bytes();
    sink.write_all(&len)?;
    sink.write_all(bytes)?;
    Ok(sink.write_all(&len)?)
}

fn length([x, y, z]: &[f64; 3]) -> f64 {
    x.hypot(*y).hypot(*z)
}

/// The cosine of the angle between two vectors; 0 for a vector without length.
fn cosine(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let lengths = length(a) * length(b);
    if lengths > 0.0 { (product / lengths).clamp(-1.0, 1.0) } else { 0.0 }
}

/// A, cos gamma, B, cos beta, cos alpha, C.
fn lengths_and_angles([a, b, c]: &[[f64; 3]; 3]) -> [f64; 6] {
    [length(a), cosine(a, b), length(b), cosine(a, c), cosine(b, c), length(c)]
}

/// The first vector is not along x, or the second not in the plane of x and y.
fn is_rotated([a, b, _]: &[[f64; 3]; 3]) -> bool {
    let small = 1e-6 * length(a).max(length(b));
    [a[1], a[2], b[2]].iter().any(|x| x.abs() > small) || a[0] < 0.0 || b[1] < 0.0
}
