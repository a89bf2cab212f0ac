//! `data-file-schema.xml` of Quantum ESPRESSO 6.2 and later: types of the elements, and cell, atoms,
//! k-points and bands as arrays of the root.

use std::sync::Arc;

use spile_core::semantics::Quantity;
use spile_core::{
    ArrayDesc, Codec, DType, Extents, Layout, Linear, NodeId, Order, ROOT, Result, Role, Semantics,
    Shape, Source, Tree,
};

use crate::index::Index;
use crate::semantics::{ASSEMBLED, assemble};
use crate::wire::Type;

/// The root element.
pub(crate) const ROOT_NAME: &str = "qes:espresso";

/// Hartree in eV, CODATA 2018.
const HARTREE_EV: f64 = 27.211_386_245_988;

/// Elements with text that may look like a number.
const TEXT: [&[u8]; 8] = [
    b"title",
    b"prefix",
    b"pseudo_dir",
    b"outdir",
    b"pseudo_file",
    b"functional",
    b"info",
    b"created",
];

/// Bytes of an element that are examined to find its type.
const EXAMINED: u64 = 64 << 10;

/// Adds the attribute `type` to the tags of elements with numbers.
pub(crate) fn add_missing_types(index: &mut Index, source: &Source) -> Result<()> {
    let first = index.roots().first().map(|id| index.elements()[*id].tag.name());
    if first != Some(ROOT_NAME.as_bytes()) {
        return Ok(());
    }
    for id in 0..index.elements().len() {
        let element = &index.elements()[id];
        let [data] = &element.data[..] else { continue };
        let untyped = element.kind.is_none() && element.tag.get_raw("type").is_none();
        if !untyped || !element.children.is_empty() || TEXT.contains(&element.tag.name()) {
            continue;
        }
        let [part] = data.extents.parts() else { continue };
        let mut head = source.read_vec(part.offset, part.len.min(EXAMINED))?;
        if part.len > EXAMINED {
            // The last word may be cut.
            head.truncate(head.iter().rposition(u8::is_ascii_whitespace).unwrap_or(0));
        }
        let Some(kind) = std::str::from_utf8(&head).ok().and_then(type_of) else { continue };
        let element = index.element_mut(id);
        element.tag = element.tag.with_attribute("type", kind.name(), "");
        element.kind = Some(kind);
    }
    Ok(())
}

/// The type of all words of `text`, if they are numbers. Quantum ESPRESSO writes reals with a point.
fn type_of(text: &str) -> Option<Type> {
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek()?;
    let mut kind = Type::Integer;
    for word in words {
        if word.parse::<i64>().is_err() {
            crate::upf::number(word)?;
            kind = Type::Real;
        }
    }
    Some(kind)
}

/// Adds cell, atoms, k-points and bands to the root.
pub(crate) fn add_meaning(tree: &mut Tree) -> Result<()> {
    let output = format!("{ROOT_NAME}/output");
    if let Some(cell) = tree.at(&format!("{output}/atomic_structure/cell")) {
        let vectors = ["a1", "a2", "a3"].map(|name| tree.child(cell, name));
        if let [Some(a1), Some(a2), Some(a3)] = vectors {
            let dims = [("vector", 3), ("component", 3)];
            let meaning = Semantics::role(Role::Cell);
            add(tree, "cell", &[a1, a2, a3], &dims, Some("bohr"), meaning)?;
        }
    }
    if let Some(atoms) = tree.at(&format!("{output}/atomic_structure/atomic_positions")) {
        add_atoms(tree, atoms)?;
    }
    match tree.at(&format!("{output}/band_structure")) {
        Some(bands) => add_bands(tree, bands),
        None => Ok(()),
    }
}

/// The children of `group` with the tag `name`; further ones are `name~2` and so on.
fn children(tree: &Tree, group: NodeId, name: &str) -> Vec<NodeId> {
    let named = |own: &str| own.split('~').next() == Some(name);
    tree.iter().filter(|(_, node)| node.parent == group && named(&node.name)).map(|x| x.0).collect()
}

/// Adds an array of the root that is assembled from `parts`, if they fit.
fn add(
    tree: &mut Tree,
    name: &str,
    parts: &[NodeId],
    dims: &[(&str, u64)],
    units: Option<&str>,
    meaning: Semantics,
) -> Result<Option<NodeId>> {
    let Some(id) = assemble(tree, ROOT, name, parts, dims, Order::C)? else { return Ok(None) };
    if let Some(units) = units {
        tree.push_attr(id, "units", units)?;
    }
    if let Some(desc) = tree.array_mut(id) {
        *desc.semantics_mut() = meaning;
    }
    Ok(Some(id))
}

fn add_atoms(tree: &mut Tree, group: NodeId) -> Result<()> {
    let atoms = children(tree, group, "atom");
    let count = atoms.len() as u64;
    let mut meaning = Semantics::role(Role::Points);
    meaning.point_set = Some("atoms".into());
    meaning.quantity = Some(Quantity::Position);
    let dims = [("atom", count), ("component", 3)];
    let added = add(tree, "positions", &atoms, &dims, Some("bohr"), meaning.clone())?;
    let Some(positions) = added else { return Ok(()) };
    let name = |id: &NodeId| tree.node(*id).attrs.get_str("name").map(|n| n.trim().to_string());
    let Some(names) = atoms.iter().map(name).collect::<Option<Vec<String>>>() else {
        return Ok(());
    };
    let longest = names.iter().map(String::len).max().unwrap_or(0);
    let Ok(len) = u32::try_from(longest) else { return Ok(()) };
    tree.charge(count.saturating_mul(longest as u64), "the species of atoms")?;
    let mut bytes = Vec::new();
    for name in &names {
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(bytes.len() + longest - name.len(), b' ');
    }
    (meaning.mesh, meaning.quantity) = (Some(positions), Some(Quantity::Species));
    let mut desc = ArrayDesc::inline(DType::text(len), Shape::new([count]), bytes);
    desc.dims = vec!["atom".into()];
    let id = tree.add_array(ROOT, "species", desc.with_semantics(meaning))?;
    tree.push_attr(id, ASSEMBLED, "attribute name of atom")
}

fn add_bands(tree: &mut Tree, group: NodeId) -> Result<()> {
    let blocks = children(tree, group, "ks_energies");
    let of = |tree: &Tree, name: &str| -> Option<Vec<NodeId>> {
        blocks.iter().map(|block| tree.child(*block, name)).collect()
    };
    let count = blocks.len() as u64;
    if let Some(points) = of(tree, "k_point").filter(|points| !points.is_empty()) {
        let dims = [("k", count), ("component", 3)];
        let plain = Semantics::role(Role::Data);
        add(tree, "k-points", &points, &dims, Some("2 pi / alat"), plain)?;
        let weight = |id: &NodeId| f64::try_from(tree.node(*id).attrs.get("weight")?).ok();
        if let Some(weights) = points.iter().map(weight).collect::<Option<Vec<f64>>>() {
            tree.charge(8 * count, "the weights of k-points")?;
            let bytes = weights.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
            let mut desc = ArrayDesc::inline(DType::F64, Shape::new([count]), bytes);
            desc.dims = vec!["k".into()];
            let id = tree.add_array(ROOT, "weights", desc)?;
            tree.push_attr(id, ASSEMBLED, "attribute weight of k_point")?;
        }
    }
    // Both spins of a k-point are in one element, up before down.
    let spins = if tree.child(group, "nbnd_up").is_some() { 2 } else { 1 };
    for (name, part, scale) in
        [("bands", "eigenvalues", Some(HARTREE_EV)), ("occupations", "occupations", None)]
    {
        let Some(parts) = of(tree, part).filter(|parts| !parts.is_empty()) else { continue };
        let Some(mut desc) = join_spins(tree, &parts, spins)? else { continue };
        desc.map = scale.map(|slope| Linear::new(0.0, slope));
        let id = tree.add_array(ROOT, name, desc)?;
        tree.push_attr(id, ASSEMBLED, format!("{part} of ks_energies"))?;
        if scale.is_some() {
            tree.push_attr(id, "units", "eV")?;
        }
    }
    for name in
        ["fermi_energy", "highestOccupiedLevel", "lowestUnoccupiedLevel", "two_fermi_energies"]
    {
        let Some(stored) = tree.child(group, name).and_then(|id| tree.array(id)) else { continue };
        if stored.dtype != DType::F64 || tree.child(ROOT, name).is_some() {
            continue;
        }
        let mut desc = stored.clone();
        desc.map = Some(Linear::new(0.0, HARTREE_EV));
        let id = tree.add_array(ROOT, name, desc)?;
        tree.push_attr(id, ASSEMBLED, name)?;
        tree.push_attr(id, "units", "eV")?;
    }
    Ok(())
}

/// An array with the dimensions `spin`, `k`, `band` of one element per k-point, each with all spins.
/// `None` if the elements do not have the same type and size.
fn join_spins(tree: &mut Tree, parts: &[NodeId], spins: u64) -> Result<Option<ArrayDesc>> {
    let mut extents = Vec::new();
    let (mut texts, mut each) = (Vec::new(), None);
    let mut plain: Vec<Extents> = Vec::new();
    for id in parts {
        let Some(desc) = tree.array(*id) else { return Ok(None) };
        let count = desc.shape.count().filter(|count| count.is_multiple_of(spins));
        if desc.dtype != DType::F64 || count.is_none() || each.is_some_and(|each| each != count) {
            return Ok(None);
        }
        each = Some(count);
        match &desc.layout {
            Layout::EncodedWhole { extents: part, codec, .. } => {
                let Ok(len) = usize::try_from(part.len()) else { return Ok(None) };
                extents.extend(part.pieces(0, part.len()));
                texts.push((len, codec.clone()));
            }
            Layout::Plain { extents: part, .. } => plain.push(part.clone()),
            _ => return Ok(None),
        }
    }
    let Some(Some(values)) = each else { return Ok(None) };
    let bands = values / spins;
    let shape = Shape::new([spins, parts.len() as u64, bands]);
    let layout = if texts.len() == parts.len() {
        let needed = extents.iter().map(|part| part.len).sum::<u64>();
        tree.charge(16 * parts.len() as u64, "the bands")?;
        if needed.saturating_add(shape.bytes(8)?.saturating_mul(2)) > tree.limits().memory {
            return Ok(None);
        }
        let codec = Arc::new(Spins { texts, spins: spins as usize });
        Layout::EncodedWhole { extents: Extents::several(extents)?, codec, order: Order::C }
    } else if plain.len() == parts.len() {
        let half = 8 * bands;
        let pieces = (0..spins).flat_map(|spin| plain.iter().map(move |part| (spin, part)));
        let pieces = pieces.flat_map(|(spin, part)| part.pieces(spin * half, half)).collect();
        Layout::Plain { extents: Extents::several(pieces)?, order: Order::C }
    } else {
        return Ok(None);
    };
    let mut desc = ArrayDesc::new(DType::F64, shape, layout);
    desc.dims = ["spin", "k", "band"].map(String::from).to_vec();
    Ok(Some(desc))
}

/// Decodes the texts of all k-points, each with its length and codec, and sorts the values by spin.
struct Spins {
    texts: Vec<(usize, Arc<dyn Codec>)>,
    spins: usize,
}

impl Codec for Spins {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let points = self.texts.len().max(1);
        let block = out.len() / points / self.spins;
        let mut values = vec![0; block * self.spins];
        let mut rest = stored;
        for (k, (len, codec)) in self.texts.iter().enumerate() {
            let (text, tail) = rest.split_at(rest.len().min(*len));
            codec.decode(text, &mut values)?;
            for spin in 0..self.spins {
                let at = (spin * points + k) * block;
                out[at..at + block].copy_from_slice(&values[spin * block..(spin + 1) * block]);
            }
            rest = tail;
        }
        Ok(())
    }
}
