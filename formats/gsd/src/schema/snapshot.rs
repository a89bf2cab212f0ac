//! What is in a frame.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::Values;

/// Numbers of a frame, a `Vec` in use. Frames that take them from frame 0, or have the default,
/// share them; who changes them gets his own.
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

/// Everything in a frame that is counted in pairs, triples, ...
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// How many.
    pub n: u32,
    /// Names of the types.
    pub types: Vec<String>,
    /// Type of each.
    pub typeid: Column<u32>,
    /// Particles of each, row after row.
    pub group: Column<u32>,
}

/// The particles of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Particles {
    /// How many.
    pub n: u32,
    /// Names of the types.
    pub types: Vec<String>,
    /// Shape of each type, as JSON.
    pub type_shapes: Vec<String>,
    /// Type of each particle.
    pub typeid: Column<u32>,
    /// Mass.
    pub mass: Column<f64>,
    /// Charge.
    pub charge: Column<f64>,
    /// Diameter.
    pub diameter: Column<f64>,
    /// Body the particle belongs to; -1 for none.
    pub body: Column<i32>,
    /// Moment of inertia, three numbers each.
    pub moment_inertia: Column<f64>,
    /// Position, three numbers each.
    pub position: Column<f64>,
    /// Orientation, a quaternion each.
    pub orientation: Column<f64>,
    /// Velocity, three numbers each.
    pub velocity: Column<f64>,
    /// Angular momentum, a quaternion each.
    pub angmom: Column<f64>,
    /// Box images passed, three numbers each.
    pub image: Column<i32>,
}

/// A frame with everything filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time step.
    pub step: u64,
    /// 2 or 3.
    pub dimensions: u8,
    /// Lx, Ly, Lz, xy, xz, yz.
    pub box_: [f64; 6],
    /// The particles.
    pub particles: Particles,
    /// Bonds, pairs of particles.
    pub bonds: Links,
    /// Angles, triples.
    pub angles: Links,
    /// Dihedrals, four each.
    pub dihedrals: Links,
    /// Impropers, four each.
    pub impropers: Links,
    /// Special pairs.
    pub pairs: Links,
    /// Distance constraints: pairs in `group`, no types.
    pub constraints: Links,
    /// Length of each constraint.
    pub constraint_value: Column<f64>,
    /// Logged quantities by name, without `log/`. Nothing where neither the frame nor frame 0 has
    /// the quantity: the schema asks for it in frame 0, and then there is no value to fall back to.
    pub log: BTreeMap<String, Option<Values>>,
    /// State of integrators, by name, without `state/`.
    pub state: BTreeMap<String, Values>,
}

impl Snapshot {
    /// A frame of so many particles in which nothing else was set.
    pub fn plain(step: u64, particles: u32) -> Self {
        let rows = particles as usize;
        let box_ = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
        let particles = Particles {
            n: particles,
            types: vec!["A".into()],
            type_shapes: vec!["{}".into()],
            typeid: vec![0; rows].into(),
            mass: vec![1.0; rows].into(),
            charge: vec![0.0; rows].into(),
            diameter: vec![1.0; rows].into(),
            body: vec![-1; rows].into(),
            moment_inertia: vec![0.0; 3 * rows].into(),
            position: vec![0.0; 3 * rows].into(),
            orientation: [1.0, 0.0, 0.0, 0.0].repeat(rows).into(),
            velocity: vec![0.0; 3 * rows].into(),
            angmom: vec![0.0; 4 * rows].into(),
            image: vec![0; 3 * rows].into(),
        };
        Self { step, dimensions: 3, box_, particles, ..Self::default() }
    }
}
