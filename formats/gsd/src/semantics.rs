//! The HOOMD schema: the chunks it defines, their meaning and their defaults.
//!
//! A chunk that a frame lacks is taken from frame 0; one with a row per particle or bond only if frame 0
//! has the same number of them. If frame 0 lacks it too, it has a default. Logged quantities fall back in
//! the same way and have no default. Integrator state and chunks outside the schema exist only in frames
//! that contain them.
//!
//! | file | content |
//! |---|---|
//! | `fields` | table of chunks and defaults |
//! | `resolve` | [`Trajectory`]: fallback to frame 0 |
//! | `snapshot` `read` | [`Snapshot`]: a frame with all values; reading |
//! | `log` | logged quantities of all frames |
//! | `write` | [`TrajectoryWriter`]: writing frames |
//! | `validate` | findings |

mod fields;
mod log;
mod read;
mod resolve;
mod snapshot;
mod validate;
mod write;

use spile_core::semantics::Quantity;
use spile_core::{Attrs, NodeId, Result, Role, Semantics, convert};

use crate::read::{Chunk, File, HOOMD};
use crate::wire::Type;
use fields::{Field, GROUPS, Kind};

pub(crate) use fields::{
    BOX, default_values, dims, encode_names, field, has_fallback, missing_value,
};
pub use log::{Log, LogColumn};
pub(crate) use resolve::Resolved;
pub use resolve::Trajectory;
pub use snapshot::{Column, Links, Particles, Snapshot};
pub(crate) use validate::validate;
pub use write::{Precision, TrajectoryWriter};

/// Longest list of particle types that the summary shows, in bytes.
const MAX_TYPES: u64 = 64 << 10;

/// The elements of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Element type.
    pub kind: Type,
    /// Number of rows.
    pub n: u64,
    /// Number of columns.
    pub m: u64,
    /// Little-endian elements in row-major order.
    pub bytes: Vec<u8>,
}

impl Values {
    /// The elements as `f64`; 64-bit integers are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        let mut out = Vec::new();
        convert::to_f64(self.kind.dtype(), None, &self.bytes, &mut out);
        out
    }

    /// The rows as strings, each up to its first NUL.
    pub fn strings(&self) -> Vec<String> {
        strings(&self.bytes, self.m)
    }
}

/// Rows of `width` bytes as strings, each up to its first NUL.
fn strings(bytes: &[u8], width: u64) -> Vec<String> {
    let width = usize::try_from(width).unwrap_or(usize::MAX).max(1);
    let row = |bytes: &[u8]| {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    bytes.chunks(width).map(row).collect()
}

/// The box in a frame as Lx, Ly, Lz, xy, xz, yz: that of the frame, of frame 0, or the default. None if
/// the chunk does not have six real numbers.
pub(crate) fn read_box(file: &File, frame: u64) -> Result<Option<[f64; 6]>> {
    let own = file.find_chunk(frame, BOX)?;
    let chunk = if own.is_some() { own } else { file.find_chunk(0, BOX)? };
    let Some(Chunk { entry, data, .. }) = chunk else {
        return Ok(Some([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]));
    };
    if !matches!(data.kind, Type::Float | Type::Double) || (entry.n, entry.m) != (6, 1) {
        return Ok(None);
    }
    let mut numbers = Vec::new();
    let bytes = file.source().read_vec(data.offset, data.len)?;
    convert::to_f64(data.kind.dtype(), None, &bytes, &mut numbers);
    Ok(numbers.try_into().ok())
}

/// Number of members of a group in a frame: that of the frame, of frame 0, or 0.
fn read_members(file: &File, frame: u64, group: &str) -> Result<u64> {
    let name = format!("{group}/N");
    let own = file.find_chunk(frame, &name)?;
    let chunk = if own.is_some() { own } else { file.find_chunk(0, &name)? };
    chunk.map_or(Ok(0), |chunk| resolve::read_count(file, frame, &chunk))
}

/// What a frame without the chunk `name` has instead.
pub(crate) enum Fallback {
    /// The chunk of frame 0.
    First,
    /// This number of elements of the default along the first dimension; the values repeat.
    Default(u64, &'static [f64]),
    /// Default strings.
    Names(&'static [&'static str]),
    None,
}

/// The values of the chunk `name` in a frame without it; `in_first` if frame 0 contains the chunk.
pub(crate) fn fallback(file: &File, frame: u64, name: &str, in_first: bool) -> Result<Fallback> {
    let rows = match field(name) {
        None if !name.starts_with("log/") => return Ok(Fallback::None),
        Some(Field { per: Some(group), .. }) => {
            let members = read_members(file, frame, group)?;
            if in_first && members == read_members(file, 0, group)? {
                return Ok(Fallback::First);
            }
            members
        }
        _ if in_first => return Ok(Fallback::First),
        Some(Field { kind: Kind::Names, default_names, .. }) => {
            return Ok(Fallback::Names(default_names));
        }
        Some(field) => field.rows,
        None => return Ok(Fallback::None),
    };
    let default = field(name).map_or(&[][..], |field| field.default);
    Ok(if default.is_empty() { Fallback::None } else { Fallback::Default(rows, default) })
}

/// Summary of a HOOMD file: particles and types of frame 0, last step. Values that cannot be read are
/// left out.
pub(crate) fn summary(file: &File) -> Attrs {
    let mut rows = Attrs::new();
    if file.header().schema != HOOMD || file.nchunks() == 0 {
        return rows;
    }
    let first = |name: &str| file.find_chunk(0, name);
    let particles = first("particles/N")
        .and_then(|chunk| chunk.map_or(Ok(0), |chunk| resolve::read_count(file, 0, &chunk)));
    if let Ok(particles) = particles {
        rows.push("particles", particles);
    }
    let types = match first("particles/types") {
        Ok(Some(chunk)) if chunk.data.len > MAX_TYPES => None,
        Ok(Some(chunk)) => file.read_chunk(&chunk).map(|b| strings(&b, chunk.entry.m)).ok(),
        Ok(None) => field("particles/types").map(Field::default_names),
        Err(_) => None,
    };
    if let Some(types) = types {
        rows.push("particle types", types.join(", "));
    }
    if let Ok(Some(step)) = file.last_step() {
        rows.push("last step", step);
    }
    rows
}

/// The meaning of the array of a chunk; `positions` is the array of the particle positions.
pub(crate) fn meaning(name: &str, positions: Option<NodeId>) -> Semantics {
    let mut meaning = Semantics::default();
    let (group, _) = name.split_once('/').unwrap_or_default();
    match (group, name.strip_prefix("log/"), field(name)) {
        (_, Some(logged), _) => {
            meaning.role = Role::Log;
            // Quantities per particle or bond are logged under the name of the group.
            let set = logged.split('/').next().filter(|set| GROUPS.contains(set));
            meaning.point_set = set.map(Into::into);
        }
        (_, _, Some(Field { name: BOX, .. })) => meaning.role = Role::Cell,
        (group, _, Some(field)) if GROUPS.contains(&group) => {
            if field.per.is_some() {
                meaning.role = Role::Points;
            }
            meaning.point_set = Some(group.into());
        }
        _ => {}
    }
    let has_rows = matches!(meaning.role, Role::Points | Role::Log);
    meaning.quantity = match name {
        "particles/position" => Some(Quantity::Position),
        "particles/typeid" => Some(Quantity::Species),
        "particles/types" => Some(Quantity::SpeciesNames),
        "particles/velocity" => Some(Quantity::Velocity),
        "particles/mass" => Some(Quantity::Mass),
        "particles/charge" => Some(Quantity::Charge),
        _ => None,
    };
    meaning.mesh =
        positions.filter(|_| has_rows && meaning.point_set.as_deref() == Some("particles"));
    meaning
}
