//! Checksums. They are only verified by `check`, because that reads the entire file.

use spile_core::format::Checker;
use spile_core::{ByteOrder, Limits, OpenOptions, Report, Result, Source, Wire};

use crate::Tektronix;
use crate::to_tree;
use crate::wire::{FileKind, llwfm, wfm};

impl Checker for Tektronix {
    /// Findings of opening a file, and a warning if its checksum is missing or wrong.
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let opened = to_tree::open(source.clone(), &OpenOptions::with_limits(*limits));
        let readable = opened.is_ok();
        let mut report = Report::of_opening(opened)?;
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
            source.for_each_block(0, at, |bytes| {
                sum += bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
                Ok(())
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
            let from = header.samples_offset() - llwfm::CHARGE_BYTES;
            source.for_each_block(from, at - from, |bytes| {
                let words = bytes.as_chunks::<2>().0.iter();
                sum = words.fold(sum, |sum, word| sum.wrapping_add(u16::from_be_bytes(*word)));
                Ok(())
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
