//! Findings of `check`: the errors of opening, and deviations that do not change values.

use std::collections::HashSet;

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use crate::to_tree;
use crate::wire::Header;

/// Checks a file. `strict` adds deviations that every reader tolerates.
pub(crate) fn check(source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
    let mut report = Report::default();
    match to_tree::open(source.clone(), &limits.into()) {
        Ok(parsed) => report.findings = parsed.warnings,
        Err(error) => {
            report.absorb(error)?;
            return Ok(report);
        }
    }
    let header = Header::read(source, limits)?;
    let records = header.records(source.len());
    let mut names = HashSet::new();
    for variable in &header.variables {
        let object = format!("\"{}\"", variable.name);
        if !names.insert(variable.name.as_str()) {
            let finding = report.error("netcdf3-010", "two variables have the same name");
            finding.in_object(&*object).at(variable.at);
        }
        if variable.begin < header.len {
            let message = format!("the data begin in the header, which has {} bytes", header.len);
            report.error("netcdf3-011", message).in_object(&*object).at(variable.at);
        }
        let Ok(placed) = header.place(variable, records.count) else { continue };
        // Sizes that do not fit in the field are stored as its largest value, or as any other by old programs.
        let padded = placed.bytes.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let fits = header.version == 5 || padded < u64::from(u32::MAX) - 3;
        let is_unpadded = variable.vsize == placed.bytes && placed.is_record;
        if strict && fits && variable.vsize != padded && !is_unpadded {
            let message = format!("the size is stored as {}, expected {padded}", variable.vsize);
            report.warn("netcdf3-012", message).in_object(&*object).at(variable.at);
        }
    }
    let lengths = header.dimensions.iter().filter(|dimension| dimension.length == 0);
    if lengths.count() > 1 {
        report.error("netcdf3-013", "more than one record dimension").in_object("header").at(4);
    }
    if header.numrecs.is_none() {
        let message =
            format!("the number of records is not stored; the file has {}", records.count);
        report.note("netcdf3-014", message).in_object("header").at(4);
    }
    if let Some(at) = header.padding.filter(|_| strict) {
        report.warn("netcdf3-015", "padding bytes are not 0").in_object("header").at(at);
    }
    Ok(report)
}
