//! Meaning of the files of Quantum ESPRESSO: arrays assembled from planes of a density or bands of
//! wavefunctions. The assembled arrays refer to the byte ranges of their parts, in both forms.

pub(crate) mod qe_save;

use std::collections::HashSet;
use std::sync::Arc;

use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Node, NodeId, Tree, Value};

use crate::index::Index;
use crate::read::File;

/// The attribute of arrays that are assembled from others.
pub(crate) const ASSEMBLED: &str = "assembled from";

/// Adds the assembled arrays, and dimensions and units of eigenvalues.
pub(crate) fn add(tree: &mut Tree, limits: &Limits) -> Result<()> {
    let groups: Vec<(NodeId, String)> = tree
        .iter()
        .filter(|(_, node)| node.array.is_none())
        .map(|(id, node)| (id, node.name.clone()))
        .collect();
    for (group, name) in groups {
        let number = |key: &str| info(tree, group, key);
        if name.ends_with("CHARGE-DENSITY")
            && let (Some(n1), Some(n2), Some(n3)) = (number("nr1"), number("nr2"), number("nr3"))
        {
            // Coordinates along the lattice vectors: a grid point is at `i / n` of its vector.
            let dims = [("a1", n1), ("a2", n2), ("a3", n3)];
            if let Some(density) = assemble_named(tree, group, "density", "z", &dims, limits)? {
                let node = tree.node_mut(density);
                node.attrs.push(("units".to_string(), Value::from("e/Bohr^3")));
                if let Some(desc) = &mut node.array {
                    let step = |n: &u64| Coord::Uniform { start: 0.0, step: 1.0 / *n as f64 };
                    desc.coords = desc.shape.lengths().iter().map(step).collect();
                }
            }
        } else if let (Some(waves), Some(bands)) = (number("igwx"), number("nbnd")) {
            let dims = [("plane wave", waves), ("band", bands)];
            assemble_named(tree, group, "wavefunctions", "evc", &dims, limits)?;
        } else if name.ends_with("G-VECTORS") || name.ends_with("GK-VECTORS") {
            let flat = ["g", "GRID"].iter().find_map(|name| tree.child(group, name));
            let count = flat.and_then(|id| tree.node(id).array.as_ref()?.shape.count());
            if let (Some(flat), Some(count)) = (flat, count.filter(|n| n.is_multiple_of(3))) {
                let dims = [("component", 3), ("G-vector", count / 3)];
                assemble(tree, group, "vectors", &[flat], &dims, limits)?;
            }
        }
        let units = tree.child(group, "UNITS_FOR_ENERGIES").map(|id| tree.node(id));
        let units = units.and_then(|node| attribute(node, "UNITS").cloned());
        for (name, units) in [("EIGENVALUES", units), ("OCCUPATIONS", None)] {
            let Some(id) = tree.child(group, name) else { continue };
            let node = tree.node_mut(id);
            let Some(desc) = node.array.as_mut().filter(|desc| desc.shape.rank() == 1) else {
                continue;
            };
            desc.dims = vec!["band".to_string()];
            if let Some(units) = units.filter(|_| attribute(node, "units").is_none()) {
                node.attrs.push(("units".to_string(), units));
            }
        }
    }
    Ok(())
}

/// Adds the bands of a calculation: eigenvalues and occupations of all k-points, which are in
/// separate files, and the coordinates of the k-points.
pub(crate) fn add_bands(tree: &mut Tree, limits: &Limits) -> Result<()> {
    let Some(group) = tree.iter().map(|(id, _)| id).find(|id| {
        let first = tree.node(*id).name == "EIGENVALUES" && tree.node(*id).array.is_none();
        first && tree.child(*id, "K-POINT.1").is_some()
    }) else {
        return Ok(());
    };
    let points: Vec<NodeId> =
        (1..).map_while(|k| tree.child(group, &format!("K-POINT.{k}"))).collect();
    let count = points.len() as u64;
    let below = |tree: &Tree, path: &[&str]| -> Option<Vec<NodeId>> {
        let down = |from: &NodeId| path.iter().try_fold(*from, |at, name| tree.child(at, name));
        points.iter().map(down).collect()
    };
    for (name, path, inner) in [
        ("bands", &["DATAFILE", "EIGENVALUES"][..], "band"),
        ("occupations", &["DATAFILE", "OCCUPATIONS"], "band"),
        ("k-points", &["K-POINT_COORDS"], "component"),
    ] {
        let Some(parts) = below(tree, path) else { continue };
        let first = tree.node(parts[0]);
        let Some(length) = first.array.as_ref().and_then(|desc| desc.shape.count()) else {
            continue;
        };
        let units = attribute(first, "units").cloned();
        let dims = [(inner, length), ("k-point", count)];
        let added = assemble(tree, group, name, &parts, &dims, limits)?;
        if let (Some(added), Some(units)) = (added, units) {
            tree.node_mut(added).attrs.push(("units".to_string(), units));
        }
    }
    Ok(())
}

fn attribute<'a>(node: &'a Node, name: &str) -> Option<&'a Value> {
    node.attrs.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// The integer attribute `key` of the child `INFO`.
fn info(tree: &Tree, group: NodeId, key: &str) -> Option<u64> {
    match attribute(tree.node(tree.child(group, "INFO")?), key)? {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Adds an array assembled from the children `part.1`, `part.2`, ... of `group`. `None` if one is
/// missing or does not fit.
fn assemble_named(
    tree: &mut Tree,
    group: NodeId,
    name: &str,
    part: &str,
    dims: &[(&str, u64)],
    limits: &Limits,
) -> Result<Option<NodeId>> {
    let count = dims.last().map_or(0, |(_, count)| *count);
    if count > tree.len() as u64 {
        return Ok(None);
    }
    let parts = (1..=count).map(|k| tree.child(group, &format!("{part}.{k}")));
    match parts.collect::<Option<Vec<NodeId>>>() {
        Some(parts) => assemble(tree, group, name, &parts, dims, limits),
        None => Ok(None),
    }
}

/// Adds an array assembled from `parts`, concatenated along the last of `dims`, the slowest. `None` if
/// types or sizes do not fit.
fn assemble(
    tree: &mut Tree,
    group: NodeId,
    name: &str,
    parts: &[NodeId],
    dims: &[(&str, u64)],
    limits: &Limits,
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
        let Some(desc) = &tree.node(*id).array else { return Ok(None) };
        if desc.shape.count() != each || dtype.is_some_and(|d| d != desc.dtype) {
            return Ok(None);
        }
        dtype = Some(desc.dtype);
        match &desc.layout {
            // The record may be longer than its elements.
            Layout::Plain { extents: parts, .. } => extents.extend(parts.pieces(0, desc.bytes()?)),
            Layout::Text { extents: parts, codec, .. } => {
                let Ok(len) = usize::try_from(parts.len()) else { return Ok(None) };
                texts.push((len, codec.clone()));
                extents.extend(parts.pieces(0, parts.len()));
            }
            _ => return Ok(None),
        }
    }
    let Some(dtype) = dtype else { return Ok(None) };
    let (extents, order) = (Extents::several(extents)?, Order::F);
    let layout = if texts.is_empty() {
        Layout::Plain { extents, order }
    } else {
        // Text is parsed at once; an array that exceeds the limit is not assembled.
        let needed = extents.len().saturating_add(shape.bytes(dtype.size())?);
        if texts.len() != parts.len() || needed > limits.memory {
            return Ok(None);
        }
        Layout::Text { extents, codec: Arc::new(Joined(texts)), order }
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
    tree.node_mut(node).attrs.push((ASSEMBLED.into(), Value::Text(from)));
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

/// An array of which some parts are missing.
pub(crate) struct Incomplete {
    /// Name of the array.
    pub(crate) array: &'static str,
    /// `11 of 12 planes`.
    pub(crate) found: String,
    /// Offset of the element around the parts.
    pub(crate) offset: u64,
}

/// The densities and wavefunctions with missing parts.
pub(crate) fn incomplete(index: &Index) -> Vec<Incomplete> {
    let mut incomplete = Vec::new();
    for element in index.elements() {
        let inside = || element.children.iter().map(|id| &index.elements()[*id]);
        let Some(info) = inside().find(|e| e.tag.name() == b"INFO") else { continue };
        let number = |key: &str| info.tag.get_u64(key);
        let density = element.tag.name().ends_with(b"CHARGE-DENSITY");
        let (array, part, parts, expected) = match (number("nr3"), number("igwx"), number("nbnd")) {
            (Some(planes), _, _) if density => ("charge density", "z.", "planes", planes),
            (_, Some(_), Some(bands)) => ("wavefunctions", "evc.", "bands", bands),
            _ => continue,
        };
        let number_of = |name: &[u8]| -> Option<u64> {
            let digits = name.strip_prefix(part.as_bytes())?;
            std::str::from_utf8(digits).ok()?.parse().ok().filter(|k| (1..=expected).contains(k))
        };
        let found: HashSet<u64> = inside().filter_map(|e| number_of(e.tag.name())).collect();
        // Files without wavefunctions have no part at all.
        if !found.is_empty() && (found.len() as u64) < expected {
            let found = format!("{} of {expected} {parts}", found.len());
            incomplete.push(Incomplete { array, found, offset: element.offset });
        }
    }
    incomplete
}

/// Summary rows of a file of Quantum ESPRESSO: content, program, counts.
pub(crate) fn summary(file: &File) -> Vec<(String, Value)> {
    let index = file.index();
    let Some(root) = index.roots().first() else { return Vec::new() };
    let root = &index.elements()[*root];
    // Searches the children directly: the table of names would be built for all elements.
    let child = |path: &str| {
        path.split('/').try_fold(root, |at, name| {
            let mut inside = at.children.iter().map(|id| &index.elements()[*id]);
            inside.find(|element| element.tag.name() == name.as_bytes())
        })
    };
    let name = root.tag.name_lossy();
    let mut rows: Vec<(String, Value)> = Vec::new();
    let mut add_row = |what: &str, value: String| rows.push((what.into(), Value::Text(value)));
    let info = child("INFO");
    let get = |key: &str| info.and_then(|e| e.tag.get_text(key)).unwrap_or_else(|| "?".into());
    if name == "UPF" {
        add_row("holds", "pseudopotential".into());
        let header = child("PP_HEADER");
        let value = |key: &str| header.and_then(|e| e.tag.get_text(key));
        for (what, key) in
            [("element", "element"), ("valence", "z_valence"), ("functional", "functional")]
        {
            if let Some(value) = value(key) {
                add_row(what, value.trim().to_string());
            }
        }
    } else if let Some(creator) = child("HEADER/CREATOR") {
        let tag = &creator.tag;
        let text = |key: &str| tag.get_text(key).unwrap_or_default();
        add_row("holds", "description of a calculation".into());
        add_row("program", format!("{} {}", text("NAME"), text("VERSION")));
        for (what, path) in [
            ("k-points", "BRILLOUIN_ZONE/NUMBER_OF_K-POINTS"),
            ("bands", "BAND_STRUCTURE_INFO/NUMBER_OF_BANDS"),
            ("atoms", "IONS/NUMBER_OF_ATOMS"),
        ] {
            if let Ok(Some(values)) = file.read_f64(&format!("{name}/{path}"))
                && let [value] = values[..]
            {
                add_row(what, value.to_string());
            }
        }
    } else if let Some(density) = child("CHARGE-DENSITY/INFO") {
        let tag = &density.tag;
        let n = |key: &str| tag.get_text(key).unwrap_or_else(|| "?".into());
        add_row("holds", format!("charge density, {} x {} x {}", n("nr1"), n("nr2"), n("nr3")));
    } else if info.is_some_and(|e| e.tag.get_raw("igwx").is_some()) {
        let (bands, waves) = (get("nbnd"), get("igwx"));
        add_row("holds", format!("wavefunctions, {bands} bands of {waves} plane waves"));
        add_row(
            "k-point",
            format!("{} of {}, spin {} of {}", get("ik"), get("nk"), get("ispin"), get("nspin")),
        );
    } else if child("EIGENVALUES").is_some() {
        add_row("holds", format!("eigenvalues, {} bands, k-point {}", get("nbnd"), get("ik")));
        if let Some(units) = child("UNITS_FOR_ENERGIES").and_then(|e| e.tag.get_text("UNITS")) {
            add_row("units", units);
        }
    } else if name == "G-VECTORS" {
        add_row("holds", format!("{} G-vectors, units {}", get("gvect_number"), get("units")));
    } else if name == "GK-VECTORS"
        && let Ok(Some(number)) = file.read::<i64>("GK-VECTORS/NUMBER_OF_GK-VECTORS")
        && let [number] = number[..]
    {
        add_row("holds", format!("{number} plane waves of a k-point"));
    }
    for part in incomplete(index) {
        add_row(&format!("{}, incomplete", part.array), part.found);
    }
    rows
}
