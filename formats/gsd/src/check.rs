//! Checks of the complete file. Codes up to gsd-019 are errors raised while reading (`wire`, `names`,
//! `index`, `to_tree`), codes from gsd-020 on are findings in readable files.

use std::collections::HashMap;

use spile_core::format::Checker;
use spile_core::report::Severity;
use spile_core::{Error, Hint, Limits, Report, Result, Source};

use crate::Gsd;
use crate::index::Index;
use crate::read::{File, HOOMD};
use crate::semantics;
use crate::wire::{Entry, Form};

/// Findings per rule that are listed.
const MAX_LISTED: u64 = 100;

impl Checker for Gsd {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let opened = File::from_source(source, limits);
        Report::of(opened, |file, report| check_file(&file, strict, report))
    }
}

fn check_file(file: &File, strict: bool, report: &mut Report) -> Result<()> {
    let index = &file.index;
    let header = &index.header;
    if header.form == Form::V2 && header.version & 0xffff > 1 {
        let version = header.version_text();
        report
            .note("gsd-020", format!("version {version} is newer than 2.1 and read as 2.1"))
            .at(44);
    }
    if let Some(offset) = header.nonzero_reserved() {
        report.note("gsd-021", "reserved bytes of the header are not 0").at(offset);
    }
    if index.capacity < header.index.allocated {
        let lost = header.index.allocated - index.capacity;
        let message = format!("the file ends inside the index: {lost} free entries are missing");
        report.error("gsd-022", message).in_object("index").at(header.index.location);
    }
    if index.torn && header.marker.is_none() {
        let message = "the last entry has no element type: interrupted commit, or damaged entry";
        let finding = report.error("gsd-007", message).at(index.offset(index.count));
        finding.hint("its frame is ignored; opening the file for appending removes it");
    } else if index.torn {
        let first = header.marker.map_or(0, |m| m.first);
        let message = "interrupted commit: its frames are ignored";
        let finding = report.note("gsd-023", message).at(index.offset(first));
        finding.hint(
            "other readers may see a part of them; opening the file for appending removes them",
        );
    }
    match index.limited_frames() {
        Err(error) => {
            let finding = report.error("gsd-033", error.message()).in_object("index");
            finding.offset = error.offset();
            finding.hint(Hint::salvage("drops the last frame if its number is damaged"));
        }
        Ok(frames) if frames > header.index.allocated && !index.form().is_v0_0_1() => {
            let capacity = header.index.allocated;
            let message = format!(
                "{frames} frames, index capacity {capacity}: the C library rejects such files"
            );
            let finding = report.warn("gsd-018", message).in_object("index").at(8);
            let effect = "enlarges the index for up to a million frames";
            finding.hint(Hint::operation("gsd upgrade", effect));
        }
        Ok(_) => {}
    }
    check_names(index, report);
    let valid = check_entries(index, report)?;
    // The schema is only checked if all chunks are readable.
    if header.schema == HOOMD && valid {
        semantics::validate(file, strict, report)?;
    }
    Ok(())
}

fn check_names(index: &Index, report: &mut Report) {
    let Some(block) = index.header.names else { return };
    let names = &index.names;
    if names.unterminated {
        let message = "the name list has no terminating NUL";
        report.warn("gsd-024", message).in_object("name list").at(block.location);
    }
    let mut seen: HashMap<&[u8], usize> = HashMap::new();
    for (k, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name, k).filter(|_| !name.is_empty()) {
            let text = String::from_utf8_lossy(name);
            let message = format!("names {first} and {k} are equal: \"{text}\"");
            report.warn("gsd-025", message).in_object("name list").at(block.location);
        }
        if std::str::from_utf8(name).is_err() {
            let message = format!("name {k} is not UTF-8");
            report.note("gsd-026", message).in_object("name list").at(block.location);
        }
    }
}

/// Checks all entries; returns true if all are valid and in order.
fn check_entries(index: &Index, report: &mut Report) -> Result<bool> {
    let mut found: HashMap<&'static str, u64> = HashMap::new();
    let mut before: Option<Entry> = None;
    let mut ids: Vec<u32> = Vec::new();
    let mut errors = 0_u64;
    let mut data_end = index.end_of_blocks();
    index.scan(0..index.count, |k, entry| {
        let mut wrong: Vec<(Error, Severity)> = Vec::new();
        let located = index.locate(k, &entry);
        if let Ok(data) = located {
            data_end = data_end.max(data.offset + data.len);
        }
        if let Err(error) = located {
            wrong.push((error, Severity::Error));
        } else if entry.id as usize >= index.names.listed {
            let message = "the name of the chunk is empty or follows an empty one in the list; other \
                           readers reject the file";
            wrong.push((Error::malformed("gsd-027", message), Severity::Warning));
        }
        if index.form().is_v0_0_1() && index.names.bytes(entry.id).len() > 32 {
            let message = "the name has no terminating NUL";
            wrong.push((Error::malformed("gsd-030", message), Severity::Warning));
        }
        let same = before.is_some_and(|b| b.frame == entry.frame);
        if let Some(last) = before
            && entry.frame < last.frame
        {
            let message = format!("frame {} after frame {}", entry.frame, last.frame);
            wrong.push((Error::malformed("gsd-012", message), Severity::Error));
        }
        if same && index.form() == Form::V2 && before.is_some_and(|b| b.id > entry.id) {
            let message = "the chunks of the frame are not sorted by name; other readers do not find all of them";
            wrong.push((Error::malformed("gsd-028", message), Severity::Warning));
        }
        if !same {
            ids.clear();
        }
        // Frames with many chunks are sorted, so equal names are adjacent.
        let many = ids.len() > 1000;
        let again =
            if many { before.is_some_and(|b| b.id == entry.id) } else { ids.contains(&entry.id) };
        if again && same {
            let message = "the frame has two chunks with this name; the last one in the index is used";
            wrong.push((Error::malformed("gsd-029", message), Severity::Warning));
        }
        if !many {
            ids.push(entry.id);
        }
        before = Some(entry);
        for (error, severity) in wrong {
            let error = index.add_context(k, &entry, error);
            let count = found.entry(error.code()).or_insert(0);
            *count += 1;
            errors += u64::from(severity == Severity::Error);
            if *count <= MAX_LISTED {
                absorb_as(severity, error, report)?;
            }
        }
        Ok(())
    })?;
    for (code, count) in found.into_iter().filter(|(_, n)| *n > MAX_LISTED) {
        let message = format!("{} more findings with this code", count - MAX_LISTED);
        report.note(code, message).in_object("index").at(index.header.index.location);
    }
    let len = index.source.current_len()?;
    if errors == 0 && data_end < len {
        let message = format!("{} bytes at the end belong to no chunk", len - data_end);
        report.note("gsd-050", message).at(data_end).hint("appending frames removes them");
    }
    // Readers find the end by bisection, so all entries after it must be empty.
    if index.find_entry_after_end()?.is_some() {
        errors += 1;
        report.absorb(index.gap_error())?;
    }
    Ok(errors == 0)
}

/// Adds an error about the content of the file as a finding of this severity; other errors are returned.
pub(crate) fn absorb_as(severity: Severity, error: Error, report: &mut Report) -> Result<()> {
    report.absorb(error)?;
    report.findings.last_mut().into_iter().for_each(|finding| finding.severity = severity);
    Ok(())
}
