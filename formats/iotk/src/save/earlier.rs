//! Calculations of Quantum ESPRESSO up to version 6.1: the arrays of the root that later versions have, from the
//! elements of `data-file.xml` and of the files that it links to.

use spile_core::semantics::Component;
use spile_core::{
    ArrayDesc, Axes, Coord, DType, Dataset, Extents, Layout, Linear, NodeId, Order, ROOT, Report,
    Result, Role, Selection, Semantics, Shape, Source, Tree,
};

use super::bands::{self, HARTREE_EV};
use crate::plane_waves::{self, PlaneWaves};
use crate::semantics::{ASSEMBLED, assemble};

/// The root element.
const ROOT_TAG: &str = "Root";

/// The file with the eigenvalues of all k-points, of runs without folders of the k-points.
pub(crate) const EIGENVALUES: &str = "data-file.xml.eig";

/// The files with magnetization densities that no file links to, and the arrays that they become.
pub(crate) const MAGNETIZATION: [(&str, &str); 4] = [
    ("spin-polarization", "magnetization"),
    ("magnetization.x", "magnetization_x"),
    ("magnetization.y", "magnetization_y"),
    ("magnetization.z", "magnetization_z"),
];

/// Numbers of a description that the meaning of its arrays depends on.
pub(crate) struct Facts {
    /// The reciprocal lattice vectors as rows, in 1/bohr.
    reciprocal: [[f64; 3]; 3],
    /// The file has G = 0 and half of the other G vectors.
    half: bool,
    /// Wavefunctions have two components.
    spinors: bool,
    /// The k-points in 1/bohr.
    points: Vec<[f64; 3]>,
}

/// The element `path` of the root element.
fn element(tree: &Tree, path: &str) -> Option<NodeId> {
    tree.at(&format!("{ROOT_TAG}/{path}"))
}

/// The elements `path.1`, `path.2` and so on.
fn numbered(tree: &Tree, path: &str) -> Vec<NodeId> {
    (1_u64..).map_while(|k| element(tree, &format!("{path}.{k}"))).collect()
}

/// Whether the tree has the description of a calculation.
fn is_description(tree: &Tree) -> bool {
    element(tree, "CELL/DIRECT_LATTICE_VECTORS").is_some() && element(tree, "IONS").is_some()
}

/// Reads values of a description.
struct Values<'a> {
    tree: &'a Tree,
    bytes: Dataset,
}

impl<'a> Values<'a> {
    fn new(tree: &'a Tree, source: &Source) -> Self {
        Self { tree, bytes: Dataset::of_bytes(source.clone(), tree.limits()) }
    }

    /// The reals of an array of `N` elements.
    fn reals<const N: usize>(&self, id: NodeId) -> Option<[f64; N]> {
        let desc = self.tree.array(id).filter(|desc| desc.shape.count() == Some(N as u64))?;
        self.bytes.open_array(desc).ok()?.read::<Vec<f64>>("...").ok()?.try_into().ok()
    }

    /// The logical value of the element `path`; false if there is none.
    fn flag(&self, path: &str) -> bool {
        let desc = element(self.tree, path).and_then(|id| self.tree.array(id));
        let desc = desc.filter(|desc| desc.shape.count() == Some(1));
        let array = desc.and_then(|desc| self.bytes.open_array(desc).ok());
        let bytes = array.and_then(|a| a.read_bytes(&Selection::all(), Axes::Stored).ok());
        bytes.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    }
}

impl Facts {
    /// The facts of the description in `tree`, whose bytes are in `source`; `None` if there is none, or if
    /// it has no wavefunctions.
    pub(crate) fn read(tree: &mut Tree, source: &Source) -> Result<Option<Self>> {
        if !is_description(tree) || element(tree, "EIGENVECTORS/K-POINT.1").is_none() {
            return Ok(None);
        }
        let points = numbered(tree, "EIGENVALUES/K-POINT");
        tree.charge(24 * points.len() as u64, "the k-points")?;
        let values = Values::new(tree, source);
        let alat = element(tree, "CELL/LATTICE_PARAMETER").and_then(|id| values.reals::<1>(id));
        let Some([alat]) = alat.filter(|[alat]| *alat > 0.0) else { return Ok(None) };
        let scaled =
            |id: NodeId| values.reals::<3>(id).map(|x| x.map(|x| x * std::f64::consts::TAU / alat));
        let vector =
            |name: &str| scaled(element(tree, &format!("CELL/RECIPROCAL_LATTICE_VECTORS/{name}"))?);
        let [Some(b1), Some(b2), Some(b3)] = ["b1", "b2", "b3"].map(vector) else {
            return Ok(None);
        };
        let coordinates = |point: &NodeId| scaled(tree.child(*point, "K-POINT_COORDS")?);
        let Some(points) = points.iter().map(coordinates).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let half = values.flag("PLANE_WAVES/GAMMA_ONLY");
        // The half without negatives begins with G = 0.
        let grid = element(tree, "EIGENVECTORS/K-POINT.1/GK-VECTORS/GRID");
        let grid = grid.filter(|_| half).and_then(|id| tree.array(id));
        let first = grid.and_then(|desc| values.bytes.open_array(desc).ok());
        let first = first.and_then(|array| array.read::<Vec<f64>>("0:3").ok());
        if first.is_some_and(|first| first.iter().any(|index| *index != 0.0)) {
            return Ok(None);
        }
        let spinors = values.flag("SPIN/NON-COLINEAR_CALCULATION")
            || values.flag("BAND_STRUCTURE_INFO/NON-COLINEAR_CALCULATION");
        Ok(Some(Self { reciprocal: [b1, b2, b3], half, spinors, points }))
    }

    /// The wavefunctions of a k-point and spin; `None` if they do not fit.
    fn waves(
        &self,
        tree: &Tree,
        files: &[NodeId],
        vectors: NodeId,
        k: usize,
    ) -> Option<PlaneWaves> {
        let grid = tree.array(tree.child(vectors, "GRID")?)?;
        let stored = grid.shape.count().filter(|n| n.is_multiple_of(3))? / 3;
        let (extents, _) = grid.layout.plain()?;
        let layout = Layout::Plain { extents: extents.clone(), order: Order::C };
        let miller = ArrayDesc::new(grid.dtype, Shape::new([stored, 3]), layout);
        let parts = files.iter().map(|file| tree.array(tree.child(*file, "wavefunctions")?));
        let parts: Vec<&ArrayDesc> = parts.collect::<Option<_>>()?;
        let first = *parts.first()?;
        let [count, bands] = *first.shape.lengths() else { return None };
        let same = |desc: &&ArrayDesc| desc.shape == first.shape && desc.dtype == first.dtype;
        if count != stored || !parts.iter().all(same) {
            return None;
        }
        let row = count.checked_mul(first.dtype.size() as u64)?;
        let all = parts.iter().map(|desc| desc.layout.plain().map(|(extents, _)| extents));
        let all: Vec<&Extents> = all.collect::<Option<_>>()?;
        let extents = if let [one] = all[..] {
            one.clone()
        } else {
            let band = |n: u64| all.iter().flat_map(move |part| part.pieces(n * row, row));
            Extents::several((0..bands).flat_map(band).collect()).ok()?
        };
        let components = parts.len() as u64;
        let layout = Layout::Plain { extents, order: Order::C };
        let shape = Shape::new([bands, count.checked_mul(components)?]);
        let coefficients = ArrayDesc::new(first.dtype, shape, layout);
        let info = tree.child(*files.first()?, "INFO").map(|id| &tree.node(id).attrs);
        let scale = info.and_then(|info| info.get_f64("scale_factor")).unwrap_or(1.0);
        let point = (*self.points.get(k)?, scale);
        PlaneWaves::wavefunctions(self.half, self.reciprocal, miller, point, coefficients)
    }
}

/// Reports files with magnetization densities that are missing in a folder. `has` tells whether it has a file.
pub(crate) fn report_missing(
    tree: &Tree,
    source: &Source,
    has: impl Fn(&str) -> bool,
    report: &mut Report,
) {
    let values = Values::new(tree, source);
    let spins = match (values.flag("SPIN/LSDA"), values.flag("SPIN/SPIN-ORBIT_DOMAG")) {
        (true, _) => &MAGNETIZATION[..1],
        (_, true) => &MAGNETIZATION[1..],
        _ => &[],
    };
    // Files of a calculation that has not written its density.
    if element(tree, "CHARGE-DENSITY").is_none() {
        return;
    }
    for (name, _) in spins.iter().filter(|(name, _)| !has(name)) {
        report.warn(super::MISSING, "the file is missing").in_object(format!("{name}.dat"));
    }
}

/// Adds the arrays of the root.
pub(crate) fn add(tree: &mut Tree, facts: Option<&Facts>, report: &mut Report) -> Result<()> {
    if !is_description(tree) {
        return Ok(());
    }
    copy(tree, "Root/CELL/DIRECT_LATTICE_VECTORS/cell", "cell")?;
    let positions = copy(tree, "Root/IONS/positions", "positions")?;
    let species = copy(tree, "Root/IONS/species", "species")?;
    if let Some(desc) = species.and_then(|id| tree.array_mut(id)) {
        desc.semantics_mut().mesh = positions;
    }
    add_bands(tree, report)?;
    copy(tree, "Root/CHARGE-DENSITY/CHARGE-DENSITY/density", "density")?;
    for (file, name) in MAGNETIZATION {
        let (units, title) = match name {
            "magnetization" => plane_waves::SPIN,
            _ => plane_waves::MAGNETIZATION,
        };
        let path =
            [".dat", ".xml"].map(|end| format!("{file}{end}/{ROOT_TAG}/CHARGE-DENSITY/density"));
        let Some(from) = path.iter().find_map(|path| tree.at(path)) else { continue };
        tree.node_mut(from).attrs.set("units", units);
        let path = tree.node(from).path.clone();
        let Some(added) = copy(tree, &path, name)? else { continue };
        tree.push_attr(added, "long_name", title)?;
        let index = match name {
            "magnetization_x" => Some(0),
            "magnetization_y" => Some(1),
            "magnetization_z" => Some(2),
            _ => None,
        };
        if let (Some(index), Some(desc)) = (index, tree.array_mut(added)) {
            let vector = "magnetization".to_string();
            desc.semantics_mut().component = Some(Component { vector, index });
        }
    }
    facts.map_or(Ok(()), |facts| add_wavefunctions(tree, facts, report))
}

/// Adds the array at `path` to the root as `name`, which takes over its role.
fn copy(tree: &mut Tree, path: &str, name: &str) -> Result<Option<NodeId>> {
    let Some(from) = tree.at(path).filter(|_| tree.child(ROOT, name).is_none()) else {
        return Ok(None);
    };
    let Some(desc) = tree.array(from).cloned() else { return Ok(None) };
    let units = tree.node(from).attrs.get("units").cloned();
    if let Some(own) = tree.array_mut(from) {
        *own.semantics_mut() = Semantics::role(Role::Data);
    }
    let id = tree.add_array(ROOT, name, desc)?;
    tree.push_attr(id, ASSEMBLED, path)?;
    if let Some(units) = units {
        tree.push_attr(id, "units", units)?;
    }
    Ok(Some(id))
}

/// Energies in eV, if they are stored in hartree.
fn scale(tree: &mut Tree, id: NodeId, stored: Option<&str>) -> Result<()> {
    let hartree = stored.is_some_and(|units| units.trim().eq_ignore_ascii_case("hartree"));
    match tree.array_mut(id) {
        Some(desc) if hartree && desc.dtype.with_order(DType::F64.order()) == DType::F64 => {
            desc.map = Some(Linear::new(0.0, HARTREE_EV));
            tree.push_attr(id, "units", "eV")
        }
        _ => stored.map_or(Ok(()), |units| tree.push_attr(id, "units", units)),
    }
}

/// The attribute `UNITS` of an element.
fn units(tree: &Tree, id: Option<NodeId>) -> Option<String> {
    Some(tree.node(id?).attrs.get_str("UNITS")?.to_string())
}

/// The elements with the eigenvalues of the spins of all k-points, first all of the first spin; and the number of spins.
fn blocks(tree: &Tree, points: &[NodeId]) -> (Vec<Option<NodeId>>, u64) {
    let linked = |name: &str| -> Vec<Option<NodeId>> {
        points.iter().map(|point| tree.child(*point, name)).collect()
    };
    let listed = |end: &str| -> Vec<Option<NodeId>> {
        let name = |k| format!("{EIGENVALUES}/{ROOT_TAG}/DATA_EIG.{k}{end}");
        (1..=points.len()).map(|k| tree.at(&name(k))).collect()
    };
    let two = |up: Vec<Option<NodeId>>, down| ([up, down].concat(), 2);
    let found = |all: &[Option<NodeId>]| all.iter().any(Option::is_some);
    let candidates = [
        (linked("DATAFILE"), 1),
        two(linked("DATAFILE.1"), linked("DATAFILE.2")),
        (listed(""), 1),
        two(listed("_SPIN_UP"), listed("_SPIN_DW")),
    ];
    candidates.into_iter().find(|(all, _)| found(all)).unwrap_or_default()
}

fn add_bands(tree: &mut Tree, report: &mut Report) -> Result<()> {
    let points = numbered(tree, "EIGENVALUES/K-POINT");
    let count = points.len() as u64;
    let parts = |tree: &Tree, name: &str| -> Option<Vec<NodeId>> {
        let all: Option<Vec<NodeId>> = points.iter().map(|k| tree.child(*k, name)).collect();
        all.filter(|all| !all.is_empty())
    };
    let free = |tree: &Tree, name: &str| tree.child(ROOT, name).is_none();
    let mut path = None;
    if let Some(coordinates) = parts(tree, "K-POINT_COORDS") {
        let dims = [("k", count), ("component", 3)];
        if let Some(id) = assemble(tree, ROOT, "k-points", &coordinates, &dims, Order::C)? {
            tree.push_attr(id, "units", "2 pi / alat")?;
            bands::add_path(tree, id)?;
            path = tree.child(ROOT, bands::PATH);
        }
    }
    if let Some(weights) = parts(tree, "WEIGHT") {
        assemble(tree, ROOT, "weights", &weights, &[("k", count)], Order::C)?;
    }
    let (blocks, spins) = blocks(tree, &points);
    for (name, part) in [("bands", "EIGENVALUES"), ("occupations", "OCCUPATIONS")] {
        if blocks.is_empty() || !free(tree, name) {
            continue;
        }
        let found = blocks.iter().map(|block| tree.child((*block)?, part));
        let found: Vec<Option<NodeId>> = found.collect();
        if found.iter().all(Option::is_none) {
            // The files of the k-points are not opened with a single file.
            continue;
        }
        let parts: Option<Vec<NodeId>> = found.into_iter().collect();
        let each = parts.as_ref().and_then(|parts| tree.array(parts[0])?.shape.count());
        let (Some(parts), Some(each)) = (parts, each) else {
            let message = "expected one element per k-point and spin";
            report.warn("iotk-052", message).in_object(part);
            continue;
        };
        let dims = [("spin", spins), ("k", count), ("band", each)];
        let Some(id) = assemble(tree, ROOT, name, &parts, &dims, Order::C)? else {
            let message = "expected elements of the same size, which fit into the memory";
            report.warn("iotk-052", message).in_object(part);
            continue;
        };
        if let (Some(path), Some(desc)) = (path, tree.array_mut(id)) {
            desc.coords[1] = Coord::Node(path);
        }
        if name == "bands" {
            let block = blocks.first().copied().flatten();
            let stored = units(tree, block.and_then(|id| tree.child(id, "UNITS_FOR_ENERGIES")));
            scale(tree, id, stored.as_deref())?;
        }
    }
    let stored = units(tree, element(tree, "BAND_STRUCTURE_INFO/UNITS_FOR_ENERGIES"));
    let energy =
        |tree: &Tree, end: &str| element(tree, &format!("BAND_STRUCTURE_INFO/FERMI_ENERGY{end}"));
    let (one, up, down) = (energy(tree, ""), energy(tree, "_UP"), energy(tree, "_DOWN"));
    let added = match (one, up, down) {
        (Some(one), ..) => assemble(tree, ROOT, "fermi_energy", &[one], &[("dim0", 1)], Order::C)?,
        (_, Some(up), Some(down)) => {
            let dims = [("spin", 2)];
            assemble(tree, ROOT, "two_fermi_energies", &[up, down], &dims, Order::C)?
        }
        _ => None,
    };
    added.map_or(Ok(()), |id| scale(tree, id, stored.as_deref()))
}

fn add_wavefunctions(tree: &mut Tree, facts: &Facts, report: &mut Report) -> Result<()> {
    for (k, point) in numbered(tree, "EIGENVECTORS/K-POINT").into_iter().enumerate() {
        let Some(vectors) = tree.child(point, "GK-VECTORS") else { continue };
        let file = |name: &str| tree.child(point, name);
        let all = match (file("WFC"), file("WFC.1"), file("WFC.2")) {
            (Some(one), ..) => vec![(format!("k{k}"), vec![one])],
            (_, Some(first), Some(second)) if facts.spinors => {
                vec![(format!("k{k}"), vec![first, second])]
            }
            (_, Some(up), Some(down)) => {
                vec![(format!("up/k{k}"), vec![up]), (format!("down/k{k}"), vec![down])]
            }
            _ => Vec::new(),
        };
        for (name, files) in all {
            let path = format!("wavefunctions/{name}");
            // Files without coefficients, or a tree with stored ones.
            let empty = files.iter().all(|file| tree.child(*file, "wavefunctions").is_none());
            if empty || tree.at(&path).is_some() {
                continue;
            }
            let Some(waves) = facts.waves(tree, &files, vectors, k) else {
                let message = "expected coefficients of all G vectors of the k-point";
                report.warn("iotk-052", message).in_object(tree.node(point).path.clone());
                continue;
            };
            let linked = tree.node(files[0]).attrs.get_str("linked_file").map(ToString::to_string);
            let group = tree.group_at(&path)?;
            if let Some(linked) = linked {
                tree.push_attr(group, "file", linked.trim_start_matches("./"))?;
            }
            waves.add(tree, group, None)?;
        }
    }
    Ok(())
}
