//! What can be saved of a damaged file: every element that is whole and everything around it. The
//! bytes are copied as they are; elements that were open where the damage begins are closed.

use std::io::Write as _;

use spile_core::error::{Error, Result};
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::Tree;

use crate::data::{Described, describe};
use crate::event::Form;
use crate::index::Index;
use crate::number::Style;
use crate::record::SUBRECORD;
use crate::wire::Tag;
use crate::write::{Target, Writer};

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    let form = Form::detect(source)?
        .ok_or_else(|| Error::not_this_format("iotk-001", "no tag can be read").at(0))?;
    let partial = Index::build_partly(source, form, limits);
    let index = &partial.index;
    if index.elements().is_empty() {
        let nothing = || Error::malformed("iotk-019", "nothing can be saved").at(0);
        return Err(partial.error.unwrap_or_else(nothing));
    }
    let mut saved = Salvage::default();
    let mut open = partial.open;
    let mut end = partial.reached;
    // An element whose data are not all there is no element.
    if let Some(last) = open.last().copied() {
        let element = &index.elements()[last];
        let torn = element.kind.is_some() && (form == Form::Text || element.data.is_empty());
        if torn {
            saved.lost.push(index.path(last));
            end = element.offset;
            open.pop();
        }
    }
    let mut holes: Vec<(u64, u64)> = Vec::new();
    for (id, element) in index.elements().iter().enumerate() {
        if element.offset >= end {
            continue;
        }
        let Some(data) = element.data.first() else { continue };
        let sound = describe(&element.tag, element.kind, data, form, source, limits)
            .and_then(Described::sound)
            .and_then(|known| {
                Array::open(source, &Tree::new(limits), &known.array, limits).map(drop)
            });
        match sound {
            Ok(()) => saved.kept.push(index.path(id)),
            Err(_) if open.contains(&id) => saved.lost.push(format!("data of {}", index.path(id))),
            Err(_) => {
                saved.lost.push(index.path(id));
                holes.push((element.offset, element.end));
            }
        }
    }
    let mut at = 0;
    for (from, to) in holes {
        // A hole inside another one is gone already.
        if from >= at {
            target.copy_from(source, at, from - at)?;
            at = to;
        }
    }
    target.copy_from(source, at, end.saturating_sub(at))?;
    if !open.is_empty() {
        let framing = match form {
            Form::Text => {
                target.write_all(b"\n")?;
                Target::Text
            }
            Form::Binary(framing) => Target::Binary(framing, SUBRECORD),
        };
        let mut writer = Writer::new(&mut *target, framing, Style::Exact)?;
        for id in open.iter().rev() {
            let element = &index.elements()[*id];
            let indent = (2 * element.depth).min(12);
            writer.end_at(&Tag::new(element.tag.name()), indent)?;
            saved.lost.push(format!("the rest of {}", index.path(*id)));
        }
    }
    Ok(saved)
}
