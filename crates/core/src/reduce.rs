//! Reductions of arrays in one pass on all threads: statistics, histograms, min/max envelopes, rasters.

mod components;
mod envelope;
mod histogram;
mod integers;
mod raster;
mod statistics;

pub use components::{MOST_COMPONENTS, components};
pub use envelope::{Envelope, envelope};
pub use histogram::{Bins, histogram};
pub use raster::{even_cuts, raster};
pub use statistics::{ExactRange, Stats, statistics};
