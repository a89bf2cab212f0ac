//! Recovery of a damaged file; the result must be a file that can be opened.

use spile::format::OpenOptions;
use spile::sink::Sink;
use spile::{Dataset, REGISTRY, Source};

use super::inputs;
use crate::drive::{LIMITS, show};

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let source = Source::memory(file);
    let probed =
        REGISTRY.probe(&source).ok().filter(|format| format.abilities().salvager.is_some());
    let all: Vec<_> = REGISTRY.0.iter().filter(|f| f.abilities().salvager.is_some()).collect();
    let format = probed.unwrap_or(*all[usize::from(control[0]) % all.len()]);
    let Some(salvager) = format.abilities().salvager else { return };
    let Ok(mut sink) = Sink::in_memory() else { return };
    match salvager.salvage(&source, &mut sink, &LIMITS) {
        Ok(saved) => {
            let _ = format!("{saved:?}");
            let new = sink.source().expect("a file in memory can be read");
            let opened = Dataset::open(format, new, &OpenOptions::with_limits(LIMITS));
            if let Err(error) = opened
                && error.kind() != spile::ErrorKind::Limit
            {
                panic!("{}: the recovered file: {error:?}", format.info().name);
            }
        }
        Err(error) => show(&error),
    }
}
