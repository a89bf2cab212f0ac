//! On-disk structures: the records of the binary form, and the tags of both forms.

pub mod record;
mod tag;

pub use tag::*;
