//! Conversion of a dataset to another format, and its losses.

mod contained;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Serialize;
use spile_core::format::{
    Capabilities, Grade, Loss, LossKind, WriteOptions, Writer, write_file_if, write_stream,
    writer_of,
};
use spile_core::report::Severity;
use spile_core::{
    ArrayDesc, Dataset, Error, ErrorKind, Finding, Format, Hint, OpenOptions, Overwrite, Registry,
    Result, Sink,
};

use spile_interchange::{flatten, flatten_losses};

use crate::diff::{Diff, Row, Rules, diff};

/// The format for a new file: the one called `name`, or the one with the extension of `path`.
pub fn target(registry: &Registry, name: Option<&str>, path: &Path) -> Result<&'static dyn Format> {
    let writable = |f: &&&'static dyn Format| f.info().write != Grade::None;
    if let Some(name) = name {
        let format = registry.named(name)?;
        return if writable(&&format) { Ok(format) } else { Err(unwritable(registry, format)) };
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    // Extensions may have two parts: `csv.gz`.
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let ends = |f: &&&'static dyn Format| {
        let known =
            |known: &&str| name.strip_suffix(*known).is_some_and(|stem| stem.ends_with('.'));
        f.info().extensions.iter().any(|extension| known(&extension.to_ascii_lowercase().as_str()))
    };
    let all = || registry.0.iter().filter(ends);
    match (all().find(writable), all().next()) {
        (Some(format), _) => Ok(*format),
        (None, Some(format)) => Err(unwritable(registry, *format)),
        (None, None) => {
            let message = match extension {
                "" => "the file name has no extension that determines the format".to_string(),
                other => format!("unknown file name extension \".{other}\""),
            };
            Err(Error::argument(message).with_path(path).hint(Hint::ChooseFormat(names(registry))))
        }
    }
}

fn unwritable(registry: &Registry, format: &dyn Format) -> Error {
    Error::argument(format!("writing {} files is not supported", format.info().name))
        .hint(Hint::ChooseFormat(names(registry)))
}

fn names(registry: &Registry) -> Vec<&'static str> {
    let writable = registry.0.iter().map(|f| f.info()).filter(|info| info.write != Grade::None);
    writable.map(|info| info.name).collect()
}

/// How a dataset is stored in a format, and the losses.
pub struct Plan {
    /// Arrays are flattened to what the format has, with metadata that restores them.
    pub flattened: bool,
    /// What is not written. Arrays whose values other arrays have that are written are not losses.
    pub losses: Vec<Loss>,
    /// Number of losses, the first of the list, that are objects of the source that cannot be read.
    pub unreadable: usize,
    /// Number of arrays that are written.
    pub arrays: u64,
    /// Paths of arrays that are not written and whose values other arrays have.
    pub contained: BTreeSet<String>,
}

/// A loss as JSON.
#[derive(Serialize)]
pub struct LossRow<'a> {
    path: &'a str,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    reason: &'a str,
}

impl<'a> From<&'a Loss> for LossRow<'a> {
    fn from(loss: &'a Loss) -> Self {
        let Loss { path, kind, name, reason } = loss;
        Self { path, what: kind.name(), name: name.as_deref(), reason }
    }
}

/// Losses of one kind with the same reason, or all objects with other names.
pub struct LossGroup<'a> {
    /// What is lost.
    pub kind: LossKind,
    /// Why; empty for names, of which each has its own reason.
    pub reason: &'a str,
    /// The losses, in their order.
    pub losses: Vec<&'a Loss>,
}

/// Groups losses by kind and reason: arrays and values before attributes and descriptions, otherwise in the order of
/// their first occurrence. Objects that are written with other names are one group, the last one.
pub fn group<'a>(losses: impl IntoIterator<Item = &'a Loss>) -> Vec<LossGroup<'a>> {
    let mut groups: Vec<LossGroup<'a>> = Vec::new();
    let mut known = HashMap::new();
    for loss in losses {
        let (kind, reason) = match loss.kind {
            LossKind::Name => (LossKind::Name, ""),
            kind => (kind, loss.reason.as_str()),
        };
        let at = *known.entry((kind, reason)).or_insert_with(|| {
            groups.push(LossGroup { kind, reason, losses: Vec::new() });
            groups.len() - 1
        });
        groups[at].losses.push(loss);
    }
    groups.sort_by_key(|group| match group.kind {
        LossKind::Array => 0,
        LossKind::Frames | LossKind::Values => 1,
        LossKind::Coordinates | LossKind::Scaling | LossKind::Type | LossKind::Shape => 2,
        LossKind::Attribute => 3,
        LossKind::Name => 5,
        // Descriptions.
        _ => 4,
    });
    groups
}

/// The way of writing `content` as `format` with the fewest losses; fails if it cannot be written. Reads no
/// values and writes nothing. `path` is the name of the new file.
pub fn plan(
    format: &dyn Format,
    content: &Dataset,
    path: &Path,
    options: &WriteOptions,
) -> Result<Plan> {
    // Objects of the source that cannot be read are losses, too.
    let errors = content.warnings().iter().filter(|found| found.severity == Severity::Error);
    let unreadable: Vec<Loss> = errors.map(unreadable).collect();
    let all = content.arrays().count() as u64;
    if let (0, Some(first)) = (all, unreadable.first()) {
        let message = format!("no array can be converted: \"{}\" {}", first.path, first.reason);
        return Err(Error::unsupported("", message));
    }
    let native = writer_of(format)?.losses(format, content, path, options);
    let flat = capabilities(format)
        .filter(|_| !options.stored)
        .map(|holds| flatten_losses(content, format.info().name, &holds));
    let writer = format.abilities().writer;
    let own = matches!(writer, Some(Writer::File(writer)) if writer.is_own(content));
    let (flattened, mut losses) = match (native, flat) {
        (Ok(native), Some(flat)) if native.len() > flat.len() && !own => (true, flat),
        (Ok(native), _) => (false, native),
        (Err(e), Some(flat)) if e.kind() != ErrorKind::Argument => (true, flat),
        // The form that the file name selects cannot be written in either way.
        (Err(e), _) => return Err(e.with_format(format.info().name)),
    };
    let lost = losses.iter().filter(|loss| loss.kind == LossKind::Array).count() as u64;
    if all > 0 && lost >= all {
        let Loss { path, reason, .. } = &losses[0];
        let message = format!("no array can be converted: \"{path}\" {reason}");
        return Err(Error::unsupported("", message).with_format(format.info().name));
    }
    let contained = contained::contained(content, &losses);
    losses.retain(|loss| loss.kind != LossKind::Array || !contained.contains(&loss.path));
    let count = unreadable.len();
    losses.splice(0..0, unreadable);
    Ok(Plan { flattened, losses, unreadable: count, arrays: all - lost, contained })
}

/// The loss of an object of the source that cannot be read.
fn unreadable(finding: &Finding) -> Loss {
    let reason = format!("cannot be read: {}", finding.message);
    let Some(object) = finding.object.as_deref() else {
        return Loss::new("", LossKind::Values, reason);
    };
    let unquoted = |text: &str| text.trim_matches('"').to_string();
    match object.split_once(" of ") {
        Some((what, owner)) if what.starts_with("attribute ") => {
            let owner = if owner.starts_with('"') { unquoted(owner) } else { String::new() };
            Loss::attribute(owner, unquoted(&what["attribute ".len()..]), reason)
        }
        _ => Loss::new(unquoted(object), LossKind::Array, reason),
    }
}

/// What a format can store, where anything else can be flattened.
fn capabilities(format: &dyn Format) -> Option<Capabilities> {
    match format.abilities().writer {
        Some(Writer::File(writer)) => writer.capabilities(),
        _ => None,
    }
}

/// Writes `content` as `format` by `plan`; the write is atomic. Returns losses that were found only while
/// writing; with `strict` these are an error and the output is discarded.
pub fn convert(
    format: &dyn Format,
    content: &Dataset,
    plan: &Plan,
    path: &Path,
    options: &WriteOptions,
    overwrite: Overwrite,
    strict: bool,
) -> Result<Vec<Loss>> {
    let accept = |losses: &[Loss]| match losses.first() {
        Some(Loss { path, reason, .. }) if strict => {
            Err(Error::unsupported("", format!("not written: \"{path}\": {reason}")))
        }
        _ => Ok(()),
    };
    let holds = capabilities(format).filter(|_| plan.flattened);
    let flat = holds.map(|holds| flatten(content, &holds)).transpose();
    let written = flat.and_then(|flat| {
        write_file_if(format, flat.as_ref().unwrap_or(content), path, overwrite, options, accept)
    });
    written.map_err(|e| e.with_format(format.info().name))
}

/// Writes `content` as `format` to a stream by `plan`. Returns losses that were found only while writing.
pub fn convert_stream(
    format: &dyn Format,
    content: &Dataset,
    plan: &Plan,
    sink: &mut Sink,
    options: &WriteOptions,
) -> Result<Vec<Loss>> {
    let holds = capabilities(format).filter(|_| plan.flattened);
    let flat = holds.map(|holds| flatten(content, &holds)).transpose();
    let written =
        flat.and_then(|flat| write_stream(format, flat.as_ref().unwrap_or(content), sink, options));
    written.map_err(|e| e.with_format(format.info().name))
}

/// Formats for a single array do not keep its name.
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

/// Whether a difference between source and result is this loss.
pub fn is_loss(row: &Row, loss: &Loss) -> bool {
    let kinds: &[LossKind] = match row.what {
        "first only" => &[LossKind::Array, LossKind::Group, LossKind::Name, LossKind::Frames],
        "kind" => &[LossKind::Array],
        "attribute" => &[LossKind::Attribute],
        // Physical values have another type.
        "type" => &[LossKind::Type, LossKind::Scaling],
        "shape" | "frames" => &[LossKind::Shape, LossKind::Frames],
        "map" => &[LossKind::Scaling],
        "dimensions" => &[LossKind::Dimensions, LossKind::Shape],
        "coordinates" => &[LossKind::Coordinates, LossKind::Shape],
        "meaning" => &[LossKind::Meaning],
        "second only" | "name" => &[LossKind::Name],
        _ => &[LossKind::Values],
    };
    kinds.contains(&loss.kind)
        && loss.path == row.path
        && (loss.name.is_none() || loss.name == row.name)
}

/// Whether a difference is something that the result has and the source has not: objects and attributes
/// that the target requires, the role of a column, the frame axis of a collection, a dimension with a name and a
/// coordinate where there was none.
pub fn is_addition(row: &Row) -> bool {
    match row.what {
        "second only" => true,
        "attribute" | "meaning" => row.first.is_none(),
        "frames" => row.path.is_empty() && row.first.as_deref() == Some("none"),
        "coordinates" => {
            row.first.as_ref().is_some_and(|first| first.split(", ").all(|coord| coord == "none"))
        }
        "dimensions" => row.first.as_ref().is_some_and(|first| {
            let dims: Vec<&str> = first.split(", ").collect();
            dims == ArrayDesc::default_dims(dims.len())
        }),
        _ => false,
    }
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

/// Reads the file at `path` and compares it with `content`, values included. Returns all differences.
pub fn compare(format: &dyn Format, content: &Dataset, path: &Path) -> Result<Diff> {
    let options = OpenOptions::with_limits(*content.limits());
    let written = Dataset::open_path(format, path, &options)?;
    diff(content, &written, &rules(content, &written))
}

/// Reads what was written and compares it, values included, with `content`, or with its stored values if these
/// were written. Returns the differences that are neither
/// losses of the plan nor additions of the target, and everything of the source that cannot be read and therefore not be compared.
pub fn verify(
    format: &dyn Format,
    content: &Dataset,
    plan: &Plan,
    path: &Path,
    options: &WriteOptions,
) -> Result<Diff> {
    let stored = options.stored.then(|| content.stored());
    let mut found = compare(format, stored.as_ref().unwrap_or(content), path)?;
    let is_known = |row: &Row| {
        is_addition(row)
            || plan.contained.contains(&row.path)
            || plan.losses.iter().any(|loss| is_loss(row, loss))
    };
    found.differences.retain(|row| !is_known(row));
    let unreadable = plan.losses.iter().take(plan.unreadable).map(|loss| Row {
        name: loss.name.clone(),
        ..Row::new(&loss.path, "unreadable", Some(loss.reason.clone()), None)
    });
    found.differences.splice(0..0, unreadable);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_grouped_by_kind_and_reason_the_important_ones_first() {
        let losses = [
            Loss::new("x", LossKind::Name, "stored as y"),
            Loss::new("a", LossKind::Array, "no grid"),
            Loss::attribute("b", "units", "no text"),
            Loss::new("c", LossKind::Array, "no grid"),
            Loss::new("d", LossKind::Values, "no grid"),
            Loss::new("z", LossKind::Name, "stored as x"),
        ];
        let groups = group(&losses);
        let found: Vec<(LossKind, &str, usize)> =
            groups.iter().map(|group| (group.kind, group.reason, group.losses.len())).collect();
        let expected = [
            (LossKind::Array, "no grid", 2),
            (LossKind::Values, "no grid", 1),
            (LossKind::Attribute, "no text", 1),
            (LossKind::Name, "", 2),
        ];
        assert_eq!(found, expected);
    }
}
