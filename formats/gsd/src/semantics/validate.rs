//! Checks of the HOOMD schema: types and sizes; with `strict` also values, which reads all data.

use std::collections::HashSet;

use spile_core::report::Severity;
use spile_core::{Report, Result};

use super::fields::{FIELDS, GROUPS};
use super::{Links, Snapshot, Trajectory};
use crate::check::absorb_as;
use crate::read::File;

/// Tolerance of positions outside the box, relative to its length.
const ROUNDING: f64 = 1e-5;

/// Maximum number of frames with findings.
const MAX_FRAMES: u64 = 100;

pub(crate) fn validate(file: &File, strict: bool, report: &mut Report) -> Result<()> {
    let trajectory = match Trajectory::new(file.clone()) {
        Ok(trajectory) => trajectory,
        Err(error) => return report.absorb(error),
    };
    let (mut reported, mut entry) = (0, 0);
    // Empty frames are equal to frame 0 and are skipped.
    while entry < file.nchunks() {
        let frame = file.index.entry(entry)?.frame;
        entry = file.index.frame_range(frame)?.end.max(entry + 1);
        let before = report.findings.len();
        if let Err(error) = check_frame(&trajectory, frame, strict, report) {
            // The chunks are readable, but do not match the schema.
            absorb_as(Severity::Warning, error.in_frame(frame), report)?;
        }
        reported += u64::from(report.findings.len() > before);
        if reported >= MAX_FRAMES {
            report.note("gsd-049", "the remaining frames were not checked").in_frame(frame).at(0);
            break;
        }
    }
    absent_logs(file, report)
}

fn check_frame(
    trajectory: &Trajectory,
    frame: u64,
    strict: bool,
    report: &mut Report,
) -> Result<()> {
    let resolved = trajectory.resolve(frame)?;
    for (at, field) in FIELDS.iter().enumerate() {
        if let Some(chunk) = resolved.field(at) {
            resolved.check(chunk, field)?;
        }
    }
    if strict {
        check_values(&trajectory.read(frame)?, frame, report);
    }
    Ok(())
}

fn check_values(s: &Snapshot, frame: u64, report: &mut Report) {
    let mut warn = |code: &'static str, object: &str, message: String| {
        report.warn(code, message).in_object(format!("chunk \"{object}\"")).in_frame(frame);
    };
    if !matches!(s.dimensions, 2 | 3) {
        let message = format!("expected 2 or 3 dimensions, found {}", s.dimensions);
        warn("gsd-043", "configuration/dimensions", message);
    }
    let p = &s.particles;
    let invalid_type =
        |typeid: &[u32], types: usize| typeid.iter().position(|t| *t as usize >= types);
    if let Some(k) = invalid_type(&p.typeid, p.types.len()) {
        let message = format!("particle {k}: type {} of {} types", p.typeid[k], p.types.len());
        warn("gsd-044", "particles/typeid", message);
    }
    let duplicates = |types: &[String]| types.iter().collect::<HashSet<_>>().len() < types.len();
    if duplicates(&p.types) {
        warn("gsd-045", "particles/types", "two types have the same name".into());
    }
    if let Some(k) = p.position.chunks_exact(3).position(|r| outside(r, s)) {
        let at = &p.position[3 * k..3 * k + 3];
        warn("gsd-046", "particles/position", format!("particle {k} at {at:?} is outside the box"));
    }
    let links: [&Links; 6] =
        [&s.bonds, &s.angles, &s.dihedrals, &s.impropers, &s.pairs, &s.constraints];
    for (group, links) in GROUPS[1..].iter().zip(links) {
        if let Some(tag) = links.group.iter().find(|tag| **tag >= p.n) {
            let message = format!("particle {tag} of {} particles", p.n);
            warn("gsd-047", &format!("{group}/group"), message);
        }
        if *group == "constraints" {
            continue;
        }
        if let Some(k) = invalid_type(&links.typeid, links.types.len()) {
            let message =
                format!("row {k}: type {} of {} types", links.typeid[k], links.types.len());
            warn("gsd-044", &format!("{group}/typeid"), message);
        }
        if duplicates(&links.types) {
            warn("gsd-045", &format!("{group}/types"), "two types have the same name".into());
        }
    }
}

/// The position is outside the box with edges (Lx, 0, 0), (xy Ly, Ly, 0), (xz Lz, yz Lz, Lz), centred at
/// the origin.
fn outside(position: &[f64], s: &Snapshot) -> bool {
    let [lx, ly, lz, xy, xz, yz] = s.box_;
    let (x, y, z) = (position[0], position[1], position[2]);
    // NaN is outside.
    let far =
        |value: f64, length: f64| value.is_nan() || value.abs() > length.abs() * (0.5 + ROUNDING);
    let flat = s.dimensions == 2;
    let z = if flat { 0.0 } else { z };
    far(x - (xz - yz * xy) * z - xy * y, lx) || far(y - yz * z, ly) || !flat && far(z, lz)
}

/// Notes logged quantities without a value in frame 0.
fn absent_logs(file: &File, report: &mut Report) -> Result<()> {
    for name in file.find_matching_names("log/") {
        let Some(id) = file.index.names.id(name.as_bytes()) else { continue };
        if file.index.find(0, id, |_| true)?.is_none() {
            let message = "not in frame 0; frames without it have no value";
            report.note("gsd-048", message).in_object(format!("chunk \"{name}\""));
        }
    }
    Ok(())
}
