//! The rules of `check`. Codes scda-001 to scda-012 are errors of reading; codes from scda-020 on are
//! findings about files that can be read.

use rayon::prelude::*;
use spile_core::format::Checker;
use spile_core::{Dataset, Error, Finding, Layout, Limits, Report, Result, Source};

use crate::Scda;
use crate::index::{Index, Part, compare_sums, followed_by};
use crate::read::File;
use crate::section::{Section, Tables};
use crate::to_tree::build;
use crate::wire::{Breaks, FILE_HEADER, Kind, Raw, data_padding, data_padding_bytes};

impl Checker for Scda {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let opened = File::with_tables(source.clone(), true, limits, Tables::Fitting);
        let opened = opened.and_then(|file| Ok((build(&file)?.1, file)));
        Report::of(opened, |(warnings, file), report| check_file(&file, warnings, strict, report))
    }
}

fn check_file(
    file: &File,
    warnings: Vec<Finding>,
    strict: bool,
    report: &mut Report,
) -> Result<()> {
    let version = file.header().version;
    if version != 0xa0 {
        report.note("scda-020", format!("version {version:02x} is newer than a0")).at(4);
    }
    if file.header().breaks == Breaks::Other {
        let message = "the padding of the file header has neither Unix nor MIME line breaks";
        report.note("scda-021", message).in_object("file header").at(8);
    }
    report.findings.extend(warnings);
    if let Some(index) = file.index() {
        check_index(file, index, report)?;
    }
    for (number, section) in file.sections().iter().enumerate() {
        let object = || format!("section {number}, {}", section.title());
        for raw in section.raws() {
            if raw.head.breaks == Breaks::Other {
                let message = "the padding of the header has neither Unix nor MIME line breaks";
                report.note("scda-021", message).in_object(object()).at(raw.head.offset);
            }
            if strict && !is_padding_valid(file.source(), raw)? {
                let message = "the data padding has neither Unix nor MIME line breaks";
                report.note("scda-022", message).in_object(object()).at(raw.data_end());
            }
        }
        if section.encoded
            && !section.is_unlisted()
            && let Err(error) = decode_all(file.bytes(), section)
        {
            report.absorb(error.in_object(object()).at(section.raw().data()))?;
        }
    }
    Ok(())
}

/// Compares the index with the sections, and the checksums with the bytes.
fn check_index(file: &File, index: &Index, report: &mut Report) -> Result<()> {
    let mut raws = file.sections().iter().flat_map(Section::raws).peekable();
    for part in index.parts() {
        // The first part is the file header.
        let (mut end, mut len) = (FILE_HEADER, 0);
        let mut matches =
            part.offset == 0 || raws.peek().is_some_and(|raw| raw.head.offset == part.offset);
        while let Some(raw) = raws.next_if(|raw| raw.head.offset < part.end) {
            (end, len) = (raw.end(), raw.len);
        }
        matches &= (end, len) == (part.end, part.len);
        if !matches {
            let message = "the index does not match the sections";
            report.absorb(Error::malformed("scda-014", message).at(part.offset))?;
        } else if let Some(expected) = part.crc {
            let found = checksum(file.source(), part)?;
            if let Err(error) = compare_sums(part, expected, found) {
                report.absorb(error)?;
            }
        }
    }
    Ok(())
}

/// CRC-32 of the bytes of a part, on all threads.
fn checksum(source: &Source, part: &Part) -> Result<u32> {
    const PIECE: u64 = 1 << 20;
    let bytes = part.end - part.offset;
    let one = |piece: u64| {
        let at = part.offset + piece * PIECE;
        let end = (at + PIECE).min(part.end);
        let crc = libdeflater::crc32(&source.read_vec(at, end - at)?);
        Ok(followed_by(crc, part.end - end))
    };
    (0..bytes.div_ceil(PIECE)).into_par_iter().map(one).try_reduce(|| 0, |a, b| Ok(a ^ b))
}

/// Decodes all elements of a compressed section of `bytes` and discards them. Fails at the first invalid
/// element.
pub(crate) fn decode_all(bytes: &Dataset, section: &Section) -> Result<()> {
    let desc = section.desc();
    bytes.open_array(&desc)?.all()?.for_each(|_, _| Ok(()))?;
    // Reading skips elements without bytes.
    let Layout::Encoded { starts, decoded, codec, .. } = &desc.layout else {
        return Ok(());
    };
    let data = section.raw().data();
    let empty = decoded.windows(2).zip(starts.windows(2)).filter(|(size, _)| size[0] == size[1]);
    for (_, stored) in empty {
        let len = stored[1] - stored[0];
        bytes.limits().allow(len, "an element")?;
        let stored = bytes.source().read_vec(data + stored[0], len)?;
        codec.decode(&stored, &mut [])?;
    }
    Ok(())
}

fn is_padding_valid(source: &Source, raw: &Raw) -> Result<bool> {
    if raw.head.kind == Kind::Inline {
        return Ok(true);
    }
    let end = raw.data_end();
    let found = source.read_vec(end, data_padding(raw.len))?;
    let last = match raw.len {
        0 => None,
        _ => source.read_vec(end - 1, 1)?.first().copied(),
    };
    let matches = |breaks| found == data_padding_bytes(raw.len, last, breaks);
    Ok(matches(Breaks::Unix) || matches(Breaks::Mime))
}
