//! Decodes all arrays.

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::Checker;
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::report::{Report, Severity};
use spile_core::source::Source;

use crate::{Vtk, collection, to_tree};

/// Codes of arrays that are not supported.
const UNSUPPORTED: [&str; 2] = ["vtk-006", "vtk-010"];

impl Checker for Vtk {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check(source, limits).or_else(|error| {
            let mut report = Report::default();
            report.absorb(error)?;
            Ok(report)
        })
    }
}

/// Findings of opening a file, and of decoding all arrays that are not raw.
fn check(source: &Source, limits: &Limits) -> Result<Report> {
    let document = to_tree::read_document(source, limits)?;
    if document.is_collection() {
        return collection::check(source, &document.root);
    }
    let parsed = to_tree::parse(source.clone(), document, limits)?;
    let source = parsed.source;
    let mut report = Report { findings: parsed.warnings };
    // Arrays that are not supported may be valid.
    for finding in report.findings.iter_mut().filter(|f| UNSUPPORTED.contains(&f.code)) {
        finding.severity = Severity::Warning;
    }
    let content = Dataset::new(source, parsed.tree);
    for (id, node, desc) in content.arrays() {
        let (Layout::Encoded { data: extents, .. } | Layout::EncodedWhole { extents, .. }) =
            &desc.layout
        else {
            continue;
        };
        let array = content.array_at(id);
        if let Err(error) = array.and_then(|array| array.all()?.stream(|_, _| Ok(()))) {
            let at = extents.parts().first().map_or(0, |part| part.offset);
            report.absorb(error.in_object(node.path.clone()).at(at))?;
        }
    }
    Ok(report)
}
