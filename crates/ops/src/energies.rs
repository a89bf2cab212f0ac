//! Time series of energies: those that a simulation has stored, of its fields, and of its particles.

use serde::Serialize;
use spile_core::reduce::statistics;
use spile_core::{ArrayDesc, Coord, Dataset, Node, Result, Role};

use crate::particles::Species;

/// Electric and magnetic constant in SI units (CODATA 2018).
const EPSILON_0: f64 = 8.854_187_812_8e-12;
const MU_0: f64 = 1.256_637_062_12e-6;

/// An energy in every frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Energy {
    /// Name, for example `Electric field Ex` or `Electron`.
    pub name: String,
    /// Unit: J, or J/m and J/m^2 for two- and one-dimensional simulations.
    pub unit: String,
    /// The energy in each frame; NaN where it is not known.
    pub values: Vec<f64>,
}

/// The mass of the particles of a species in kilograms.
pub type Mass<'a> = (&'a str, f64);

/// The energies in all frames: stored scalars whose name has the word "energy"; the energy of each component of the
/// electric and magnetic field on a rectilinear grid with equal cells; and the kinetic energy of each species, from its
/// variable `ek`, or from its momenta and `masses`. Values are read in blocks.
pub fn energies(dataset: &Dataset, masses: &[Mass<'_>]) -> Result<Vec<Energy>> {
    let frames = dataset.tree().frames().map_or(1, |axis| axis.len());
    let arrays = dataset.tree().len() as u64;
    dataset.limits().allow(frames.saturating_mul(8).saturating_mul(arrays), "the energies")?;
    let mut found = Vec::new();
    for (_, node, desc) in dataset.arrays() {
        if desc.shape.rank() == 0 && node.path.to_lowercase().contains("energy") {
            let own = || node.attrs.get_str("units").or(unit_in_name(&node.name));
            let unit = own().unwrap_or_default().to_string();
            let values = series(frames, |frame| {
                let array = dataset.open_array_in_frame(desc, frame)?;
                Ok(array.map(|array| array.values()).transpose()?.and_then(|v| v.first().copied()))
            })?;
            found.push(Energy { name: node.path.clone(), unit, values });
        }
    }
    for (_, node, desc) in dataset.arrays() {
        let Some(factor) = field_factor(node, desc) else { continue };
        let values = series(frames, |frame| {
            let Some(array) = dataset.open_array_in_frame(desc, frame)? else { return Ok(None) };
            let Some(volume) = cell_volume(dataset, desc, frame)? else { return Ok(None) };
            let stats = statistics(&array.all()?)?;
            let count = stats.finite as f64;
            let spread = if stats.finite > 1 { stats.std * stats.std * (count - 1.0) } else { 0.0 };
            Ok(Some(factor * volume * (count * stats.mean * stats.mean + spread)))
        })?;
        if values.iter().any(|value| value.is_finite()) {
            let unit = match desc.shape.rank() {
                3 => "J",
                2 => "J/m",
                _ => "J/m^2",
            };
            found.push(Energy { name: node.path.clone(), unit: unit.into(), values });
        }
    }
    for species in Species::all(dataset) {
        let mass = masses.iter().find(|(name, _)| name.eq_ignore_ascii_case(&species.name));
        let Some(expression) = kinetic(&species, mass.map(|(_, mass)| *mass)) else { continue };
        let values = series(frames, |frame| {
            let Some(array) = species.values(&expression, frame)? else { return Ok(None) };
            let stats = statistics(&array.all()?)?;
            Ok(Some(if stats.finite > 0 { stats.mean * stats.finite as f64 } else { 0.0 }))
        })?;
        found.push(Energy { name: species.name, unit: "J".into(), values });
    }
    Ok(found)
}

/// One value per frame; NaN where there is none.
fn series(frames: u64, value: impl Fn(u64) -> Result<Option<f64>>) -> Result<Vec<f64>> {
    (0..frames).map(|k| Ok(value(k).map_err(|e| e.in_frame(k))?.unwrap_or(f64::NAN))).collect()
}

/// The unit in parentheses at the end of a name: `Total Field Energy in Simulation (J)`.
fn unit_in_name(name: &str) -> Option<&str> {
    let (_, unit) = name.strip_suffix(')')?.rsplit_once('(')?;
    Some(unit)
}

/// The energy density of a component of an electric or magnetic field per square of its value. `None` for other arrays,
/// time averages, computed arrays and parts of the grid.
fn field_factor(node: &Node, desc: &ArrayDesc) -> Option<f64> {
    let meaning = desc.semantics();
    if meaning.role != Role::Field || node.attrs.contains("derived") || desc.map.is_some() {
        return None;
    }
    let vector = meaning.component.as_ref()?.vector.as_str();
    match (vector, node.attrs.get_str("units")?) {
        ("E", "V/m") => Some(EPSILON_0 / 2.0),
        ("B", "T") => Some(0.5 / MU_0),
        _ => None,
    }
}

/// The volume of a cell of the grid of a field in `frame`; the product of the distances of its coordinates.
fn cell_volume(dataset: &Dataset, desc: &ArrayDesc, frame: u64) -> Result<Option<f64>> {
    let mut volume = 1.0;
    for coord in &desc.coords {
        let step = match coord {
            Coord::Uniform { step, .. } => *step,
            Coord::Node(id) => {
                let Some(array) = dataset.array_in_frame(*id, frame)? else { return Ok(None) };
                let points = array.values()?;
                match points[..] {
                    [first, .., last] => (last - first) / (points.len() - 1) as f64,
                    _ => return Ok(None),
                }
            }
            Coord::None => return Ok(None),
        };
        volume *= step.abs();
    }
    Ok(Some(volume))
}

/// The expression of the kinetic energy of a particle with its weight; `None` if its variables are not known.
fn kinetic(species: &Species, mass: Option<f64>) -> Option<String> {
    let weight = species.variable("weight").map(|_| "weight * ")?;
    if species.variable("ek").is_some() {
        return Some(format!("{weight}ek"));
    }
    let mass = mass?;
    let momenta = ["px", "py", "pz"].into_iter().filter(|name| species.variable(name).is_some());
    let squares: Vec<String> = momenta.map(|name| format!("{name}^2")).collect();
    let p2 = squares.join(" + ");
    // Without cancellation for small momenta.
    let form = |p2: String| {
        format!("{weight}({p2}) / ({mass:e} * (sqrt(1 + ({p2}) / ({mass:e} * c)^2) + 1))")
    };
    (!squares.is_empty()).then(|| form(p2))
}
