//! What cube and XSF files store: fields on the periodic cell, the cell, the atoms.

use std::io::Write as _;

use spile_core::atoms::AtomArrays;
use spile_core::format::{Loss, LossKind};
use spile_core::semantics::{Centring, Quantity};
use spile_core::{
    ArrayDesc, Axes, Codec, Coord, DType, Dataset, Error, Extents, Layout, NodeId, Order, ROOT,
    Result, Role, Selection, Semantics, Shape, Sink, Tree, convert,
};
use spile_interchange::losses::compare;
use spile_interchange::structure::{BOHR, angstroms, labelled_number, symbol};

use std::sync::Arc;

/// Values on one line.
const ON_LINE: usize = 6;

/// A field on the periodic cell: point `k` along vector `j` is at the fraction `start[j] + k * step[j]`.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) id: NodeId,
    pub(crate) points: [u64; 3],
    pub(crate) start: [f64; 3],
    pub(crate) step: [f64; 3],
}

impl Field {
    /// The position of the first point.
    pub(crate) fn origin(&self, cell: [[f64; 3]; 3]) -> [f64; 3] {
        [0, 1, 2].map(|k| self.start.iter().zip(cell).map(|(start, row)| start * row[k]).sum())
    }
}

/// What is written of a dataset.
pub(crate) struct Plan {
    pub(crate) fields: Vec<Field>,
    cell: NodeId,
    atoms: Option<AtomArrays>,
}

/// Cell and atoms in the unit of the file.
pub(crate) struct Structure {
    /// The cell vectors as rows.
    pub(crate) cell: [[f64; 3]; 3],
    /// Atomic numbers and positions.
    pub(crate) atoms: Vec<(u32, [f64; 3])>,
}

impl Plan {
    /// The fields of `content`, at most `most`. Fails with `code` if there are none.
    pub(crate) fn new(content: &Dataset, most: usize, code: &'static str) -> Result<Self> {
        let tree = content.tree();
        let mut fields = Vec::new();
        let mut cell = None;
        for (id, _, own) in tree.arrays() {
            let Some((mesh, field)) = field_of(tree, id, own) else { continue };
            if fields.len() < most && cell.is_none_or(|cell| cell == mesh) {
                cell = Some(mesh);
                fields.push(field);
            }
        }
        let none = || {
            let message =
                "expected a field of real numbers on a periodic cell, for example a density";
            Error::unsupported(code, message)
        };
        Ok(Self { fields, cell: cell.ok_or_else(none)?, atoms: content.atom_arrays() })
    }

    /// Cell and atoms in bohr, or in ångström.
    pub(crate) fn structure(&self, content: &Dataset, bohr: bool) -> Result<Structure> {
        let unit = if bohr { BOHR } else { 1.0 };
        let scale = |units: Option<&str>| match (units.map(str::trim), bohr) {
            (Some("bohr" | "Bohr" | "a0" | "au"), true) => 1.0,
            (units, _) => angstroms(units) / unit,
        };
        let array = content.array_at(self.cell)?;
        let values: Vec<f64> = array.read("...")?;
        let factor = scale(array.units());
        let rows = values.as_chunks::<3>().0;
        let Some([a, b, c]) = rows.first_chunk() else {
            return Err(Error::malformed("core-cell", "the cell does not have three vectors"));
        };
        let cell = [a, b, c].map(|row| row.map(|value| factor * value));
        let mut atoms = Vec::new();
        if let Some(found) = content.atoms(0)?.filter(|_| self.atoms.is_some()) {
            let factor = scale(found.positions.units());
            let positions: Vec<f64> = found.positions.read("...")?;
            for (k, row) in positions.as_chunks::<3>().0.iter().enumerate() {
                let name = found.species.as_ref().and_then(|species| species.name(k));
                let number = name.map_or(0, labelled_number);
                atoms.push((number, row.map(|value| factor * value)));
            }
        }
        Ok(Structure { cell, atoms })
    }

    /// Everything that a file called `target` does not keep. `bohr` is its unit of length, `order` that of
    /// its values.
    pub(crate) fn losses(
        &self,
        content: &Dataset,
        (target, bohr): (&str, bool),
    ) -> Result<Vec<Loss>> {
        let tree = content.tree();
        let mut read = Tree::new(tree.limits());
        let mut nodes = vec![None; tree.len() + 1];
        nodes[0] = Some(ROOT);
        let cell = add_cell(&mut read, [[0.0; 3]; 3], bohr)?;
        nodes[self.cell.index()] = Some(cell);
        if let Some(atoms) = &self.atoms {
            let count =
                tree.array(atoms.positions).and_then(|a| a.shape.lengths().first().copied());
            let count = count.unwrap_or(0);
            let width = atoms.species.and_then(|id| tree.array(id)).map_or(1, |a| a.dtype.size());
            let (positions, species) = add_atoms(&mut read, count, &[], (Vec::new(), width), bohr)?;
            nodes[atoms.positions.index()] = Some(positions);
            if let Some(id) = atoms.species {
                nodes[id.index()] = Some(species);
            }
        }
        for field in &self.fields {
            let node = tree.node(field.id);
            let name = file_name(&node.name);
            let layout = Layout::Fill(vec![0; 8].into());
            let id = add_field(&mut read, &name, (field, layout), cell)?;
            if let Some(units) = node.attrs.get_str("units") {
                read.push_attr(id, "units", units)?;
            }
            nodes[field.id.index()] = Some(id);
        }
        let mut losses = compare(target, (tree, &read), &nodes, |node| match &node.array {
            Some(_) => {
                (LossKind::Array, format!("{target} stores fields on a periodic cell, and atoms"))
            }
            None => (LossKind::Group, format!("{target} has no groups")),
        });
        let mut values = |id: NodeId, reason: &str| {
            losses.push(Loss::new(&tree.node(id).path, LossKind::Values, reason));
        };
        values(self.cell, "the vectors are those between points, which are rounded");
        let own = |id: NodeId| tree.node(id).attrs.get_str("units").unwrap_or_default();
        let unit = if bohr { "bohr" } else { "angstrom" };
        if let Some(atoms) = &self.atoms {
            if own(atoms.positions) != unit {
                values(atoms.positions, &format!("positions are in {unit}"));
            }
            if let Some(id) = atoms.species {
                values(id, "labels are chemical symbols");
            }
        }
        Ok(losses)
    }

    /// Name, unit and title of a field.
    pub(crate) fn title(content: &Dataset, field: &Field) -> (String, String) {
        let node = content.tree().node(field.id);
        let units = node.attrs.get_str("units").map(clean).filter(|units| !units.is_empty());
        (file_name(&node.name), units.unwrap_or_default())
    }

    /// The values of a field in this order.
    pub(crate) fn values(content: &Dataset, field: &Field, order: Order) -> Result<Vec<f64>> {
        let array = content.array_at(field.id)?;
        let bytes = array.shape().bytes(8)?.saturating_mul(2);
        content.limits().allow(bytes, "the values of a field")?;
        array.read_f64(&Selection::all(), Axes::Order(order))
    }
}

/// The field and its cell, if the array is one.
fn field_of(tree: &Tree, id: NodeId, own: &ArrayDesc) -> Option<(NodeId, Field)> {
    let desc = tree.resolve(own).ok()?;
    let mesh = own.semantics().mesh?;
    let cell = tree.array(mesh)?;
    let is_cell = cell.semantics().role == Role::Cell && cell.shape.lengths() == [3, 3];
    let points: [u64; 3] = desc.shape.lengths().try_into().ok()?;
    let real = desc.dtype.is_real() && desc.ragged().is_none() && desc.layout.frames().is_none();
    if !is_cell || !real || points.contains(&0) || cell.layout.frames().is_some() {
        return None;
    }
    let (mut start, mut step) = ([0.0; 3], [0.0; 3]);
    for (k, coord) in own.coords.iter().enumerate() {
        let Coord::Uniform { start: first, step: distance } = coord else { return None };
        (start[k], step[k]) = (*first, *distance);
    }
    Some((mesh, Field { id, points, start, step }))
}

/// A name without blanks and brackets, which separate name and unit in the file.
fn file_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_whitespace() || "[]".contains(c) { '_' } else { c }).collect();
    if plain.is_empty() { "values".into() } else { plain }
}

/// A unit on one line, without brackets.
fn clean(units: &str) -> String {
    units.chars().filter(|c| !c.is_control() && !"[]".contains(*c)).collect()
}

/// Name and unit in `NAME [UNIT]`; `None` for other text.
pub(crate) fn parse_title(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim().split_once(" [")?;
    let units = rest.strip_suffix(']')?;
    let plain = !name.is_empty() && !name.contains(char::is_whitespace) && !units.contains('[');
    plain.then_some((name, units))
}

/// Adds the cell to the tree of a file.
pub(crate) fn add_cell(tree: &mut Tree, vectors: [[f64; 3]; 3], bohr: bool) -> Result<NodeId> {
    let bytes: Vec<u8> = vectors.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut desc = ArrayDesc::inline(DType::F64, Shape::new([3, 3]), bytes);
    desc.dims = vec!["vector".into(), "component".into()];
    let id = tree.add_array(ROOT, "cell", desc.with_semantics(Semantics::role(Role::Cell)))?;
    tree.push_attr(id, "units", if bohr { "bohr" } else { "angstrom" })?;
    Ok(id)
}

/// Adds positions and species of `count` atoms to the tree of a file. Without values it describes the arrays
/// only.
pub(crate) fn add_atoms(
    tree: &mut Tree,
    count: u64,
    positions: &[f64],
    (species, width): (Vec<u8>, usize),
    bohr: bool,
) -> Result<(NodeId, NodeId)> {
    let mut meaning = Semantics::role(Role::Points);
    meaning.point_set = Some("atoms".into());
    meaning.quantity = Some(Quantity::Position);
    let bytes: Vec<u8> = positions.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut desc = ArrayDesc::inline(DType::F64, Shape::new([count, 3]), bytes);
    desc.dims = vec!["atom".into(), "component".into()];
    let positions = tree.add_array(ROOT, "positions", desc.with_semantics(meaning.clone()))?;
    tree.push_attr(positions, "units", if bohr { "bohr" } else { "angstrom" })?;
    (meaning.mesh, meaning.quantity) = (Some(positions), Some(Quantity::Species));
    let dtype = DType::text(u32::try_from(width).unwrap_or(u32::MAX));
    let mut desc = ArrayDesc::inline(dtype, Shape::new([count]), species);
    desc.dims = vec!["atom".into()];
    let species = tree.add_array(ROOT, "species", desc.with_semantics(meaning))?;
    Ok((positions, species))
}

/// The symbols of atomic numbers as text of one length.
pub(crate) fn symbols(numbers: &[u32]) -> (Vec<u8>, usize) {
    let names: Vec<&str> = numbers.iter().map(|number| symbol(*number).unwrap_or("X")).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(1);
    (names.iter().flat_map(|name| format!("{name:<width$}").into_bytes()).collect(), width)
}

/// Adds a field on the cell to the tree of a file.
pub(crate) fn add_field(
    tree: &mut Tree,
    name: &str,
    (field, layout): (&Field, Layout),
    cell: NodeId,
) -> Result<NodeId> {
    let mut desc = ArrayDesc::new(DType::F64, Shape::new(field.points), layout);
    desc.dims = ["a1", "a2", "a3"].map(String::from).to_vec();
    let coord = |k: usize| Coord::Uniform { start: field.start[k], step: field.step[k] };
    desc.coords = (0..3).map(coord).collect();
    let mut meaning = Semantics::role(Role::Field);
    meaning.mesh = Some(cell);
    meaning.centring = Some(Centring::Node);
    tree.add_array(ROOT, name, desc.with_semantics(meaning))
}

/// Text that is decoded as a whole.
pub(crate) fn text_layout(
    offset: u64,
    len: u64,
    codec: impl Codec + 'static,
    order: Order,
) -> Layout {
    Layout::EncodedWhole { extents: Extents::one(offset, len), codec: Arc::new(codec), order }
}

/// Writes numbers, six on a line; a line ends also after `row` numbers.
pub(crate) fn write_values(
    values: impl Iterator<Item = f64>,
    row: usize,
    sink: &mut Sink,
) -> Result<()> {
    let mut text = String::new();
    let (mut in_row, mut on_line) = (0, 0);
    for value in values {
        text.push(' ');
        convert::write_f64(value, &mut text);
        (in_row, on_line) = (in_row + 1, on_line + 1);
        if in_row == row || on_line == ON_LINE {
            text.push('\n');
            on_line = 0;
        }
        if in_row == row {
            in_row = 0;
        }
        if text.len() > 1 << 16 {
            sink.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    if on_line > 0 {
        text.push('\n');
    }
    sink.write_all(text.as_bytes())?;
    Ok(())
}

/// Three numbers, each after a blank.
pub(crate) fn triple(values: [f64; 3]) -> String {
    let mut text = String::new();
    for value in values {
        text.push(' ');
        convert::write_f64(value, &mut text);
    }
    text
}
