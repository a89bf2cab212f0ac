//! A tree as the variables of one xarray dataset: names without groups, and the attributes of the CF
//! conventions that say which variables are coordinates.

use std::collections::{HashMap, HashSet};

use spile_core::{ArrayDesc, Attrs, Coord, Node, NodeId, ROOT, Tree, Value};

use crate::dimensions::{Dimensions, is_mesh_axis, mesh_names};

/// The version of the CF conventions that is written.
const CONVENTIONS: &str = "CF-1.11";

/// Names and attributes of variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Names at the root; `None` if the arrays stay in their groups.
    names: Option<HashMap<NodeId, String>>,
    attrs: HashMap<NodeId, Attrs>,
    dimensions: Vec<Attrs>,
}

impl Variables {
    /// The variables of the arrays of `tree`, named by `path`. They are all at the root if no two groups have
    /// coordinates with the same name for their own arrays, as the groups of a netCDF file may have.
    pub fn of<'a>(
        tree: &'a Tree,
        dimensions: &Dimensions,
        path: impl Fn(NodeId) -> &'a str,
    ) -> Self {
        let in_groups = tree.arrays().any(|(_, node, _)| node.parent != ROOT);
        let names =
            (!in_groups || !has_scoped_dimensions(tree)).then(|| names(tree, dimensions, &path));
        let mut variables = Self { names, ..Self::of_dimensions(tree, dimensions) };
        variables.set_array_attributes(tree, dimensions, &path);
        variables
    }

    /// The attributes of dimensions, for arrays in groups with the attributes of the tree.
    pub fn of_dimensions(tree: &Tree, dimensions: &Dimensions) -> Self {
        let mut variables = Self::default();
        variables.set_dimension_attributes(tree, dimensions);
        variables
    }

    /// Whether all variables are at the root.
    pub fn is_flat(&self) -> bool {
        self.names.is_some()
    }

    /// The name of an array at the root; `None` if arrays stay in their groups.
    pub fn name(&self, id: NodeId) -> Option<&str> {
        self.names.as_ref()?.get(&id).map(String::as_str)
    }

    /// Attributes of an array in addition to its own: `long_name`, `units` and `axis` of coordinates.
    pub fn attributes(&self, id: NodeId) -> Attrs {
        self.attrs.get(&id).cloned().unwrap_or_default()
    }

    /// Attributes of the coordinate of a dimension that is not an array of the tree.
    pub fn dimension_attributes(&self, k: usize) -> Attrs {
        self.dimensions.get(k).cloned().unwrap_or_default()
    }

    /// Other coordinates of an array than those of its dimensions: positions that change with the frame, the
    /// positions of particles, and the step of each frame.
    fn auxiliary_coordinates(
        tree: &Tree,
        dimensions: &Dimensions,
        meshes: &HashMap<NodeId, Vec<NodeId>>,
        id: NodeId,
        array: &ArrayDesc,
    ) -> Vec<NodeId> {
        let own: HashSet<usize> = dimensions.array(id).iter().copied().collect();
        let is_axis = |other: NodeId| match dimensions.array(other) {
            [k] => dimensions.list()[*k].coord == Coord::Node(other),
            _ => false,
        };
        let fits = |other: NodeId| {
            let along = dimensions.array(other);
            other != id
                && tree.array(other).is_some()
                && !along.is_empty()
                && along.iter().all(|k| own.contains(k))
                && !is_axis(other)
        };
        let mut found = Vec::new();
        let nodes = array.coords.iter().filter_map(|coord| match coord {
            Coord::Node(other) => Some(*other),
            _ => None,
        });
        let inside = array.semantics().mesh.and_then(|mesh| meshes.get(&mesh));
        let inside = inside.into_iter().flatten().copied();
        for other in nodes.chain(inside).chain(tree.at("step")) {
            if fits(other) && !found.contains(&other) {
                found.push(other);
            }
        }
        found
    }

    fn set_dimension_attributes(&mut self, tree: &Tree, dimensions: &Dimensions) {
        self.dimensions = vec![Attrs::new(); dimensions.list().len()];
        for (id, node, array) in tree.arrays() {
            for (k, name) in dimensions.array(id).iter().zip(&array.dims) {
                let (attrs, dimension) = (&mut self.dimensions[*k], &dimensions.list()[*k]);
                if !attrs.is_empty() || matches!(dimension.coord, Coord::Node(_)) {
                    continue;
                }
                if let Some(units) = node.attrs.get_str(&format!("{name}_units")) {
                    attrs.push("units", units);
                    attrs.push("long_name", name.as_str());
                    if name == "time" {
                        attrs.push("axis", "T");
                    }
                }
            }
        }
    }

    fn set_array_attributes<'a>(
        &mut self,
        tree: &Tree,
        dimensions: &Dimensions,
        path: &impl Fn(NodeId) -> &'a str,
    ) {
        let mut meshes: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for mesh in tree.arrays().filter_map(|(_, _, array)| array.semantics().mesh) {
            meshes.entry(mesh).or_default();
        }
        for (id, node, _) in tree.arrays() {
            if let Some(members) = meshes.get_mut(&node.parent) {
                members.push(id);
            }
        }
        for (id, node, array) in tree.arrays() {
            let mut attrs = Attrs::new();
            let is_renamed = self.name(id).is_some_and(|name| name != path(id));
            if is_renamed && !node.attrs.contains("long_name") {
                attrs.push("long_name", path(id));
            }
            if let [k] = dimensions.array(id)
                && dimensions.list()[*k].coord == Coord::Node(id)
                && !node.attrs.contains("axis")
                && let Some(axis) = axis_of(node, array)
            {
                attrs.push("axis", axis);
            }
            let has_coordinates = node.attrs.contains("coordinates");
            let others = Self::auxiliary_coordinates(tree, dimensions, &meshes, id, array);
            if !has_coordinates && !others.is_empty() {
                // Names in this attribute are separated by spaces.
                let names = others.iter().filter_map(|other| self.name(*other));
                let names: Vec<&str> = names.filter(|name| !name.contains(' ')).collect();
                if !names.is_empty() {
                    attrs.push("coordinates", names.join(" "));
                }
            }
            if !attrs.is_empty() {
                self.attrs.insert(id, attrs);
            }
        }
    }
}

/// The attributes that the root needs in addition to its own.
pub fn root_attributes(own: &Attrs) -> Attrs {
    let conventions = [("Conventions", Value::from(CONVENTIONS))];
    conventions.into_iter().filter(|(name, _)| !own.contains(name)).collect()
}

/// The CF axis of a coordinate called X, Y, Z or time.
fn axis_of(node: &Node, array: &ArrayDesc) -> Option<&'static str> {
    match array.dims.first().map(String::as_str) {
        Some("X" | "x") => Some("X"),
        Some("Y" | "y") => Some("Y"),
        Some("Z" | "z") => Some("Z"),
        Some("frame" | "time") if node.name == "time" => Some("T"),
        _ => None,
    }
}

/// Whether groups have coordinates of the same name for the arrays in them.
fn has_scoped_dimensions(tree: &Tree) -> bool {
    let mut scoped: HashMap<&str, NodeId> = HashMap::new();
    for (_, node, array) in tree.arrays() {
        for (coord, dim) in array.coords.iter().zip(&array.dims) {
            let Coord::Node(id) = coord else { continue };
            let axis = tree.node(*id);
            let group = &tree.node(axis.parent).path;
            let inside = node.path.strip_prefix(group.as_str()).is_some_and(|p| p.starts_with('/'));
            let is_scoped = axis.name == *dim && (axis.parent == ROOT || inside);
            if is_scoped && *scoped.entry(axis.name.as_str()).or_insert(*id) != *id {
                return true;
            }
        }
    }
    false
}

/// Names at the root: that of the dimension for its coordinate, otherwise the path with underscores.
fn names<'a>(
    tree: &Tree,
    dimensions: &Dimensions,
    path: &impl Fn(NodeId) -> &'a str,
) -> HashMap<NodeId, String> {
    let in_groups = tree.arrays().any(|(_, node, _)| node.parent != ROOT);
    let mut names = HashMap::new();
    let mut used: HashSet<String> = HashSet::new();
    for dimension in dimensions.list() {
        if let Coord::Node(id) = dimension.coord {
            names.insert(id, dimension.name.clone());
        }
        used.insert(dimension.name.clone());
    }
    let mut last: HashMap<String, u64> = HashMap::new();
    for (id, node, array) in tree.arrays() {
        if names.contains_key(&id) {
            continue;
        }
        // Positions that change with the frame cannot have the name of their dimension.
        let moving = match dimensions.array(id) {
            [_, axis] if is_mesh_axis(node, array) => {
                Some(format!("{}_moving", dimensions.list()[*axis].name))
            }
            _ => None,
        };
        let mesh = || mesh_names(tree, id).into_iter().find(|name| !used.contains(name));
        let first = match moving.or_else(mesh) {
            Some(name) => name,
            None if in_groups => plain_name(path(id)),
            None => path(id).to_string(),
        };
        let mut name = first.clone();
        // A changed name is never that of another node.
        while (name != node.path && tree.at(&name).is_some()) || !used.insert(name.clone()) {
            let number = last.entry(first.clone()).or_insert(1);
            *number += 1;
            name = format!("{first}_{number}");
        }
        names.insert(id, name);
    }
    names
}

/// A name of letters, digits, dots and single underscores.
fn plain_name(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    for c in path.chars() {
        match c.is_alphanumeric() || c == '.' {
            true => name.push(c),
            false if c == '_' || !name.ends_with('_') => name.push('_'),
            false => {}
        }
    }
    if !path.ends_with('_') {
        name.truncate(name.trim_end_matches('_').len().max(1));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::dtype::DType;
    use spile_core::layout::Layout;
    use spile_core::limits::Limits;
    use spile_core::shape::Shape;

    fn array(shape: &[u64], dims: &[&str], coords: &[Coord]) -> ArrayDesc {
        let layout = Layout::Fill([0; 8].into());
        let mut array = ArrayDesc::new(DType::F64, Shape::new(shape), layout);
        array.dims = dims.iter().map(ToString::to_string).collect();
        array.coords = coords.to_vec();
        array
    }

    fn variables(tree: &Tree) -> Variables {
        Variables::of(tree, &Dimensions::of(tree), |id| &tree.node(id).path)
    }

    #[test]
    fn paths_become_unique_names() {
        let mut tree = Tree::new(&Limits::default());
        let fields = tree.add_group(ROOT, "Electric Field").unwrap();
        let none = [Coord::None];
        let ex = tree.add_array(fields, "Ex", array(&[3], &["x"], &none)).unwrap();
        let same = tree.add_array(ROOT, "Electric_Field_Ex", array(&[3], &["x"], &none)).unwrap();
        let energy = tree.add_array(ROOT, "Energy (J)", array(&[], &[], &[])).unwrap();
        let variables = variables(&tree);
        assert_eq!(variables.name(ex), Some("Electric_Field_Ex_2"));
        assert_eq!(variables.name(same), Some("Electric_Field_Ex"));
        assert_eq!(variables.name(energy), Some("Energy_J"));
        assert_eq!(variables.attributes(ex).get_str("long_name"), Some("Electric Field/Ex"));
    }

    #[test]
    fn positions_of_each_frame_are_auxiliary_coordinates() {
        let mut tree = Tree::new(&Limits::default());
        let none = [Coord::None, Coord::None];
        let x = tree.add_array(ROOT, "x_mid", array(&[2, 5], &["frame", "x"], &none)).unwrap();
        let coords = [Coord::None, Coord::Node(x)];
        let field =
            tree.add_array(ROOT, "field", array(&[2, 5], &["frame", "x"], &coords)).unwrap();
        let other = tree.add_array(ROOT, "other", array(&[2, 5], &["frame", "x"], &none)).unwrap();
        let dimensions = Dimensions::of(&tree);
        assert_eq!(dimensions.array(x), dimensions.array(field));
        assert_ne!(dimensions.array(x), dimensions.array(other));
        let variables = variables(&tree);
        assert_eq!(variables.attributes(field).get_str("coordinates"), Some("x_mid"));
        assert!(!variables.attributes(other).contains("coordinates"));
    }

    #[test]
    fn groups_with_coordinates_of_the_same_name_stay_groups() {
        let mut tree = Tree::new(&Limits::default());
        for (name, len) in [("a", 3), ("b", 4)] {
            let group = tree.add_group(ROOT, name).unwrap();
            let x = tree.add_array(group, "x", array(&[len], &["x"], &[Coord::None])).unwrap();
            let on = array(&[len], &["x"], &[Coord::Node(x)]);
            tree.add_array(group, "data", on).unwrap();
        }
        assert!(!variables(&tree).is_flat());
    }
}
