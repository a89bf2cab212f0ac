//! Writers in the formats' own words.

mod gsd;
mod scda;
pub(crate) mod taf;

pub(crate) use gsd::Frames;
pub(crate) use scda::Sections;
