//! Keysight and Agilent `.bin` and `.h5`: channels of an oscilloscope.
//!
//! Specification: the user's guides of the instruments. `FORMAT.md` lists the offsets and the decisions on
//! unclear points.
//!
//! | file | content |
//! |---|---|
//! | `to_tree` | `.bin` file as a recording: the versions and buffer types of Keysight |
//! | `hdf5` | HDF5 file with waveforms as a recording |
//!
//! An `.h5` file is opened by the HDF5 format that [`Keysight`] is given; this crate sees only its tree.
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source, format::Format};
//!
//! // One waveform of one buffer with two samples.
//! let mut bytes = b"AG10".to_vec();
//! bytes.extend([172_u32, 1].iter().flat_map(|n| n.to_le_bytes()));
//! bytes.extend([140_u32, 1, 1, 2].iter().flat_map(|n| n.to_le_bytes()));
//! bytes.resize(12 + 140, 0);
//! bytes.extend([12, 0, 0, 0, 1, 0, 4, 0, 8, 0, 0, 0]);
//! bytes.extend([5.0_f32, -0.5].iter().flat_map(|y| y.to_le_bytes()));
//!
//! static FORMAT: spile_keysight::Keysight = spile_keysight::Keysight { hdf5: &spile_hdf5::Hdf5 };
//! let file = Dataset::open(&FORMAT, Source::memory(bytes), &OpenOptions::default())?;
//! let (id, ..) = file.arrays().next().unwrap();
//! let values: Vec<f64> = file.array_at(id)?.read("...")?;
//! assert_eq!(values, [5.0, -0.5]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod hdf5;
mod to_tree;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Guest, Head, Score};
use spile_core::wire::fetch;
use spile_core::{Dataset, Format, Limits, OpenOptions, Parsed, Report, Result, Source};

/// The Keysight format, for the registry.
pub struct Keysight {
    /// The format that opens HDF5 files.
    pub hdf5: &'static dyn Format,
}

static INFO: FormatInfo = FormatInfo {
    name: "keysight",
    title: "Keysight or Agilent oscilloscope waveforms",
    users: "laboratories with Keysight and Agilent oscilloscopes",
    specification: "user's guides, AG01 to AG10 and HDF5",
    extensions: &["bin", "h5"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Keysight {
    /// Whether the file is HDF5.
    fn is_hdf5(&self, source: &Source) -> Result<bool> {
        let head = fetch(source, 0, spile_core::format::HEAD_BYTES)?;
        Ok(self.hdf5.probe(Head { bytes: &head, len: source.len() }) > 0)
    }
}

impl Format for Keysight {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [b'A', b'G', b'0', b'1' | b'3', ..] | [b'A', b'G', b'1', b'0', ..] => 100,
            [b'A', b'G', b'0'..=b'9', b'0'..=b'9', ..] => 40,
            // Only the content of an HDF5 file decides.
            _ => self.hdf5.probe(head).min(1),
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        if !self.is_hdf5(&source)? {
            return to_tree::BIN.open(source, options);
        }
        self.view(&Dataset::open(self.hdf5, source, options)?)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self).guest(self)
    }
}

impl Checker for Keysight {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let options = OpenOptions::with_limits(*limits);
        if !self.is_hdf5(source)? {
            return Report::of_opening(to_tree::BIN.open(source.clone(), &options));
        }
        // Findings about the HDF5 structure first.
        let mut report = match self.hdf5.abilities().checker {
            Some(checker) => checker.check(source, limits, strict)?,
            None => Report::default(),
        };
        let view = self.open(source.clone(), &options);
        report.findings.extend(Report::of_opening(view)?.findings);
        Ok(report)
    }
}
