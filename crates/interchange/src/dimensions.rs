//! The dimensions of a whole tree, for worlds where arrays share dimensions by name (NetCDF, Zarr,
//! HDF5, xarray).
//!
//! There a dimension has one name and one length, and its points are a one-dimensional array of that
//! name. In a tree the names are each array's own business: `X` may be 44 cells here and 45 nodes
//! there. [`Dimensions::of`] finds which are the same, and gives each a name that is its own and
//! still says what it is.

use std::collections::{HashMap, HashSet};

use spile_core::layout::Coord;
use spile_core::shape::Shape;
use spile_core::tree::{NodeId, ROOT, Tree};

/// A dimension that arrays share.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// No other dimension has this name, and no group; an array at the root has it only if it holds the
    /// points.
    pub name: String,
    /// Number of points.
    pub len: u64,
    /// Where they are; a [`Coord::Node`] is one-dimensional and as long.
    pub coord: Coord,
}

/// The dimensions of a tree.
#[derive(Clone, Debug, Default)]
pub struct Dimensions {
    list: Vec<Dimension>,
    arrays: HashMap<NodeId, Vec<usize>>,
}

/// What makes two dimensions the same.
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
}

impl Dimensions {
    /// The dimensions of all arrays of `tree`.
    pub fn of(tree: &Tree) -> Self {
        let coordinates: HashSet<NodeId> = tree
            .arrays()
            .flat_map(|(_, _, array)| array.coords.iter().zip(array.shape.lengths()))
            .filter_map(|(coord, len)| line(tree, coord, *len))
            .collect();
        let mut found = Self::default();
        let mut known: HashMap<Key, usize> = HashMap::new();
        let groups = tree.iter().filter(|(_, node)| node.array.is_none());
        let groups = groups.map(|(_, node)| node.name.as_str()).collect();
        let mut names = Names { tree, taken: HashSet::new(), groups };
        for (id, _, array) in tree.arrays() {
            let mut own = Vec::with_capacity(array.shape.rank());
            for (k, len) in array.shape.lengths().iter().enumerate() {
                let coord = if array.shape.rank() == 1 && coordinates.contains(&id) {
                    Coord::Node(id)
                } else {
                    array.coords.get(k).cloned().unwrap_or(Coord::None)
                };
                let name = array.dims.get(k).map_or("", String::as_str);
                let key = Key::new(tree, name, *len, &coord);
                let at = *known.entry(key).or_insert_with_key(|key| {
                    let name = names.give(key);
                    found.list.push(Dimension { name, len: *len, coord: key.coord() });
                    found.list.len() - 1
                });
                // An array has no dimension twice: a matrix of 3 by 3 has two.
                own.push(if own.contains(&at) { found.twin(&own, at, &mut names) } else { at });
            }
            found.arrays.insert(id, own);
        }
        found.part_from_namesakes(tree, &mut names);
        found
    }

    /// To others an array that has the name of its dimension holds the points of it. Momenta that are
    /// called `electron` along a dimension of that name do not, if other arrays have it, too.
    fn part_from_namesakes(&mut self, tree: &Tree, names: &mut Names<'_>) {
        let mut users = vec![0_usize; self.list.len()];
        let mut namesake = vec![false; self.list.len()];
        for (id, own) in &self.arrays {
            for k in own {
                users[*k] += 1;
                namesake[*k] |= tree.node(*id).name == self.list[*k].name;
            }
        }
        for (k, dimension) in self.list.iter_mut().enumerate() {
            if users[k] > 1 && namesake[k] && !matches!(dimension.coord, Coord::Node(_)) {
                let word = format!("{}_{}", dimension.name, dimension.len);
                dimension.name = names.first(vec![word], None);
            }
        }
    }

    /// A dimension without points that is as long as `at` and not in `own`.
    fn twin(&mut self, own: &[usize], at: usize, names: &mut Names<'_>) -> usize {
        let Dimension { name, len, .. } = self.list[at].clone();
        let like = |k: &usize| {
            let other = &self.list[*k];
            other.len == len && other.coord == Coord::None && other.name.starts_with(&name)
        };
        if let Some(k) = (0..self.list.len()).find(|k| !own.contains(k) && like(k)) {
            return k;
        }
        let name = names.first(vec![format!("{name}_{len}")], None);
        self.list.push(Dimension { name, len, coord: Coord::None });
        self.list.len() - 1
    }

    /// All of them, in the order in which arrays name them first.
    pub fn list(&self) -> &[Dimension] {
        &self.list
    }

    /// Those of an array, as numbers in [`Dimensions::list`].
    pub fn array(&self, id: NodeId) -> &[usize] {
        self.arrays.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The names of an array's dimensions.
    pub fn names(&self, id: NodeId) -> impl Iterator<Item = &str> {
        self.array(id).iter().map(|k| self.list[*k].name.as_str())
    }
}

/// The node that `coord` names, if it is a line of `len` points.
fn line(tree: &Tree, coord: &Coord, len: u64) -> Option<NodeId> {
    let Coord::Node(id) = coord else { return None };
    let array = tree.node(*id).array.as_ref()?;
    (array.shape == Shape::new([len])).then_some(*id)
}

impl Key {
    fn new(tree: &Tree, name: &str, len: u64, coord: &Coord) -> Self {
        let points = match coord {
            Coord::Uniform { start, step } => Points::Uniform(start.to_bits(), step.to_bits()),
            coord => line(tree, coord, len).map_or(Points::None, Points::Node),
        };
        // The points say which dimension it is, whatever it is called.
        let name = match points {
            Points::Node(_) => String::new(),
            _ => name.to_string(),
        };
        Self { name, len, points }
    }

    fn coord(&self) -> Coord {
        match self.points {
            Points::None => Coord::None,
            Points::Uniform(start, step) => {
                Coord::Uniform { start: f64::from_bits(start), step: f64::from_bits(step) }
            }
            Points::Node(id) => Coord::Node(id),
        }
    }
}

/// Names that are given once.
struct Names<'a> {
    tree: &'a Tree,
    taken: HashSet<String>,
    /// Points are seen in all groups, where another group of that name would be in their way.
    groups: HashSet<&'a str>,
}

impl Names<'_> {
    /// One that says most with the fewest words: that of the points, with that of their group, with
    /// the length, with a number.
    fn give(&mut self, key: &Key) -> String {
        let mut words = Vec::new();
        let mut own = None;
        if let Points::Node(id) = key.points {
            let node = self.tree.node(id);
            own = Some(id);
            words.push(node.name.clone());
            words.push(format!("{}_{}", self.tree.node(node.parent).name, node.name));
            words.push(node.path.replace('/', "_"));
        } else {
            words.push(if key.name.is_empty() { "dim".into() } else { key.name.replace('/', "_") });
            words.push(format!("{}_{}", words[0], key.len));
        }
        self.first(words, own)
    }

    /// The first of `words` that is free, or the last with a number; the name of an array at the root
    /// is free for `own` only.
    fn first(&mut self, words: Vec<String>, own: Option<NodeId>) -> String {
        let last = words.last().cloned().unwrap_or_default();
        let numbered = (2_u64..).map(|k| format!("{last}_{k}"));
        let free = |name: &String| {
            let at_root = self.tree.child(ROOT, name);
            let free = at_root.is_none() || at_root == own;
            free && !self.taken.contains(name) && !self.groups.contains(name.as_str())
        };
        // There is always a free number.
        let name = words.into_iter().chain(numbered).find(free).unwrap_or_default();
        self.taken.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::dtype::DType;
    use spile_core::layout::{ArrayDesc, Layout};
    use spile_core::limits::Limits;

    fn array(shape: &[u64], dims: &[&str], coords: &[Coord]) -> ArrayDesc {
        let layout = Layout::Fill([0; 8].into());
        let mut array = ArrayDesc::new(DType::F64, Shape::new(shape), layout);
        array.dims = dims.iter().map(ToString::to_string).collect();
        array.coords = coords.to_vec();
        array
    }

    #[test]
    fn the_same_points_are_the_same_dimension_and_names_stay_readable() {
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
        // The points are too few for the dimension: nobody could use them.
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
    fn no_dimension_is_called_like_a_group() {
        let mut tree = Tree::new(&Limits::default());
        let (grid, _) = (tree.group_at("Grid").unwrap(), tree.group_at("Particles/Px").unwrap());
        let px = tree.add_array(grid, "Px", array(&[4], &["Px"], &[Coord::None])).unwrap();
        let on = array(&[4, 3], &["Px", "Grid"], &[Coord::Node(px), Coord::None]);
        let on = tree.add_array(ROOT, "on", on).unwrap();
        let dimensions = Dimensions::of(&tree);
        assert_eq!(dimensions.names(on).collect::<Vec<_>>(), ["Grid_Px", "Grid_3"]);
    }

    #[test]
    fn values_that_are_called_like_their_dimension_are_no_points_of_it() {
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
        // Nobody else has this one.
        assert_eq!(names(alone).len(), 1);
    }

    #[test]
    fn an_array_at_the_root_gives_its_name_only_to_its_own_dimension() {
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
}
