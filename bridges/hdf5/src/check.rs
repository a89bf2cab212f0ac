//! `check`: the findings of reading all metadata of a file.

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use crate::read;

/// Reads all metadata. Objects that cannot be read are findings; a file that cannot be opened is one
/// finding, unless the reason is an I/O error or an exhausted budget.
pub(crate) fn check(source: &Source, limits: &Limits) -> Result<Report> {
    let mut report = Report::default();
    match read::open(source.clone(), limits) {
        Ok(parsed) => report.findings = parsed.warnings,
        Err(error) => report.absorb(error)?,
    }
    Ok(report)
}
