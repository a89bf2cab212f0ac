//! The rules, each with its code. Codes up to gsd-019 are errors raised while reading (`wire.rs`,
//! `names.rs`, `index.rs`), those from gsd-020 on are findings about files that can be read.

use std::collections::HashMap;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use crate::index::Index;
use crate::read::{File, HOOMD, is_damage};
use crate::schema;
use crate::wire::{Entry, Form};

/// Findings of one rule that are listed; a million times the same says no more.
const MOST: u64 = 100;

pub(crate) fn check(source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
    let mut report = Report::default();
    match File::from_source(source, limits) {
        Ok(file) => look(&file, strict, &mut report)?,
        Err(error) => report.absorb(error)?,
    }
    Ok(report)
}

fn look(file: &File, strict: bool, report: &mut Report) -> Result<()> {
    let index = &file.index;
    let header = &index.header;
    if header.form == Form::List && header.version & 0xffff > 1 {
        let version = header.version_text();
        report.note("gsd-020", format!("version {version} is newer than 2.1; read as 2.1")).at(44);
    }
    if let Some(offset) = header.odd_reserved() {
        report.note("gsd-021", "something stands in reserved bytes of the header").at(offset);
    }
    if index.room < header.index.allocated {
        let lost = header.index.allocated - index.room;
        let message = format!("the file ends inside the index: room for {lost} entries is lost");
        report.error("gsd-022", message).in_object("index").at(header.index.location);
    }
    if index.torn && header.marker.is_none() {
        let message = "the last entry has no element type: its commit was cut, or it is damaged";
        let finding = report.error("gsd-007", message).at(index.offset(index.count));
        finding.hint("its frame does not count; opening the file to append clears it");
    } else if index.torn {
        let first = header.marker.map_or(0, |m| m.first);
        let message = "the writer was killed while it committed frames; they do not count";
        let finding = report.note("gsd-023", message).at(index.offset(first));
        finding.hint("other readers may see a part of them; opening the file to append clears it");
    }
    match index.countable_frames(index.limits()) {
        // A number that is right for the file, and of no use to whoever reads it.
        Err(error) => {
            let finding = report.error("gsd-033", error.message()).in_object("index");
            finding.offset = error.offset();
            finding.hint =
                Some("the last frame number may be damaged; `spile salvage` drops it".into());
        }
        Ok(frames) if frames > header.index.allocated && !index.form().is_first() => {
            let room = header.index.allocated;
            let message =
                format!("{frames} frames and room for {room} entries: others refuse this");
            let finding = report.warn("gsd-018", message).in_object("index").at(8);
            finding.hint("`spile gsd upgrade` makes room for up to a million frames");
        }
        Ok(_) => {}
    }
    look_at_names(index, report);
    let sound = look_at_entries(index, report)?;
    // Values are only looked at in a file whose chunks can all be read.
    if header.schema == HOOMD && sound {
        schema::validate(file, strict, report)?;
    }
    Ok(())
}

fn look_at_names(index: &Index, report: &mut Report) {
    let Some(block) = index.header.names else { return };
    let names = &index.names;
    if names.unterminated {
        let message = "the name list is full to its last byte";
        report.warn("gsd-024", message).in_object("name list").at(block.location);
    }
    let mut seen: HashMap<&[u8], usize> = HashMap::new();
    for (k, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name, k).filter(|_| !name.is_empty()) {
            let text = String::from_utf8_lossy(name);
            let message = format!("names {first} and {k} are both \"{text}\"");
            report.warn("gsd-025", message).in_object("name list").at(block.location);
        }
        if std::str::from_utf8(name).is_err() {
            let message = format!("name {k} is not UTF-8");
            report.note("gsd-026", message).in_object("name list").at(block.location);
        }
    }
}

/// Goes through all entries; true if every one of them can be read and is in its place.
fn look_at_entries(index: &Index, report: &mut Report) -> Result<bool> {
    let mut told: HashMap<&'static str, u64> = HashMap::new();
    let mut before: Option<Entry> = None;
    let mut ids: Vec<u32> = Vec::new();
    let mut errors = 0_u64;
    index.scan(0..index.count, |k, entry| {
        let mut wrong: Vec<(Error, bool)> = Vec::new();
        if let Err(error) = index.place(k, &entry) {
            wrong.push((error, true));
        } else if entry.id as usize >= index.names.proper {
            let message = "the chunk's name is empty or stands behind an empty one; other readers \
                           refuse the file";
            wrong.push((Error::malformed("gsd-027", message), false));
        }
        if index.form().is_first() && index.names.raw(entry.id).len() > 32 {
            let message = "the name fills its field to the last byte";
            wrong.push((Error::malformed("gsd-030", message), false));
        }
        let same = before.is_some_and(|b| b.frame == entry.frame);
        if let Some(last) = before
            && entry.frame < last.frame
        {
            let message = format!("frame {} behind frame {}", entry.frame, last.frame);
            wrong.push((Error::malformed("gsd-012", message), true));
        }
        if same && index.form() == Form::List && before.is_some_and(|b| b.id > entry.id) {
            let message = "the chunks of the frame are not sorted; other readers miss some";
            wrong.push((Error::malformed("gsd-028", message), false));
        }
        if !same {
            ids.clear();
        }
        // Frames with very many chunks are sorted, and namesakes are neighbours.
        let many = ids.len() > 1000;
        let again =
            if many { before.is_some_and(|b| b.id == entry.id) } else { ids.contains(&entry.id) };
        if again && same {
            let message = "the frame has two chunks of this name; the last in the index counts";
            wrong.push((Error::malformed("gsd-029", message), false));
        }
        if !many {
            ids.push(entry.id);
        }
        before = Some(entry);
        for (error, bad) in wrong {
            if !bad || is_damage(&error) {
                errors += u64::from(bad);
                let error = index.at(k, &entry, error);
                let count = told.entry(error.code()).or_insert(0);
                *count += 1;
                if *count <= MOST {
                    tell(report, &error, bad);
                }
            } else {
                return Err(error);
            }
        }
        Ok(())
    })?;
    for (code, count) in told.into_iter().filter(|(_, n)| *n > MOST) {
        let message = format!("{} more of the same", count - MOST);
        report.note(code, message).in_object("index").at(index.header.index.location);
    }
    // Behind the end there must be nothing: readers look for it by bisection.
    if index.find_beyond()?.is_some() {
        errors += 1;
        tell(report, &index.hole(), true);
    }
    Ok(errors == 0)
}

fn tell(report: &mut Report, error: &Error, bad: bool) {
    let finding = if bad {
        report.error(error.code(), error.message())
    } else {
        report.warn(error.code(), error.message())
    };
    finding.object = error.object().map(Into::into);
    finding.frame = error.frame();
    finding.offset = error.offset();
    finding.hint = error.hint_text().map(Into::into);
}
