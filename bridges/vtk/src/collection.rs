//! `.pvd`: a collection of files with their times. It is written with a folder of the same name that has one file
//! per frame.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use spile_core::Dataset;
use spile_core::error::{Error, Hint, Result};
use spile_core::format::{Format, OpenOptions, Parsed};
use spile_core::report::Report;
use spile_core::series;
use spile_core::sink::{FolderSink, Overwrite, Sink};
use spile_core::source::Source;
use spile_core::tree::Value;

use crate::from_tree::{Kind, Snapshot, unsupported};
use crate::xml::{Element, escape};

/// Paths of the files of a collection. Fails if a file is not below its folder.
fn files(source: &Source, root: &Element) -> Result<Vec<PathBuf>> {
    let list = root.child("Collection").ok_or_else(|| root.malformed("no element Collection"))?;
    let folder = source.path().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut files = Vec::new();
    for entry in list.children.iter().filter(|child| child.name == "DataSet") {
        let name = entry.attr("file").unwrap_or_default();
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        // Prevents reading arbitrary files of the machine.
        if name.is_empty() || !Path::new(name).components().all(inside) {
            return Err(entry.malformed(format!(
                "\"{name}\" is not a file below the folder of the collection"
            )));
        }
        files.push(folder.join(name));
    }
    Ok(files)
}

/// Opens the files of a collection as one dataset.
pub(crate) fn open(
    format: &dyn Format,
    source: &Source,
    root: &Element,
    options: &OpenOptions,
) -> Result<Parsed> {
    let path = source.path().ok_or_else(|| {
        let message = "a collection in memory has no folder with its files";
        Error::unsupported("vtk-006", message).in_object("Collection").at(root.at)
    })?;
    let files = files(source, root)?;
    // Nested collections could be cyclic.
    let is_collection =
        |file: &&PathBuf| file.extension().is_some_and(|e| e.eq_ignore_ascii_case("pvd"));
    if files.is_empty() || files.iter().any(|file| is_collection(&file)) {
        return Err(root.malformed("collection without data files"));
    }
    series::open(format, path, &files, options)
}

/// Reports missing files of a collection.
pub(crate) fn check(source: &Source, root: &Element) -> Result<Report> {
    let mut report = Report::default();
    for file in files(source, root)? {
        if source.path().is_some() && !file.is_file() {
            let name = file.display().to_string();
            report.error("vtk-012", "file of the collection does not exist").in_object(name);
        }
    }
    Ok(report)
}

/// The type of the files of a collection, and the frames. Fails if they are not in the order of their times.
pub(crate) fn plan(content: &Dataset) -> Result<(Kind, Vec<Option<u64>>)> {
    let first = Snapshot { content, frame: Some(0) };
    let kind = first.suitable_kind().ok_or_else(|| unsupported("neither a grid nor points"))?;
    let Some(axis) = content.tree().frames() else { return Ok((kind, vec![None])) };
    content.limits().allow(axis.len().saturating_mul(16), "the frames")?;
    // Files of a collection are ordered by time.
    let mut last = (f64::NEG_INFINITY, None);
    for frame in 0..axis.len() {
        let now = (axis.time(frame)?.unwrap_or(f64::NEG_INFINITY), axis.step(frame)?);
        if last.0.total_cmp(&now.0).then(last.1.cmp(&now.1)).is_gt() {
            let message =
                format!("the time of frame {frame} is before that of frame {}", frame - 1);
            return Err(unsupported(message).hint(Hint::SelectFrames));
        }
        last = now;
    }
    Ok((kind, (0..axis.len()).map(Some).collect()))
}

/// Writes every frame as a file, and the collection.
pub(crate) fn write(content: &Dataset, sink: &Sink) -> Result<()> {
    let path = sink.path();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("frames");
    let folder = path.with_file_name(stem);
    let (kind, frames) = plan(content)?;
    let axis = content.tree().frames();
    // Replacing the collection replaces its files, and nothing else.
    let overwrite = if path.exists() { Overwrite::Replace } else { Overwrite::Never };
    if overwrite == Overwrite::Replace && folder.is_dir() {
        require_pieces(&folder, stem)?;
    }
    let pieces = FolderSink::create(&folder, overwrite)?;
    let mut list = String::from(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" \
         byte_order=\"LittleEndian\">\n  <Collection>\n",
    );
    let digits = frames.len().saturating_sub(1).to_string().len().max(4);
    for (number, frame) in frames.into_iter().enumerate() {
        let name = format!("{stem}_{number:0digits$}.{}", kind.ending());
        Snapshot { content, frame }.write(kind, &pieces.file(&name)?)?;
        let time = match axis.zip(frame) {
            Some((axis, frame)) => match (axis.time(frame)?, axis.step(frame)?) {
                (Some(time), _) => Value::Float(time).to_string(),
                (None, Some(step)) => step.to_string(),
                (None, None) => frame.to_string(),
            },
            None => "0".into(),
        };
        let file = escape(&format!("{stem}/{name}"));
        let _ = writeln!(
            list,
            "    <DataSet timestep=\"{time}\" group=\"\" part=\"0\" file=\"{file}\"/>"
        );
    }
    list.push_str("  </Collection>\n</VTKFile>\n");
    sink.write_all_at(0, list.as_bytes())?;
    pieces.commit()
}

/// Fails if the folder has files that do not belong to the collection.
fn require_pieces(folder: &Path, stem: &str) -> Result<()> {
    let prefix = format!("{stem}_");
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        if !entry.file_name().to_string_lossy().starts_with(&prefix) {
            return Err(
                Error::argument("is a folder with other files; not replaced").with_path(folder)
            );
        }
    }
    Ok(())
}
