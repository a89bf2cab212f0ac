//! What is written of a dataset: the positions, cells and steps of its frames.

use spile_core::format::{Loss, LossKind};
use spile_core::{Dataset, Error, NodeId, Result, Role};
use spile_interchange::structure::angstroms;
use spile_interchange::{Kept, Losses};

/// The largest step that the formats can store.
const MAX_STEP: u64 = i32::MAX as u64;

/// A format of trajectories.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Its unit of length in ångström.
    pub(crate) unit: f64,
    /// What happens to positions.
    pub(crate) rounding: &'static str,
}

/// The trajectory of a dataset.
pub(crate) struct Plan<'a> {
    content: &'a Dataset,
    target: Target,
    positions: NodeId,
    pub(crate) frames: u64,
    /// Number of atoms in all frames.
    pub(crate) atoms: u64,
}

/// A frame in the units of the format.
pub(crate) struct Moment {
    pub(crate) step: i32,
    pub(crate) time: Option<f64>,
    /// x, y, z of each atom.
    pub(crate) positions: Vec<f64>,
    /// The vectors of the cell as rows.
    pub(crate) cell: Option<[[f64; 3]; 3]>,
}

fn no_positions() -> Error {
    Error::unsupported("xtc-002", "no array is known to be the positions of atoms")
}

impl<'a> Plan<'a> {
    /// Fails if there are no positions, or if the number of atoms changes. Reads no positions.
    pub(crate) fn new(content: &'a Dataset, target: Target) -> Result<Self> {
        let arrays = content.atom_arrays();
        let arrays = arrays.ok_or_else(no_positions)?;
        let frames = content.tree().frames().map_or(1, |axis| axis.len());
        let mut plan = Self { content, target, positions: arrays.positions, frames, atoms: 0 };
        for frame in 0..frames {
            let atoms = plan.atoms_in(frame).map_err(|e| e.in_frame(frame))?;
            if frame == 0 {
                plan.atoms = atoms;
            } else if atoms != plan.atoms {
                let (name, first) = (target.name, plan.atoms);
                let message = format!(
                    "expected {first} atoms as in frame 0, found {atoms}: programs that read {name} \
                     need the same number in all frames"
                );
                return Err(Error::unsupported("xtc-003", message).in_frame(frame));
            }
        }
        Ok(plan)
    }

    fn atoms_in(&self, frame: u64) -> Result<u64> {
        let positions = self.content.effective_array_in_frame(self.positions, frame)?;
        match positions.as_ref().map(|array| array.shape().lengths()) {
            Some([atoms, 3]) => Ok(*atoms),
            _ => Err(no_positions()),
        }
    }

    /// The factor of a length with these units; lengths in unknown units are kept.
    fn scale(&self, units: Option<&str>) -> f64 {
        let is_angstrom = |unit: &str| {
            matches!(
                unit.to_lowercase().as_str(),
                "angstrom" | "angstroms" | "å" | "ångström" | "a"
            )
        };
        let known = units.map(str::trim).is_some_and(is_angstrom) || angstroms(units) != 1.0;
        if known { angstroms(units) / self.target.unit } else { 1.0 }
    }

    fn step(&self, frame: u64) -> Result<Option<u64>> {
        self.content.tree().frames().map_or(Ok(None), |axis| axis.step(frame))
    }

    /// The step of a frame, or its number, up to the largest number that the format has.
    pub(crate) fn stored_step(&self, frame: u64) -> Result<i32> {
        let step = self.step(frame)?.unwrap_or(frame).min(MAX_STEP);
        Ok(i32::try_from(step).unwrap_or(i32::MAX))
    }

    /// Reads a frame.
    pub(crate) fn moment(&self, frame: u64) -> Result<Moment> {
        let positions = self.content.effective_array_in_frame(self.positions, frame)?;
        let positions = positions.ok_or_else(no_positions)?;
        let mut values: Vec<f64> = positions.read("...")?;
        let factor = self.scale(positions.units());
        if factor != 1.0 {
            for value in &mut values {
                *value *= factor;
            }
        }
        let cell = self.content.cell(frame)?.map(|cell| {
            let factor = self.scale(cell.units.as_deref());
            cell.vectors.map(|row| row.map(|length| factor * length))
        });
        let time = self.content.tree().frames().map_or(Ok(None), |axis| axis.time(frame))?;
        Ok(Moment { step: self.stored_step(frame)?, time, positions: values, cell })
    }

    /// Everything that is not written.
    pub(crate) fn losses(&self) -> Result<Vec<Loss>> {
        let name = self.target.name;
        let mut losses = Losses::new(name);
        let tree = self.content.tree();
        let is_cell = |role: Role| role == Role::Cell;
        let kept =
            Kept { frames: true, dims: true, meaning: true, scaling: true, ..Kept::default() };
        losses.add(self.content, &kept, |id, _, desc| {
            if id == self.positions || is_cell(desc.semantics().role) {
                return Ok(());
            }
            Err(format!("{name} stores positions, the cell and the step of each frame"))
        });
        let path = &tree.node(self.positions).path;
        losses.push_loss(Loss::new(path, LossKind::Values, self.target.rounding));
        for frame in 0..self.frames {
            if self.step(frame)?.is_some_and(|step| step > MAX_STEP) {
                let reason = format!("steps above {MAX_STEP}");
                losses.push("", LossKind::Frames, &reason);
                break;
            }
        }
        Ok(losses.into_vec())
    }
}
