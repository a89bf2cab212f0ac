//! Field order of the metadata of each block type, for reading and writing.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::tree::Value;

use super::{Mesh, Meta, RunInfo, Station, Stitched};
use crate::wire::block_type::BlockType;
use crate::wire::fields::Fields;
use crate::wire::{BlockHeader, DataType, FileHeader, ID};

impl Meta {
    /// Reads or writes the metadata of a block with header `block`.
    pub(super) fn fields<F: Fields>(
        &mut self,
        f: &mut F,
        block: &BlockHeader,
        file: &FileHeader,
    ) -> Result<()> {
        let n = block.ndims as usize;
        let s = file.string_length as usize;
        match self {
            Self::Mesh(mesh) => {
                mesh.fields(f, n)?;
                f.list(&mut mesh.dims, n, F::count)
            }
            Self::PointMesh(points) => {
                points.mesh.fields(f, n)?;
                f.long_count(&mut points.np)?;
                species(f, &mut points.species_id, file)
            }
            Self::PlainVariable(variable) => {
                f.r8(&mut variable.mult)?;
                f.text(&mut variable.units, ID)?;
                f.text(&mut variable.mesh_id, ID)?;
                f.list(&mut variable.dims, n, F::count)?;
                f.i4(&mut variable.stagger)
            }
            Self::PointVariable(variable) => {
                f.r8(&mut variable.mult)?;
                f.text(&mut variable.units, ID)?;
                f.text(&mut variable.mesh_id, ID)?;
                f.long_count(&mut variable.np)?;
                species(f, &mut variable.species_id, file)
            }
            Self::Constant(value) => {
                let size = block.datatype.dtype(file.order).map_or(0, DType::size);
                f.bytes(value, size)
            }
            Self::Array(dims) => f.list(dims, n, F::count),
            Self::RunInfo(info) => info.fields(f, s, file.revision),
            Self::Source => Ok(()),
            Self::Stitched(group) => group.fields(f, BlockType::from_code(block.blocktype), n, s),
            Self::CpuSplit { split_type, dims } => {
                f.i4(split_type)?;
                f.list(dims, n, F::count)
            }
            Self::Station(station) => station.fields(f, n, s),
            Self::Datablock { mimetype, checksum_type, checksum } => {
                f.text(mimetype, ID)?;
                f.text(checksum_type, ID)?;
                f.text(checksum, s)
            }
            Self::NameValue { names, values } => {
                f.strings(names, n, s)?;
                let one = |f: &mut F, v: &mut NamedValue| v.fields(f, block.datatype, s);
                let mut all: Vec<NamedValue> =
                    std::mem::take(values).into_iter().map(NamedValue).collect();
                f.list(&mut all, n, one)?;
                *values = all.into_iter().map(|v| v.0).collect();
                Ok(())
            }
            Self::Other(bytes) => f.bytes(bytes, block.info_length.unwrap_or(0) as usize),
        }
    }
}

/// `species_id`, since revision 3.
fn species(f: &mut impl Fields, id: &mut String, file: &FileHeader) -> Result<()> {
    if file.revision >= 3 { f.text(id, ID) } else { Ok(()) }
}

impl Mesh {
    /// Fields common to plain and point meshes.
    fn fields<F: Fields>(&mut self, f: &mut F, n: usize) -> Result<()> {
        f.list(&mut self.mults, n, F::r8)?;
        f.strings(&mut self.labels, n, ID)?;
        f.strings(&mut self.units, n, ID)?;
        f.i4(&mut self.geometry)?;
        f.list(&mut self.minval, n, F::r8)?;
        f.list(&mut self.maxval, n, F::r8)
    }
}

impl RunInfo {
    fn fields(&mut self, f: &mut impl Fields, s: usize, revision: u32) -> Result<()> {
        f.i4(&mut self.code_version)?;
        f.i4(&mut self.code_revision)?;
        f.text(&mut self.commit_id, s)?;
        f.text(&mut self.sha1sum, s)?;
        f.text(&mut self.compile_machine, s)?;
        f.text(&mut self.compile_flags, s)?;
        f.i8(&mut self.defines)?;
        f.i4(&mut self.compile_date)?;
        f.i4(&mut self.run_date)?;
        f.i4(&mut self.io_date)?;
        if revision >= 2 { f.i4(&mut self.minor_rev) } else { Ok(()) }
    }
}

impl Stitched {
    fn fields(&mut self, f: &mut impl Fields, kind: BlockType, n: usize, s: usize) -> Result<()> {
        use BlockType as B;
        f.i4(&mut self.stagger)?;
        f.text(&mut self.mesh_id, ID)?;
        match kind {
            B::StitchedMaterial | B::ContiguousMaterial => f.strings(&mut self.names, n, s)?,
            B::StitchedMatvar | B::ContiguousMatvar => f.text(&mut self.material_id, ID)?,
            B::StitchedSpecies | B::ContiguousSpecies => {
                f.text(&mut self.material_id, ID)?;
                f.text(&mut self.material_name, s)?;
                f.strings(&mut self.names, n, s)?;
            }
            B::StitchedObstacleGroup => {
                f.text(&mut self.material_id, ID)?;
                return f.strings(&mut self.names, n, s);
            }
            _ => {}
        }
        f.strings(&mut self.ids, n, ID)
    }
}

impl Station {
    fn fields<F: Fields>(&mut self, f: &mut F, n: usize, s: usize) -> Result<()> {
        let mut stations = self.station_ids.len() as u64;
        let mut variables = self.variable_ids.len() as u64;
        f.long_count(&mut self.nelements)?;
        f.count(&mut self.entry_len)?;
        f.count(&mut stations)?;
        f.count(&mut variables)?;
        f.i4(&mut self.step0)?;
        f.i4(&mut self.step_inc)?;
        f.r8(&mut self.time0)?;
        f.r8(&mut self.time_inc)?;
        let mut use_mult = vec![u8::from(self.variable_mults.is_some()), 0, 0, 0];
        f.bytes(&mut use_mult, 4)?;
        let (stations, variables) = (stations as usize, variables as usize);
        f.strings(&mut self.station_ids, stations, ID)?;
        f.strings(&mut self.station_names, stations, s)?;
        f.list(&mut self.station_nvars, stations, F::count)?;
        f.list(&mut self.station_move, stations, F::i4)?;
        f.list(&mut self.station_x0, n.saturating_mul(stations), F::r8)?;
        f.strings(&mut self.variable_ids, variables, ID)?;
        f.strings(&mut self.variable_names, variables, s)?;
        f.list(&mut self.variable_types, variables, |f, datatype| {
            let mut code = datatype.code();
            f.i4(&mut code)?;
            *datatype = DataType::from_code(code);
            Ok(())
        })?;
        f.strings(&mut self.variable_units, variables, ID)?;
        if use_mult[0] != 0 {
            f.list(self.variable_mults.get_or_insert_default(), variables, F::r8)?;
        }
        Ok(())
    }
}

/// A value of a name-value block; empty bytes until it is read.
struct NamedValue(Value);

impl Default for NamedValue {
    fn default() -> Self {
        Self(Value::Bytes(Vec::new()))
    }
}

impl NamedValue {
    /// Reads or writes the value; strings have `s` bytes.
    fn fields(&mut self, f: &mut impl Fields, datatype: DataType, s: usize) -> Result<()> {
        let value = std::mem::replace(&mut self.0, Value::Bytes(Vec::new()));
        let blank = value == Value::Bytes(Vec::new());
        let number = match value {
            Value::Int(v) => Some(i128::from(v)),
            Value::UInt(v) => Some(i128::from(v)),
            _ => blank.then_some(0),
        };
        let real = match value {
            Value::Float(v) => Some(v),
            _ => number.map(|v| v as f64),
        };
        let wrong =
            |f: &dyn Fn(String) -> Error| f(format!("expected values of type {}", datatype.name()));
        self.0 = match (datatype, value) {
            (DataType::Integer4, _) => {
                let fits = number.and_then(|v| i32::try_from(v).ok());
                let mut v = fits.ok_or_else(|| wrong(&|m| f.invalid(m)))?;
                f.i4(&mut v)?;
                Value::Int(i64::from(v))
            }
            (DataType::Integer8, _) => {
                let fits = number.and_then(|v| i64::try_from(v).ok());
                let mut v = fits.ok_or_else(|| wrong(&|m| f.invalid(m)))?;
                f.i8(&mut v)?;
                Value::Int(v)
            }
            (DataType::Real4, _) => {
                let mut v = real.ok_or_else(|| wrong(&|m| f.invalid(m)))? as f32;
                f.r4(&mut v)?;
                Value::Float(f64::from(v))
            }
            (DataType::Real8, _) => {
                let mut v = real.ok_or_else(|| wrong(&|m| f.invalid(m)))?;
                f.r8(&mut v)?;
                Value::Float(v)
            }
            (DataType::Logical, Value::Bool(v)) => {
                f.bytes(&mut vec![u8::from(v)], 1)?;
                Value::Bool(v)
            }
            (DataType::Logical, _) if blank => {
                let mut byte = Vec::new();
                f.bytes(&mut byte, 1)?;
                Value::Bool(byte != [0])
            }
            (DataType::Character, Value::Text(mut text)) => {
                f.text(&mut text, s)?;
                Value::Text(text)
            }
            (DataType::Character, _) if blank => {
                let mut text = String::new();
                f.text(&mut text, s)?;
                Value::Text(text)
            }
            (DataType::Real16, Value::Bytes(mut bytes)) => {
                f.r16(&mut bytes)?;
                Value::Bytes(bytes)
            }
            _ if blank => Value::Bytes(Vec::new()),
            _ => return Err(wrong(&|m| f.invalid(m))),
        };
        Ok(())
    }
}
