//! The rules, each with its code. scda-001 to scda-011 are errors raised while reading; those from
//! scda-020 on are findings about files that can be read.

use spile_core::error::Result;
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::read::{File, Section};
use crate::wire::{Breaks, Kind, Raw, data_padding, data_padding_bytes};

pub(crate) fn check(source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
    let mut report = Report::default();
    let file = match File::from_source(source.clone(), true, limits) {
        Ok(file) => file,
        Err(error) => {
            report.absorb(error)?;
            return Ok(report);
        }
    };
    let version = file.header().version;
    if version != 0xa0 {
        report.note("scda-020", format!("version {version:02x} is newer than a0")).at(4);
    }
    if file.header().breaks == Breaks::Other {
        let message = "the file header is padded in neither of the two styles";
        report.note("scda-021", message).in_object("file header").at(8);
    }
    for (number, why) in file.doubts() {
        let section = &file.sections()[*number];
        let message = format!("looks like the description of a field or group, but {why}");
        let object = format!("section {number}, {}", section.title());
        report
            .note("scda-023", message)
            .in_object(object)
            .at(section.offset())
            .hint("it is shown as the plain section it is");
    }
    for (number, section) in file.sections().iter().enumerate() {
        let object = format!("section {number}, {}", section.title());
        for raw in &section.raw {
            if raw.head.breaks == Breaks::Other {
                let message = "padded in neither of the two styles";
                report.note("scda-021", message).in_object(&object).at(raw.head.offset);
            }
            if strict && !padding_fits(source, raw)? {
                let message = "the data padding is in neither of the two styles";
                report.note("scda-022", message).in_object(&object).at(raw.data + raw.len);
            }
        }
        if section.encoded {
            // Decoding is the only way to know that compressed data are sound.
            if let Err(error) = decode_all(source, section, limits) {
                report.absorb(error.in_object(&object).at(section.raw[1].data))?;
            }
        }
    }
    Ok(report)
}

/// Decodes all elements of a compressed section, for nothing but their errors.
pub(crate) fn decode_all(source: &Source, section: &Section, limits: &Limits) -> Result<()> {
    let array = Array::open(source, &Tree::new(limits), &section.array, limits)?;
    array.all()?.for_each(|_, _| Ok(()))?;
    // Elements that have no bytes are passed over by reading.
    let Layout::Encoded { starts, decoded, codec, .. } = &section.array.layout else {
        return Ok(());
    };
    let data = section.raw.last().map_or(0, |raw| raw.data);
    let empty = decoded.windows(2).zip(starts.windows(2)).filter(|(size, _)| size[0] == size[1]);
    for (_, stored) in empty {
        let len = stored[1] - stored[0];
        limits.allow(len, "an element")?;
        let bytes = source.read_vec(data + stored[0], len)?;
        codec.decode(&bytes, &mut [])?;
    }
    Ok(())
}

fn padding_fits(source: &Source, raw: &Raw) -> Result<bool> {
    if raw.head.kind == Kind::Inline {
        return Ok(true);
    }
    let end = raw.data + raw.len;
    let found = source.read_vec(end, data_padding(raw.len))?;
    let last = match raw.len {
        0 => None,
        _ => source.read_vec(end - 1, 1)?.first().copied(),
    };
    let fits = |breaks| found == data_padding_bytes(raw.len, last, breaks);
    Ok(fits(Breaks::Unix) || fits(Breaks::Mime))
}
