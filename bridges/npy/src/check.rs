//! Findings about a `.npy` file.

use spile_core::error::Result;
use spile_core::format::Checker;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use crate::{Npy, to_tree};

impl Checker for Npy {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match to_tree::read(source, limits) {
            Ok((header, _)) => {
                let end = header.end()?;
                if source.len() > end {
                    let more = source.len() - end;
                    report.warn("npy-010", format!("{more} bytes follow the array")).at(end);
                }
            }
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }
}
