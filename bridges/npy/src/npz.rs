//! NumPy's `.npz`: arrays in a zip archive, each a file that ends in `.npy`.
//!
//! | file | what is in it |
//! |---|---|
//! | `zip` | the structures of the archive, both ways |
//! | `read` | members to tree |
//! | `write` | any tree as an archive |
//! | `check` `salvage` | sums, and what is left over; archives without a directory |

mod check;
mod read;
mod salvage;
mod write;
mod zip;

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Salvage, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

use read::File;

/// Members that are arrays end like this.
const ENDING: &str = ".npy";

/// The format, for the registry.
pub struct Npz;

static INFO: FormatInfo = FormatInfo {
    name: "npz",
    title: "NumPy archive",
    users: "everyone with Python",
    specification: "numpy.savez, APPNOTE 6.3",
    extensions: &["npz"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Partial,
};

impl Format for Npz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Many programs keep zip archives: this one is ours if its first member is an array.
    fn probe(&self, head: Head<'_>) -> Score {
        if head.bytes.starts_with(&zip::END) {
            return 30;
        }
        let local = head.bytes.starts_with(&zip::LOCAL);
        let length = head.bytes.get(26..28).map(|n| usize::from(n[0]) | usize::from(n[1]) << 8);
        let name = length.and_then(|n| head.bytes.get(30..30 + n));
        match name {
            Some(name) if local && name.ends_with(ENDING.as_bytes()) => 100,
            Some(name) if local && name == write::DESCRIPTION.as_bytes() => 100,
            _ => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check::check(source, limits)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        write::write_tree(content, sink, limits)
    }

    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}
