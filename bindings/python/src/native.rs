//! Native writers of scda, GSD and TAF.

mod gsd;
mod scda;
pub(crate) mod taf;

pub(crate) use gsd::Frames;
pub(crate) use scda::Sections;
