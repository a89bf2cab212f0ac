//! Checksums. They are only verified by `check`, because that reads the entire file.

use spile_core::format::Checker;
use spile_core::{ByteOrder, Limits, OpenOptions, Report, Result, Source, Wire, recording};

use crate::Tektronix;
use crate::to_tree;
use crate::wire::{FileKind, llwfm, wfm};

/// Bytes read at once.
const CHUNK_BYTES: u64 = 256 << 10;

impl Checker for Tektronix {
    /// Findings of opening a file, and a warning if its checksum is missing or wrong.
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let opened = to_tree::open(source.clone(), &OpenOptions::with_limits(*limits));
        let readable = opened.is_ok();
        let mut report = recording::report(opened)?;
        if readable {
            check_sum(source, &mut report)?;
        }
        Ok(report)
    }
}

fn check_sum(source: &Source, report: &mut Report) -> Result<()> {
    match FileKind::read(source)? {
        FileKind::Isf => {}
        FileKind::Wfm => {
            let header = wfm::Header::read(source)?;
            let Some(at) = header.end.checked_sub(8).filter(|_| header.end <= source.len()) else {
                return Ok(());
            };
            let stored = source.read_vec(at, 8)?;
            let stored = Wire::new(&stored, at, header.order, "tektronix-007").u64()?;
            let mut sum = 0_u64;
            for_each_chunk(source, 0, at, |bytes| {
                sum += bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
            })?;
            compare(report, stored, sum, at);
        }
        FileKind::LlWfm => {
            let header = llwfm::Header::read(source)?;
            let at = header.checksum_offset();
            if at + 2 > source.len() {
                report.warn("tektronix-014", "missing checksum").at(at.min(source.len()));
                return Ok(());
            }
            let stored = source.read_vec(at, 2)?;
            let stored = Wire::new(&stored, at, ByteOrder::Big, "tektronix-007").u16()?;
            let mut sum = 0_u16;
            for_each_chunk(source, header.samples_offset() - llwfm::CHARGE_BYTES, at, |bytes| {
                let words = bytes.as_chunks::<2>().0.iter();
                sum = words.fold(sum, |sum, word| sum.wrapping_add(u16::from_be_bytes(*word)));
            })?;
            compare(report, stored.into(), sum.into(), at);
        }
    }
    Ok(())
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
