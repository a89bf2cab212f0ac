//! Arrays of a pseudopotential: radial functions over the coordinate `r`, projectors as one array, the
//! matrix D.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::computed::{Computed, Function, store_f64};
use spile_core::semantics::Centring;
use spile_core::{
    Array, ArrayDesc, Coord, DType, Kind, Layout, NodeId, Order, Result, Role, Shape, Tree,
};

use super::ROOT_NAME;
use crate::semantics::{ASSEMBLED, assemble};

/// Units and meaning of the radial functions; `.` ends a name with an index.
const MEANINGS: [(&str, Option<&str>, &str); 23] = [
    ("PP_R", Some("bohr"), "radius"),
    ("PP_RAB", Some("bohr"), "dr/dx of the mesh"),
    ("PP_LOCAL", Some("Ry"), "local potential"),
    ("PP_NLCC", Some("bohr^-3"), "core charge density"),
    ("PP_RHOATOM", Some("bohr^-1"), "4 pi r^2 times the valence charge density"),
    ("PP_VNL.", Some("Ry"), "semilocal potential"),
    ("PP_BETA.", None, "r times the projector"),
    ("PP_CHI.", Some("bohr^-1/2"), "r times the pseudo wavefunction"),
    ("PP_AEWFC.", Some("bohr^-1/2"), "r times the all-electron wavefunction"),
    ("PP_AEWFC_REL.", Some("bohr^-1/2"), "r times the small component of the wavefunction"),
    ("PP_PSWFC.", Some("bohr^-1/2"), "r times the pseudo wavefunction"),
    ("PP_QIJ.", Some("bohr^-1"), "r^2 times the augmentation charge"),
    ("PP_QIJL.", Some("bohr^-1"), "r^2 times the augmentation charge"),
    ("PP_AE_NLCC", Some("bohr^-3"), "all-electron core charge density"),
    ("PP_AE_VLOC", Some("Ry"), "all-electron local potential"),
    ("PP_GIPAW_CORE_ORBITAL.", Some("bohr^-1/2"), "r times the core orbital"),
    ("PP_GIPAW_WFS_AE", Some("bohr^-1/2"), "r times the all-electron orbital"),
    ("PP_GIPAW_WFS_PS", Some("bohr^-1/2"), "r times the pseudo orbital"),
    ("PP_GIPAW_VLOCAL_AE", Some("Ry"), "all-electron local potential"),
    ("PP_GIPAW_VLOCAL_PS", Some("Ry"), "pseudo local potential"),
    ("PP_TAUMOD", None, "core kinetic energy density"),
    ("PP_TAUATOM", None, "valence kinetic energy density"),
    ("PP_OCCUPATIONS", None, "occupations"),
];

/// Adds coordinate, units, types of attributes and assembled arrays to all pseudopotentials of a tree.
pub(crate) fn add_functions(tree: &mut Tree) -> Result<()> {
    tree.charge(32 * tree.len() as u64, "the meshes of pseudopotentials")?;
    // For each node the pseudopotential that it is in.
    let mut inside: Vec<Option<NodeId>> = vec![None; tree.len() + 1];
    let mut members: Vec<NodeId> = Vec::new();
    let mut roots = Vec::new();
    for (id, node) in tree.iter() {
        inside[id.index()] = inside[node.parent.index()];
        if node.name == ROOT_NAME && node.array.is_none() {
            inside[id.index()] = Some(id);
            roots.push(id);
        }
        if inside[id.index()].is_some() {
            members.push(id);
        }
    }
    super::add_types(tree, &members, super::typed_value)?;
    let mut meshes: HashMap<NodeId, NodeId> = HashMap::new();
    for root in &roots {
        let mesh = tree.child(*root, "PP_MESH").and_then(|group| tree.child(group, "PP_R"));
        meshes.extend(mesh.filter(|mesh| line(tree, *mesh).is_some()).map(|mesh| (*root, mesh)));
    }
    let mut parts: HashMap<(NodeId, u64), NodeId> = HashMap::new();
    for id in members {
        let Some(mesh) = inside[id.index()].and_then(|root| meshes.get(&root)).copied() else {
            continue;
        };
        let (Some(count), Some(points)) = (line(tree, id), line(tree, mesh)) else { continue };
        let meaning = meaning_of(&tree.node(id).name);
        if count == points {
            set_coordinate(tree, id, mesh, mesh);
        } else if meaning.is_some() && tree.node(id).name != "PP_OCCUPATIONS" && count < points {
            let part = match parts.get(&(mesh, count)) {
                Some(part) => *part,
                None => add_part(tree, mesh, count)?,
            };
            parts.insert((mesh, count), part);
            set_coordinate(tree, id, part, part);
        }
        if let Some((_, units, title)) = meaning {
            let attrs = &tree.node(id).attrs;
            let (no_units, no_title) = (!attrs.contains("units"), !attrs.contains("long_name"));
            if let Some(units) = units.filter(|_| no_units) {
                tree.push_attr(id, "units", units)?;
            }
            if no_title {
                tree.push_attr(id, "long_name", title)?;
            }
        }
    }
    for root in roots {
        if let Some(mesh) = meshes.get(&root) {
            add_assembled(tree, root, *mesh)?;
        }
    }
    Ok(())
}

fn meaning_of(name: &str) -> Option<(&'static str, Option<&'static str>, &'static str)> {
    MEANINGS.into_iter().find(|(known, ..)| match known.strip_suffix('.') {
        Some(base) => name.strip_prefix(base).is_some_and(|rest| rest.starts_with('.')),
        None => name == *known,
    })
}

/// The number of elements of an array of reals with one dimension.
fn line(tree: &Tree, id: NodeId) -> Option<u64> {
    let desc = tree.array(id).filter(|desc| desc.dtype.kind() == Kind::Float)?;
    desc.shape.count().filter(|_| desc.shape.rank() == 1)
}

fn set_coordinate(tree: &mut Tree, id: NodeId, mesh: NodeId, coordinate: NodeId) {
    let Some(desc) = tree.array_mut(id) else { return };
    desc.dims = vec!["r".into()];
    if id == mesh {
        desc.semantics_mut().role = Role::Mesh;
        return;
    }
    desc.coords = vec![Coord::Node(coordinate)];
    desc.semantics_mut().role = Role::Field;
    desc.semantics_mut().mesh = Some(mesh);
    desc.semantics_mut().centring = Some(Centring::Node);
}

/// Adds the first `count` points of the mesh, the coordinate of functions that end at a cut-off.
fn add_part(tree: &mut Tree, mesh: NodeId, count: u64) -> Result<NodeId> {
    let Some(input) = tree.array(mesh).cloned() else { return Ok(mesh) };
    let group = tree.node(mesh).parent;
    let computed = Computed {
        inputs: vec![input.clone()],
        function: Arc::new(First),
        piece: count.max(1),
        order: Order::C,
    };
    let layout = Layout::Computed(Arc::new(computed));
    let mut desc = ArrayDesc::new(DType::F64, Shape::new([count]), layout);
    desc.dims = vec!["r".into()];
    desc.semantics_mut().role = Role::Mesh;
    let id = tree.add_array(group, &format!("r_{count}"), desc)?;
    tree.push_attr(id, ASSEMBLED, "PP_R")?;
    tree.push_attr(id, "units", "bohr")?;
    Ok(id)
}

/// The first elements of an array.
struct First;

impl Function for First {
    fn name(&self) -> &'static str {
        "first points"
    }

    fn memory(&self, count: u64) -> u64 {
        16 * count
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let count = out.len() as u64 / 8;
        let points: Vec<f64> = inputs[0].read(format!("{first}:{}", first + count).as_str())?;
        store_f64(DType::F64, &points, out)
    }
}

/// Adds the projectors and wavefunctions as one array each, and the matrix D.
fn add_assembled(tree: &mut Tree, root: NodeId, mesh: NodeId) -> Result<()> {
    for (group, name, part, dim) in [
        ("PP_NONLOCAL", "projectors", "PP_BETA", "projector"),
        ("PP_PSWFC", "wavefunctions", "PP_CHI", "state"),
    ] {
        let Some(group) = tree.child(root, group) else { continue };
        let parts: Vec<NodeId> =
            (1..).map_while(|k| tree.child(group, &format!("{part}.{k}"))).collect();
        let (Some(first), count) = (parts.first(), parts.len() as u64) else { continue };
        let Some(points) = line(tree, *first) else { continue };
        let coordinate = tree.array(*first).and_then(|desc| desc.coords.first()?.node());
        let (units, title) =
            meaning_of(&tree.node(*first).name).map_or((None, ""), |(_, u, t)| (u, t));
        let dims = [(dim, count), ("r", points)];
        let Some(id) = assemble(tree, group, name, &parts, &dims, Order::C)? else { continue };
        if let Some(units) = units {
            tree.push_attr(id, "units", units)?;
        }
        tree.push_attr(id, "long_name", title)?;
        if let (Some(desc), Some(coordinate)) = (tree.array_mut(id), coordinate) {
            desc.coords = vec![Coord::None, Coord::Node(coordinate)];
            desc.semantics_mut().role = Role::Field;
            desc.semantics_mut().mesh = Some(mesh);
        }
    }
    let Some(group) = tree.child(root, "PP_NONLOCAL") else { return Ok(()) };
    let Some(flat) = tree.child(group, "PP_DIJ") else { return Ok(()) };
    let Some(count) = line(tree, flat) else { return Ok(()) };
    let size = count.isqrt();
    if size * size != count || size == 0 {
        return Ok(());
    }
    let Some(desc) = tree.array(flat).filter(|_| tree.child(group, "D").is_none()) else {
        return Ok(());
    };
    let mut matrix = ArrayDesc::new(desc.dtype, Shape::new([size, size]), desc.layout.clone());
    matrix.dims = vec!["i".into(), "j".into()];
    let id = tree.add_array(group, "D", matrix)?;
    tree.push_attr(id, ASSEMBLED, "PP_DIJ")?;
    tree.push_attr(id, "long_name", "D_ij of the nonlocal potential")
}
