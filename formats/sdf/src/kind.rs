//! Types of blocks (section 4, and those that came later).

/// The type of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// Deleted; readers pass over it.
    Scrubbed,
    /// No type.
    Null,
    /// Nodes of a grid.
    PlainMesh,
    /// Positions of particles.
    PointMesh,
    /// Values on a grid.
    PlainVariable,
    /// Values of particles.
    PointVariable,
    /// One value, in the metadata.
    Constant,
    /// Values without a mesh.
    Array,
    /// About the program and its run.
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
    /// Never finished by the specification.
    Species,
    /// Computed by readers, never in a file.
    PlainDerived,
    /// Computed by readers, never in a file.
    PointDerived,
    /// [`BlockType::StitchedTensor`] that owns the data.
    ContiguousTensor,
    /// [`BlockType::StitchedMaterial`] that owns the data.
    ContiguousMaterial,
    /// [`BlockType::StitchedMatvar`] that owns the data.
    ContiguousMatvar,
    /// [`BlockType::StitchedSpecies`] that owns the data.
    ContiguousSpecies,
    /// How the domain was split over ranks.
    CpuSplit,
    /// Obstacles.
    StitchedObstacleGroup,
    /// Never in a file.
    UnstructuredMesh,
    /// Any blocks that belong together.
    Stitched,
    /// [`BlockType::Stitched`] that owns the data.
    Contiguous,
    /// Nodes of a grid that moves.
    LagrangianMesh,
    /// Time histories at stations.
    Station,
    /// Computed by readers, never in a file.
    StationDerived,
    /// An embedded file.
    Datablock,
    /// Names and values.
    NameValue,
    /// Not in any revision known.
    Unknown(i32),
}

/// Types by their numbers, from -1 on.
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
    /// From the number in the file.
    pub fn from_code(code: i32) -> Self {
        let known = code.checked_add(1).and_then(|k| TYPES.get(usize::try_from(k).ok()?));
        known.map_or(Self::Unknown(code), |(this, _)| *this)
    }

    /// The number in the file.
    pub fn code(self) -> i32 {
        match self {
            Self::Unknown(code) => code,
            _ => TYPES.iter().position(|(this, _)| *this == self).unwrap_or(0) as i32 - 1,
        }
    }

    /// The word in the specification.
    pub fn name(self) -> String {
        match self {
            Self::Unknown(code) => format!("blocktype {code}"),
            _ => TYPES[(self.code() + 1) as usize].1.to_string(),
        }
    }

    /// From [`BlockType::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        let known = TYPES.iter().find(|(_, word)| *word == name).map(|(this, _)| *this);
        known.or_else(|| Some(Self::Unknown(name.strip_prefix("blocktype ")?.parse().ok()?)))
    }

    /// The block owns the data that its members point into.
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
