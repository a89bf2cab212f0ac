//! The text before the samples.

use spile_core::error::{Error, Result};
use spile_core::source::Source;
use spile_core::wire::fetch;

/// Byte of the user's lines.
const TEXT: usize = 512;

/// Byte of the samples.
pub(crate) const SAMPLES: u64 = 1024;

/// The longest line that is kept.
const LONGEST: usize = 80;

/// What the lines say.
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
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, SAMPLES as usize)?;
        if head.len() < SAMPLES as usize {
            let message = format!("the text before the samples ends after {} bytes", head.len());
            return Err(Error::truncated("dig-001", message).at(head.len() as u64));
        }
        Self::parse(&head)
    }

    /// The last six lines before the samples that are not empty, whatever stands before them: number of
    /// samples, bits, time step and start, voltage step and start. The two before those are the system and
    /// the time.
    pub(crate) fn parse(head: &[u8]) -> Result<Self> {
        let odd = |message: String| Error::not_this_format("dig-002", message).at(TEXT as u64);
        let Some(text) = head.get(TEXT..SAMPLES as usize) else {
            return Err(odd("there is no text at byte 512".into()));
        };
        let lines = text.split(|b| matches!(b, b'\n' | b'\r')).map(|line| {
            let line = String::from_utf8_lossy(line);
            line.trim_matches(['\0', ' ', '\t']).to_string()
        });
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        let Some(first) = lines.len().checked_sub(6) else {
            return Err(odd(format!(
                "{} lines of text before the samples, six are needed",
                lines.len()
            )));
        };
        let numbers: Vec<f64> =
            lines[first..].iter().filter_map(|line| line.parse().ok()).collect();
        let [count, bits, step, start, slope, intercept] = numbers[..] else {
            return Err(odd("the last six lines before the samples are not numbers".into()));
        };
        let whole = |x: f64| x >= 0.0 && x.fract() == 0.0 && x < 9e15;
        if !whole(count) || !matches!(bits, 8.0 | 16.0 | 32.0) {
            return Err(odd(format!("{count} samples of {bits} bits")));
        }
        let word = |before: usize| {
            let line = first.checked_sub(before).map_or("", |k| lines[k].as_str());
            let from = line.char_indices().rev().nth(LONGEST - 1).map_or(0, |(at, _)| at);
            // What fills the user's part stands before the first line of the instrument's.
            line[from..].trim_start_matches('#').trim().to_string()
        };
        Ok(Self {
            system: word(2),
            time: word(1),
            count: count as u64,
            bits: bits as u32,
            step,
            start,
            slope,
            intercept,
        })
    }

    /// Where the samples end.
    pub(crate) fn end(&self) -> Option<u64> {
        self.count.checked_mul(u64::from(self.bits / 8))?.checked_add(SAMPLES)
    }
}
