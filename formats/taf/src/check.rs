//! Findings about a file. Codes up to taf-009 are errors that prevent reading (see `wire.rs`), codes
//! from taf-010 on are findings about readable files.

use spile_core::format::Checker;
use spile_core::{Hint, Limits, Report, Result, Source};

use crate::Taf;
use crate::journal;
use crate::read::File;
use crate::wire::{
    DIMENSIONS_OFFSET, HEADER_OFFSET, SYNOPSIS, Spelling, VERSION, dimension_offset,
};

impl Checker for Taf {
    /// Checks a file. An error that prevents reading becomes a finding; `strict` adds notes about
    /// deviations that no reader depends on.
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let opened = File::from_source(source.clone(), limits);
        Report::of(opened, |file, report| check_header(&file, source, strict, report))
    }
}

fn check_header(file: &File, source: &Source, strict: bool, report: &mut Report) -> Result<()> {
    let header = file.header();
    if header.version != VERSION {
        let (major, minor) = header.version;
        report.warn("taf-010", format!("unknown version {major}.{minor}, read as 1.0")).at(4);
    }
    if header.type_code != 0 {
        report.note("taf-011", format!("unknown array type code {}", header.type_code)).at(6);
    }
    let (a, b) = (header.intercept, header.slope);
    if a.is_finite() != b.is_finite() {
        let message = "only one of intercept and slope is finite; values are not mapped";
        report.warn("taf-012", message).at(HEADER_OFFSET + 8);
    }
    if header.map().is_some() && !header.dtype.is_integer() {
        report.note("taf-013", "floating-point values are mapped").at(HEADER_OFFSET + 8);
    }
    if header.map().is_some() && b == 0.0 {
        report.warn("taf-014", "the slope is 0: all values are equal").at(HEADER_OFFSET + 16);
    }
    if a.is_nan() || b.is_nan() {
        let message = "intercept or slope is NaN instead of infinity; values are not mapped";
        report.note("taf-015", message).at(HEADER_OFFSET + 8);
    }
    let spelling = match header.spelling {
        Spelling::Canonical => None,
        Spelling::LongFloat => Some(("taf-016", "element type named float instead of flt")),
        Spelling::SpacePadded => {
            Some(("taf-034", "element type padded with spaces instead of NUL"))
        }
        Spelling::Legacy => Some(("taf-017", "legacy element type (number of bits)")),
    };
    if let Some((code, message)) = spelling {
        report.note(code, message).at(HEADER_OFFSET);
    }
    for (k, d) in header.dimensions.iter().enumerate() {
        let at = dimension_offset(k);
        let object = format!("dimension {}", k + 1);
        if !d.start.is_finite() || !d.step.is_finite() {
            let finding = report.warn("taf-018", "the grid is not finite");
            finding
                .in_object(object)
                .at(at + 8)
                .hint(Hint::operation("taf adjust", "sets a new grid"));
        } else if d.step == 0.0 && d.length > 1 {
            report.warn("taf-019", "the grid step is 0").in_object(object).at(at + 16);
        } else if d.length > 0 && !d.grid_value(d.length - 1).is_finite() {
            report.warn("taf-035", "the grid overflows").in_object(object).at(at + 8);
        }
    }
    let lengths: u128 =
        header.dimensions.iter().fold(1, |p, d| u128::saturating_mul(p, d.length.max(1).into()));
    if header.shape().count() == Some(0) && lengths > u128::from(u64::MAX) {
        report
            .warn("taf-020", "empty array whose other lengths exceed 64 bits")
            .at(DIMENSIONS_OFFSET);
    }
    report.findings.extend(journal::finding(source));
    check_for_elements(file, report)?;
    if strict {
        check_text(file, source, report)?;
    }
    Ok(())
}

/// Elements after the array: a program was interrupted between writing them and the new length.
fn check_for_elements(file: &File, report: &mut Report) -> Result<()> {
    let (offset, len) = file.comment_range();
    let mut at = offset;
    let mut found = None;
    file.source().for_each_block(offset, len, |bytes| {
        let binary = |b: &u8| matches!(b, 0..=7 | 14..=26 | 28..=31 | 127);
        if found.is_none() {
            found = bytes.iter().position(binary).map(|k| at + k as u64);
        }
        at += bytes.len() as u64;
        Ok(())
    })?;
    if let Some(at) = found {
        let message = "the comments contain binary data; \
                       these can be elements that an interrupted program has written";
        let hint = Hint::operation("taf set-comment", "replaces the comments");
        report.warn("taf-026", message).at(at).hint(hint);
    }
    Ok(())
}

/// Deviations in synopsis and comments.
fn check_text(file: &File, source: &Source, report: &mut Report) -> Result<()> {
    let opening = source.read_vec(8, HEADER_OFFSET - 8)?;
    let (text, padding) = opening.split_at(SYNOPSIS.len());
    if text != SYNOPSIS.as_bytes() || padding.iter().any(|b| *b != b' ') {
        report.note("taf-021", "the synopsis differs from Figure 2-1").at(8);
    }
    let (offset, _) = file.comment_range();
    let comments = file.comments()?;
    if let Some(k) = comments.iter().position(|b| *b == 0) {
        report.note("taf-022", "NUL byte in the comments").at(offset + k as u64);
    }
    if let Some(k) = comments.iter().position(|b| !b.is_ascii()) {
        report.note("taf-023", "the comments are not ASCII").at(offset + k as u64);
    }
    if comments.last().is_some_and(|b| *b != b'\n') {
        let end = offset + comments.len() as u64;
        report.note("taf-024", "the last comment does not end with a newline").at(end - 1);
    }
    Ok(())
}
