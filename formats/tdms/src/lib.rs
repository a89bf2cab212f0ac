//! NI TDMS: groups of channels with properties, as LabVIEW, DAQmx and other programs write them.
//!
//! Specification: "The NI TDMS File Format" (National Instruments). `FORMAT.md` lists the bytes and the decisions.
//!
//! | file | content |
//! |---|---|
//! | `wire` | lead-in, objects, raw data indices, properties |
//! | `read` | all segments of a file: where the values of each channel are |
//! | `scaling` | scales that properties describe |
//! | `sensor`, `thermocouple` | scales of sensors and their reference functions |
//! | `to_tree` | groups, arrays, time base |
//! | `values` | times, and scaled values |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! // One segment with the channel /'g'/'c': two values of type int16.
//! let mut meta = vec![1, 0, 0, 0, 8, 0, 0, 0];
//! meta.extend(b"/'g'/'c'");
//! meta.extend([20, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
//! let mut bytes = b"TDSm".to_vec();
//! bytes.extend([0x0e, 0, 0, 0, 0x69, 0x12, 0, 0]);
//! bytes.extend((meta.len() as u64 + 4).to_le_bytes());
//! bytes.extend((meta.len() as u64).to_le_bytes());
//! bytes.extend(meta);
//! bytes.extend([1, 0, 0xfe, 0xff]);
//!
//! let file = Dataset::open(&spile_tdms::Tdms, Source::memory(bytes), &OpenOptions::default())?;
//! assert_eq!(file.array("g/c")?.read::<Vec<f64>>("...")?, [1.0, -2.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod read;
mod scaling;
mod sensor;
mod thermocouple;
mod to_tree;
mod values;
mod wire;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The TDMS format, for the registry.
pub struct Tdms;

static INFO: FormatInfo = FormatInfo {
    name: "tdms",
    title: "NI TDMS measurement data",
    users: "laboratories with LabVIEW and NI data acquisition",
    specification: "The NI TDMS File Format",
    extensions: &["tdms"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Tdms {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [b'T', b'D', b'S', b'm' | b'h', ..] => 100,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Tdms {}
