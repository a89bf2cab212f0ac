//! One pass over an array, on all cores: statistics, min/max envelopes, and the cells of pictures.

mod components;
mod envelope;
mod histogram;
mod raster;
mod statistics;
mod whole;

pub use components::{MOST_COMPONENTS, components};
pub use envelope::{Envelope, envelope};
pub use histogram::{Bins, histogram};
pub use raster::{even_cuts, raster};
pub use statistics::{ExactRange, Stats, statistics};
