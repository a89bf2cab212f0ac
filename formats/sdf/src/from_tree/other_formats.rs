//! Writes arrays that were not read from SDF.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::tree::Node;
use spile_core::wire::ByteOrder;

use super::attrs::{get, get_string};
use super::{TreeWriter, dimensions, factor, no_type, unsupported};
use crate::wire::DataType;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, PlainVariable};
use crate::write::Data;

impl TreeWriter<'_> {
    /// Writes a constant, an array, or, if the array has units, scaling or coordinates, a plain
    /// variable on the nodes of a new mesh.
    pub(super) fn other_array(&mut self, node: &Node, desc: &ArrayDesc) -> Result<()> {
        let array = self.open(desc)?;
        let shape = array.shape().lengths().to_vec();
        let datatype = widened(array.dtype()).ok_or_else(|| no_type(array.dtype()))?;
        let exact = DataType::of(array.dtype()) == Some(datatype);
        let variable = desc.map.is_some()
            || get(&node.attrs, "units").is_some()
            || desc.coords.iter().any(|c| *c != Coord::None);
        let (kind, meta) = if shape.is_empty() && array.dtype().kind() != Kind::Text {
            let bytes = array.read(&Selection::all(), Axes::Stored)?;
            let value = if exact { bytes } else { recode(array.dtype(), datatype, &bytes)? };
            (BlockType::Constant, Meta::Constant(value))
        } else if variable && array.dtype().is_real() && !shape.is_empty() {
            let mult = desc.map.map_or(Ok(1.0), factor)?;
            let mesh_id = self.coordinate_mesh(node, desc, &shape)?;
            // At the nodes in every direction.
            let stagger = 1_i32.checked_shl(shape.len() as u32).map_or(0, |bits| bits - 1);
            let units = get_string(&node.attrs, "units");
            let variable = PlainVariable { mult, units, mesh_id, dims: shape, stagger };
            (BlockType::PlainVariable, Meta::PlainVariable(variable))
        } else {
            (BlockType::Array, Meta::Array(dimensions(array.dtype(), shape)))
        };
        if let Meta::Constant(_) = meta {
            return self.write_block(node, kind, datatype, &meta, Data::None).map(drop);
        }
        let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
        if exact {
            return self.write_block(node, kind, datatype, &meta, Data::Array(&selected)).map(drop);
        }
        let size = datatype.dtype(self.writer.header().order).map_or(1, DType::size) as u64;
        let header = self.block_header(node, kind, datatype, &meta);
        let length = selected.count().saturating_mul(size);
        let mut at = self.writer.reserve(header, &meta, length, None)?.offset;
        let writer = &mut self.writer;
        selected.stream(|_, bytes| {
            let bytes = recode(array.dtype(), datatype, bytes)?;
            writer.fill(at, None, &bytes)?;
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
            self.limits.allow(length.saturating_mul(16), "the coordinates")?;
            let mut units = String::new();
            let axis: Vec<f64> = match coord {
                Coord::None => (0..*length).map(|k| k as f64).collect(),
                Coord::Uniform { start, step } => {
                    (0..*length).map(|k| start + k as f64 * step).collect()
                }
                Coord::Node(id) => {
                    let other = self.tree.node(*id);
                    units = get_string(&other.attrs, "units");
                    let array = other.array.as_ref().map(|desc| self.open(desc)).transpose()?;
                    let all = Selection::all();
                    array.map_or(Ok(Vec::new()), |array| array.read_f64(&all, Axes::Stored))?
                }
            };
            if axis.len() as u64 != *length {
                let message = format!("expected {length} coordinates, found {}", axis.len());
                return Err(unsupported(message));
            }
            mesh.mults.push(1.0);
            mesh.labels.push(label.clone());
            mesh.units.push(units);
            mesh.minval.push(axis.iter().copied().fold(f64::INFINITY, f64::min));
            mesh.maxval.push(axis.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            mesh.dims.push(*length);
            points.extend(axis);
        }
        let (id, name) = (format!("grid/{}", node.path), format!("Grid/{}", node.path));
        let meta = Meta::Mesh(mesh);
        let bytes = convert::little_bytes(&mut points);
        let data = Data::Bytes(bytes);
        let (id, _) =
            self.writer.block(&id, &name, BlockType::PlainMesh, DataType::Real8, &meta, data)?;
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
