//! Semantics of arrays: role, mesh, centring, vector components, point sets, missing values.
//!
//! Units, long name and other texts are ordinary attributes (`units`, `long_name`); dimension names
//! and coordinates are in the [array description](crate::layout::ArrayDesc).

use crate::NodeId;

/// Role of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Numbers without further meaning.
    #[default]
    Data,
    /// Values on a mesh.
    Field,
    /// Positions of mesh nodes, of one axis or of all.
    Mesh,
    /// Values of particles or atoms, one row each.
    Points,
    /// A quantity logged per frame.
    Log,
    /// Uniformly sampled values of an instrument channel.
    Trace,
    /// A table in columns.
    Table,
    /// Text.
    Text,
    /// The periodic cell; see [`Cell`].
    Cell,
}

/// Roles and their names.
const ROLES: [(Role, &str); 9] = [
    (Role::Data, "data"),
    (Role::Field, "field"),
    (Role::Mesh, "mesh"),
    (Role::Points, "points"),
    (Role::Log, "log"),
    (Role::Trace, "trace"),
    (Role::Table, "table"),
    (Role::Text, "text"),
    (Role::Cell, "cell"),
];

impl Role {
    /// Name used in listings and JSON.
    pub fn name(self) -> &'static str {
        ROLES.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }

    /// The role with that [name](Role::name).
    pub fn named(name: &str) -> Option<Self> {
        ROLES.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }
}

/// Position of the values of a field on its mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Centring {
    /// On the nodes.
    Node,
    /// In the cells.
    Cell,
    /// On the faces normal to this dimension.
    Face(usize),
    /// On the edges along this dimension.
    Edge(usize),
}

impl Centring {
    /// The centring of a field whose values are on nodes along the dimensions where `on_nodes` is true and at
    /// cell centres along the others. In two dimensions, nodes along one dimension are a face.
    pub fn of(on_nodes: &[bool]) -> Self {
        let nodes = on_nodes.iter().filter(|on| **on).count();
        let first = |wanted| on_nodes.iter().position(|on| *on == wanted).unwrap_or(0);
        match on_nodes.len() - nodes {
            0 => Self::Node,
            _ if nodes == 0 => Self::Cell,
            _ if nodes == 1 => Self::Face(first(true)),
            _ => Self::Edge(first(false)),
        }
    }

    /// Name used in listings and JSON: `node`, `cell`, `face` or `edge`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Cell => "cell",
            Self::Face(_) => "face",
            Self::Edge(_) => "edge",
        }
    }
}

/// An array that is one component of a vector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    /// Name of the vector, for example `E`.
    pub vector: String,
    /// Number of the component: 0 is x.
    pub index: u8,
}

/// Missing values. They apply to stored values, before scaling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Missing {
    /// Values that mean missing.
    pub values: Vec<f64>,
    /// Values below are missing.
    pub min: Option<f64>,
    /// Values above are missing.
    pub max: Option<f64>,
}

impl Missing {
    /// Whether no value means missing.
    pub fn is_none(&self) -> bool {
        self.values.is_empty() && self.min.is_none() && self.max.is_none()
    }

    /// Whether a stored value means missing.
    pub fn matches(&self, stored: f64) -> bool {
        self.values.iter().any(|v| *v == stored || (v.is_nan() && stored.is_nan()))
            || self.min.is_some_and(|min| stored < min)
            || self.max.is_some_and(|max| stored > max)
    }
}

/// The periodic cell of a crystal or a simulation box; [`Dataset::cell`](crate::Dataset::cell) reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The vectors a, b and c as rows.
    pub vectors: [[f64; 3]; 3],
    /// Unit of the vectors, where known.
    pub units: Option<String>,
}

/// What the values of a point set are, where writers of other formats need to know it;
/// [`Dataset::atoms`](crate::Dataset::atoms) collects them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// Positions, one row of x, y and z per point.
    Position,
    /// Species: names, or codes that are indices of the names in [`Quantity::SpeciesNames`].
    Species,
    /// The names of the species, one row per name.
    SpeciesNames,
    /// Velocities.
    Velocity,
    /// Forces.
    Force,
    /// Masses.
    Mass,
    /// Charges.
    Charge,
}

/// Quantities and their names.
const QUANTITIES: [(Quantity, &str); 7] = [
    (Quantity::Position, "position"),
    (Quantity::Species, "species"),
    (Quantity::SpeciesNames, "species names"),
    (Quantity::Velocity, "velocity"),
    (Quantity::Force, "force"),
    (Quantity::Mass, "mass"),
    (Quantity::Charge, "charge"),
];

impl Quantity {
    /// Name used in listings and JSON.
    pub fn name(self) -> &'static str {
        QUANTITIES.iter().find(|(quantity, _)| *quantity == self).map_or("", |(_, name)| name)
    }

    /// The quantity with that [name](Quantity::name).
    pub fn named(name: &str) -> Option<Self> {
        QUANTITIES.iter().find(|(_, known)| *known == name).map(|(quantity, _)| *quantity)
    }
}

/// Semantics of an array.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Semantics {
    /// Role.
    pub role: Role,
    /// The mesh of a field: the group or array with its node positions. For points, their positions.
    pub mesh: Option<NodeId>,
    /// Position of the values on the mesh.
    pub centring: Option<Centring>,
    /// Set for components of a vector.
    pub component: Option<Component>,
    /// The set of points: a species, a particle type, a group of atoms.
    pub point_set: Option<String>,
    /// What the values of the points are, where known.
    pub quantity: Option<Quantity>,
    /// Stored values that are missing.
    pub missing: Missing,
}

impl Semantics {
    /// Semantics with only a role.
    pub fn role(role: Role) -> Self {
        Self { role, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centring_follows_from_the_node_dimensions() {
        assert_eq!(Centring::of(&[false, false, false]), Centring::Cell);
        assert_eq!(Centring::of(&[true, true]), Centring::Node);
        assert_eq!(Centring::of(&[false, true, false]), Centring::Face(1));
        assert_eq!(Centring::of(&[true, false, true]), Centring::Edge(1));
        assert_eq!(Centring::of(&[]), Centring::Node);
    }

    #[test]
    fn missing_values_are_exact_or_out_of_range() {
        let missing = Missing { values: vec![-999.0, f64::NAN], min: None, max: Some(10.0) };
        let found: Vec<bool> =
            [-999.0, f64::NAN, 11.0, 10.0, -1e9].map(|v| missing.matches(v)).into();
        assert_eq!(found, [true, true, true, false, false]);
    }
}
