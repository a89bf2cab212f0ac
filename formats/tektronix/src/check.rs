//! Sums that the files carry; they are only looked at when a file is checked.

use spile_core::error::Result;
use spile_core::format::Reader as _;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire};

use crate::{Kind, llwfm, open, wire};

/// Bytes read at once.
const CHUNK: u64 = 256 << 10;

pub(crate) fn check(source: &Source, limits: &Limits) -> Result<Report> {
    let mut report = Report::default();
    match open(source.clone(), limits) {
        Ok(file) => report.findings.extend_from_slice(file.findings()),
        Err(error) => {
            report.absorb(error)?;
            return Ok(report);
        }
    }
    match Kind::find(source)? {
        Kind::Isf => {}
        Kind::Wfm => {
            let header = wire::Header::read(source)?;
            let Some(at) = header.end.checked_sub(8).filter(|_| header.end <= source.len()) else {
                return Ok(report);
            };
            let stored = source.read_vec(at, 8)?;
            let stored = Wire::new(&stored, at, header.order, "tektronix-007").u64()?;
            let mut sum = 0_u64;
            pieces(source, 0, at, |bytes| sum += bytes.iter().map(|b| u64::from(*b)).sum::<u64>())?;
            told(&mut report, sum == stored, at);
        }
        Kind::LlWfm => {
            let header = llwfm::Header::read(source)?;
            let at = header.sum();
            if at + 2 > source.len() {
                report
                    .warn("tektronix-014", "the sum of the samples is missing")
                    .at(at.min(source.len()));
                return Ok(report);
            }
            let stored = source.read_vec(at, 2)?;
            let stored = Wire::new(&stored, at, ByteOrder::Big, "tektronix-007").u16()?;
            let mut sum = 0_u16;
            pieces(source, header.samples() - llwfm::SIXTEEN, at, |bytes| {
                let words = bytes.as_chunks::<2>().0.iter();
                sum = words.fold(sum, |sum, word| sum.wrapping_add(u16::from_be_bytes(*word)));
            })?;
            told(&mut report, sum == stored, at);
        }
    }
    Ok(report)
}

fn told(report: &mut Report, same: bool, at: u64) {
    if !same {
        let message = "the sum does not fit: bytes were changed, or the writer did not care";
        report.warn("tektronix-014", message).at(at);
    }
}

/// The bytes from `from` to `to` in pieces of even length.
fn pieces(source: &Source, from: u64, to: u64, mut each: impl FnMut(&[u8])) -> Result<()> {
    let mut at = from;
    while at < to {
        let len = CHUNK.min(to - at);
        each(&source.read_vec(at, len)?);
        at += len;
    }
    Ok(())
}
