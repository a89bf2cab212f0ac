//! Samples without a header that describes them: the user says what they are, or a file of text beside them ([`Yokogawa`]).
//!
//! Files of samples are never recognised by their content. [`Raw`] has the type, the byte order, the number of channels and the
//! sampling rate; the samples of several channels alternate.
//!
//! ```
//! use spile_core::{DType, Dataset, OpenOptions, Source};
//! use spile_raw::Raw;
//!
//! let format = Raw { dtype: DType::I16, rate: Some(1e6), header: 4, channels: 2 };
//! let source = Source::memory([b'h', b'e', b'a', b'd', 1, 0, 2, 0, 3, 0, 4, 0]);
//! let file = Dataset::open(&format, source, &OpenOptions::default())?;
//! assert_eq!(file.array("CH2")?.read::<Vec<f64>>("...")?, [2.0, 4.0]);
//! assert_eq!(file.array("CH2")?.coord("time")?.uniform(), Some((0.0, 1e-6)));
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod yokogawa;

pub use yokogawa::Yokogawa;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Region, RegionKind, Score};
use spile_core::recording::{Record, Recording, within};
use spile_core::{
    ArrayDesc, DType, Error, Extents, Format, Layout, OpenOptions, Order, Parsed, Result, Shape,
    Source,
};

/// Most channels of a file.
const MOST_CHANNELS: u64 = 4096;

/// Raw samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Raw {
    /// Type of a sample.
    pub dtype: DType,
    /// Samples per second of a channel; without it samples have no time.
    pub rate: Option<f64>,
    /// Number of bytes before the first sample.
    pub header: u64,
    /// Number of channels, whose samples alternate.
    pub channels: u64,
}

impl Raw {
    /// Bytes: one channel of `uint8` from the start of the file on, without a sampling rate.
    pub const BYTES: Self = Self { dtype: DType::U8, rate: None, header: 0, channels: 1 };
}

static INFO: FormatInfo = FormatInfo {
    name: "raw",
    title: "raw samples",
    users: "files without a description of their samples",
    specification: "none: the user names type, rate, header and channels",
    extensions: &[],
    read: Grade::Complete,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Raw {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Any bytes can be samples.
    fn probe(&self, _: Head<'_>) -> Score {
        0
    }

    fn open(&self, source: Source, _: &OpenOptions) -> Result<Parsed> {
        self.recording(&source)?.parsed(source, &OpenOptions::default())
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Raw {}

impl Raw {
    fn recording(&self, source: &Source) -> Result<Recording> {
        if !(1..=MOST_CHANNELS).contains(&self.channels) {
            let message =
                format!("expected 1 to {MOST_CHANNELS} channels, found {}", self.channels);
            return Err(Error::argument(message));
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err(Error::argument("the sampling rate is not a positive number"));
        }
        within(source, 0, self.header, "the header", "raw-001")?;
        let mut found = Recording::default();
        let size = self.dtype.size() as u64;
        let row = size.saturating_mul(self.channels).max(1);
        let count = (source.len() - self.header) / row;
        let rest = (source.len() - self.header) % row;
        if rest > 0 {
            let message = format!("{rest} bytes after the last sample of all channels");
            found.report.warn("raw-002", message).at(source.len() - rest);
        }
        for channel in 0..self.channels {
            let offset = self.header + channel * size;
            let layout = if self.channels == 1 {
                Layout::contiguous(offset, count * size, Order::C)
            } else {
                let bytes = count.saturating_sub(1) * row + size * count.min(1);
                Layout::Rows { extents: Extents::one(offset, bytes), stride: row, order: Order::C }
            };
            let array = ArrayDesc::new(self.dtype, Shape::new([count]), layout);
            let name =
                if self.channels == 1 { String::new() } else { format!("CH{}", channel + 1) };
            let record = Record::new(name, array);
            found.records.push(match self.rate {
                Some(rate) => record.on_grid(0.0, 1.0 / rate, "s"),
                None => record,
            });
        }
        found.headers = vec![Region::new(0, self.header, RegionKind::Header, "header", "")];
        Ok(found)
    }
}
