//! Meaning of the files of Quantum ESPRESSO: arrays assembled from planes of a density, bands of
//! wavefunctions, lattice vectors or atoms; coordinates and roles. Arrays assembled from others refer
//! to the byte ranges of their parts, in both forms.

pub(crate) mod qe_save;
mod summary;

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::semantics::{Centring, Quantity};
use spile_core::{
    ArrayDesc, Codec, Coord, DType, Extent, Extents, Layout, NodeId, Order, ROOT, Report, Result,
    Role, Semantics, Shape, Tree, Value, metadata,
};

pub(crate) use summary::{report_incomplete, summary};

use crate::plane_waves::DENSITY_UNITS;
use crate::save::earlier::{self, Facts};
use crate::{save, upf};

/// The attribute of arrays that are assembled from others.
pub(crate) const ASSEMBLED: &str = "assembled_from";

/// The set of all atoms of a calculation.
const ATOMS: &str = "atoms";

/// Adds the assembled arrays, and dimensions, units and roles of other arrays; reports those whose parts do
/// not fit. Stored metadata describes the arrays of a file completely, so nothing is added to such a file.
pub(crate) fn add(
    tree: &mut Tree,
    spins: Option<save::SpinBands>,
    facts: Option<&Facts>,
    report: &mut Report,
) -> Result<()> {
    if tree.at(metadata::ARRAY).is_some() {
        return Ok(());
    }
    let groups: Vec<NodeId> =
        tree.iter().filter(|(_, node)| node.array.is_none()).map(|(id, _)| id).collect();
    let atoms = atom_counts(tree);
    let mut band_groups = Vec::new();
    let mut with_pseudopotential = false;
    for group in groups {
        let name = tree.node(group).name.clone();
        let number = |key: &str| info(tree, group, key);
        if name.ends_with("CHARGE-DENSITY")
            && let (Some(n1), Some(n2), Some(n3)) = (number("nr1"), number("nr2"), number("nr3"))
        {
            add_density(tree, group, [n1, n2, n3])?;
        } else if let (Some(waves), Some(bands)) = (number("igwx"), number("nbnd")) {
            let dims = [("plane wave", waves), ("band", bands)];
            assemble_named(tree, group, "wavefunctions", "evc", &dims)?;
        } else if name.ends_with("G-VECTORS") || name.ends_with("GK-VECTORS") {
            let flat = ["g", "GRID"].iter().find_map(|name| tree.child(group, name));
            let count = flat.and_then(|id| tree.array(id)?.shape.count());
            if let (Some(flat), Some(count)) = (flat, count.filter(|n| n.is_multiple_of(3))) {
                let dims = [("component", 3), ("G-vector", count / 3)];
                assemble(tree, group, "vectors", &[flat], &dims, Order::F)?;
            }
        } else if name == "DIRECT_LATTICE_VECTORS" {
            add_cell(tree, group)?;
        } else if name == "IONS" {
            add_atoms(tree, group, atoms.get(&group).copied().unwrap_or(0))?;
        } else if name == "EIGENVALUES" && tree.child(group, "K-POINT.1").is_some() {
            band_groups.push(group);
        } else if name == upf::ROOT_NAME {
            with_pseudopotential = true;
        }
        name_bands(tree, group)?;
    }
    // The units of the parts are known now.
    for group in band_groups {
        add_bands(tree, group)?;
    }
    if with_pseudopotential {
        upf::add_functions(tree)?;
    }
    if tree.child(ROOT, save::ROOT_NAME).is_some() {
        save::add_meaning(tree, spins, report)?;
    }
    earlier::add(tree, facts, report)?;
    place_densities(tree);
    Ok(())
}

/// Makes the cell the mesh of the densities, whose coordinates are fractions of its vectors.
pub(crate) fn place_densities(tree: &mut Tree) {
    let is_role = |desc: &ArrayDesc, role| desc.semantics().role == role;
    let cells: Vec<NodeId> =
        tree.arrays().filter(|(_, _, desc)| is_role(desc, Role::Cell)).map(|(id, ..)| id).collect();
    let [cell] = cells[..] else { return };
    let densities: Vec<NodeId> = tree
        .arrays()
        .filter(|(_, _, desc)| is_role(desc, Role::Field) && desc.dims == ["a1", "a2", "a3"])
        .map(|(id, ..)| id)
        .collect();
    for id in densities {
        if let Some(desc) = tree.array_mut(id) {
            desc.semantics_mut().mesh = Some(cell);
        }
    }
}

/// Adds the density on its grid. Coordinates are fractions of the lattice vectors: a grid point is at
/// `i / n` of its vector.
fn add_density(tree: &mut Tree, group: NodeId, [n1, n2, n3]: [u64; 3]) -> Result<()> {
    let dims = [("a1", n1), ("a2", n2), ("a3", n3)];
    let Some(density) = assemble_named(tree, group, "density", "z", &dims)? else { return Ok(()) };
    tree.push_attr(density, "units", DENSITY_UNITS)?;
    if let Some(desc) = tree.array_mut(density) {
        let step = |n: &u64| Coord::Uniform { start: 0.0, step: 1.0 / *n as f64 };
        desc.coords = desc.shape.lengths().iter().map(step).collect();
        desc.semantics_mut().role = Role::Field;
        desc.semantics_mut().centring = Some(Centring::Node);
    }
    Ok(())
}

/// Adds the cell: the lattice vectors as rows.
fn add_cell(tree: &mut Tree, group: NodeId) -> Result<()> {
    let vectors = ["a1", "a2", "a3"].map(|name| tree.child(group, name));
    let [Some(a1), Some(a2), Some(a3)] = vectors else { return Ok(()) };
    let dims = [("vector", 3), ("component", 3)];
    let Some(cell) = assemble(tree, group, "cell", &[a1, a2, a3], &dims, Order::C)? else {
        return Ok(());
    };
    if let Some(units) = declared_units(tree, group, "UNITS_FOR_DIRECT_LATTICE_VECTORS") {
        tree.push_attr(cell, "units", units)?;
    }
    if let Some(desc) = tree.array_mut(cell) {
        desc.semantics_mut().role = Role::Cell;
    }
    Ok(())
}

/// The number of the atom whose element has this name.
fn atom_number(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name.strip_prefix(b"ATOM.")?).ok()?.parse().ok()
}

/// The number of elements `ATOM.k` in each element that has some.
fn atom_counts(tree: &Tree) -> HashMap<NodeId, u64> {
    let mut counts = HashMap::new();
    for (_, node) in tree.iter().filter(|(_, node)| atom_number(node.name.as_bytes()).is_some()) {
        *counts.entry(node.parent).or_default() += 1;
    }
    counts
}

/// Adds positions and species of the atoms, which are attributes of the `count` elements `ATOM.1`, ... If
/// one is missing in between, the rows could not be told apart and nothing is added.
fn add_atoms(tree: &mut Tree, group: NodeId, count: u64) -> Result<()> {
    let mut atoms: u64 = 0;
    let mut positions = Vec::new();
    let mut species: Vec<String> = Vec::new();
    while let Some(atom) = tree.child(group, &format!("ATOM.{}", atoms + 1)) {
        tree.charge(24 + 64, "the positions of atoms")?;
        let attrs = &tree.node(atom).attrs;
        let tau: Option<Vec<f64>> = match attrs.get("tau") {
            Some(Value::List(list)) => list.iter().map(|x| f64::try_from(x).ok()).collect(),
            _ => None,
        };
        let Some([x, y, z]) = tau.as_deref() else { return Ok(()) };
        positions.extend([x, y, z].iter().flat_map(|x| x.to_le_bytes()));
        species.extend(attrs.get_str("SPECIES").map(|name| name.trim().to_string()));
        atoms += 1;
    }
    let taken = ["positions", "species"].iter().any(|name| tree.child(group, name).is_some());
    if atoms == 0 || atoms != count || taken {
        return Ok(());
    }
    let add = |tree: &mut Tree, name: &str, mut desc: ArrayDesc, meaning: Semantics| {
        desc.dims[0] = "atom".into();
        let id = tree.add_array(group, name, desc.with_semantics(meaning))?;
        let from = if atoms == 1 { "ATOM.1".into() } else { format!("ATOM.1 to ATOM.{atoms}") };
        tree.push_attr(id, ASSEMBLED, from)?;
        Result::Ok(id)
    };
    let mut meaning = Semantics::role(Role::Points);
    meaning.point_set = Some(ATOMS.into());
    meaning.quantity = Some(Quantity::Position);
    let mut desc = ArrayDesc::inline(DType::F64, Shape::new([atoms, 3]), positions);
    desc.dims[1] = "component".into();
    let positions = add(tree, "positions", desc, meaning.clone())?;
    if let Some(units) = declared_units(tree, group, "UNITS_FOR_ATOMIC_POSITIONS") {
        tree.push_attr(positions, "units", units)?;
    }
    let longest = species.iter().map(String::len).max().unwrap_or(0);
    if species.len() as u64 != atoms || longest == 0 {
        return Ok(());
    }
    let Ok(len) = u32::try_from(longest) else { return Ok(()) };
    tree.charge(atoms.saturating_mul(u64::from(len)), "the species of atoms")?;
    let names: Vec<u8> =
        species.iter().flat_map(|name| format!("{name:<longest$}").into_bytes()).collect();
    // Blanks are counted in characters, the length in bytes.
    if names.len() as u64 != atoms * u64::from(len) {
        return Ok(());
    }
    (meaning.mesh, meaning.quantity) = (Some(positions), Some(Quantity::Species));
    add(tree, "species", ArrayDesc::inline(DType::text(len), Shape::new([atoms]), names), meaning)?;
    Ok(())
}

/// Names the dimension of eigenvalues and occupations and adds their units.
fn name_bands(tree: &mut Tree, group: NodeId) -> Result<()> {
    let units = declared_units(tree, group, "UNITS_FOR_ENERGIES");
    for (name, units) in [("EIGENVALUES", units), ("OCCUPATIONS", None)] {
        let Some(id) = tree.child(group, name) else { continue };
        let node = tree.node_mut(id);
        let Some(desc) = node.array.as_mut().filter(|desc| desc.shape.rank() == 1) else {
            continue;
        };
        desc.dims = vec!["band".to_string()];
        if let Some(units) = units.filter(|_| !node.attrs.contains("units")) {
            tree.push_attr(id, "units", units)?;
        }
    }
    Ok(())
}

/// Adds the bands of a calculation: eigenvalues and occupations of all k-points and both spins, which
/// are in separate files, and the coordinates of the k-points.
fn add_bands(tree: &mut Tree, group: NodeId) -> Result<()> {
    let points: Vec<NodeId> =
        (1..).map_while(|k| tree.child(group, &format!("K-POINT.{k}"))).collect();
    let count = points.len() as u64;
    let (Some(first), true) = (points.first(), count > 0) else { return Ok(()) };
    // With spin polarisation there is a file for each spin.
    let named = (1..).map(|spin| format!("DATAFILE.{spin}"));
    let mut files: Vec<String> =
        named.take_while(|name| tree.child(*first, name).is_some()).collect();
    if files.is_empty() {
        files.push("DATAFILE".into());
    }
    let spins = files.len() as u64;
    for (name, part) in [("bands", "EIGENVALUES"), ("occupations", "OCCUPATIONS")] {
        let parts = files.iter().flat_map(|file| points.iter().map(move |point| (file, *point)));
        let parts = parts.map(|(file, point)| tree.child(tree.child(point, file)?, part));
        let Some(parts) = parts.collect::<Option<Vec<NodeId>>>() else { continue };
        let Some(bands) = length(tree, parts[0]) else { continue };
        let units = tree.node(parts[0]).attrs.get("units").cloned();
        let dims = [("spin", spins), ("k", count), ("band", bands)];
        let added = assemble(tree, group, name, &parts, &dims, Order::C)?;
        if let (Some(added), Some(units)) = (added, units) {
            tree.push_attr(added, "units", units)?;
        }
    }
    let parts = points.iter().map(|point| tree.child(*point, "K-POINT_COORDS"));
    let Some(parts) = parts.collect::<Option<Vec<NodeId>>>() else { return Ok(()) };
    let Some(components) = length(tree, parts[0]) else { return Ok(()) };
    let dims = [("k", count), ("component", components)];
    let Some(added) = assemble(tree, group, "k-points", &parts, &dims, Order::C)? else {
        return Ok(());
    };
    let about = tree.child(tree.node(group).parent, "BAND_STRUCTURE_INFO");
    let units = about.and_then(|about| declared_units(tree, about, "UNITS_FOR_K-POINTS"));
    units.map_or(Ok(()), |units| tree.push_attr(added, "units", units))
}

/// The number of elements of an array.
fn length(tree: &Tree, id: NodeId) -> Option<u64> {
    tree.array(id)?.shape.count()
}

/// The attribute `UNITS` of the child `name`; `Bohr` in lower case, as other programs write it.
fn declared_units(tree: &Tree, group: NodeId, name: &str) -> Option<Value> {
    let units = tree.node(tree.child(group, name)?).attrs.get("UNITS")?;
    let bohr = matches!(units, Value::Text(text) if text.trim().eq_ignore_ascii_case("bohr"));
    Some(if bohr { "bohr".into() } else { units.clone() })
}

/// The integer attribute `key` of the child `INFO`.
fn info(tree: &Tree, group: NodeId, key: &str) -> Option<u64> {
    tree.node(tree.child(group, "INFO")?).attrs.get_u64(key)
}

/// Adds an array assembled from the children `part.1`, `part.2`, ... of `group`, first index fastest.
/// `None` if one is missing or does not fit.
fn assemble_named(
    tree: &mut Tree,
    group: NodeId,
    name: &str,
    part: &str,
    dims: &[(&str, u64)],
) -> Result<Option<NodeId>> {
    let count = dims.last().map_or(0, |(_, count)| *count);
    if count > tree.len() as u64 {
        return Ok(None);
    }
    let parts = (1..=count).map(|k| tree.child(group, &format!("{part}.{k}")));
    match parts.collect::<Option<Vec<NodeId>>>() {
        Some(parts) => assemble(tree, group, name, &parts, dims, Order::F),
        None => Ok(None),
    }
}

/// Adds an array assembled from `parts`, concatenated along the slowest of `dims`. `None` if types or
/// sizes do not fit.
pub(crate) fn assemble(
    tree: &mut Tree,
    group: NodeId,
    name: &str,
    parts: &[NodeId],
    dims: &[(&str, u64)],
    order: Order,
) -> Result<Option<NodeId>> {
    let shape = Shape::new(dims.iter().map(|(_, length)| *length).collect::<Vec<_>>());
    let Some(count) = shape.count() else { return Ok(None) };
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
    if !count.is_multiple_of(parts.len() as u64) || tree.child(group, name).is_some() {
        return Ok(None);
    }
    let each = Some(count / parts.len() as u64);
    let mut extents: Vec<Extent> = Vec::new();
    let mut dtype = None;
    let mut texts: Vec<(usize, Arc<dyn Codec>)> = Vec::new();
    for id in parts {
        let Some(desc) = tree.array(*id) else { return Ok(None) };
        if desc.shape.count() != each || dtype.is_some_and(|d| d != desc.dtype) {
            return Ok(None);
        }
        dtype = Some(desc.dtype);
        match &desc.layout {
            // The record may be longer than its elements.
            Layout::Plain { extents: parts, .. } => extents.extend(parts.pieces(0, desc.bytes()?)),
            Layout::EncodedWhole { extents: parts, codec, .. } => {
                let Ok(len) = usize::try_from(parts.len()) else { return Ok(None) };
                texts.push((len, codec.clone()));
                extents.extend(parts.pieces(0, parts.len()));
            }
            _ => return Ok(None),
        }
    }
    let Some(dtype) = dtype else { return Ok(None) };
    let extents = Extents::several(extents)?;
    let layout = if texts.is_empty() {
        Layout::Plain { extents, order }
    } else {
        // Text is parsed at once; an array that exceeds the limit is not assembled.
        let needed = extents.len().saturating_add(shape.bytes(dtype.size())?);
        if texts.len() != parts.len() || needed > tree.limits().memory {
            return Ok(None);
        }
        Layout::EncodedWhole { extents, codec: Arc::new(Joined(texts)), order }
    };
    let mut desc = ArrayDesc::new(dtype, shape, layout);
    desc.dims = dims.iter().map(|(name, _)| (*name).to_string()).collect();
    let below = |id: NodeId| {
        let (path, group) = (&tree.node(id).path, &tree.node(group).path);
        path.strip_prefix(group).unwrap_or(path).trim_start_matches('/').to_string()
    };
    let from = match parts {
        [one] => below(*one),
        _ => format!("{} to {}", below(*first), below(*last)),
    };
    let node = tree.add_array(group, name, desc)?;
    tree.push_attr(node, ASSEMBLED, from)?;
    Ok(Some(node))
}

/// Decodes concatenated texts with the same number of elements, each with its length and codec.
struct Joined(Vec<(usize, Arc<dyn Codec>)>);

impl Codec for Joined {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let share = out.len() / self.0.len().max(1);
        let mut rest = stored;
        for ((len, codec), values) in self.0.iter().zip(out.chunks_mut(share.max(1))) {
            let (text, tail) = rest.split_at(rest.len().min(*len));
            codec.decode(text, values)?;
            rest = tail;
        }
        Ok(())
    }
}
