//! On-disk structures: the text before the samples.

use spile_core::wire::fetch;
use spile_core::{Error, Result, Source};

/// Byte offset of the text.
pub(crate) const TEXT_OFFSET: u64 = 512;

/// Byte offset of the samples.
pub(crate) const SAMPLES_OFFSET: u64 = 1024;

/// Longer lines are truncated to their last characters.
const MAX_LINE_CHARS: usize = 80;

/// Contents of the text lines.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) system: String,
    pub(crate) time: String,
    pub(crate) count: u64,
    pub(crate) bits: u32,
    pub(crate) step: f64,
    pub(crate) start: f64,
    pub(crate) slope: f64,
    pub(crate) intercept: f64,
}

impl Header {
    /// Reads and parses the text.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, SAMPLES_OFFSET as usize)?;
        if head.len() < SAMPLES_OFFSET as usize {
            let message = format!(
                "unexpected end of file: expected a header of {SAMPLES_OFFSET} bytes, found {}",
                head.len()
            );
            return Err(Error::truncated("dig-001", message).at(head.len() as u64));
        }
        Self::parse(&head)
    }

    /// Parses the last six non-empty lines before the samples: number of samples, bits per sample, time step,
    /// start time, voltage step, voltage of 0. The two lines before them are the system and the time.
    pub(crate) fn parse(head: &[u8]) -> Result<Self> {
        let invalid = |message: String| Error::not_this_format("dig-002", message).at(TEXT_OFFSET);
        let Some(text) = head.get(TEXT_OFFSET as usize..SAMPLES_OFFSET as usize) else {
            return Err(invalid("no text at byte 512".into()));
        };
        let lines = text.split(|b| matches!(b, b'\n' | b'\r')).map(|line| {
            let line = String::from_utf8_lossy(line);
            line.trim_matches(['\0', ' ', '\t']).to_string()
        });
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        let Some(first) = lines.len().checked_sub(6) else {
            let found = lines.len();
            return Err(invalid(format!("expected 6 lines before the samples, found {found}")));
        };
        let numbers: Vec<f64> =
            lines[first..].iter().filter_map(|line| line.parse().ok()).collect();
        let [count, bits, step, start, slope, intercept] = numbers[..] else {
            return Err(invalid("the last 6 lines before the samples are not numbers".into()));
        };
        let is_count = |x: f64| x >= 0.0 && x.fract() == 0.0 && x < 9e15;
        if !is_count(count) || !matches!(bits, 8.0 | 16.0 | 32.0) {
            let message = format!("invalid sample count or size: {count} samples of {bits} bits");
            return Err(invalid(message));
        }
        let line_before = |before: usize| {
            let line = first.checked_sub(before).map_or("", |k| lines[k].as_str());
            let from = line.char_indices().rev().nth(MAX_LINE_CHARS - 1).map_or(0, |(at, _)| at);
            // "#" can fill the space before the first line.
            line[from..].trim_start_matches('#').trim().to_string()
        };
        Ok(Self {
            system: line_before(2),
            time: line_before(1),
            count: count as u64,
            bits: bits as u32,
            step,
            start,
            slope,
            intercept,
        })
    }

    /// Offset of the end of the samples; `None` if it exceeds 64 bits.
    pub(crate) fn end(&self) -> Option<u64> {
        self.count.checked_mul(u64::from(self.bits / 8))?.checked_add(SAMPLES_OFFSET)
    }
}
