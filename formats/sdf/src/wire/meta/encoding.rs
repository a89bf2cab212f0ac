//! Field order of the metadata of each block type, for reading and writing.

use spile_core::{DType, Result, Value};

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
                let old = std::mem::take(values);
                let all = (0..n).map(|k| value(f, old.get(k), block.datatype, s));
                *values = all.collect::<Result<_>>()?;
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
        f.list(&mut self.variable_types, variables, F::datatype)?;
        f.strings(&mut self.variable_units, variables, ID)?;
        if use_mult[0] != 0 {
            f.list(self.variable_mults.get_or_insert_default(), variables, F::r8)?;
        }
        Ok(())
    }
}

/// Reads a value of a name-value block, or writes `old`, which is `None` when reading. Strings have `s`
/// bytes. Returns the value.
fn value<F: Fields>(f: &mut F, old: Option<&Value>, datatype: DataType, s: usize) -> Result<Value> {
    let wrong = |f: &F| f.invalid(format!("expected values of type {}", datatype.name()));
    Ok(match datatype {
        DataType::Integer4 => {
            let number = known(old).and_then(|v: i64| i32::try_from(v).ok());
            let mut number = number.ok_or_else(|| wrong(f))?;
            f.i4(&mut number)?;
            Value::Int(number.into())
        }
        DataType::Integer8 => {
            let mut number = known(old).ok_or_else(|| wrong(f))?;
            f.i8(&mut number)?;
            Value::Int(number)
        }
        DataType::Real4 => {
            let number: f64 = known(old).ok_or_else(|| wrong(f))?;
            let number = f.number((number as f32).to_le_bytes())?;
            Value::Float(f32::from_le_bytes(number).into())
        }
        DataType::Real8 => {
            let mut number = known(old).ok_or_else(|| wrong(f))?;
            f.r8(&mut number)?;
            Value::Float(number)
        }
        DataType::Logical => {
            let mut flag = known(old).ok_or_else(|| wrong(f))?;
            f.flag(&mut flag)?;
            Value::Bool(flag)
        }
        DataType::Character => {
            let mut text = known(old).ok_or_else(|| wrong(f))?;
            f.text(&mut text, s)?;
            Value::Text(text)
        }
        // A quadruple precision number is kept as little-endian bytes; other types have no bytes.
        _ => {
            let size = if datatype == DataType::Real16 { 16 } else { 0 };
            let mut number = [0; 16];
            match old {
                None => {}
                Some(Value::Bytes(bytes)) if bytes.len() <= size => {
                    number[..bytes.len()].copy_from_slice(bytes);
                }
                Some(_) => return Err(wrong(f)),
            }
            Value::Bytes(if size == 0 { Vec::new() } else { f.number(number)?.to_vec() })
        }
    })
}

/// A value in memory; the default if there is none, `None` if it is of another type.
fn known<T: Default + for<'v> TryFrom<&'v Value>>(value: Option<&Value>) -> Option<T> {
    value.map_or_else(|| Some(T::default()), |value| T::try_from(value).ok())
}
