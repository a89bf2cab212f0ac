//! What can be saved of a cut or damaged file: every whole section before the damage.

use spile_core::error::Result;
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use crate::read::announced;
use crate::wire::{FILE_HEADER, FileHeader, Raw};

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    FileHeader::read(source)?;
    let mut saved = Salvage::default();
    // The last byte of what is whole; an announcement counts with the section it announces.
    let (mut end, mut offset) = (FILE_HEADER, FILE_HEADER);
    let mut waiting: Option<String> = None;
    loop {
        match Raw::read(source, offset, limits) {
            Ok(Some(raw)) => {
                offset = raw.end;
                if announced(&raw.head).is_some() && waiting.is_none() {
                    waiting = Some(raw.title());
                    continue;
                }
                waiting = None;
                saved.kept.push(raw.title());
                end = offset;
            }
            Ok(None) => break,
            Err(error) => {
                let number = saved.kept.len();
                saved.lost.push(format!("section {number} and all that follow: {error}"));
                waiting = None;
                break;
            }
        }
    }
    if let Some(title) = waiting {
        saved.lost.push(format!("{title}: the compressed section is missing"));
    }
    target.copy_from(source, 0, end)?;
    Ok(saved)
}
