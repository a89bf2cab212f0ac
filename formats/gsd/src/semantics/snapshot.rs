//! The content of a frame.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::Values;
use super::fields::{FIELDS, position};

/// Numbers of a frame; dereferences to `Vec`. Frames share the values of frame 0 and defaults; a change
/// copies them first.
#[derive(Clone, Debug, PartialEq)]
pub struct Column<T>(Arc<Vec<T>>);

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Deref for Column<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Clone> DerefMut for Column<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Arc::new(values))
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        values.into_iter().collect::<Vec<T>>().into()
    }
}

/// Bonds, angles and other tuples of particles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// Number.
    pub n: u32,
    /// Names of the types.
    pub types: Vec<String>,
    /// Type index of each.
    pub typeid: Column<u32>,
    /// Particle indices, a row for each.
    pub group: Column<u32>,
}

/// The particles of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Particles {
    /// Number.
    pub n: u32,
    /// Names of the types.
    pub types: Vec<String>,
    /// Shape of each type as JSON.
    pub type_shapes: Vec<String>,
    /// Type index of each particle.
    pub typeid: Column<u32>,
    /// Mass.
    pub mass: Column<f64>,
    /// Charge.
    pub charge: Column<f64>,
    /// Diameter.
    pub diameter: Column<f64>,
    /// Rigid body; -1 for none.
    pub body: Column<i32>,
    /// Moment of inertia, three numbers per particle.
    pub moment_inertia: Column<f64>,
    /// Position, three numbers per particle.
    pub position: Column<f64>,
    /// Orientation, a quaternion per particle.
    pub orientation: Column<f64>,
    /// Velocity, three numbers per particle.
    pub velocity: Column<f64>,
    /// Angular momentum, a quaternion per particle.
    pub angmom: Column<f64>,
    /// Periodic image, three numbers per particle.
    pub image: Column<i32>,
}

/// A frame with the values of all fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time step.
    pub step: u64,
    /// Number of dimensions: 2 or 3.
    pub dimensions: u8,
    /// Lx, Ly, Lz, xy, xz, yz.
    pub box_: [f64; 6],
    /// The particles.
    pub particles: Particles,
    /// Bonds, pairs of particles.
    pub bonds: Links,
    /// Angles, triples.
    pub angles: Links,
    /// Dihedrals, four particles each.
    pub dihedrals: Links,
    /// Impropers, four particles each.
    pub impropers: Links,
    /// Special pairs.
    pub pairs: Links,
    /// Distance constraints: pairs in `group`, no types.
    pub constraints: Links,
    /// Length of each constraint.
    pub constraint_value: Column<f64>,
    /// Logged quantities by name, without `log/`. `None` if neither the frame nor frame 0 has the
    /// quantity.
    pub log: BTreeMap<String, Option<Values>>,
    /// Integrator state by name, without `state/`.
    pub state: BTreeMap<String, Values>,
}

impl Snapshot {
    /// A frame with `particles` particles in which all fields have their defaults.
    pub fn new(step: u64, particles: u32) -> Self {
        let default =
            |name: &str, rows: usize| -> Vec<f64> { FIELDS[position(name)].default.repeat(rows) };
        let n = particles as usize;
        let real = |name: &str| -> Column<f64> { default(name, n).into() };
        let integer = |name: &str| default(name, n).into_iter().map(|x| x as i32);
        let names = |name: &str| FIELDS[position(name)].default_names();
        let mut box_ = [0.0; 6];
        box_.copy_from_slice(&default("configuration/box", 1));
        let particles = Particles {
            n: particles,
            types: names("particles/types"),
            type_shapes: names("particles/type_shapes"),
            typeid: integer("particles/typeid").map(|x| x as u32).collect(),
            mass: real("particles/mass"),
            charge: real("particles/charge"),
            diameter: real("particles/diameter"),
            body: integer("particles/body").collect(),
            moment_inertia: real("particles/moment_inertia"),
            position: real("particles/position"),
            orientation: real("particles/orientation"),
            velocity: real("particles/velocity"),
            angmom: real("particles/angmom"),
            image: integer("particles/image").collect(),
        };
        let dimensions = default("configuration/dimensions", 1)[0] as u8;
        Self { step, dimensions, box_, particles, ..Self::default() }
    }
}
