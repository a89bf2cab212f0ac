//! What the HOOMD schema asks of a file. Types and sizes are always looked at; values, which means
//! all data, only by a strict check.

use std::collections::HashSet;

use spile_core::error::Result;
use spile_core::report::Report;

use super::{FIELDS, GROUPS, Links, Snapshot, Trajectory};
use crate::read::{File, is_damage};

/// Positions may stick out of the box by this part of its length: they are rounded numbers.
const ROUNDING: f64 = 1e-5;

/// Frames after which nothing more is told.
const MOST: u64 = 100;

pub(crate) fn validate(file: &File, strict: bool, report: &mut Report) -> Result<()> {
    let trajectory = match Trajectory::new(file.clone()) {
        Ok(trajectory) => trajectory,
        Err(error) if is_damage(&error) => return report.absorb(error),
        Err(error) => return Err(error),
    };
    let (mut told, mut entry) = (0, 0);
    // Frames without chunks are like frame 0, and there may be very many of them.
    while entry < file.nchunks() {
        let frame = file.index.entry(entry)?.frame;
        entry = file.index.frame(frame)?.end.max(entry + 1);
        let before = report.findings.len();
        let looked = look(&trajectory, frame, strict, report);
        if let Err(error) = looked {
            // The frame cannot be read as the schema has it, yet its chunks can.
            if !is_damage(&error) {
                return Err(error);
            }
            let finding = report.warn(error.code(), error.message());
            finding.object = error.object().map(Into::into);
            (finding.frame, finding.offset) = (Some(frame), error.offset());
        }
        told += u64::from(report.findings.len() > before);
        if told >= MOST {
            report.note("gsd-049", "more frames were not looked at").in_frame(frame).at(0);
            break;
        }
    }
    absent_logs(file, report)
}

fn look(trajectory: &Trajectory, frame: u64, strict: bool, report: &mut Report) -> Result<()> {
    let resolved = trajectory.resolve(frame)?;
    for field in &FIELDS {
        if let Some(chunk) = resolved.chunks.get(field.name) {
            resolved.check(chunk, field)?;
        }
    }
    if strict {
        values(&trajectory.read(frame)?, frame, report);
    }
    Ok(())
}

fn values(s: &Snapshot, frame: u64, report: &mut Report) {
    let mut warn = |code: &'static str, object: &str, message: String| {
        report.warn(code, message).in_object(format!("chunk \"{object}\"")).in_frame(frame);
    };
    if !matches!(s.dimensions, 2 | 3) {
        let message = format!("{} dimensions instead of 2 or 3", s.dimensions);
        warn("gsd-043", "configuration/dimensions", message);
    }
    let p = &s.particles;
    let of_type = |typeid: &[u32], types: usize| typeid.iter().position(|t| *t as usize >= types);
    if let Some(k) = of_type(&p.typeid, p.types.len()) {
        let message = format!("particle {k} has type {} of {}", p.typeid[k], p.types.len());
        warn("gsd-044", "particles/typeid", message);
    }
    let twice = |types: &[String]| types.iter().collect::<HashSet<_>>().len() < types.len();
    if twice(&p.types) {
        warn("gsd-045", "particles/types", "two types have the same name".into());
    }
    if let Some(k) = p.position.chunks_exact(3).position(|r| outside(r, s)) {
        let at = &p.position[3 * k..3 * k + 3];
        warn("gsd-046", "particles/position", format!("particle {k} at {at:?} is outside the box"));
    }
    let links: [&Links; 6] =
        [&s.bonds, &s.angles, &s.dihedrals, &s.impropers, &s.pairs, &s.constraints];
    for ((group, _), links) in GROUPS[1..].iter().zip(links) {
        if let Some(tag) = links.group.iter().find(|tag| **tag >= p.n) {
            let message = format!("particle {tag} of {}", p.n);
            warn("gsd-047", &format!("{group}/group"), message);
        }
        if *group == "constraints" {
            continue;
        }
        if let Some(k) = of_type(&links.typeid, links.types.len()) {
            let message =
                format!("number {k} has type {} of {}", links.typeid[k], links.types.len());
            warn("gsd-044", &format!("{group}/typeid"), message);
        }
        if twice(&links.types) {
            warn("gsd-045", &format!("{group}/types"), "two types have the same name".into());
        }
    }
}

/// The box is spanned by (Lx, 0, 0), (xy Ly, Ly, 0), (xz Lz, yz Lz, Lz), around the origin.
fn outside(position: &[f64], s: &Snapshot) -> bool {
    let [lx, ly, lz, xy, xz, yz] = s.box_;
    let (x, y, z) = (position[0], position[1], position[2]);
    // Not a number is nowhere.
    let far =
        |value: f64, length: f64| value.is_nan() || value.abs() > length.abs() * (0.5 + ROUNDING);
    let flat = s.dimensions == 2;
    let z = if flat { 0.0 } else { z };
    far(x - (xz - yz * xy) * z - xy * y, lx) || far(y - yz * z, ly) || !flat && far(z, lz)
}

/// A logged quantity that frame 0 lacks has no value in frames that lack it too.
fn absent_logs(file: &File, report: &mut Report) -> Result<()> {
    for name in file.find_matching_names("log/") {
        let Some(id) = file.index.names.id(name.as_bytes()) else { continue };
        if file.index.find(0, id, |_| true)?.is_none() {
            let message = "is not in frame 0; frames that lack it have no value";
            report.note("gsd-048", message).in_object(format!("chunk \"{name}\""));
        }
    }
    Ok(())
}
