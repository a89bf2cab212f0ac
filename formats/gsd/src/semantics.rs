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

use spile_core::convert;
use spile_core::tree::Value;

use crate::read::File;
use crate::wire::Type;

pub(crate) use fields::{default_values, dims, field, has_fallback, missing_value};
pub use log::{Log, LogColumn};
pub(crate) use resolve::Resolved;
pub use resolve::Trajectory;
pub use snapshot::{Column, Links, Particles, Snapshot};
pub(crate) use validate::validate;
pub use write::{Precision, TrajectoryWriter};

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

/// Summary rows of a HOOMD file: particles and types of frame 0, last step. Values that cannot be read
/// are left out.
pub(crate) fn summary(file: &File) -> Vec<(String, Value)> {
    let mut rows = Vec::new();
    let Ok(trajectory) = Trajectory::new(file.clone()) else { return rows };
    let Ok(first) = trajectory.resolve(0) else { return rows };
    if file.nchunks() > 0 {
        rows.push(("particles".into(), Value::UInt(first.counts[0])));
        if let Ok(types) = first.strings(fields::position("particles/types")) {
            rows.push(("particle types".into(), types.join(", ").into()));
        }
        if let Ok(Some(step)) = file.last_step() {
            rows.push(("last step".into(), step.into()));
        }
    }
    rows
}
