//! Frames to arrays. Rows are parsed when they are read.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::frames::{Cells, FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Codec, Extents, Layout};
use spile_core::semantics::{Quantity, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::text_records::{Records, parse_float};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};
use spile_core::wire::ByteOrder;

use crate::read::{self, File, Frame};
use crate::wire::{self, Info, Letter, Property, Values};

/// The group and point set of the atoms.
pub(crate) const ATOMS: &str = "atoms";

/// The group of the values of comment lines.
pub(crate) const INFO: &str = "info";

/// The arrays of cell vectors and of periodic directions.
pub(crate) const CELL: &str = "cell";
pub(crate) const PBC: &str = "pbc";

/// Memory of an array in one frame, in bytes.
const CELL_BYTES: u64 = 160;

/// The type of logical values.
pub(crate) fn logical() -> DType {
    DType::new(Kind::Bool, 1, ByteOrder::Little).unwrap_or(DType::U8)
}

pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let file = Arc::new(read::scan(&source, &options.limits)?);
    let mut tree = Tree::new(&options.limits);
    add_atoms(&mut tree, &file)?;
    add_cells(&mut tree, &file)?;
    for (key, values) in &file.infos {
        add_info(&mut tree, key, values, file.frames.len())?;
    }
    let frames = file.frames.iter().map(|frame| (frame.step, frame.time));
    tree.charge(32 * file.frames.len() as u64, "the steps and times of all frames")?;
    tree.set_frames(Arc::new(Moments(frames.collect())));
    let atoms = file.frames.iter().map(|frame| frame.atoms);
    let most = atoms.clone().max().unwrap_or(0);
    let least = atoms.min().unwrap_or(0);
    let atoms = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let summary = Attrs::from([("atoms", atoms.into())]);
    let warnings = file.report.findings.clone();
    let native = OpenFile(file);
    Ok(Parsed::new(source, tree).with_summary(summary).with_warnings(warnings).with_native(native))
}

/// What a property is by its name.
pub(crate) fn quantity(property: &Property) -> Option<Quantity> {
    let Property { name, letter, columns } = property;
    Some(match (name.as_str(), letter, columns) {
        ("pos", Letter::Real, 3) => Quantity::Position,
        ("species", Letter::Text, 1) => Quantity::Species,
        ("velo" | "vel" | "velocity" | "velocities", Letter::Real, 3) => Quantity::Velocity,
        ("force" | "forces", Letter::Real, 3) => Quantity::Force,
        ("mass" | "masses", Letter::Real, 1) => Quantity::Mass,
        ("charge" | "charges" | "initial_charges", Letter::Real, 1) => Quantity::Charge,
        _ => return None,
    })
}

/// Names of the dimensions of a property.
pub(crate) fn property_dims(columns: usize) -> Vec<String> {
    let names = if columns == 1 { &["atom"][..] } else { &["atom", "component"] };
    names.iter().map(ToString::to_string).collect()
}

/// Adds the properties of the atoms. Properties with the same name but other types or numbers of columns in
/// other frames are different arrays.
fn add_atoms(tree: &mut Tree, file: &Arc<File>) -> Result<()> {
    let group = tree.add_group(ROOT, ATOMS)?;
    // Each different property, and per list of columns its first column and the width of its texts.
    let mut all: Vec<(&Property, Vec<Option<usize>>, usize)> = Vec::new();
    for (k, (layout, widths)) in file.layouts.iter().zip(&file.widths).enumerate() {
        let mut first = 0;
        for (property, width) in layout.iter().zip(widths) {
            let known = all.iter().position(|(own, columns, _)| {
                *own == property && columns.get(k).is_none_or(Option::is_none)
            });
            let at = known.unwrap_or_else(|| {
                all.push((property, vec![None; k], 0));
                all.len() - 1
            });
            tree.charge(8 * (k as u64 + 1), "the columns of properties")?;
            all[at].1.resize(k + 1, None);
            all[at].1[k] = Some(first);
            all[at].2 = all[at].2.max(*width);
            first += property.columns;
        }
    }
    let mut nodes = Vec::new();
    for (property, firsts, width) in all {
        let dtype = match property.letter {
            Letter::Text => DType::text(u32::try_from(width).unwrap_or(u32::MAX)),
            Letter::Real => DType::F64,
            Letter::Integer => DType::I64,
            Letter::Logical => logical(),
        };
        let columns = property.columns;
        let table = Columns { file: file.clone(), firsts, width: columns, dtype };
        let with = file.frames.iter().find(|frame| table.first(frame).is_some());
        let shape = table.shape(with.map_or(0, |frame| frame.atoms));
        let mut desc = ArrayDesc::new(dtype, shape, Layout::PerFrame(Arc::new(table)));
        desc.dims = property_dims(columns);
        nodes.push((tree.add_array(group, &property.name, desc)?, quantity(property)));
    }
    let is_position = |(_, quantity): &&(NodeId, _)| *quantity == Some(Quantity::Position);
    let positions = nodes.iter().find(is_position).map(|(id, _)| *id);
    for (id, quantity) in nodes {
        let mut meaning = Semantics::role(Role::Points);
        meaning.point_set = Some(ATOMS.into());
        meaning.quantity = quantity;
        meaning.mesh = positions.filter(|positions| *positions != id);
        tree.charge(size_of::<Semantics>() as u64, "the meaning of arrays")?;
        if let Some(array) = &mut tree.node_mut(id).array {
            *array.semantics_mut() = meaning;
        }
    }
    Ok(())
}

/// The bytes of an array in a frame.
type Bytes<'a> = &'a dyn Fn(&Frame) -> Option<Vec<u8>>;

/// Adds the cells and the periodic directions.
fn add_cells(tree: &mut Tree, file: &File) -> Result<()> {
    let cell = |frame: &Frame| {
        frame.cell.map(|cell| cell.iter().flat_map(|value| value.to_le_bytes()).collect())
    };
    let pbc = |frame: &Frame| frame.pbc.map(|pbc| pbc.map(u8::from).to_vec());
    let arrays: [(&str, DType, &[u64], Bytes<'_>); 2] =
        [(CELL, DType::F64, &[3, 3], &cell), (PBC, logical(), &[3], &pbc)];
    for (name, dtype, lengths, bytes) in arrays {
        if !file.frames.iter().any(|frame| bytes(frame).is_some()) {
            continue;
        }
        let cost = file.frames.len() as u64 * (CELL_BYTES + 80);
        tree.charge(cost, "the cells of all frames")?;
        let shape = Shape::new(lengths);
        let cells = file.frames.iter().map(|frame| {
            let layout = Layout::Inline(bytes(frame)?.into(), Order::C);
            Some(FrameCell { shape: shape.clone(), layout })
        });
        let layout = Layout::PerFrame(Arc::new(Cells(cells.collect())));
        let mut desc = ArrayDesc::new(dtype, shape.clone(), layout);
        desc.dims = own_dims(name, lengths.len());
        if name == CELL {
            desc = desc.with_semantics(Semantics::role(Role::Cell));
        }
        tree.add_array(ROOT, name, desc)?;
    }
    Ok(())
}

/// Names of the dimensions of [`CELL`] and [`PBC`].
pub(crate) fn own_dims(name: &str, rank: usize) -> Vec<String> {
    match name {
        CELL => vec!["vector".into(), "component".into()],
        PBC => vec!["vector".into()],
        _ => ArrayDesc::default_dims(rank),
    }
}

/// Adds the values of a key. Values of different types are numbers if all of them are, otherwise text.
fn add_info(tree: &mut Tree, key: &str, values: &[(u64, Info)], frames: usize) -> Result<()> {
    let rank = values.first().map_or(0, |(_, info)| info.lengths.len());
    let all = |is: fn(&Values) -> bool| values.iter().all(|(_, info)| is(&info.values));
    let same_rank = values.iter().all(|(_, info)| info.lengths.len() == rank);
    let longest = values.iter().map(|(_, info)| info.text.len()).max().unwrap_or(0);
    let dtype = if !same_rank {
        DType::text(u32::try_from(longest).unwrap_or(u32::MAX))
    } else if all(|values| matches!(values, Values::Integers(_))) {
        DType::I64
    } else if all(|values| matches!(values, Values::Integers(_) | Values::Reals(_))) {
        DType::F64
    } else if all(|values| matches!(values, Values::Logicals(_))) {
        logical()
    } else {
        DType::text(u32::try_from(longest).unwrap_or(u32::MAX))
    };
    let is_text = dtype.kind() == Kind::Text;
    let width = if is_text { longest as u64 } else { 0 };
    let cost = values.len() as u64 * (CELL_BYTES + width) + CELL_BYTES * frames as u64;
    tree.charge(cost, "the values of comment lines")?;
    let mut cells = vec![None; frames];
    for (frame, info) in values {
        let bytes: Vec<u8> = match &info.values {
            _ if is_text => {
                let mut bytes = info.text.as_bytes().to_vec();
                bytes.resize(longest, 0);
                bytes
            }
            Values::Integers(values) if dtype == DType::F64 => {
                values.iter().flat_map(|value| (*value as f64).to_le_bytes()).collect()
            }
            Values::Integers(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Reals(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Logicals(values) => values.iter().map(|value| u8::from(*value)).collect(),
            Values::Text => Vec::new(),
        };
        tree.charge(bytes.len() as u64, "the values of comment lines")?;
        let shape = Shape::new(if is_text { &[][..] } else { &info.lengths[..] });
        let layout = Layout::Inline(bytes.into(), Order::C);
        if let Some(cell) = cells.get_mut(*frame as usize) {
            *cell = Some(FrameCell { shape, layout });
        }
    }
    let shape = cells.iter().flatten().next().map(|cell| cell.shape.clone());
    let Some(shape) = shape else { return Ok(()) };
    let desc = ArrayDesc::new(dtype, shape, Layout::PerFrame(Arc::new(Cells(cells))));
    let group = tree.group_at(INFO)?;
    let role = if is_text { Role::Text } else { Role::Log };
    tree.add_array(group, key, desc.with_semantics(Semantics::role(role)))?;
    Ok(())
}

/// A property of the atoms in all frames.
struct Columns {
    file: Arc<File>,
    /// Its first column by number of the list of columns.
    firsts: Vec<Option<usize>>,
    /// Number of its columns.
    width: usize,
    dtype: DType,
}

impl Columns {
    fn first(&self, frame: &Frame) -> Option<usize> {
        self.firsts.get(frame.layout).copied().flatten()
    }

    fn shape(&self, atoms: u64) -> Shape {
        match self.width {
            1 => Shape::new([atoms]),
            columns => Shape::new([atoms, columns as u64]),
        }
    }
}

impl FrameTable for Columns {
    fn len(&self) -> u64 {
        self.file.frames.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let Some(frame) = self.file.frames.get(frame as usize) else { return Ok(None) };
        let Some(first) = self.first(frame) else { return Ok(None) };
        let shape = self.shape(frame.atoms);
        let decoded = shape.bytes(self.dtype.size())?;
        let len = frame.end - frame.start;
        let codec = Arc::new(Parser { first, count: self.width, dtype: self.dtype });
        let layout = Layout::Encoded {
            starts: Arc::new([0, len]),
            decoded: Arc::new([0, decoded]),
            data: Extents::one(frame.start, len),
            codec,
            order: Order::C,
        };
        Ok(Some(FrameCell { shape, layout }))
    }
}

/// Parses adjacent columns of rows.
struct Parser {
    first: usize,
    count: usize,
    dtype: DType,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        if size == 0 {
            return Ok(());
        }
        let mut slots = out.chunks_exact_mut(size);
        for (row, line) in Records::new(stored, wire::line_end).enumerate() {
            let mut fields = wire::fields(line).skip(self.first);
            for _ in 0..self.count {
                let Some(slot) = slots.next() else { return Err(changed()) };
                let Some(field) = fields.next() else {
                    let message = format!("row {}: missing columns", row + 1);
                    return Err(Error::malformed("xyz-004", message));
                };
                if !self.parse(field, slot) {
                    let field = String::from_utf8_lossy(&field[..field.len().min(60)]);
                    let message =
                        format!("row {}: expected {}, found \"{field}\"", row + 1, self.dtype);
                    return Err(Error::malformed("xyz-006", message));
                }
            }
        }
        if slots.next().is_none() { Ok(()) } else { Err(changed()) }
    }
}

impl Parser {
    /// Parses a field; `false` if it is not of the type.
    fn parse(&self, field: &[u8], slot: &mut [u8]) -> bool {
        match self.dtype.kind() {
            Kind::Text => {
                let fits = field.len() <= slot.len();
                let len = field.len().min(slot.len());
                slot.fill(0);
                slot[..len].copy_from_slice(&field[..len]);
                fits
            }
            Kind::Bool => {
                let value = wire::logical(field).or(match field {
                    b"1" => Some(true),
                    b"0" => Some(false),
                    _ => None,
                });
                slot.fill(u8::from(value == Some(true)));
                value.is_some()
            }
            Kind::Int => {
                let value: Option<i64> =
                    std::str::from_utf8(field).ok().and_then(|t| t.parse().ok());
                slot.copy_from_slice(&value.unwrap_or(0).to_le_bytes());
                value.is_some()
            }
            _ => {
                let value = parse_float(field);
                slot.copy_from_slice(&value.unwrap_or(0.0).to_le_bytes());
                value.is_some()
            }
        }
    }
}

fn changed() -> Error {
    let message = "the number of atoms changed since the file was opened; is it being written?";
    Error::malformed("xyz-007", message)
}

struct OpenFile(Arc<File>);

impl Native for OpenFile {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut end = 0;
        for (k, frame) in self.0.frames.iter().enumerate() {
            let parts = [
                (end, frame.offset, RegionKind::Padding, "empty lines", String::new()),
                (frame.offset, frame.start, RegionKind::Header, "header", String::new()),
                (
                    frame.start,
                    frame.end,
                    RegionKind::Data,
                    "rows",
                    format!("{} atoms", frame.atoms),
                ),
            ];
            for (offset, to, kind, name, value) in parts {
                if to > offset {
                    let name = format!("frame {k} {name}");
                    each(Region { offset, len: to - offset, kind, name, value })?;
                }
            }
            end = frame.end;
        }
        let len = dataset.source().len().saturating_sub(end);
        if len > 0 {
            let (kind, name) = (RegionKind::Unknown, "incomplete frame".into());
            each(Region { offset: end, len, kind, name, value: String::new() })?;
        }
        Ok(())
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, desc) in dataset.arrays() {
            let Some(table) = desc.layout.frames() else { continue };
            for frame in 0..table.len() {
                let Some(FrameCell { shape, layout }) = table.cell(frame)? else { continue };
                each(Object {
                    path: node.path.clone(),
                    id: None,
                    frame: Some(frame),
                    kind: "text".into(),
                    array: ArrayDesc { shape, layout, ..desc.clone() },
                })?;
            }
        }
        Ok(())
    }
}
