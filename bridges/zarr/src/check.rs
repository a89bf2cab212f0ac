//! Checks of stores in zip archives: every chunk is read.

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{Checker, OpenOptions};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use crate::Zarr;

impl Checker for Zarr {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        let store = Dataset::open(self, source.clone(), &OpenOptions::with_limits(*limits));
        let store = match store {
            Ok(store) => store,
            Err(error) => {
                report.absorb(error)?;
                return Ok(report);
            }
        };
        report.findings.extend_from_slice(store.warnings());
        for (id, ..) in store.arrays() {
            let read = store.array_at(id).and_then(|array| array.all()?.for_each(|_, _| Ok(())));
            if let Err(error) = read {
                report.absorb(error)?;
            }
        }
        Ok(report)
    }
}
