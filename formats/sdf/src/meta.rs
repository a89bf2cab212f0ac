//! The metadata of blocks (section 5, and the types that came later).

mod layout;

use spile_core::error::Result;
use spile_core::shape::Shape;
use spile_core::tree::Value;
use spile_core::wire::Wire;

use crate::fields::Out;
use crate::kind::BlockType;
use crate::wire::{BlockHeader, DataType, FileHeader};

/// Metadata of a plain or lagrangian mesh (5.1), one entry a direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Normalisation factors.
    pub mults: Vec<f64>,
    /// Names of the axes.
    pub labels: Vec<String>,
    /// Units, once the factors are applied.
    pub units: Vec<String>,
    /// 1 cartesian, 2 cylindrical, 3 spherical.
    pub geometry: i32,
    /// Smallest coordinates.
    pub minval: Vec<f64>,
    /// Largest coordinates.
    pub maxval: Vec<f64>,
    /// Number of nodes.
    pub dims: Vec<u64>,
}

/// Metadata of a point mesh (5.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointMesh {
    /// What both kinds of meshes have; `dims` is empty.
    pub mesh: Mesh,
    /// Number of points.
    pub np: u64,
    /// The species (since revision 3).
    pub species_id: String,
}

/// Metadata of a variable on a grid (5.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainVariable {
    /// Normalisation factor.
    pub mult: f64,
    /// Unit, once the factor is applied.
    pub units: String,
    /// The mesh.
    pub mesh_id: String,
    /// Number of points.
    pub dims: Vec<u64>,
    /// Bit k: on the nodes of direction k, not between them.
    pub stagger: i32,
}

/// Metadata of a variable of particles (5.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointVariable {
    /// Normalisation factor.
    pub mult: f64,
    /// Unit, once the factor is applied.
    pub units: String,
    /// The mesh.
    pub mesh_id: String,
    /// Number of points.
    pub np: u64,
    /// The species (since revision 3).
    pub species_id: String,
}

/// About the program and its run (5.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// Version of the program.
    pub code_version: i32,
    /// Revision of the program.
    pub code_revision: i32,
    /// Commit of its source.
    pub commit_id: String,
    /// Checksum of its source.
    pub sha1sum: String,
    /// Where it was compiled.
    pub compile_machine: String,
    /// How it was compiled.
    pub compile_flags: String,
    /// Pre-processor switches, a bit each.
    pub defines: i64,
    /// When it was compiled, in seconds since 1970.
    pub compile_date: i32,
    /// When it began to run.
    pub run_date: i32,
    /// When this file was begun.
    pub io_date: i32,
    /// Minor revision of the program (since revision 2).
    pub minor_rev: i32,
}

/// A list of blocks that belong together (5.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stitched {
    /// Where the result lies relative to the mesh.
    pub stagger: i32,
    /// The mesh; for obstacles the obstacle block.
    pub mesh_id: String,
    /// The material block (matvar, species), or the volume fractions of obstacles.
    pub material_id: String,
    /// The material of the species.
    pub material_name: String,
    /// Names of materials, species or obstacles.
    pub names: Vec<String>,
    /// Blocks that are the parts.
    pub ids: Vec<String>,
}

/// Time histories at stations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Station {
    /// Number of rows.
    pub nelements: u64,
    /// Bytes of a row.
    pub entry_len: u64,
    /// Step of the first row.
    pub step0: i32,
    /// Steps between rows.
    pub step_inc: i32,
    /// Time of the first row.
    pub time0: f64,
    /// Time between rows.
    pub time_inc: f64,
    /// Identifiers of the stations.
    pub station_ids: Vec<String>,
    /// Names of the stations.
    pub station_names: Vec<String>,
    /// Number of variables of each station.
    pub station_nvars: Vec<u64>,
    /// Whether the stations move.
    pub station_move: Vec<i32>,
    /// Positions: all of the first direction, then the next.
    pub station_x0: Vec<f64>,
    /// Identifiers of the variables; the first is the time.
    pub variable_ids: Vec<String>,
    /// Names of the variables.
    pub variable_names: Vec<String>,
    /// Types of the variables.
    pub variable_types: Vec<DataType>,
    /// Units of the variables.
    pub variable_units: Vec<String>,
    /// Normalisation factors, where the file has them.
    pub variable_mults: Option<Vec<f64>>,
}

/// The metadata of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Meta {
    /// Plain or lagrangian mesh.
    Mesh(Mesh),
    /// Point mesh.
    PointMesh(PointMesh),
    /// Variable on a grid.
    PlainVariable(PlainVariable),
    /// Variable of particles.
    PointVariable(PointVariable),
    /// The value's bytes, in the file's byte order.
    Constant(Vec<u8>),
    /// Dimensions of an array.
    Array(Vec<u64>),
    /// Run information.
    RunInfo(RunInfo),
    /// Source code has none.
    Source,
    /// Every type of stitched and contiguous block.
    Stitched(Stitched),
    /// How the domain was split.
    CpuSplit {
        /// 1 by planes, 2 mixed, 3 cell by cell, 4 particles of each rank.
        split_type: i32,
        /// Sizes, by the type.
        dims: Vec<u64>,
    },
    /// Stations; there is room for the much that is said of them elsewhere.
    Station(Box<Station>),
    /// Embedded file.
    Datablock {
        /// What it is.
        mimetype: String,
        /// Kind of the checksum.
        checksum_type: String,
        /// Checksum.
        checksum: String,
    },
    /// Names and values.
    NameValue {
        /// Names.
        names: Vec<String>,
        /// Values.
        values: Vec<Value>,
    },
    /// Of a type we do not know: as many bytes as the header says.
    Other(Vec<u8>),
}

impl Meta {
    /// Empty metadata of the right kind.
    pub(crate) fn of(kind: BlockType) -> Self {
        use BlockType as B;
        match kind {
            B::PlainMesh | B::LagrangianMesh => Self::Mesh(Mesh::default()),
            B::PointMesh => Self::PointMesh(PointMesh::default()),
            B::PlainVariable => Self::PlainVariable(PlainVariable::default()),
            B::PointVariable => Self::PointVariable(PointVariable::default()),
            B::Constant => Self::Constant(Vec::new()),
            B::Array => Self::Array(Vec::new()),
            B::RunInfo => Self::RunInfo(RunInfo::default()),
            B::Source => Self::Source,
            B::StitchedTensor
            | B::StitchedMaterial
            | B::StitchedMatvar
            | B::StitchedSpecies
            | B::ContiguousTensor
            | B::ContiguousMaterial
            | B::ContiguousMatvar
            | B::ContiguousSpecies
            | B::StitchedObstacleGroup
            | B::Stitched
            | B::Contiguous => Self::Stitched(Stitched::default()),
            B::CpuSplit => Self::CpuSplit { split_type: 0, dims: Vec::new() },
            B::Station => Self::Station(Box::default()),
            B::Datablock => Self::Datablock {
                mimetype: String::new(),
                checksum_type: String::new(),
                checksum: String::new(),
            },
            B::NameValue => Self::NameValue { names: Vec::new(), values: Vec::new() },
            B::Scrubbed
            | B::Null
            | B::Species
            | B::PlainDerived
            | B::PointDerived
            | B::UnstructuredMesh
            | B::StationDerived
            | B::Unknown(_) => Self::Other(Vec::new()),
        }
    }

    /// The block header's `ndims` for these metadata.
    pub fn ndims(&self) -> u64 {
        let number = match self {
            Self::Mesh(mesh) => mesh.labels.len(),
            Self::PointMesh(points) => points.mesh.labels.len(),
            Self::PlainVariable(variable) => variable.dims.len(),
            Self::Array(dims) | Self::CpuSplit { dims, .. } => dims.len(),
            Self::Stitched(group) => group.ids.len().max(group.names.len()),
            Self::Station(s) => s.station_x0.len() / s.station_ids.len().max(1),
            Self::NameValue { names, .. } => names.len(),
            Self::PointVariable(_) | Self::Constant(_) | Self::RunInfo(_) => 1,
            Self::Source | Self::Datablock { .. } | Self::Other(_) => 0,
        };
        number as u64
    }

    /// Number of elements that the data of a block of this type should have; nothing where the
    /// metadata do not tell, or tell more than any file holds.
    pub fn elements(&self, kind: BlockType) -> Option<u64> {
        let count = |dims: &[u64]| Shape::new(dims).count();
        let sum = |dims: &[u64]| dims.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
        match self {
            Self::Mesh(mesh) if kind == BlockType::LagrangianMesh => {
                count(&mesh.dims)?.checked_mul(mesh.dims.len() as u64)
            }
            Self::Mesh(mesh) => sum(&mesh.dims),
            Self::PointMesh(points) => points.np.checked_mul(points.mesh.labels.len() as u64),
            Self::PlainVariable(variable) => count(&variable.dims),
            Self::PointVariable(variable) => Some(variable.np),
            Self::Array(dims) => count(dims),
            Self::CpuSplit { split_type, dims } => match (split_type, &dims[..]) {
                (1, _) => sum(dims),
                (2, [n1]) => Some(*n1),
                (2, [n1, n2]) => n1.checked_mul(n2.checked_add(1)?),
                (2, [n1, n2, n3]) => {
                    n1.checked_mul(n2.checked_mul(n3.checked_add(1)?)?.checked_add(1)?)
                }
                (3 | 4, _) => count(dims),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reads the metadata that follow `block`.
    pub(crate) fn read(
        wire: &mut Wire<'_>,
        block: &BlockHeader,
        file: &FileHeader,
    ) -> Result<Self> {
        let mut meta = Self::of(BlockType::from_code(block.blocktype));
        // An unknown constant has no size; its bytes are kept as what they are.
        if matches!(&meta, Self::Constant(_)) && block.datatype.dtype(file.order).is_none() {
            meta = Self::Other(Vec::new());
        }
        meta.fields(wire, block, file)?;
        Ok(meta)
    }

    /// The bytes of the metadata.
    pub(crate) fn encode(&self, block: &BlockHeader, file: &FileHeader) -> Result<Vec<u8>> {
        let mut out = Out::new(file.order);
        self.clone().fields(&mut out, block, file)?;
        Ok(out.bytes)
    }
}
