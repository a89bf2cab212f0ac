//! One pass over an array, on all cores: statistics and min/max envelopes.

mod envelope;
mod statistics;
mod whole;

pub use envelope::{Envelope, envelope};
pub use statistics::{ExactRange, Stats, statistics};
