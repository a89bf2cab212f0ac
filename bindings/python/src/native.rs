//! Native writers of scda and TAF.

mod scda;
pub(crate) mod taf;

pub(crate) use scda::Sections;
