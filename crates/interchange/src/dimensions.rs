//! Shared dimensions of a tree, for models where arrays share dimensions by name (NetCDF, Zarr, HDF5,
//! xarray).
//!
//! In these models a dimension has a unique name and one length, and its coordinate is a one-dimensional
//! array of that name. In a tree, dimension names belong to each array: `X` may be 44 cells in one and 45
//! nodes in another. [`Dimensions::of`] finds equal dimensions and gives each a unique, readable name.

use std::collections::{HashMap, HashSet};

use spile_core::{ArrayDesc, Coord, Node, NodeId, ROOT, Role, Shape, Tree};

/// A dimension that arrays share.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Unique name, different from the names of groups and of arrays at the root, except for the array with
    /// its coordinate.
    pub name: String,
    /// Number of points.
    pub len: u64,
    /// Coordinate; the array of a [`Coord::Node`] has the shape `[len]`.
    pub coord: Coord,
}

/// The dimensions of a tree.
#[derive(Clone, Debug, Default)]
pub struct Dimensions {
    list: Vec<Dimension>,
    arrays: HashMap<NodeId, Vec<usize>>,
}

/// Identity of a dimension: dimensions with equal keys are shared.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    len: u64,
    points: Points,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Points {
    None,
    Uniform(u64, u64),
    Node(NodeId),
    /// The coordinates of each frame, an array of frames: not a coordinate of the dimension alone.
    Moving(NodeId),
}

impl Dimensions {
    /// The dimensions of all arrays of `tree`. The time is linear in the number of nodes and dimensions.
    pub fn of(tree: &Tree) -> Self {
        let coordinates: HashSet<NodeId> = tree
            .arrays()
            .flat_map(|(_, _, array)| array.coords.iter().zip(array.shape.lengths()))
            .filter_map(|(coord, len)| coordinate_array(tree, coord, *len))
            .collect();
        let moving: HashSet<NodeId> = tree
            .arrays()
            .flat_map(|(_, _, array)| array.coords.iter().zip(array.shape.lengths()))
            .filter_map(|(coord, len)| moving_coordinate(tree, coord, *len))
            .collect();
        let lonely = lonely_coordinates(tree);
        let mut found = Self::default();
        let mut known: HashMap<Key, usize> = HashMap::new();
        let groups = tree.iter().filter(|(_, node)| node.array.is_none());
        let groups = groups.map(|(_, node)| node.name.as_str()).collect();
        let mut names = Names { tree, taken: HashSet::new(), next: HashMap::new(), groups };
        let mut twins = Twins::default();
        for (id, node, array) in tree.arrays() {
            let is_axis =
                coordinates.contains(&id) || is_mesh_axis(node, array) || lonely.contains(&id);
            let mut own = Vec::with_capacity(array.shape.rank());
            let (mut used, mut examined) = (HashSet::new(), HashMap::new());
            for (k, len) in array.shape.lengths().iter().enumerate() {
                let is_own = match array.shape.rank() {
                    1 => is_axis,
                    rank => rank == 2 && k == 1 && (moving.contains(&id) || is_axis),
                };
                let coord = if is_own {
                    Coord::Node(id)
                } else {
                    array.coords.get(k).cloned().unwrap_or(Coord::None)
                };
                let name = array.dims.get(k).map_or("", String::as_str);
                let key = Key::new(tree, name, *len, &coord);
                let at = *known.entry(key).or_insert_with_key(|key| {
                    let name = names.unique(key);
                    let family = if key.name.is_empty() { &name } else { &key.name };
                    twins.add((family.clone(), *len), key.points == Points::None);
                    found.list.push(Dimension { name, len: *len, coord: key.coord() });
                    found.list.len() - 1
                });
                // An array cannot have the same dimension twice: a 3 x 3 matrix has two.
                let at = if used.contains(&at) {
                    let twin = twins.next_unused(at, &used, &mut examined);
                    twin.unwrap_or_else(|| found.add_twin(&mut twins, at, &mut names))
                } else {
                    at
                };
                used.insert(at);
                own.push(at);
            }
            found.arrays.insert(id, own);
        }
        found.rename_homonyms(tree, &mut names);
        found
    }

    /// Renames shared dimensions that have the name of an array along them but not its values as coordinate:
    /// readers take an array with the name of its dimension for the coordinate. An example are momenta called
    /// `electron` along a dimension `electron`.
    fn rename_homonyms(&mut self, tree: &Tree, names: &mut Names<'_>) {
        let mut users = vec![0_usize; self.list.len()];
        let mut homonym = vec![false; self.list.len()];
        for (id, own) in &self.arrays {
            for k in own {
                users[*k] += 1;
                homonym[*k] |= tree.node(*id).name == self.list[*k].name;
            }
        }
        for (k, dimension) in self.list.iter_mut().enumerate() {
            if users[k] > 1 && homonym[k] && !matches!(dimension.coord, Coord::Node(_)) {
                let name = format!("{}_{}", dimension.name, dimension.len);
                dimension.name = names.first_unused(vec![name], None);
            }
        }
    }

    /// Adds a dimension without coordinate of the same family as `at`.
    fn add_twin(&mut self, twins: &mut Twins, at: usize, names: &mut Names<'_>) -> usize {
        let Dimension { name, len, .. } = &self.list[at];
        let (name, len) = (names.first_unused(vec![format!("{name}_{len}")], None), *len);
        self.list.push(Dimension { name, len, coord: Coord::None });
        twins.add(twins.family[at].clone(), true);
        self.list.len() - 1
    }

    /// All dimensions, in order of first use.
    pub fn list(&self) -> &[Dimension] {
        &self.list
    }

    /// Dimensions of an array, as indices of [`Dimensions::list`].
    pub fn array(&self, id: NodeId) -> &[usize] {
        self.arrays.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Names of the dimensions of an array.
    pub fn names(&self, id: NodeId) -> impl Iterator<Item = &str> {
        self.array(id).iter().map(|k| self.list[*k].name.as_str())
    }
}

/// Arrays at the root with the name of their only dimension, which no other array has: coordinates without users.
fn lonely_coordinates(tree: &Tree) -> HashSet<NodeId> {
    let is_candidate = |node: &Node, array: &ArrayDesc| {
        node.parent == ROOT
            && array.shape.rank() == 1
            && array.dims.first().is_some_and(|name| *name == node.name)
    };
    let others = tree.arrays().filter(|(_, node, array)| !is_candidate(node, array));
    let used: HashSet<&str> =
        others.flat_map(|(_, _, array)| &array.dims).map(String::as_str).collect();
    let candidates = tree.arrays().filter(|(_, node, array)| is_candidate(node, array));
    candidates
        .filter(|(_, node, _)| !used.contains(node.name.as_str()))
        .map(|(id, ..)| id)
        .collect()
}

/// The array of a coordinate, if its shape is `[len]`.
fn coordinate_array(tree: &Tree, coord: &Coord, len: u64) -> Option<NodeId> {
    let Coord::Node(id) = coord else { return None };
    let array = tree.array(*id)?;
    (array.shape == Shape::new([len])).then_some(*id)
}

/// The array with the coordinates of each frame, if its frames have `len` points.
fn moving_coordinate(tree: &Tree, coord: &Coord, len: u64) -> Option<NodeId> {
    let Coord::Node(id) = coord else { return None };
    let array = tree.array(*id)?;
    (array.shape.rank() == 2 && array.shape.lengths()[1] == len).then_some(*id)
}

/// Whether an array has the positions of the nodes or cells of a mesh along one dimension, which is called
/// like the array.
pub(crate) fn is_mesh_axis(node: &Node, array: &ArrayDesc) -> bool {
    let stem = node.name.strip_suffix("_mid").unwrap_or(&node.name);
    array.semantics().role == Role::Mesh && array.dims.last().is_some_and(|dim| dim == stem)
}

/// Names of the positions of a mesh along one dimension, as in sdf-xarray: `X_Grid`, and `X_Grid_mid` for
/// cell centres; then with the path of the group. None for other arrays.
pub(crate) fn mesh_names(tree: &Tree, id: NodeId) -> Vec<String> {
    let node = tree.node(id);
    let is_axis = node.array.as_ref().is_some_and(|array| is_mesh_axis(node, array));
    if node.parent == ROOT || !is_axis {
        return Vec::new();
    }
    let (axis, mid) = match node.name.strip_suffix("_mid") {
        Some(axis) => (axis, "_mid"),
        None => (node.name.as_str(), ""),
    };
    let group = tree.node(node.parent);
    let path = group.path.replace('/', "_");
    vec![format!("{axis}_{}{mid}", group.name), format!("{axis}_{path}{mid}")]
}

impl Key {
    fn new(tree: &Tree, name: &str, len: u64, coord: &Coord) -> Self {
        let points = match coord {
            Coord::Uniform { start, step } => Points::Uniform(start.to_bits(), step.to_bits()),
            coord => match coordinate_array(tree, coord, len) {
                Some(id) => Points::Node(id),
                None => moving_coordinate(tree, coord, len).map_or(Points::None, Points::Moving),
            },
        };
        // A dimension with a coordinate array is identified by it, not by its name.
        let name = match points {
            Points::Node(_) => String::new(),
            _ => name.to_string(),
        };
        Self { name, len, points }
    }

    fn coord(&self) -> Coord {
        match self.points {
            Points::None | Points::Moving(_) => Coord::None,
            Points::Uniform(start, step) => {
                Coord::Uniform { start: f64::from_bits(start), step: f64::from_bits(step) }
            }
            Points::Node(id) => Coord::Node(id),
        }
    }
}

/// Original name and length of a dimension; the name of its array for coordinate arrays.
type Family = (String, u64);

/// Families of dimensions. Each array uses a dimension at most once; repeated ones are replaced by other
/// members of the family without coordinate.
#[derive(Default)]
struct Twins {
    /// Family of each dimension.
    family: Vec<Family>,
    /// Members without coordinate of each family.
    members: HashMap<Family, Vec<usize>>,
}

impl Twins {
    /// Adds the next dimension to its family.
    fn add(&mut self, family: Family, without_coordinate: bool) {
        let members = self.members.entry(family.clone()).or_default();
        if without_coordinate {
            members.push(self.family.len());
        }
        self.family.push(family);
    }

    /// The first member of the family of `at` that is not `used` by the current array. `examined` members of
    /// each family are used: they are not examined again.
    fn next_unused(
        &self,
        at: usize,
        used: &HashSet<usize>,
        examined: &mut HashMap<Family, usize>,
    ) -> Option<usize> {
        let members = &self.members[&self.family[at]];
        let next = examined.entry(self.family[at].clone()).or_default();
        while members.get(*next).is_some_and(|k| used.contains(k)) {
            *next += 1;
        }
        members.get(*next).copied()
    }
}

/// Assigns unique names.
struct Names<'a> {
    tree: &'a Tree,
    taken: HashSet<String>,
    /// For each stem, the first number that may be unused.
    next: HashMap<String, u64>,
    /// Names of groups: a coordinate is visible in all groups, where a group of that name would conflict.
    groups: HashSet<&'a str>,
}

impl Names<'_> {
    /// A unique name for a dimension: the shortest unused one of the name of the coordinate array, with its
    /// group, with its path; or of the name, with the length, with a number.
    fn unique(&mut self, key: &Key) -> String {
        let mut candidates = Vec::new();
        let mut own = None;
        if let Points::Node(id) | Points::Moving(id) = key.points {
            candidates.extend(mesh_names(self.tree, id));
        }
        if let Points::Node(id) = key.points {
            let node = self.tree.node(id);
            own = Some(id);
            candidates.push(node.name.clone());
            candidates.push(format!("{}_{}", self.tree.node(node.parent).name, node.name));
            candidates.push(node.path.replace('/', "_"));
        } else {
            let name = if key.name.is_empty() { "dim".into() } else { key.name.replace('/', "_") };
            candidates.extend([name.clone(), format!("{name}_{}", key.len)]);
        }
        self.first_unused(candidates, own)
    }

    /// The first unused of `candidates`, or the last with a number. The name of an array at the root is available
    /// to its own dimension only.
    fn first_unused(&mut self, candidates: Vec<String>, own: Option<NodeId>) -> String {
        let stem = candidates.last().cloned().unwrap_or_default();
        let unused = |name: &String| {
            let at_root = self.tree.child(ROOT, name);
            let unused = at_root.is_none() || at_root == own;
            unused && !self.taken.contains(name) && !self.groups.contains(name.as_str())
        };
        let name = candidates.into_iter().find(unused).unwrap_or_else(|| {
            // Numbers below `next` are used and stay so.
            let next = self.next.entry(stem.clone()).or_insert(2);
            loop {
                let name = format!("{stem}_{next}");
                *next += 1;
                if unused(&name) {
                    break name;
                }
            }
        });
        self.taken.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::dtype::DType;
    use spile_core::layout::Layout;
    use spile_core::limits::Limits;

    fn array(shape: &[u64], dims: &[&str], coords: &[Coord]) -> ArrayDesc {
        let layout = Layout::Fill([0; 8].into());
        let mut array = ArrayDesc::new(DType::F64, Shape::new(shape), layout);
        array.dims = dims.iter().map(ToString::to_string).collect();
        array.coords = coords.to_vec();
        array
    }

    #[test]
    fn a_coordinate_without_users_keeps_its_name() {
        let mut tree = Tree::new(&Limits::default());
        let x = tree.add_array(ROOT, "x", array(&[3], &["x"], &[Coord::None])).unwrap();
        let y = tree.add_array(ROOT, "y", array(&[3], &["y"], &[Coord::None])).unwrap();
        let v = tree.add_array(ROOT, "v", array(&[3], &["y"], &[Coord::None])).unwrap();
        let found = Dimensions::of(&tree);
        assert_eq!(found.list()[found.array(x)[0]].coord, Coord::Node(x));
        let names: Vec<&str> = [x, y, v].iter().flat_map(|id| found.names(*id)).collect();
        assert_eq!(names, ["x", "y_3", "y_3"]);
    }

    #[test]
    fn equal_coordinates_are_one_dimension_with_a_readable_name() {
        let mut tree = Tree::new(&Limits::default());
        let grid = tree.group_at("Grid/Grid").unwrap();
        let slab = tree.group_at("Grid/slab").unwrap();
        let none = [Coord::None];
        let nodes = tree.add_array(grid, "X", array(&[5], &["X"], &none)).unwrap();
        let cells = tree.add_array(grid, "X_mid", array(&[4], &["X"], &none)).unwrap();
        let other = tree.add_array(slab, "X_mid", array(&[4], &["X"], &none)).unwrap();
        let mut on = |name: &str, shape: &[u64], dims: &[&str], coords: &[Coord]| {
            tree.add_array(ROOT, name, array(shape, dims, coords)).unwrap()
        };
        let node = |id| Coord::Node(id);
        let time = Coord::Uniform { start: 0.0, step: 0.5 };
        let ex = on("Ex", &[4, 3], &["X", "Y"], &[node(cells), Coord::None]);
        let ey = on("Ey", &[5, 3], &["X", "Y"], &[node(nodes), Coord::None]);
        let ez = on("Ez", &[4], &["X"], &[node(other)]);
        let short = on("short", &[2], &["Y"], &none);
        // The coordinate is shorter than the dimension and is ignored.
        let wrong = on("wrong", &[9], &["X"], &[node(cells)]);
        let matrix = on("matrix", &[3, 3, 3], &["Y", "Y", "Y"], &vec![Coord::None; 3]);
        let pair = on("pair", &[3, 3], &["Y", "Y"], &vec![Coord::None; 2]);
        let t = on("t", &[7], &["time"], std::slice::from_ref(&time));
        let dimensions = Dimensions::of(&tree);
        let names = |id| dimensions.names(id).collect::<Vec<_>>();
        assert_eq!(names(nodes), ["X"]);
        assert_eq!(names(cells), ["X_mid"]);
        assert_eq!(names(ex), ["X_mid", "Y"]);
        assert_eq!(names(ey), ["X", "Y"]);
        assert_eq!(names(ez), ["slab_X_mid"]);
        assert_eq!(names(short), ["Y_2"]);
        assert_eq!(names(wrong), ["X_9"]);
        assert_eq!(names(matrix), ["Y", "Y_3", "Y_3_2"]);
        assert_eq!(names(pair), ["Y", "Y_3"]);
        assert_eq!(names(t), ["time"]);
        let of = |id| &dimensions.list()[dimensions.array(id)[0]];
        assert_eq!((of(cells).len, &of(cells).coord), (4, &node(cells)));
        assert_eq!((of(t).len, &of(t).coord), (7, &time));
    }

    #[test]
    fn no_dimension_has_the_name_of_a_group() {
        let mut tree = Tree::new(&Limits::default());
        let (grid, _) = (tree.group_at("Grid").unwrap(), tree.group_at("Particles/Px").unwrap());
        let px = tree.add_array(grid, "Px", array(&[4], &["Px"], &[Coord::None])).unwrap();
        let on = array(&[4, 3], &["Px", "Grid"], &[Coord::Node(px), Coord::None]);
        let on = tree.add_array(ROOT, "on", on).unwrap();
        let dimensions = Dimensions::of(&tree);
        assert_eq!(dimensions.names(on).collect::<Vec<_>>(), ["Grid_Px", "Grid_3"]);
    }

    #[test]
    fn arrays_with_the_name_of_a_shared_dimension_are_not_its_coordinate() {
        let mut tree = Tree::new(&Limits::default());
        let px = tree.group_at("Particles/Px").unwrap();
        let py = tree.group_at("Particles/Py").unwrap();
        let own = || array(&[7], &["electron"], &[Coord::None]);
        let px = tree.add_array(px, "electron", own()).unwrap();
        let py = tree.add_array(py, "electron", own()).unwrap();
        let alone = tree.add_array(ROOT, "r", array(&[3], &["r"], &[Coord::None])).unwrap();
        let dimensions = Dimensions::of(&tree);
        let names = |id| dimensions.names(id).collect::<Vec<_>>();
        assert_eq!((names(px), names(py)), (vec!["electron_7"], vec!["electron_7"]));
        // Not shared.
        assert_eq!(names(alone).len(), 1);
    }

    #[test]
    fn the_name_of_an_array_at_the_root_is_available_to_its_own_dimension_only() {
        let mut tree = Tree::new(&Limits::default());
        let none = [Coord::None];
        let x = tree.add_array(ROOT, "x", array(&[4], &["x"], &none)).unwrap();
        let y = tree.add_array(ROOT, "y", array(&[2], &["n"], &none)).unwrap();
        let on = array(&[4, 2], &["x", "y"], &[Coord::Node(x), Coord::None]);
        let on = tree.add_array(ROOT, "on", on).unwrap();
        let dimensions = Dimensions::of(&tree);
        let names = |id| dimensions.names(id).collect::<Vec<_>>();
        assert_eq!((names(x), names(y), names(on)), (vec!["x"], vec!["n"], vec!["x", "y_2"]));
    }

    #[test]
    fn the_time_is_linear_in_the_number_of_dimensions() {
        // The maximum of an array is 1024.
        let (rank, arrays) = (1000, 100);
        let mut tree = Tree::new(&Limits::default());
        let none = vec![Coord::None; rank];
        let mut add = |name: &str, dims| {
            let mut desc = array(&[], &[], &none);
            (desc.shape, desc.dims) = (Shape::new(vec![1; rank]), dims);
            tree.add_array(ROOT, name, desc).unwrap()
        };
        let equal = ["equal", "again"].map(|name| add(name, vec!["n".into(); rank]));
        let distinct: Vec<_> = (0..arrays)
            .map(|k| {
                let names = (0..rank).map(|axis| format!("d{k}_{axis}"));
                add(&format!("distinct {k}"), names.collect())
            })
            .collect();
        let start = std::time::Instant::now();
        let dimensions = Dimensions::of(&tree);
        for id in equal.into_iter().chain(distinct) {
            let names: HashSet<&str> = dimensions.names(id).collect();
            assert_eq!(names.len(), rank);
        }
        assert_eq!(dimensions.array(equal[0]), dimensions.array(equal[1]));
        assert_eq!(dimensions.list().len(), (arrays + 1) * rank);
        // Quadratic algorithms take minutes.
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
