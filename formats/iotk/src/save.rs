//! `data-file-schema.xml` of Quantum ESPRESSO 6.2 and later: types of the elements, and cell, atoms,
//! k-points and bands as arrays of the root.

mod bands;
pub(crate) mod earlier;

use spile_core::format::Folder;
use spile_core::semantics::Quantity;
use spile_core::{
    ArrayDesc, Attrs, Axes, DType, Dataset, Linear, NodeId, Order, ROOT, Report, Result, Role,
    Selection, Semantics, Shape, Source, Tree, Value, convert,
};

use bands::HARTREE_EV;
pub(crate) use bands::{SpinBands, added_spin_bands, spin_bands};

use crate::index::{Element, Index};
use crate::plane_waves::folder::{self, Member};
use crate::semantics::{ASSEMBLED, assemble, place_densities};
use crate::wire::Type;

/// The root element.
pub(crate) const ROOT_NAME: &str = "qes:espresso";

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

/// The root elements of documents by a schema.
const DOCUMENTS: [&[u8]; 7] = [
    ROOT_NAME.as_bytes(),
    b"qes_ph:espressoph",
    b"qes_lr:tddfpt",
    b"qes_spectrum:spectrumDoc",
    b"qes_xspectra:xspectra",
    b"neb:nebRun",
    b"epw:epw",
];

/// The first elements of files of ph.x.
const PHONONS: [&[u8]; 6] =
    [b"GEOMETRY_INFO", b"PM_HEADER", b"IRREPS_INFO", b"STATUS_PH", b"EF_TENSORS", b"HEADER"];

/// Attributes with reals, which the newest versions write with digits that stay text elsewhere: `1.0000000000000000`.
const REALS: [&str; 2] = ["weight", "alat"];

/// Bytes of an element that are examined to find its type.
const EXAMINED: u64 = 64 << 10;

/// Adds the attribute `type` to the tags of elements with numbers.
pub(crate) fn add_missing_types(index: &mut Index, source: &Source) -> Result<()> {
    if !is_untyped(index) {
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

/// Whether the file is a document of Quantum ESPRESSO by a schema, or one of those without types and without the
/// head of IOTK that version 6.5 and later write: dynamical matrices, displacements, projections.
fn is_untyped(index: &Index) -> bool {
    let Some(root) = index.roots().first().map(|id| &index.elements()[*id]) else { return false };
    let name = root.tag.name();
    if DOCUMENTS.contains(&name) {
        return true;
    }
    let first = root.children.first().map(|id| index.elements()[*id].tag.name());
    let known = name == b"PROJECTIONS" && first == Some(b"HEADER")
        || name == b"Root" && first.is_some_and(|first| PHONONS.contains(&first));
    let typed = |element: &Element| element.tag.get_raw("type").is_some();
    known && index.head("version").is_none() && !index.elements().iter().any(typed)
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
pub(crate) fn add_meaning(
    tree: &mut Tree,
    spins: Option<SpinBands>,
    report: &mut Report,
) -> Result<()> {
    let real = |name: &str, text: &str| -> Value {
        let value = REALS.contains(&name).then(|| crate::upf::number(text.trim())).flatten();
        value.filter(|value| value.is_finite()).map_or_else(|| text.into(), Value::Float)
    };
    let with_reals = |attrs: &Attrs| REALS.iter().any(|name| attrs.get_str(name).is_some());
    let nodes = tree.iter().filter(|(_, node)| with_reals(&node.attrs)).map(|(id, _)| id);
    let nodes: Vec<NodeId> = nodes.collect();
    crate::upf::add_types(tree, &nodes, real)?;
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
        Some(bands) => add_bands(tree, bands, spins, report),
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

fn add_bands(
    tree: &mut Tree,
    group: NodeId,
    spins: Option<SpinBands>,
    report: &mut Report,
) -> Result<()> {
    let blocks = children(tree, group, "ks_energies");
    let of = |tree: &Tree, name: &str| -> Option<Vec<NodeId>> {
        blocks.iter().map(|block| tree.child(*block, name)).collect()
    };
    let count = blocks.len() as u64;
    if let Some(points) = of(tree, "k_point").filter(|points| !points.is_empty()) {
        let dims = [("k", count), ("component", 3)];
        let plain = Semantics::role(Role::Data);
        let added = add(tree, "k-points", &points, &dims, Some("2 pi / alat"), plain)?;
        if let Some(added) = added {
            bands::add_path(tree, added)?;
        }
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
    for (name, part) in [("bands", "eigenvalues"), ("occupations", "occupations")] {
        let Some(parts) = of(tree, part).filter(|parts| !parts.is_empty()) else { continue };
        bands::add(tree, (name, part), &parts, spins, report)?;
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

/// Adds the densities and wavefunctions of a folder, whose bytes are at `places`.
pub(crate) fn add_plane_waves(
    tree: &mut Tree,
    waves: Vec<Member>,
    places: &[(u64, u64)],
    report: &mut Report,
) -> Result<()> {
    let grid = tree.at(&format!("{ROOT_NAME}/output/basis_set/fft_grid"));
    let grid = grid.and_then(|id| folder::grid_of(tree, id));
    if grid.is_none() && !waves.is_empty() {
        let message = "the density is not shown in real space: the FFT grid is unknown";
        report.warn("iotk-051", message).in_object("fft_grid");
    }
    folder::add(tree, waves, places, grid)?;
    place_densities(tree);
    Ok(())
}

/// Code of a missing file: a warning of opening, which reads the others, and an error of `check`.
pub(crate) const MISSING: &str = "iotk-049";

/// Reports files that the run has written by its description, and that are not in the folder.
pub(crate) fn report_missing(
    tree: &Tree,
    source: &Source,
    folder: &Folder,
    report: &mut Report,
) -> Result<()> {
    let text = |id: NodeId| -> Result<String> {
        let Some(desc) = tree.array(id) else { return Ok(String::new()) };
        let dataset = Dataset::of_bytes(source.clone(), tree.limits());
        let bytes = dataset.open_array(desc)?.read_bytes(&Selection::all(), Axes::Stored)?;
        Ok(convert::text_of(&bytes).trim().to_string())
    };
    let word = |path: &str| match tree.at(&format!("{ROOT_NAME}/{path}")) {
        Some(id) => text(id),
        None => Ok(String::new()),
    };
    let mut files = Vec::new();
    if word("input/control_variables/disk_io")? != "none"
        && !folder::has_file(folder, "charge-density")
    {
        files.push("charge-density.dat or charge-density.hdf5".to_string());
    }
    let bands = tree.at(&format!("{ROOT_NAME}/output/band_structure"));
    let collected = word("output/convergence_info/wf_collected")? == "true"
        || word("output/band_structure/wf_collected")? == "true";
    if let Some(bands) = bands.filter(|_| collected) {
        let points = children(tree, bands, "ks_energies").len() as u64;
        let spins = tree.child(bands, "nbnd_up").is_some();
        let names: Vec<String> = folder::wavefunction_names(points, spins).collect();
        let missing = names.iter().filter(|name| !folder::has_file(folder, name));
        let missing: Vec<&String> = missing.collect();
        if let Some(name) = missing.first() {
            let (some, all) = (missing.len(), names.len());
            let message = format!("{some} of {all} files of wavefunctions are missing");
            report.warn(MISSING, message).in_object(format!("{name}.dat or {name}.hdf5"));
        }
    }
    let species = tree.at(&format!("{ROOT_NAME}/output/atomic_species"));
    for species in species.map_or_else(Vec::new, |group| children(tree, group, "species")) {
        let Some(id) = tree.child(species, "pseudo_file") else { continue };
        let name = text(id)?;
        let named = |path: &std::path::PathBuf| path.file_name().is_some_and(|own| own == &*name);
        if !name.is_empty() && !folder.files().iter().any(named) {
            files.push(name);
        }
    }
    for file in files {
        report.warn(MISSING, "the file is missing").in_object(file);
    }
    Ok(())
}
