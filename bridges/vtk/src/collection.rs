//! `.pvd`: a collection of files with their times. It is written with a folder of the same name that has one file
//! per frame.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use spile_core::Dataset;
use spile_core::error::{Error, ErrorKind, Hint, Result};
use spile_core::format::{Format, OpenOptions, Parsed};
use spile_core::report::Report;
use spile_core::series;
use spile_core::sink::{FolderSink, Overwrite, Sink};
use spile_core::source::Source;
use spile_core::tree::Value;

use crate::from_tree::{Kind, Outcome, Snapshot, blocks, unsupported};
use crate::xml::{Element, escape};
use crate::{join, multiblock};

/// The path of a file of a collection. Fails if it is not below the folder of the collection.
pub(crate) fn below(folder: &Path, name: &str, entry: &Element) -> Result<PathBuf> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    // Prevents reading arbitrary files of the machine.
    if name.is_empty() || !Path::new(name).components().all(inside) {
        let message = format!("\"{name}\" is not a file below the folder of the collection");
        return Err(entry.malformed(message));
    }
    let path = folder.join(name);
    let real = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // Files that do not exist are reported later.
    if let (Ok(file), Ok(real)) = (path.canonicalize(), real.canonicalize())
        && !file.starts_with(real)
    {
        let message = format!("\"{name}\" is a symbolic link out of the folder of the collection");
        return Err(entry.malformed(message));
    }
    Ok(path)
}

/// Paths of the files of a collection, by time. Fails if a file is not below its folder.
fn files(source: &Source, root: &Element) -> Result<Vec<Vec<PathBuf>>> {
    let list = root.child("Collection").ok_or_else(|| root.malformed("no element Collection"))?;
    let folder = source.path().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut files: Vec<(&str, Vec<PathBuf>)> = Vec::new();
    for entry in list.children.iter().filter(|child| child.name == "DataSet") {
        let path = below(folder, entry.attr("file").unwrap_or_default(), entry)?;
        let time = entry.attr("timestep").unwrap_or_default();
        match files.last_mut() {
            // Several parts of one time.
            Some((last, parts))
                if *last == time && entry.attr("part").is_some_and(|p| p != "0") =>
            {
                parts.push(path);
            }
            _ => files.push((time, vec![path])),
        }
    }
    Ok(files.into_iter().map(|(_, parts)| parts).collect())
}

/// Opens the files of a collection as one dataset.
pub(crate) fn open(
    format: &dyn Format,
    source: &Source,
    root: &Element,
    options: &OpenOptions,
) -> Result<Parsed> {
    let path = source
        .path()
        .ok_or_else(|| root.unsupported("a collection in memory has no folder with its files"))?;
    let files = files(source, root)?;
    // Nested collections could be cyclic.
    let ending = |file: &Path, ending: &str| {
        file.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
    };
    if files.is_empty() || files.iter().flatten().any(|file| ending(file, "pvd")) {
        return Err(root.malformed("collection without data files"));
    }
    if files.iter().any(|parts| parts.len() > 1) {
        return Err(root.unsupported("several files at one time are not supported"));
    }
    let mut groups = Vec::new();
    for path in files.into_iter().flatten() {
        // A file of several files is followed by them.
        let parts = join::parts(&path, options);
        groups.push([path].into_iter().chain(parts).collect());
    }
    series::open_groups(format, path, &groups, options)
}

/// Reports missing files of a collection.
pub(crate) fn check(source: &Source, root: &Element) -> Result<Report> {
    let mut report = Report::default();
    for file in files(source, root)?.into_iter().flatten() {
        if source.path().is_some() && !file.is_file() {
            let name = file.display().to_string();
            report.error("vtk-012", "file of the collection does not exist").in_object(name);
        }
    }
    Ok(report)
}

/// The frames, and what is written in each. Fails if frames are not in the order of their times.
fn plan(content: &Dataset) -> Result<(Form, Vec<Option<u64>>)> {
    let mut frames = vec![None];
    if let Some(axis) = content.tree().frames() {
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
        frames = (0..axis.len()).map(Some).collect();
    }
    let mut form: Option<Form> = None;
    for frame in &frames {
        let found = blocks(Snapshot::new(content, *frame)?.tree());
        let own = match &found[..] {
            [] => continue,
            [one] => Form::Single(one.kind),
            _ => Form::Blocks,
        };
        match form {
            None => form = Some(own),
            Some(known) if known == own => {}
            _ => form = Some(Form::Blocks),
        }
        if form == Some(Form::Blocks) {
            break;
        }
    }
    let form = form.ok_or_else(|| unsupported("neither a grid nor points"))?;
    Ok((form, frames))
}

/// The files of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Each frame is one file.
    Single(Kind),
    /// Each frame is a multiblock file.
    Blocks,
}

/// Adds what is written in each frame to `outcome`.
pub(crate) fn outcome(content: &Dataset, outcome: &mut Outcome) -> Result<()> {
    let (form, frames) = plan(content)?;
    for frame in frames {
        let snapshot = Snapshot::new(content, frame)?;
        match form {
            Form::Single(kind) => outcome.add(&snapshot, [&snapshot.plan(kind, true)?].into_iter()),
            Form::Blocks => outcome.add(&snapshot, multiblock::plan_some(&snapshot)?.plans()),
        }
    }
    Ok(())
}

/// Writes every frame as a file, and the collection.
pub(crate) fn write(content: &Dataset, sink: &mut Sink) -> Result<()> {
    let (form, frames) = plan(content)?;
    let (folder, stem) = folder(sink)?;
    let axis = content.tree().frames();
    let mut list = String::from(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" \
         byte_order=\"LittleEndian\">\n  <Collection>\n",
    );
    let digits = frames.len().saturating_sub(1).to_string().len().max(4);
    for (number, frame) in frames.into_iter().enumerate() {
        let mut snapshot = Snapshot::new(content, frame)?;
        let name = format!("{stem}_{number:0digits$}");
        let ending = match form {
            Form::Single(kind) => kind.ending(),
            Form::Blocks => "vtm",
        };
        let file = format!("{name}.{ending}");
        let target = folder.file(&file)?;
        match form {
            Form::Single(kind) => snapshot.write(kind, true, &target)?,
            Form::Blocks => {
                snapshot.with_paths = true;
                let plan = multiblock::plan_some(&snapshot)?;
                let prefix = format!("{name}/");
                multiblock::write_files(&snapshot, &plan, &folder, &prefix, &name, &target)?;
            }
        }
        let time = match axis.zip(frame) {
            Some((axis, frame)) => match (axis.time(frame)?, axis.step(frame)?) {
                (Some(time), _) => Value::Float(time).to_string(),
                (None, Some(step)) => step.to_string(),
                (None, None) => frame.to_string(),
            },
            None => snapshot.time()?.map_or("0".into(), |time| Value::Float(time).to_string()),
        };
        let file = escape(&format!("{stem}/{file}"));
        let _ = writeln!(
            list,
            "    <DataSet timestep=\"{time}\" group=\"\" part=\"0\" file=\"{file}\"/>"
        );
    }
    list.push_str("  </Collection>\n</VTKFile>\n");
    sink.write_all_at(0, list.as_bytes())?;
    sink.attach(folder);
    Ok(())
}

/// The folder with the files of a new collection or multiblock file, and its name: that of the file without its
/// ending. If there is something with that name, such as the run that is converted, or the folder of a file that is replaced, a
/// number is added. The old file and its folder are complete until the new file gets its name; the old folder is
/// removed after that.
pub(crate) fn folder(sink: &mut Sink) -> Result<(FolderSink, String)> {
    let path = sink.path().to_path_buf();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("frames").to_string();
    let name = |number: u32| if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
    let unused =
        |number: &u32| std::fs::symlink_metadata(path.with_file_name(name(*number))).is_err();
    if sink.lock_target()?
        && let Some(old) = referred(&path, &stem)?
    {
        require_ours(&path, &old)?;
        sink.remove_after_commit(old);
    }
    let number = (1..=u32::MAX).find(unused).unwrap_or(1);
    let folder = path.with_file_name(name(number));
    Ok((FolderSink::create(&folder, Overwrite::Never)?, name(number)))
}

/// The folder of the collection at `path`, whose name begins with `stem`; `None` if it refers to no such folder.
fn referred(path: &Path, stem: &str) -> Result<Option<PathBuf>> {
    let files = match join::read_parts(path, &OpenOptions::default()) {
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        files => files.unwrap_or_default(),
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let find = || {
        let name = files.first()?.strip_prefix(folder).ok()?.components().next()?;
        let name = name.as_os_str().to_str()?;
        let number = name.strip_prefix(stem)?;
        let number = number.strip_prefix('-').unwrap_or(number);
        let found =
            number.bytes().all(|digit| digit.is_ascii_digit()).then(|| folder.join(name))?;
        std::fs::symlink_metadata(&found).is_ok_and(|found| found.is_dir()).then_some(found)
    };
    Ok(find())
}

/// Fails if the folder has files that are not of the collection at `path`.
fn require_ours(path: &Path, folder: &Path) -> Result<()> {
    let options = OpenOptions::default();
    let mut known: HashSet<PathBuf> = join::parts(path, &options).into_iter().collect();
    let nested: Vec<PathBuf> = known.iter().flat_map(|file| join::parts(file, &options)).collect();
    known.extend(nested);
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))? {
            let path = entry.map_err(|e| Error::io(&folder, e))?.path();
            if path.is_dir() {
                open.push(path);
            } else if !known.contains(&path) {
                return Err(
                    Error::argument("is a folder with other files; not replaced").with_path(folder)
                );
            }
        }
    }
    Ok(())
}

/// Paths of the files of a collection; none if it cannot be read.
pub(crate) fn parts(source: &Source, root: &Element) -> Vec<PathBuf> {
    files(source, root).unwrap_or_default().into_iter().flatten().collect()
}
