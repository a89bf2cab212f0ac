//! A file written as another format, and what that costs.
//!
//! What a format cannot hold is found out by trying: a [miniature](miniature) of the file, all that is
//! said with arrays of a few zeros, is written, read back and compared. That is exact for everything but
//! values, takes no time, and no format has to describe what it cannot do.

mod miniature;

use std::path::Path;

use serde::Serialize;
use spile_core::Dataset;
use spile_core::error::{Error, Hint, Result};
use spile_core::format::{
    Capabilities, Format, Grade, OpenOptions, Writer, write_file, write_scratch,
};
use spile_core::registry::Registry;
use spile_core::report::Finding;
use spile_core::sink::Overwrite;

use spile_interchange::flatten;

use crate::diff::{Diff, Row, Rules, diff};
use miniature::miniature;

/// The format that a new file of this name is written as: the one called `name`, or the one whose files
/// end like that.
pub fn target(registry: &Registry, name: Option<&str>, path: &Path) -> Result<&'static dyn Format> {
    let writable = |f: &&&'static dyn Format| f.info().write != Grade::None;
    if let Some(name) = name {
        let format = registry.named(name)?;
        return if writable(&&format) { Ok(format) } else { Err(unwritable(registry, format)) };
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let ends = |f: &&&'static dyn Format| {
        f.info().extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
    };
    let all = || registry.0.iter().filter(ends);
    match (all().find(writable), all().next()) {
        (Some(format), _) => Ok(*format),
        (None, Some(format)) => Err(unwritable(registry, *format)),
        (None, None) => {
            let message = match extension {
                "" => "the name has no ending that tells the format".to_string(),
                other => format!("no format is known whose files end in \".{other}\""),
            };
            Err(Error::argument(message).with_path(path).hint(Hint::ChooseFormat(names(registry))))
        }
    }
}

fn unwritable(registry: &Registry, format: &dyn Format) -> Error {
    Error::argument(format!("{} files are only read", format.info().name))
        .hint(Hint::ChooseFormat(names(registry)))
}

fn names(registry: &Registry) -> Vec<&'static str> {
    let writable = registry.0.iter().map(|f| f.info()).filter(|info| info.write != Grade::None);
    writable.map(|info| info.name).collect()
}

/// How a tree is kept in a format, and what that costs.
pub struct Plan {
    /// What cannot be said in the format is kept in a description beside the arrays.
    pub described: bool,
    /// What is done to arrays for that.
    pub steps: Vec<Step>,
    /// What would not be the same.
    pub losses: Vec<Row>,
    /// Arrays of the new file: coordinates may be arrays in one format and not in another.
    pub arrays: u64,
}

impl Plan {
    fn native(trial: Trial) -> Self {
        let Trial { losses, arrays } = trial;
        Self { described: false, steps: Vec::new(), losses, arrays }
    }
}

/// What came of writing a miniature.
struct Trial {
    losses: Vec<Row>,
    arrays: u64,
}

/// What is done to an array so that the format holds it.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The array.
    pub path: String,
    /// In words.
    pub how: String,
}

/// The way of writing `content` as `format` that keeps most; an error where it cannot be written.
/// Reads no values. `path` is that of the new file: some formats have several forms, told apart by
/// their endings.
pub fn plan(format: &dyn Format, content: &Dataset, path: &Path) -> Result<Plan> {
    let small = miniature(content)?;
    let asked = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let known = format.info().extensions;
    let ending = known.iter().find(|known| known.eq_ignore_ascii_case(asked)).unwrap_or(&known[0]);
    let native = trial(format, &small, &small, ending);
    let holds = match (&native, capabilities(format)) {
        (Ok(native), _) if native.losses.is_empty() => None,
        (_, holds) => holds,
    };
    let Some(holds) = holds else { return native.map(Plan::native) };
    let described = flatten(&small, &holds).and_then(|laid| {
        let Trial { losses, arrays } = trial(format, &small, &laid, ending)?;
        let step = |note: &Finding| Step {
            path: note.object.clone().unwrap_or_default(),
            how: note.message.clone(),
        };
        let steps =
            laid.warnings().iter().filter(|f| f.code == "core-metadata").map(step).collect();
        Ok(Plan { described: true, steps, losses, arrays })
    });
    match (native, described) {
        (Ok(native), Ok(plan)) if native.losses.len() <= plan.losses.len() => {
            Ok(Plan::native(native))
        }
        (_, Ok(plan)) => Ok(plan),
        (native, Err(_)) => native.map(Plan::native),
    }
}

/// What a format can store, where anything else can be flattened.
fn capabilities(format: &dyn Format) -> Option<Capabilities> {
    match format.abilities().writer {
        Some(Writer::File(writer)) => writer.capabilities(),
        _ => None,
    }
}

/// What of `small` is not the same when `written` is written and read.
fn trial(format: &dyn Format, small: &Dataset, written: &Dataset, ending: &str) -> Result<Trial> {
    // It is small and soon gone: memory is the place for it, where the system has a folder there.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let path = folder.path().join("miniature").with_extension(ending);
    // The place of a file that the caller never sees says nothing.
    let options = OpenOptions::with_limits(*small.limits());
    let done = write_scratch(format, written, &path)
        .and_then(|()| Dataset::open_path(format, &path, &options))
        .map_err(|e| e.without_path().with_format(format.info().name))?;
    let rules = rules(small, &done);
    let mut losses = diff(small, &done, &rules)?.differences;
    losses.extend(rules.renamed.into_iter().map(|(from, to)| Row::name(from, to)));
    Ok(Trial { losses, arrays: done.tree().arrays().count() as u64 })
}

/// A format of one array has its own name for it.
fn rules(content: &Dataset, written: &Dataset) -> Rules {
    fn only<'a>(mut paths: impl Iterator<Item = &'a str>) -> Option<String> {
        paths.next().filter(|_| paths.next().is_none()).map(Into::into)
    }
    let (old, new) = (content.tree(), written.tree());
    let from = only(old.main_arrays().map(|(_, node, _)| node.path.as_str()));
    let both = from.zip(only(new.arrays().map(|(_, node, _)| node.path.as_str())));
    let renamed = both.filter(|(from, to)| from != to && written.tree().at(from).is_none());
    Rules { renamed: renamed.into_iter().collect(), ..Rules::default() }
}

/// Writes `content` as `format` by that plan, whole or not at all.
pub fn convert(
    format: &dyn Format,
    content: &Dataset,
    plan: &Plan,
    path: &Path,
    overwrite: Overwrite,
) -> Result<()> {
    let holds = capabilities(format).filter(|_| plan.described);
    let done = match holds {
        None => write_file(format, content, path, overwrite),
        Some(holds) => {
            flatten(content, &holds).and_then(|flat| write_file(format, &flat, path, overwrite))
        }
    };
    done.map_err(|e| e.with_format(format.info().name))
}

/// Bytes of a file, or of all files of a folder.
pub fn size(path: &Path) -> Result<u64> {
    let bytes = || -> std::io::Result<u64> {
        let meta = std::fs::symlink_metadata(path)?;
        if !meta.is_dir() {
            return Ok(meta.len());
        }
        let entries = std::fs::read_dir(path)?;
        entries.map(|entry| Ok(size(&entry?.path())?)).sum()
    };
    bytes().map_err(|e| Error::io(path, e))
}

/// Reads what was written and compares it, values included; the plan's losses are known.
pub fn verify(format: &dyn Format, content: &Dataset, plan: &Plan, path: &Path) -> Result<Diff> {
    let options = OpenOptions::with_limits(*content.limits());
    let written = Dataset::open_path(format, path, &options)?;
    let mut found = diff(content, &written, &rules(content, &written))?;
    let known = |row: &Row| {
        plan.losses.iter().any(|loss| {
            (&loss.path, loss.what, &loss.name) == (&row.path, row.what, &row.name)
                && row.values.is_none()
        })
    };
    found.differences.retain(|row| !known(row));
    Ok(found)
}
