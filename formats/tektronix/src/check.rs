//! Checksums. They are only verified by `check`, because that reads the entire file.

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire};

use crate::read::open;
use crate::wire::{FileKind, llwfm, wfm};

/// Bytes read at once.
const CHUNK_BYTES: u64 = 256 << 10;

/// Findings of opening a file, and a warning if its checksum is missing or wrong.
pub(crate) fn check(source: &Source, limits: &Limits) -> Result<Report> {
    let mut report = Report::default();
    match open(source.clone(), limits) {
        Ok(file) => report.findings = file.parsed().warnings,
        Err(error) => {
            report.absorb(error)?;
            return Ok(report);
        }
    }
    match FileKind::read(source)? {
        FileKind::Isf => {}
        FileKind::Wfm => {
            let header = wfm::Header::read(source)?;
            let Some(at) = header.end.checked_sub(8).filter(|_| header.end <= source.len()) else {
                return Ok(report);
            };
            let stored = source.read_vec(at, 8)?;
            let stored = Wire::new(&stored, at, header.order, "tektronix-007").u64()?;
            let mut sum = 0_u64;
            for_each_chunk(source, 0, at, |bytes| {
                sum += bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
            })?;
            compare(&mut report, stored, sum, at);
        }
        FileKind::LlWfm => {
            let header = llwfm::Header::read(source)?;
            let at = header.checksum_offset();
            if at + 2 > source.len() {
                report.warn("tektronix-014", "missing checksum").at(at.min(source.len()));
                return Ok(report);
            }
            let stored = source.read_vec(at, 2)?;
            let stored = Wire::new(&stored, at, ByteOrder::Big, "tektronix-007").u16()?;
            let mut sum = 0_u16;
            for_each_chunk(source, header.samples_offset() - llwfm::CHARGE_BYTES, at, |bytes| {
                let words = bytes.as_chunks::<2>().0.iter();
                sum = words.fold(sum, |sum, word| sum.wrapping_add(u16::from_be_bytes(*word)));
            })?;
            compare(&mut report, stored.into(), sum.into(), at);
        }
    }
    Ok(report)
}

fn compare(report: &mut Report, stored: u64, computed: u64, at: u64) {
    if stored != computed {
        let message = format!("checksum mismatch: stored {stored}, computed {computed}");
        report.warn("tektronix-014", message).at(at);
    }
}

/// Calls `each` with the bytes from `from` to `to`, in chunks of an even number of bytes.
fn for_each_chunk(source: &Source, from: u64, to: u64, mut each: impl FnMut(&[u8])) -> Result<()> {
    let mut at = from;
    while at < to {
        let len = CHUNK_BYTES.min(to - at);
        each(&source.read_vec(at, len)?);
        at += len;
    }
    Ok(())
}
