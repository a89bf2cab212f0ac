//! Checks a file against the specification of its format.

use std::path::Path;

use serde::Serialize;
use spile_core::format::Writer;
use spile_core::report::Severity;
use spile_core::{
    ArrayDesc, Dataset, Error, ErrorKind, Finding, Format, Limits, NodeId, OpenOptions, Registry,
    Report, Result, Source,
};

use crate::pick::Pick;
/// The result for one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The format it was checked as.
    pub format: &'static str,
    /// There are no errors.
    pub ok: bool,
    /// Number of errors.
    pub errors: u64,
    /// Number of warnings.
    pub warnings: u64,
    /// Number of notes.
    pub notes: u64,
    /// The findings, in file order.
    pub findings: Vec<Finding>,
}

/// Checks a file in the format that is detected. Fails if the file could not be examined at all: it cannot
/// be read, its format is not recognised, or a limit is exceeded.
pub fn check(registry: &Registry, source: &Source, limits: &Limits, strict: bool) -> Result<Check> {
    let format = registry.probe_within(source, limits)?;
    let name = format.info().name;
    let checker = format
        .abilities()
        .checker
        .ok_or_else(|| Error::unsupported("", format!("checking {name} files is not supported")))?;
    let report = match checker.check(source, limits, strict) {
        Ok(report) => report,
        Err(error) if error.kind() == ErrorKind::NotThisFormat => {
            return Err(error.with_format(name));
        }
        Err(error) => {
            // An error about the content is a finding.
            let mut report = Report::default();
            report.absorb(error.with_format(name))?;
            report
        }
    };
    Ok(verdict(name, report))
}

/// Checks a folder that is a dataset of `format` by reading all its values.
pub fn check_folder(format: &dyn Format, path: &Path, options: &OpenOptions) -> Result<Check> {
    let mut report = Report::default();
    match Dataset::open_path(format, path, options) {
        Ok(dataset) => {
            report.findings.extend_from_slice(dataset.warnings());
            check_files(format, &dataset, &mut report)?;
            for (id, node, array) in dataset.arrays() {
                let Err(error) = read(&dataset, id, array) else { continue };
                report.absorb(error)?;
                if let Some(finding) = report.findings.last_mut() {
                    let inner = finding.object.take().map_or(String::new(), |o| format!(", {o}"));
                    finding.object = Some(format!("\"{}\"{inner}", node.path));
                }
            }
        }
        Err(error) => report.absorb(error)?,
    }
    Ok(verdict(format.info().name, report))
}

/// Adds the findings of the checker about a folder whose files are one source, for formats whose checker examines
/// files. They replace equal ones of opening, which may have another severity.
fn check_files(format: &dyn Format, dataset: &Dataset, report: &mut Report) -> Result<()> {
    let abilities = format.abilities();
    let source = dataset.source();
    let checker =
        abilities.checker.filter(|_| !matches!(abilities.writer, Some(Writer::Folder(_))));
    let Some(checker) = checker.filter(|_| !source.parts().is_empty()) else { return Ok(()) };
    let found = checker.check(source, dataset.limits(), false)?.findings;
    report
        .findings
        .retain(|own| !found.iter().any(|new| (new.code, &new.object) == (own.code, &own.object)));
    report.findings.extend(found);
    Ok(())
}

/// Reads all values of an array, in all frames.
fn read(dataset: &Dataset, id: NodeId, array: &ArrayDesc) -> Result<()> {
    let each = |frame| match dataset.array_in_frame(id, frame)? {
        Some(array) => array.unlimited()?.check(),
        None => Ok(()),
    };
    match dataset.tree().resolve(array)?.layout.frames() {
        Some(table) => Pick::default().frames_of(&[&**table])?.try_for_each(|frame| each(frame?)),
        None => each(0),
    }
}

fn verdict(format: &'static str, report: Report) -> Check {
    let count = |severity| report.findings.iter().filter(|f| f.severity == severity).count() as u64;
    let errors = count(Severity::Error);
    Check {
        format,
        ok: errors == 0,
        errors,
        warnings: count(Severity::Warning),
        notes: count(Severity::Note),
        findings: report.findings,
    }
}
