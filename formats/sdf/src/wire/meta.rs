//! Metadata of blocks (section 5, and types of later revisions). In this crate, metadata are always those
//! of a block; the JSON that describes datasets of other formats is in `spile_core::metadata`.

mod encoding;

use spile_core::{Result, Shape, Value, Wire};

use super::block_type::BlockType;
use super::fields::Encoder;
use super::{BlockHeader, DataType, FileHeader};

/// Metadata of a plain or lagrangian mesh (5.1), one entry per direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Normalisation factors.
    pub mults: Vec<f64>,
    /// Names of the axes.
    pub labels: Vec<String>,
    /// Units of the scaled coordinates.
    pub units: Vec<String>,
    /// 1 Cartesian, 2 cylindrical, 3 spherical.
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
    /// Fields common to all meshes; `dims` is empty.
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
    /// Unit of the scaled values.
    pub units: String,
    /// Identifier of the mesh.
    pub mesh_id: String,
    /// Number of points in each direction.
    pub dims: Vec<u64>,
    /// Bit k set: along direction k values are at nodes, otherwise at cell centres.
    pub stagger: i32,
}

/// Metadata of a variable of particles (5.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointVariable {
    /// Normalisation factor.
    pub mult: f64,
    /// Unit of the scaled values.
    pub units: String,
    /// Identifier of the mesh.
    pub mesh_id: String,
    /// Number of points.
    pub np: u64,
    /// The species (since revision 3).
    pub species_id: String,
}

/// Information about the program and the run (5.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// Version of the program.
    pub code_version: i32,
    /// Revision of the program.
    pub code_revision: i32,
    /// Commit of the source code.
    pub commit_id: String,
    /// Checksum of the source code.
    pub sha1sum: String,
    /// Machine on which the program was compiled.
    pub compile_machine: String,
    /// Compiler flags.
    pub compile_flags: String,
    /// Preprocessor definitions, one bit each.
    pub defines: i64,
    /// Time of compilation, in seconds since 1970.
    pub compile_date: i32,
    /// Start of the run, in seconds since 1970.
    pub run_date: i32,
    /// Time at which the file was created, in seconds since 1970.
    pub io_date: i32,
    /// Minor revision of the program (since revision 2).
    pub minor_rev: i32,
}

/// Group of related blocks (5.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stitched {
    /// Stagger of the group.
    pub stagger: i32,
    /// Identifier of the mesh; for obstacles, of the obstacle block.
    pub mesh_id: String,
    /// Identifier of the material block (matvar, species) or of the volume fractions of obstacles.
    pub material_id: String,
    /// Name of the material of the species.
    pub material_name: String,
    /// Names of materials, species or obstacles.
    pub names: Vec<String>,
    /// Identifiers of the member blocks.
    pub ids: Vec<String>,
}

/// Time histories at stations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Station {
    /// Number of rows.
    pub nelements: u64,
    /// Length of a row in bytes.
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
    /// Positions of the stations: all first coordinates, then all second ones, ...
    pub station_x0: Vec<f64>,
    /// Identifiers of the variables; the first is the time.
    pub variable_ids: Vec<String>,
    /// Names of the variables.
    pub variable_names: Vec<String>,
    /// Types of the variables.
    pub variable_types: Vec<DataType>,
    /// Units of the variables.
    pub variable_units: Vec<String>,
    /// Normalisation factors, if the file has them.
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
    /// Bytes of the value, in the byte order of the file.
    Constant(Vec<u8>),
    /// Dimensions of an array.
    Array(Vec<u64>),
    /// Run information.
    RunInfo(RunInfo),
    /// Source code; no metadata.
    Source,
    /// Any stitched or contiguous block.
    Stitched(Stitched),
    /// Domain decomposition.
    CpuSplit {
        /// 1 by planes, 2 mixed, 3 cell by cell, 4 number of particles per rank.
        split_type: i32,
        /// Lengths; their meaning depends on `split_type`.
        dims: Vec<u64>,
    },
    /// Stations; boxed because it is much larger than the other variants.
    Station(Box<Station>),
    /// Embedded file.
    Datablock {
        /// MIME type.
        mimetype: String,
        /// Checksum algorithm.
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
    /// Metadata of an unknown block type, as bytes.
    Other(Vec<u8>),
}

impl Meta {
    /// Empty metadata of block type `kind`.
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
            _ => Self::Other(Vec::new()),
        }
    }

    /// Value of the `ndims` field of the block header for these metadata.
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

    /// Number of data elements that a block of type `kind` with these metadata must have; `None` if
    /// the metadata do not define it or it overflows.
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

    /// Reads the metadata of `block` at the position of `wire`.
    pub(crate) fn read(
        wire: &mut Wire<'_>,
        block: &BlockHeader,
        file: &FileHeader,
    ) -> Result<Self> {
        let mut meta = Self::of(BlockType::from_code(block.blocktype));
        // A constant of an unknown data type has no known size; its bytes are kept.
        if matches!(&meta, Self::Constant(_)) && block.datatype.dtype(file.order).is_none() {
            meta = Self::Other(Vec::new());
        }
        meta.fields(wire, block, file)?;
        Ok(meta)
    }

    /// Encodes the metadata.
    pub(crate) fn encode(&self, block: &BlockHeader, file: &FileHeader) -> Result<Vec<u8>> {
        let mut out = Encoder::new(file.order);
        self.clone().fields(&mut out, block, file)?;
        Ok(out.bytes)
    }
}
