//! openPMD: meshes and particles of simulations in HDF5 files, written only.
//!
//! Specification: openPMD standard 1.1.0, base standard. `FORMAT.md` describes what is written. Files are read as
//! HDF5.
//!
//! | file | content |
//! |---|---|
//! | `from_tree` | which arrays are records, and losses |
//! | `records` | names of records and their components |
//! | `units` | units as powers of SI base units |
//! | `write` | groups, datasets and typed attributes |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, sink::Overwrite, format::write_file};
//!
//! static FORMAT: spile_openpmd::OpenPmd = spile_openpmd::OpenPmd { hdf5: &spile_hdf5::Hdf5 };
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/sdf/epoch3d_0001.sdf");
//! let dump = Dataset::open_path(&spile_sdf::Sdf, path, &OpenOptions::default())?;
//! let folder = tempfile::tempdir()?;
//! write_file(&FORMAT, &dump, &folder.path().join("dump.h5"), Overwrite::Never)?;
//! # Ok::<(), spile_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod from_tree;
mod records;
mod units;
mod write;

use std::path::Path;

use spile_core::format::{
    Abilities, FormatInfo, FormatWriter, Grade, Head, Loss, Score, WriteOptions,
};
use spile_core::{Dataset, Format, OpenOptions, Parsed, Result, Sink, Source};

/// openPMD in HDF5, for the registry.
pub struct OpenPmd {
    /// The format that writes and opens HDF5 files.
    pub hdf5: &'static dyn Format,
}

static INFO: FormatInfo = FormatInfo {
    name: "openpmd",
    title: "openPMD",
    users: "plasma and accelerator physicists (openPMD-viewer, openPMD-api)",
    specification: "openPMD 1.1.0 in HDF5",
    extensions: &["h5"],
    read: Grade::None,
    write: Grade::Partial,
    check: Grade::None,
    salvage: Grade::None,
};

impl Format for OpenPmd {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Files are recognised and opened as HDF5.
    fn probe(&self, _: Head<'_>) -> Score {
        0
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        self.hdf5.open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self)
    }
}

impl FormatWriter for OpenPmd {
    fn options(&self) -> &'static [&'static str] {
        &["compression"]
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        write::write(self.hdf5, content, sink, options)
    }
}
