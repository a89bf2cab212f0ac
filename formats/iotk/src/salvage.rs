//! Recovery of damaged files: all complete elements and the tags around them. Bytes are copied
//! unchanged; elements whose end tags are lost are closed after the damage.

mod resync;

use std::io::Write as _;

use spile_core::format::{Salvage, Salvager};
use spile_core::{Dataset, Error, Limits, Result, Sink, Source};

use self::resync::{Survey, survey};
use crate::Iotk;
use crate::element_data::{ElementData, describe_data};
use crate::event::{Events, Form};
use crate::index::Index;
use crate::scalar::Style;
use crate::wire::Tag;
use crate::wire::record::SUBRECORD;
use crate::write::{Target, Writer};

impl Salvager for Iotk {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        let form = Form::detect(source)?;
        let Survey { index, gaps, closed, error } = survey(source, form, limits)?;
        if index.elements().is_empty() {
            let nothing = || Error::malformed("iotk-019", "no element can be recovered").at(0);
            return Err(error.unwrap_or_else(nothing));
        }
        let bytes = Dataset::of_bytes(source.clone(), limits);
        let heads = (form, Events::new(source, form, limits).header_bytes() == 8);
        let mut saved = Salvage::default();
        let mut holes: Vec<Hole> = Vec::new();
        for gap in gaps {
            saved.lost.extend(gap.torn.map(|id| index.path(id)));
            saved
                .lost
                .extend(gap.close.iter().map(|id| format!("the rest of {}", index.path(*id))));
            if gap.to > gap.from {
                let inside = gap.inside.map(|id| format!(" in {}", index.path(id)));
                let inside = inside.unwrap_or_default();
                saved.lost.push(format!("bytes {} to {}{inside}", gap.from, gap.to - 1));
            }
            holes.push(Hole { from: gap.from, to: gap.to, close: gap.close });
        }
        let damaged = holes.len();
        for (id, element) in index.elements().iter().enumerate() {
            let before = holes[..damaged].partition_point(|hole| hole.from <= element.offset);
            if holes[..before].last().is_some_and(|hole| element.offset < hole.to) {
                continue;
            }
            let Some(data) = element.data.first() else { continue };
            let readable = describe_data(&element.tag, element.kind, data, form, &bytes)
                .and_then(ElementData::checked)
                .and_then(|known| bytes.open_array(&known.array).map(drop));
            match readable {
                Ok(()) => saved.kept.push(index.path(id)),
                Err(_) if closed.contains(&id) => {
                    saved.lost.push(format!("data of {}", index.path(id)));
                }
                Err(_) => {
                    saved.lost.push(index.path(id));
                    holes.push(Hole { from: element.offset, to: element.end, close: Vec::new() });
                }
            }
        }
        holes.sort_by_key(|hole| hole.from);
        let mut at = 0;
        for hole in holes {
            // This hole is inside the previous one.
            if hole.from < at {
                continue;
            }
            target.copy_from(source, at, hole.from - at)?;
            at = hole.to;
            close(&index, &hole.close, heads, target)?;
        }
        target.copy_from(source, at, source.len().saturating_sub(at))?;
        Ok(saved)
    }
}

/// Bytes that are not copied, and the elements to close there, innermost first.
struct Hole {
    from: u64,
    to: u64,
    close: Vec<usize>,
}

/// Writes the end tags of elements.
fn close(index: &Index, elements: &[usize], form: (Form, bool), target: &mut Sink) -> Result<()> {
    let (form, long_headers) = form;
    if elements.is_empty() {
        return Ok(());
    }
    let framing = match form {
        Form::Text => {
            target.write_all(b"\n")?;
            Target::Text
        }
        Form::Binary(framing) => Target::Binary(framing, SUBRECORD),
    };
    let mut writer = Writer::new(&mut *target, framing, Style::Exact)?;
    if long_headers {
        writer = writer.with_long_headers();
    }
    for id in elements {
        let element = &index.elements()[*id];
        let indent = (2 * element.depth).min(12);
        writer.end_at(&Tag::new(element.tag.name()), indent)?;
    }
    Ok(())
}
