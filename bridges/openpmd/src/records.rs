//! Records of an openPMD file: names, components, and the arrays that they are.

use std::collections::{HashMap, HashSet};

use spile_core::{ArrayDesc, Coord, Dataset, Kind, NodeId, Role, Tree};

/// Names of the components of vectors and of the axes of positions.
pub(crate) const AXES: [&str; 3] = ["x", "y", "z"];

/// A physical quantity: an array, or one array per component.
pub(crate) struct Record {
    pub(crate) name: String,
    /// Component, and its array; no component for a scalar.
    pub(crate) components: Vec<(Option<&'static str>, NodeId)>,
}

/// Particles with common positions.
pub(crate) struct Species {
    pub(crate) name: String,
    /// Positions along each axis.
    pub(crate) positions: Vec<NodeId>,
    pub(crate) records: Vec<Record>,
}

/// The arrays of a dataset as records.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) meshes: Vec<Record>,
    pub(crate) species: Vec<Species>,
    /// Single numbers, which are attributes of iterations.
    pub(crate) scalars: Vec<NodeId>,
    /// Arrays that are not written, and the reasons.
    pub(crate) refused: HashMap<NodeId, &'static str>,
}

impl Records {
    /// Assigns every array to a record or refuses it. Reads no values.
    pub(crate) fn of(content: &Dataset) -> Self {
        let tree = content.tree();
        let mut found = Self::default();
        let mut species: HashMap<NodeId, usize> = HashMap::new();
        let mut coordinates: HashSet<NodeId> = HashSet::new();
        let mut meshes: HashSet<NodeId> = HashSet::new();
        for (id, node, array) in tree.arrays() {
            let meaning = array.semantics();
            if let Err(reason) = is_number(tree, array) {
                found.refused.insert(id, reason);
            } else if array.shape.rank() == 0 {
                found.scalars.push(id);
            } else if meaning.role == Role::Field {
                if let Err(reason) = is_on_grid(array) {
                    found.refused.insert(id, reason);
                    continue;
                }
                coordinates.extend(array.coords.iter().filter_map(Coord::node));
                meshes.extend(meaning.mesh);
                let name = meaning.component.as_ref().map(|c| (c.vector.as_str(), c.index));
                let alike = |other: NodeId| {
                    tree.array(other).is_some_and(|other| other.shape == array.shape)
                        && tree.array(other).map(|other| other.semantics().mesh)
                            == Some(meaning.mesh)
                };
                add(&mut found.meshes, name, &node.path, id, alike);
            } else if let (Role::Points, Some(mesh)) = (meaning.role, meaning.mesh) {
                if array.shape.rank() != 1 {
                    found.refused.insert(id, "openPMD has one value per particle");
                    continue;
                }
                let k = *species.entry(mesh).or_insert_with(|| {
                    let name = plain_name(species_name(&tree.node(mesh).path));
                    found.species.push(Species {
                        name,
                        positions: Vec::new(),
                        records: Vec::new(),
                    });
                    found.species.len() - 1
                });
                let own = species_name(&tree.node(mesh).path);
                let path = variable_name(&node.path, own);
                let name = meaning.component.as_ref().map(|c| (c.vector.as_str(), c.index));
                let name =
                    name.map(|(vector, index)| (momentum(variable_name(vector, own)), index));
                add(&mut found.species[k].records, name, weighting(path), id, |_| true);
            } else if meaning.role != Role::Mesh {
                found.refused.insert(id, "openPMD has only meshes and particles");
            }
        }
        for (id, node, array) in tree.arrays() {
            if array.semantics().role != Role::Mesh || found.refused.contains_key(&id) {
                continue;
            }
            match species.get(&node.parent) {
                Some(k) if found.species[*k].positions.len() < AXES.len() => {
                    found.species[*k].positions.push(id);
                }
                _ if coordinates.contains(&id) || meshes.contains(&node.parent) => {}
                _ => drop(found.refused.insert(id, "no field or particle has these positions")),
            }
        }
        let mut used = HashSet::new();
        found.species.iter_mut().for_each(|one| make_unique(&mut one.name, &mut used));
        found
    }
}

/// Adds an array to the record of its vector, if it has one whose other components are `alike`; otherwise as a scalar.
fn add(
    records: &mut Vec<Record>,
    vector: Option<(&str, u8)>,
    path: &str,
    id: NodeId,
    alike: impl Fn(NodeId) -> bool,
) {
    let axis = vector.and_then(|(name, index)| Some((name, *AXES.get(usize::from(index))?)));
    if let Some((name, axis)) = axis {
        let name = plain_name(name);
        let Some(record) = records.iter_mut().find(|record| record.name == name) else {
            records.push(Record { name, components: vec![(Some(axis), id)] });
            return;
        };
        let is_free = |(own, other): &(Option<&str>, NodeId)| {
            own.is_some_and(|own| own != axis) && alike(*other)
        };
        if record.components.iter().all(is_free) {
            record.components.push((Some(axis), id));
            return;
        }
    }
    let mut used: HashSet<String> = records.iter().map(|record| record.name.clone()).collect();
    let mut name = plain_name(path);
    make_unique(&mut name, &mut used);
    records.push(Record { name, components: vec![(None, id)] });
}

/// Adds a number to a name that is in use.
fn make_unique(name: &mut String, used: &mut HashSet<String>) {
    let first = name.clone();
    let mut number = 1_u64;
    while !used.insert(name.clone()) {
        number += 1;
        *name = format!("{first}_{number}");
    }
}

/// Whether elements are real numbers of a type that openPMD has.
fn is_number(tree: &Tree, array: &ArrayDesc) -> Result<(), &'static str> {
    let own = tree.resolve(array).map_err(|_| "the array refers to no other array")?;
    let kind = own.dtype.kind();
    let is_real =
        matches!(kind, Kind::Int | Kind::UInt) || (kind == Kind::Float && own.dtype.size() >= 4);
    if is_real && own.ragged().is_none() { Ok(()) } else { Err("openPMD has real numbers only") }
}

/// Whether every dimension of a field has a coordinate.
fn is_on_grid(array: &ArrayDesc) -> Result<(), &'static str> {
    if array.shape.rank() > AXES.len() {
        return Err("openPMD meshes have at most three dimensions");
    }
    if array.coords.contains(&Coord::None) {
        return Err("a dimension has no coordinate");
    }
    Ok(())
}

/// The name of a species, from the path of its positions.
fn species_name(path: &str) -> &str {
    let name = path.strip_prefix("Grid/").unwrap_or(path);
    name.strip_prefix("Particles/").unwrap_or(name)
}

/// The name of a variable without that of its species.
fn variable_name<'a>(path: &'a str, species: &str) -> &'a str {
    let name = path.strip_prefix("Particles/").unwrap_or(path);
    name.strip_suffix(species).and_then(|name| name.strip_suffix('/')).unwrap_or(name)
}

/// The names that openPMD defines for vectors of particles.
fn momentum(vector: &str) -> &str {
    match vector {
        "P" => "momentum",
        "V" => "velocity",
        other => other,
    }
}

/// The names that openPMD defines for scalars of particles.
fn weighting(name: &str) -> &str {
    match name {
        "Weight" => "weighting",
        "ID" => "id",
        "Charge" => "charge",
        "Mass" => "mass",
        other => other,
    }
}

/// A name of letters, digits and underscores.
pub(crate) fn plain_name(path: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = path.chars().map(plain).collect();
    if name.is_empty() { "_".into() } else { name }
}
