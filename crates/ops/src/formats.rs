//! The table of supported formats.

use serde::Serialize;
use spile_core::format::Grade;
use spile_core::registry::Registry;

/// A format and its extent of support: `none`, `partial` or `complete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Short name, as in commands and codes.
    pub name: &'static str,
    /// Full name.
    pub title: &'static str,
    /// Who has such files.
    pub users: &'static str,
    /// The specification it follows.
    pub specification: &'static str,
    /// Usual file name extensions, without the dot.
    pub extensions: &'static [&'static str],
    /// Reading.
    pub read: &'static str,
    /// Writing.
    pub write: &'static str,
    /// Checking against the specification.
    pub check: &'static str,
    /// Recovery of damaged files.
    pub salvage: &'static str,
}

/// All formats of `registry`.
pub fn formats(registry: &Registry) -> Vec<Row> {
    registry
        .0
        .iter()
        .map(|format| {
            let info = format.info();
            Row {
                name: info.name,
                title: info.title,
                users: info.users,
                specification: info.specification,
                extensions: info.extensions,
                read: grade(info.read),
                write: grade(info.write),
                check: grade(info.check),
                salvage: grade(info.salvage),
            }
        })
        .collect()
}

fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::None => "none",
        Grade::Partial => "partial",
        Grade::Complete => "complete",
    }
}
