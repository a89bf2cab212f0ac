//! The meshes and species of a tree: each is a file, or a block of a multiblock file.

use std::collections::{HashMap, HashSet};

use spile_core::error::Result;
use spile_core::layout::ArrayDesc;
use spile_core::semantics::Centring;
use spile_core::tree::{NodeId, Tree};

use super::find_grid::{self, AxisCoord, Grid, Position};
use super::find_points::{self, Cells, PointSet};
use super::{Kind, Plan, Snapshot, unsupported};

/// Arrays on a common mesh.
#[derive(Clone, Debug)]
pub(crate) enum Mesh {
    Grid(Grid),
    Points(PointSet),
}

/// A block of a multiblock file.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) mesh: Mesh,
}

impl Mesh {
    /// The file type that suits the mesh.
    fn kind(&self) -> Kind {
        match self {
            Self::Grid(grid) if grid.position != Position::Axes => Kind::Structured,
            Self::Grid(grid) if grid.has_nodes() => Kind::Rectilinear,
            Self::Grid(_) => Kind::Image,
            Self::Points(PointSet { cells: Cells::Native(sections), .. })
                if sections.iter().any(|(name, _)| *name == "Cells") =>
            {
                Kind::Unstructured
            }
            Self::Points(_) => Kind::Poly,
        }
    }

    /// Arrays on the mesh.
    fn len(&self) -> usize {
        match self {
            Self::Grid(grid) => grid.len(),
            Self::Points(set) => set.len(),
        }
    }

    /// A display name, and a name that is unique in the tree.
    fn names(&self, tree: &Tree) -> (String, String) {
        match self {
            Self::Points(set) => (set.name.clone(), set.path.clone()),
            Self::Grid(grid) => grid_names(tree, grid),
        }
    }
}

fn grid_names(tree: &Tree, grid: &Grid) -> (String, String) {
    let array = |id: &NodeId| tree.node(*id).array.as_ref();
    let first = grid.points.iter().chain(&grid.cells).next();
    let meaning = first.and_then(array).map(ArrayDesc::semantics);
    let mesh = meaning.and_then(|meaning| meaning.mesh);
    let group = |id: NodeId| if tree.node(id).array.is_some() { tree.node(id).parent } else { id };
    let of_axes = grid.axes.iter().find_map(|axis| match axis.coord {
        AxisCoord::Nodes(id) => Some(tree.node(id).parent),
        _ => None,
    });
    let path = match (&grid.position, mesh.map(group).or(of_axes)) {
        (Position::Lattice(_), _) if grid.len() == 1 => first.map_or("", |id| &tree.node(*id).name),
        (Position::Lattice(_), _) => "cell",
        (_, Some(id)) => &tree.node(id).path,
        (_, None) if grid.len() == 1 => first.map_or("", |id| &tree.node(*id).path),
        (_, None) => "",
    };
    // The groups of a VTK file are not names of meshes.
    let path = path.strip_suffix("Coordinates").unwrap_or(path).trim_end_matches('/');
    let mut path = if path.is_empty() { "grid".to_string() } else { path.to_string() };
    if !grid.points.is_empty() && grid.cells.is_empty() {
        let side = meaning.and_then(|meaning| match meaning.centring? {
            Centring::Face(axis) => Some(("faces", axis)),
            Centring::Edge(axis) => Some(("edges", axis)),
            _ => None,
        });
        let desc = first.and_then(array);
        if let Some((side, dim)) = side.and_then(|(side, axis)| Some((side, desc?.dims.get(axis)?)))
        {
            path = format!("{path} {dim} {side}");
        }
    }
    // The first part is the name of the group of all meshes.
    let name = path.split_once('/').map_or(path.as_str(), |(_, name)| name);
    (name.to_string(), path)
}

/// All meshes and species of a tree. Arrays without role and coordinates may be tables: they are blocks if there is
/// nothing else.
pub(crate) fn blocks(tree: &Tree) -> Vec<Block> {
    let sets = find_points::all(tree);
    let taken: HashSet<NodeId> =
        sets.iter().flat_map(|set| set.on_points.iter().chain(&set.on_cells)).copied().collect();
    let mut grids = find_grid::all(tree);
    for grid in &mut grids {
        grid.points.retain(|id| !taken.contains(id));
        grid.cells.retain(|id| !taken.contains(id));
    }
    grids.retain(|grid| grid.len() > 0);
    if !sets.is_empty() || grids.iter().any(Grid::is_placed) {
        grids.retain(Grid::is_placed);
    }
    let grids = grids.into_iter().map(Mesh::Grid);
    let mut meshes: Vec<Mesh> = grids.chain(sets.into_iter().map(Mesh::Points)).collect();
    // The mesh with the most arrays first; species after grids.
    meshes.sort_by_key(|mesh| (matches!(mesh, Mesh::Points(_)), std::cmp::Reverse(mesh.len())));
    let names: Vec<(String, String)> = meshes.iter().map(|mesh| mesh.names(tree)).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (name, _) in &names {
        *count.entry(name).or_default() += 1;
    }
    let mut used = HashSet::new();
    let named = meshes.into_iter().zip(&names).map(|(mesh, (short, long))| {
        let name = if count.get(short.as_str()) == Some(&1) { short } else { long };
        let mut unique = name.clone();
        for k in 1.. {
            if used.insert(unique.clone()) {
                break;
            }
            unique = format!("{name}_{k}");
        }
        Block { name: unique, kind: mesh.kind(), mesh }
    });
    named.collect()
}

impl Snapshot<'_> {
    /// The type of the file of a block. Reads the coordinates of rectilinear grids that may be images.
    pub(crate) fn kind_of(&self, block: &Block) -> Kind {
        match &block.mesh {
            Mesh::Grid(grid)
                if self.with_images
                    && block.kind == Kind::Rectilinear
                    && grid.axes.iter().all(|axis| self.uniform(axis).is_ok()) =>
            {
                Kind::Image
            }
            _ => block.kind,
        }
    }

    /// Plans a file of type `kind` with the mesh that suits it best; with `others`, small arrays that are on no
    /// mesh are field data. Reads no values.
    pub(crate) fn plan(&self, kind: Kind, others: bool) -> Result<Plan> {
        let mesh = match kind {
            Kind::Image | Kind::Rectilinear | Kind::Structured => {
                let mut grids = find_grid::all(self.tree());
                grids.retain(|grid| match grid.position {
                    Position::Axes => kind != Kind::Structured,
                    Position::Lattice(_) => true,
                    _ => kind == Kind::Structured,
                });
                find_grid::best(grids).map(Mesh::Grid).ok_or_else(|| {
                    if kind == Kind::Structured {
                        return unsupported("no curvilinear grid and no field on a crystal cell")
                            .hint("write .vtr or .vti");
                    }
                    unsupported("no array of one to three dimensions on a grid")
                        .hint("write points as .vtu or .vtp")
                })?
            }
            Kind::Unstructured | Kind::Poly => {
                let best = find_points::best(find_points::all(self.tree()));
                best.map(Mesh::Points).ok_or_else(|| {
                    unsupported(
                        "no points: no array \"position\" of two or three components, no particles",
                    )
                    .hint("write grids as .vti or .vtr")
                })?
            }
        };
        let mut plan = self.plan_mesh(kind, &mesh)?;
        self.fields(&mut plan)?;
        if others {
            self.add_others(&mut plan)?;
        }
        self.add_labels(&mut plan);
        Ok(plan)
    }

    /// Plans a file with a mesh and its arrays, without field data. Reads no values.
    pub(crate) fn plan_mesh(&self, kind: Kind, mesh: &Mesh) -> Result<Plan> {
        match mesh {
            Mesh::Grid(grid) => self.grid_plan(kind, grid),
            Mesh::Points(set) => self.points_plan(kind, set),
        }
    }
}
