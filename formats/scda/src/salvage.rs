//! What can be saved of a cut or damaged file: every whole section before the damage.

use std::io::Write as _;

use spile_core::error::Result;
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use crate::read::announced;
use crate::wire::{FILE_HEADER, FileHeader, Raw};

/// Bytes copied at once.
const COPY: u64 = 256 << 10;

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    FileHeader::read(source)?;
    let mut saved = Salvage::default();
    // The last byte of what is whole; an announcement counts with the section it announces.
    let (mut end, mut offset) = (FILE_HEADER, FILE_HEADER);
    let mut waiting: Option<String> = None;
    loop {
        match Raw::read(source, offset, limits) {
            Ok(Some(raw)) => {
                offset = raw.end();
                if announced(&raw).is_some() && waiting.is_none() {
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
    let mut buffer = vec![0; COPY as usize];
    let mut at = 0;
    while at < end {
        let part = &mut buffer[..(end - at).min(COPY) as usize];
        source.read_exact_at(at, part)?;
        target.write_all(part)?;
        at += part.len() as u64;
    }
    Ok(saved)
}
