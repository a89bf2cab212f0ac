//! Combination of a file with a changed copy.

use spile::format::OpenOptions;
use spile::{Dataset, REGISTRY, Source};

use super::inputs;
use crate::drive::{LIMITS, read_all, show};

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let Ok(format) = REGISTRY.probe(&Source::memory(file)) else { return };
    let extension = format.info().extensions.first().copied().unwrap_or("in");
    let temp = inputs::folder();
    let folder = temp.path();
    let paths: Vec<_> = (0..2).map(|k| folder.join(format!("part{k}.{extension}"))).collect();
    let written = std::fs::write(&paths[0], file)
        .and_then(|()| std::fs::write(&paths[1], inputs::changed(file, control)));
    if written.is_err() {
        return;
    }
    let options = OpenOptions::with_limits(LIMITS);
    let merged = if let Some(concatenator) = format.abilities().concatenator {
        let target = folder.join("merged");
        let done = concatenator.concatenate(&paths, &target, &LIMITS);
        done.and_then(|()| Dataset::open_path(format, &target, &options))
    } else {
        Dataset::open_series(format, folder, &paths, &options)
    };
    match merged {
        Ok(merged) => read_all(&merged),
        Err(error) => show(&error),
    }
}
