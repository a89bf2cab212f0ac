//! Arrays that are computed from others when they are read.

use std::fmt;
use std::sync::Arc;

use crate::{Array, ArrayDesc, DType, Error, Order, Result, convert};

/// Computes elements of an array from other arrays.
pub trait Function: Send + Sync {
    /// Short name for listings, for example `cell centres`.
    fn name(&self) -> &str;

    /// Memory in bytes, besides the result, that computing `count` elements at once needs.
    fn memory(&self, count: u64) -> u64;

    /// Fills `out` with the little-endian elements from number `first` on, in the order of the layout.
    /// `first` and the length of `out` always describe one [piece](Computed::piece).
    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()>;
}

/// How an array is computed.
#[derive(Clone)]
pub struct Computed {
    /// The arrays that the function reads, in the order it expects.
    pub inputs: Vec<ArrayDesc>,
    /// The computation.
    pub function: Arc<dyn Function>,
    /// Number of elements computed together; the last piece may be shorter.
    pub piece: u64,
    /// Which index of the result runs fastest.
    pub order: Order,
}

impl Computed {
    /// Returns this computation with the offsets of its inputs increased by `by` bytes.
    pub(crate) fn shifted(&self, by: u64) -> Result<Self> {
        let mut moved = self.clone();
        for input in &mut moved.inputs {
            input.layout = input.layout.shifted(by)?;
        }
        Ok(moved)
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Computed({})", self.function.name())
    }
}

/// Stores computed values as little-endian elements of `dtype`; an error where `out` has another length.
pub fn store_f64(dtype: DType, values: &[f64], out: &mut [u8]) -> Result<()> {
    let mut bytes = Vec::new();
    convert::from_f64(dtype, None, values, &mut bytes);
    if bytes.len() != out.len() {
        let message = format!("expected {} bytes, computed {}", out.len(), bytes.len());
        return Err(Error::malformed("core-computed", message));
    }
    out.copy_from_slice(&bytes);
    Ok(())
}
