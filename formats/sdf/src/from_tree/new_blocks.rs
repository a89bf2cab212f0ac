//! Writes arrays that were not read from SDF.

use spile_core::{
    ArrayDesc, Axes, ByteOrder, Coord, DType, Kind, Node, NodeId, Order, Result, Selection, convert,
};

use super::{TreeWriter, attrs, dimensions, factor, no_type, unsupported};
use crate::wire::DataType;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, PlainVariable};

impl TreeWriter<'_> {
    /// Writes a constant, an array, or, if the array has units, scaling or coordinates, a plain
    /// variable on the nodes of a new mesh.
    pub(super) fn new_block(&mut self, id: NodeId, node: &Node, desc: &ArrayDesc) -> Result<()> {
        let form = self.form(desc)?;
        let (dtype, lengths) = (form.dtype, form.lengths.clone());
        let datatype = widened(dtype).ok_or_else(|| no_type(dtype))?;
        let exact = DataType::of(dtype) == Some(datatype);
        let variable = desc.map.is_some()
            || node.attrs.contains("units")
            || desc.coords.iter().any(|c| *c != Coord::None);
        let (kind, meta) = if lengths.is_empty() && dtype.kind() != Kind::Text {
            let bytes = self.elements(desc, &form)?;
            let value = if exact { bytes } else { recode(dtype, datatype, &bytes)? };
            (BlockType::Constant, Meta::Constant(value))
        } else if variable && dtype.is_real() && !lengths.is_empty() {
            let mult = desc.map.map_or(Ok(1.0), factor)?;
            let mesh_id = self.coordinate_mesh(node, desc, &lengths)?;
            // At the nodes in every direction.
            let stagger = 1_i32.checked_shl(lengths.len() as u32).map_or(0, |bits| bits - 1);
            let units = attrs::text(&node.attrs, "units");
            let variable = PlainVariable { mult, units, mesh_id, dims: lengths, stagger };
            (BlockType::PlainVariable, Meta::PlainVariable(variable))
        } else {
            (BlockType::Array, Meta::Array(dimensions(dtype, lengths)))
        };
        let types = (kind, datatype);
        if let Meta::Constant(_) = meta {
            return self.write_block(id, types, &meta, 0, None).map(drop);
        }
        if exact {
            let extent = self.write_block(id, types, &meta, form.bytes, None)?;
            return self.fill(extent.offset, desc);
        }
        let size = datatype.dtype(ByteOrder::Little).map_or(1, DType::size) as u64;
        let length = (form.bytes / dtype.size() as u64).saturating_mul(size);
        let mut at = self.write_block(id, types, &meta, length, None)?.offset;
        let Some(array) = self.open(desc)? else { return Ok(()) };
        array.all_in(Order::F)?.stream(|_, bytes| {
            let bytes = recode(dtype, datatype, bytes)?;
            self.fill_bytes(at, None, &bytes)?;
            at += bytes.len() as u64;
            Ok(())
        })
    }

    /// Writes the coordinates of an array as a plain mesh. Returns the identifier of the mesh, empty
    /// if the array has no coordinates.
    fn coordinate_mesh(&mut self, node: &Node, desc: &ArrayDesc, shape: &[u64]) -> Result<String> {
        if desc.coords.iter().all(|c| *c == Coord::None) {
            return Ok(String::new());
        }
        let (mut mesh, mut points) = (Mesh { geometry: 1, ..Mesh::default() }, Vec::new());
        for ((coord, length), label) in desc.coords.iter().zip(shape).zip(&desc.dims) {
            self.content.limits().allow(length.saturating_mul(16), "the coordinates")?;
            let mut units = String::new();
            let axis: Vec<f64> = match coord {
                Coord::None | Coord::Uniform { .. } if self.is_planned() => Vec::new(),
                Coord::None => (0..*length).map(|k| k as f64).collect(),
                Coord::Uniform { start, step } => {
                    (0..*length).map(|k| start + k as f64 * step).collect()
                }
                Coord::Node(id) => {
                    let other = self.tree.node(*id);
                    units = attrs::text(&other.attrs, "units");
                    let points = other.array.as_ref();
                    let points = points.ok_or_else(|| unsupported("a group as coordinate"))?;
                    let found = self.form(points)?.lengths.iter().product::<u64>();
                    if found != *length {
                        let message = format!("expected {length} coordinates, found {found}");
                        return Err(unsupported(message));
                    }
                    let all = Selection::all();
                    let array = self.open(points)?;
                    array.map_or(Ok(Vec::new()), |array| array.read_f64(&all, Axes::Stored))?
                }
            };
            mesh.mults.push(1.0);
            mesh.labels.push(label.clone());
            mesh.units.push(units);
            mesh.minval.push(axis.iter().copied().fold(f64::INFINITY, f64::min));
            mesh.maxval.push(axis.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            mesh.dims.push(*length);
            points.extend(axis);
        }
        let (id, name) = (format!("grid/{}", node.path), format!("Grid/{}", node.path));
        let (meta, kind) = (Meta::Mesh(mesh), BlockType::PlainMesh);
        let length = meta.elements(kind).unwrap_or(u64::MAX).saturating_mul(8);
        let header =
            self.output.layout().header(&id, &name, kind, DataType::Real8, &meta, length)?;
        let id = header.id.clone();
        let at = self.reserve(None, header, &meta, length, None)?.offset;
        self.fill_bytes(at, Some(DType::F64), convert::little_bytes(&mut points))?;
        Ok(id)
    }
}

/// Maximum number of dimensions that the reference library reads.
pub(crate) const MAX_RANK: usize = 4;

/// SDF stores elements of this type without conversion.
pub(crate) fn is_exact_type(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Int | Kind::Float) && DataType::of(dtype).is_some()
}

/// The name does not change when it is stored: printable ASCII without spaces at the ends.
pub(crate) fn is_block_name(name: &str) -> bool {
    name.trim() == name && name.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}

/// The smallest SDF data type that represents all values of `dtype`.
fn widened(dtype: DType) -> Option<DataType> {
    match (dtype.kind(), dtype.size()) {
        (Kind::Int | Kind::UInt, 1 | 2) => Some(DataType::Integer4),
        (Kind::UInt, 4) => Some(DataType::Integer8),
        (Kind::Float, 2) => Some(DataType::Real4),
        _ => DataType::of(dtype),
    }
}

/// Converts little-endian elements of type `from` to little-endian elements of type `to`.
fn recode(from: DType, to: DataType, bytes: &[u8]) -> Result<Vec<u8>> {
    let to = to.dtype(ByteOrder::Little).unwrap_or(DType::U8);
    let (mut numbers, mut out) = (Vec::new(), Vec::new());
    if convert::recode_integers(from, to, bytes, &mut out).is_none() {
        convert::to_f64(from, None, bytes, &mut numbers);
        convert::from_f64(to, None, &numbers, &mut out).ok_or_else(|| no_type(from))?;
    }
    Ok(out)
}
