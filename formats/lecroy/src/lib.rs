//! LeCroy `.trc`: one channel of an oscilloscope, as a single record or as segments.
//!
//! Specification: the templates `LECROY_2_3` and `LECROY_1_0`, which the instruments output on request.
//! `FORMAT.md` lists the offsets and the decisions on unclear points.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: the wave descriptor of both templates |
//! | `to_tree` | descriptor and data blocks as a recording |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! // A little-endian descriptor and two 8-bit samples.
//! let mut bytes = vec![0; 346];
//! bytes[..8].copy_from_slice(b"WAVEDESC");
//! bytes[16..26].copy_from_slice(b"LECROY_2_3");
//! bytes[34] = 1;
//! bytes[36..40].copy_from_slice(&346_u32.to_le_bytes());
//! bytes[116] = 2;
//! bytes[156..160].copy_from_slice(&0.5_f32.to_le_bytes());
//! bytes.extend([10, 0xff]);
//!
//! let file = Dataset::open(&spile_lecroy::LeCroy, Source::memory(bytes), &OpenOptions::default())?;
//! let (id, ..) = file.arrays().next().unwrap();
//! let values: Vec<f64> = file.array_at(id)?.read("...")?;
//! assert_eq!(values, [5.0, -0.5]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod to_tree;
mod wire;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The LeCroy format, for the registry.
pub struct LeCroy;

static INFO: FormatInfo = FormatInfo {
    name: "lecroy",
    title: "LeCroy oscilloscope trace",
    users: "laboratories with LeCroy oscilloscopes",
    specification: "templates LECROY_2_3 and LECROY_1_0",
    extensions: &["trc"],
    read: Grade::Complete,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for LeCroy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match wire::find_descriptor(head.bytes) {
            Some(at) if head.bytes[at..].get(16..23) == Some(b"LECROY_") => 100,
            Some(0) => 40,
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

impl Checker for LeCroy {}
