//! Block types (section 4, and types of later revisions).

/// The type of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// Deleted; readers skip it.
    Scrubbed,
    /// Not specified.
    Null,
    /// Nodes of a grid.
    PlainMesh,
    /// Positions of particles.
    PointMesh,
    /// Values on a grid.
    PlainVariable,
    /// Values of particles.
    PointVariable,
    /// One value, stored in the metadata.
    Constant,
    /// Values without a mesh.
    Array,
    /// Information about the program and the run.
    RunInfo,
    /// Source code of the program.
    Source,
    /// Components of a vector or tensor.
    StitchedTensor,
    /// Volume fractions of materials.
    StitchedMaterial,
    /// One variable in several materials.
    StitchedMatvar,
    /// Fractions of the species of a material.
    StitchedSpecies,
    /// Incomplete in the specification.
    Species,
    /// Computed by readers, not stored in files.
    PlainDerived,
    /// Computed by readers, not stored in files.
    PointDerived,
    /// [`BlockType::StitchedTensor`] that owns the data.
    ContiguousTensor,
    /// [`BlockType::StitchedMaterial`] that owns the data.
    ContiguousMaterial,
    /// [`BlockType::StitchedMatvar`] that owns the data.
    ContiguousMatvar,
    /// [`BlockType::StitchedSpecies`] that owns the data.
    ContiguousSpecies,
    /// Domain decomposition over ranks.
    CpuSplit,
    /// Obstacles.
    StitchedObstacleGroup,
    /// Not stored in files.
    UnstructuredMesh,
    /// Group of related blocks.
    Stitched,
    /// [`BlockType::Stitched`] that owns the data.
    Contiguous,
    /// Nodes of a moving grid.
    LagrangianMesh,
    /// Time histories at stations.
    Station,
    /// Computed by readers, not stored in files.
    StationDerived,
    /// An embedded file.
    Datablock,
    /// Names and values.
    NameValue,
    /// Not defined in any supported revision.
    Unknown(i32),
}

/// Block types in the order of their codes, starting at -1.
const TYPES: [(BlockType, &str); 31] = [
    (BlockType::Scrubbed, "scrubbed"),
    (BlockType::Null, "null"),
    (BlockType::PlainMesh, "plain_mesh"),
    (BlockType::PointMesh, "point_mesh"),
    (BlockType::PlainVariable, "plain_variable"),
    (BlockType::PointVariable, "point_variable"),
    (BlockType::Constant, "constant"),
    (BlockType::Array, "array"),
    (BlockType::RunInfo, "run_info"),
    (BlockType::Source, "source"),
    (BlockType::StitchedTensor, "stitched_tensor"),
    (BlockType::StitchedMaterial, "stitched_material"),
    (BlockType::StitchedMatvar, "stitched_matvar"),
    (BlockType::StitchedSpecies, "stitched_species"),
    (BlockType::Species, "species"),
    (BlockType::PlainDerived, "plain_derived"),
    (BlockType::PointDerived, "point_derived"),
    (BlockType::ContiguousTensor, "contiguous_tensor"),
    (BlockType::ContiguousMaterial, "contiguous_material"),
    (BlockType::ContiguousMatvar, "contiguous_matvar"),
    (BlockType::ContiguousSpecies, "contiguous_species"),
    (BlockType::CpuSplit, "cpu_split"),
    (BlockType::StitchedObstacleGroup, "stitched_obstacle_group"),
    (BlockType::UnstructuredMesh, "unstructured_mesh"),
    (BlockType::Stitched, "stitched"),
    (BlockType::Contiguous, "contiguous"),
    (BlockType::LagrangianMesh, "lagrangian_mesh"),
    (BlockType::Station, "station"),
    (BlockType::StationDerived, "station_derived"),
    (BlockType::Datablock, "datablock"),
    (BlockType::NameValue, "namevalue"),
];

impl BlockType {
    /// The block type with the stored `code`.
    pub fn from_code(code: i32) -> Self {
        let known = code.checked_add(1).and_then(|k| TYPES.get(usize::try_from(k).ok()?));
        known.map_or(Self::Unknown(code), |(this, _)| *this)
    }

    /// The stored code.
    pub fn code(self) -> i32 {
        match self {
            Self::Unknown(code) => code,
            _ => TYPES.iter().position(|(this, _)| *this == self).unwrap_or(0) as i32 - 1,
        }
    }

    /// Name in the specification, or `blocktype N` for an unknown code.
    pub fn name(self) -> String {
        match self {
            Self::Unknown(code) => format!("blocktype {code}"),
            _ => TYPES[(self.code() + 1) as usize].1.to_string(),
        }
    }

    /// The block type whose [`BlockType::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = TYPES.iter().find(|(_, known)| *known == name).map(|(this, _)| *this);
        known.or_else(|| Some(Self::Unknown(name.strip_prefix("blocktype ")?.parse().ok()?)))
    }

    /// The block owns the data of its members.
    pub fn is_contiguous(self) -> bool {
        matches!(
            self,
            Self::ContiguousTensor
                | Self::ContiguousMaterial
                | Self::ContiguousMatvar
                | Self::ContiguousSpecies
                | Self::Contiguous
        )
    }
}
