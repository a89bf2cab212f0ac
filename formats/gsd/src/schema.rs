//! HOOMD.
use crate::read::File;
use spile_core::tree::Value;
pub(crate) fn summary(_file: &File) -> Vec<(String, Value)> {
    Vec::new()
}
use spile_core::{error::Result, report::Report};
pub(crate) fn validate(_file: &File, _strict: bool, _report: &mut Report) -> Result<()> {
    Ok(())
}
