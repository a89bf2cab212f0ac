//! Findings: those of opening, and of decoding all columns that are not plain.

use spile_core::error::{Error, Result};
use spile_core::format::Checker;
use spile_core::layout::Codec as _;
use spile_core::limits::Limits;
use spile_core::report::{Report, Severity};
use spile_core::source::Source;

use crate::Parquet;
use crate::read::Leaf;
use crate::to_tree::File;

/// Codes of columns that are not supported.
const UNSUPPORTED: [&str; 3] = ["parquet-006", "parquet-020", "parquet-021"];

impl Checker for Parquet {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match File::read(source, limits) {
            Ok(file) => {
                report.findings = file.warnings;
                // Columns that are not supported may be valid.
                for finding in report.findings.iter_mut().filter(|f| UNSUPPORTED.contains(&f.code))
                {
                    finding.severity = Severity::Warning;
                }
                for leaf in file.columns.leaves.iter().filter(|leaf| leaf.is_full()) {
                    if let Err(error) = check_column(leaf, source, limits) {
                        report.absorb(error)?;
                    }
                }
            }
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }
}

/// Decodes every chunk that is not plain, and discards the values.
fn check_column(leaf: &Leaf, source: &Source, limits: &Limits) -> Result<()> {
    let Some(encoded) = &leaf.encoded else { return Ok(()) };
    for (chunk, count) in &leaf.pages {
        let named = |e: Error| e.in_object(format!("\"{}\"", leaf.name)).at(chunk.offset);
        limits.allow(chunk.len, "a chunk of a column").map_err(named)?;
        let stored = source.read_vec(chunk.offset, chunk.len)?;
        let size = count.saturating_mul(leaf.dtype.size() as u64);
        let mut values = vec![0; limits.allow(size, "a chunk of a column").map_err(named)?];
        encoded.decode(&stored, &mut values).map_err(named)?;
    }
    Ok(())
}
