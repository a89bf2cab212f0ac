//! The verbs, in this process. Include this file with `#[path]`.

use std::fs;
use std::path::Path;

use spile::format::WriteOptions;
use spile::sink::{Overwrite, Sink};
use spile::{Dataset, Limits, OpenOptions, REGISTRY, Result, Source};
use spile_ops::pick::Pick;
use spile_ops::stat::More;

/// A verb on the file at a path.
pub(crate) type Run = fn(&Path, &Limits) -> Result<()>;

/// The verbs by name.
pub(crate) const ALL: [(&str, Run); 11] = [
    ("open", |path, limits| open(path, limits).map(drop)),
    ("info", |path, limits| spile_ops::info::info(&open(path, limits)?).map(drop)),
    ("list", |path, limits| {
        let content = open(path, limits)?;
        spile_ops::list::list(content.tree(), &Pick::default(), None).map(drop)
    }),
    ("stat", |path, limits| {
        spile_ops::stat::stat(&open(path, limits)?, &Pick::default(), More::default(), &mut |_| {
            Ok(())
        })
    }),
    ("hash", |path, limits| {
        let content = open(path, limits)?;
        spile_ops::hash::hash(&content, &Pick::default(), &mut |_| Ok(()))?;
        spile_ops::hash::native(&content, &mut |_| Ok(()))
    }),
    ("content", |path, limits| spile_ops::content::content(&open(path, limits)?).map(drop)),
    ("check", |path, limits| {
        if path.is_dir() {
            let options = OpenOptions::with_limits(*limits);
            let format = REGISTRY.folder_format(path, &options)?;
            let Some(format) = format else { return Ok(()) };
            return spile_ops::check::check_folder(format, path, &options).map(drop);
        }
        spile_ops::check::check(&REGISTRY, &Source::open(path)?, limits, true).map(drop)
    }),
    ("diff", |path, limits| {
        let (one, two) = (open(path, limits)?, open(path, limits)?);
        spile_ops::diff::diff(&one, &two, &spile_ops::diff::Rules::default()).map(drop)
    }),
    ("index", |path, limits| {
        spile_ops::index::index(&open(path, limits)?)?.write(&mut std::io::sink())
    }),
    ("salvage", |path, limits| {
        if path.is_dir() {
            return Ok(());
        }
        let source = Source::open(path)?;
        let Some(salvager) = REGISTRY.probe_within(&source, limits)?.abilities().salvager else {
            return Ok(());
        };
        salvager.salvage(&source, &mut Sink::in_memory()?, limits).map(drop)
    }),
    ("convert", |path, limits| convert(path, "npz", limits)),
];

fn open(path: &Path, limits: &Limits) -> Result<Dataset> {
    spile::open_with(path, &OpenOptions::with_limits(*limits))
}

/// Converts a file; the result is removed.
pub(crate) fn convert(path: &Path, format: &str, limits: &Limits) -> Result<()> {
    let content = open(path, limits)?;
    let format = REGISTRY.named(format)?;
    let extension = format.info().extensions.first().copied().unwrap_or("out");
    let target = path.with_file_name(format!("converted.{extension}"));
    let options = WriteOptions::default();
    let plan = spile_ops::convert::plan(format, &content, &target, &options)?;
    let done = spile_ops::convert::convert(
        format,
        &content,
        &plan,
        &target,
        &options,
        Overwrite::Replace,
        false,
    );
    let _ = fs::remove_file(&target).or_else(|_| fs::remove_dir_all(&target));
    let _ = fs::remove_dir_all(target.with_extension(""));
    done.map(drop)
}
