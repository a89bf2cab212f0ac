//! Rules, each with a code. Codes up to iotk-029 are errors while reading; codes from iotk-030 on are
//! findings about files that can be read.

use std::path::Path;

use spile_core::format::{Checker, Folder, FolderFormat as _};
use spile_core::report::Severity;
use spile_core::{Error, Limits, Report, Result, Source};

use crate::Iotk;
use crate::element_data::ElementData;
use crate::event::{Event, Form};
use crate::plane_waves::records;
use crate::read::File;
use crate::save::MISSING;
use crate::scalar::Scalar;
use crate::semantics::report_incomplete;
use crate::text_codec::stream_numbers;
use crate::upf;
use crate::wire::{Control, Type};

/// Limits of the original library in bytes. It truncates longer names, lines and tags silently.
const NAME: usize = 256;
const LINE: u64 = 4_096;
const TAG: usize = 65_535;

impl Checker for Iotk {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        if let Some(folder) = source.path().filter(|_| !source.parts().is_empty()) {
            return check_folder(folder, limits);
        }
        let opened = File::from_source(source.clone(), limits);
        Report::of(opened, |file, report| check_file(&file, strict, report))
    }
}

/// The files of a run that are missing in its folder.
fn check_folder(folder: &Path, limits: &Limits) -> Result<Report> {
    let parsed = Iotk.open_folder(&Folder::open(folder)?, &limits.into())?;
    let mut report = Report::default();
    for mut finding in parsed.map(|parsed| parsed.warnings).unwrap_or_default() {
        if finding.code == MISSING {
            finding.severity = Severity::Error;
            report.findings.push(finding);
        }
    }
    Ok(report)
}

fn check_file(file: &File, strict: bool, report: &mut Report) -> Result<()> {
    if !file.raw_records().is_empty() {
        if let Form::Binary(framing) = file.form()
            && records::parse(file.source(), file.raw_records(), framing.order)?.is_some()
        {
            return Ok(());
        }
        report.note("iotk-030", "Fortran records without tags; element types are unknown").at(0);
        return Ok(());
    }
    report.findings.extend(file.index().report.findings.iter().cloned());
    for (id, element) in file.index().elements().iter().enumerate() {
        let object = || format!("element {}", file.index().path(id));
        let data = match file.data(id) {
            Ok(data) => data,
            Err(error) => {
                report.absorb(error.at(element.offset))?;
                None
            }
        };
        if let Some(data) = data {
            data.report(element.offset, report);
            // Numbers in text are parsed to validate them.
            if file.form() == Form::Text
                && let Err(error) = parse(file, id, &data)
            {
                report.absorb(error.at(element.offset))?;
            }
        }
        let unknown =
            element.tag.get_raw("type").filter(|name| Type::from_name(name.trim_ascii()).is_none());
        // `type="1/r"` of a pseudopotential describes an element without data.
        if let Some(name) = unknown.filter(|_| !element.data.is_empty()) {
            let message = format!("unknown type \"{}\"; read as text", name.escape_ascii());
            report.warn("iotk-036", message).in_object(object()).at(element.offset);
        }
        if element.data.len() > 1 && element.kind.is_some() {
            let message = "more than one piece of data; all but the first are read as text";
            report.warn("iotk-037", message).in_object(object()).at(element.offset);
        }
        if strict && element.tag.name().len() > NAME {
            let message =
                format!("a name of {} bytes; the library reads {NAME}", element.tag.name().len());
            report.note("iotk-040", message).in_object(object()).at(element.offset);
        }
        if strict && element.tag.text().len() > TAG {
            let message =
                format!("a tag of {} bytes; the library reads {TAG}", element.tag.text().len());
            report.note("iotk-040", message).in_object(object()).at(element.offset);
        }
    }
    report_incomplete(file, report);
    // The sections of UPF v1 have no tags with types, which are checked above.
    if upf::kind(file.index()) == Some(upf::Kind::V1)
        && let Some(built) = upf::to_tree(file)?
    {
        built.report(|node| built.tree.node(node).path.clone(), report);
    }
    if strict {
        check_strict(file, report)?;
    }
    Ok(())
}

/// Parses the numbers or strings of an element; numbers in parts, in bounded memory.
fn parse(file: &File, id: usize, known: &ElementData) -> Result<()> {
    let element = &file.index().elements()[id];
    let Some(data) = element.data.first() else { return Ok(()) };
    if known.kind.is_none() || known.fault.is_some() {
        return Ok(());
    }
    let dtype = known.array.dtype;
    let in_element = |e: Error| e.in_object(format!("element {}", file.index().path(id)));
    match Scalar::of(dtype).filter(|_| element.tag.get_raw("fmt").is_none()) {
        Some((scalar, _)) => {
            let total = known.array.shape.bytes(dtype.size()).map_err(in_element)?;
            let mut each = |_: &[u8]| Ok(());
            stream_numbers(file.bytes(), data, scalar, total, &mut each).map_err(in_element)
        }
        None => file.array(id).map(drop),
    }
}

/// Rules of strict mode, which do not affect reading.
fn check_strict(file: &File, report: &mut Report) -> Result<()> {
    if file.index().roots().len() > 1 {
        let second = file.index().elements()[file.index().roots()[1]].offset;
        report.note("iotk-041", "several root elements").at(second);
    }
    if file.index().head("version").is_none() {
        report.note("iotk-042", "no head").at(0);
    }
    let mut events = file.events();
    while let Some(item) = events.next()? {
        match &item.event {
            Event::Tag(Control::Comment, tag) if tag.text().windows(2).any(|w| w == b"--") => {
                report.note("iotk-043", "`--` in a comment is not valid XML").at(item.offset);
            }
            Event::Data(data) if file.form() == Form::Text => {
                for part in data.extents.parts().iter().filter(|part| part.len > LINE) {
                    let text =
                        file.source().read_vec(part.offset, part.len.min(file.limits().memory))?;
                    let long = text.split(|b| *b == b'\n').find(|line| line.len() as u64 > LINE);
                    if let Some(line) = long {
                        let message =
                            format!("a line of {} bytes; the library reads {LINE}", line.len());
                        report.note("iotk-040", message).at(part.offset);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
