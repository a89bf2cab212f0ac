//! Every golden file as every format that is written: what comes back differs by exactly what was
//! announced.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rayon::prelude::*;
use spile::error::ErrorKind;
use spile::format::{Grade, Reader, open_as};
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile_ops::convert::{self, convert};

/// Longer files take longer and tell nothing more.
const LONGEST: u64 = 300 << 10;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let damaged = path.ends_with("corrupt") || path.ends_with("bad");
        if path.extension().is_some_and(|e| e == "zarr") {
            found.push(path);
        } else if path.is_dir() {
            if !damaged {
                files(&path, found);
            }
        } else if path.metadata().unwrap().len() <= LONGEST {
            found.push(path);
        }
    }
}

/// What decides how a file is converted: files of many versions of a format are the same in this.
fn structure(reader: &dyn Reader) -> String {
    let tree = reader.tree();
    let mut text = format!("{:?} {:?}", tree.frames().map(|axis| axis.len()), tree.attrs().len());
    for (_, node) in tree.iter() {
        let names: Vec<&String> = node.attrs.iter().map(|(name, _)| name).collect();
        write!(text, "\n{} {names:?} {:?}", node.path, node.array).unwrap();
    }
    text
}

/// What came of the conversions of one file.
#[derive(Default)]
struct Tally {
    written: u64,
    refused: u64,
    problems: Vec<String>,
}

/// One file as every format that is written, and back.
fn there_and_back(path: &Path, reader: &dyn Reader, limits: &Limits) -> Tally {
    // A disk minds thousands of files that come and go.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut tally = Tally::default();
    let writable = spile::REGISTRY.0.iter().filter(|f| f.info().write != Grade::None);
    // Endings of VTK are different files, and IOTK is records or text; those of others hardly differ.
    let forms = writable.flat_map(|f| {
        let count = match f.info().name {
            "vtk" => f.info().extensions.len(),
            "iotk" => 2,
            _ => 1,
        };
        f.info().extensions.iter().take(count).map(move |ending| (f, *ending))
    });
    for (format, ending) in forms {
        // A thousand arrays are as many folders, and tell nothing more.
        if ending == "zarr" && reader.tree().len() > 100 {
            continue;
        }
        let place = format!("{} as .{ending}", path.display());
        let new = temp.path().join("new").with_extension(ending);
        let plan = match convert::plan(*format, reader, &new, limits) {
            Ok(plan) => plan,
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                tally.refused += 1;
                continue;
            }
            Err(e) => {
                tally.problems.push(format!("{place}: {e}"));
                continue;
            }
        };
        let done = convert(*format, reader, &plan, &new, Overwrite::Replace, limits)
            .and_then(|()| convert::verify(*format, reader, &plan, &new, limits));
        let arrays = |file: Box<dyn Reader>| file.tree().arrays().count() as u64;
        let arrays = open_as(*format, &new, limits).map(arrays);
        if done.is_ok() && arrays.as_ref().ok() != Some(&plan.arrays) {
            let message = format!("{place}: {} arrays announced, {arrays:?} there", plan.arrays);
            tally.problems.push(message);
        }
        // What is not the format's own is described, so that nothing is lost; but for elements of
        // different lengths in a text.
        let ragged =
            ending == "xml" && reader.tree().arrays().any(|(_, _, a)| a.ragged().is_some());
        if let (Some(_), Some(lost), false) = (format.holds(), plan.losses.first(), ragged) {
            tally.problems.push(format!("{place}: {} lost, first {lost:?}", plan.losses.len()));
        }
        match done {
            Ok(diff) if diff.differences.is_empty() => tally.written += 1,
            Ok(diff) => tally.problems.push(format!("{place}: {:?}", diff.differences[0])),
            // Values that the type does not hold are seen when they are written.
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Argument) => {
                tally.refused += 1;
            }
            Err(e) => tally.problems.push(format!("{place}: {e}")),
        }
    }
    tally
}

#[test]
fn what_is_lost_is_what_was_announced() {
    let (mut all, limits) = (Vec::new(), Limits::default());
    files(&golden(), &mut all);
    all.sort();
    let mut seen = HashSet::new();
    let mut opened: Vec<(PathBuf, Box<dyn Reader>)> = Vec::new();
    for path in all {
        let Ok(file) = spile::open(&path, &limits) else { continue };
        // Some say of values only that they are lost.
        if spile_ops::content(&*file.reader, &limits).is_ok()
            && seen.insert(structure(&*file.reader))
        {
            opened.push((path, file.reader));
        }
    }
    let tallies = opened.par_iter().map(|(path, file)| there_and_back(path, &**file, &limits));
    let all = tallies.reduce(Tally::default, |a, b| Tally {
        written: a.written + b.written,
        refused: a.refused + b.refused,
        problems: [a.problems, b.problems].concat(),
    });
    let Tally { written, refused, problems } = all;
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
    println!("{} files, {written} written, {refused} refused", opened.len());
    assert!(written > 1000, "only {written} were written, {refused} refused");
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn losses_are_told_refused_or_taken() {
    let temp = tempfile::tempdir().unwrap();
    let dump = golden().join("sdf/epoch1d_normal_0001.sdf");
    let dump = dump.to_str().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // All of it fits scda.
    let done = run(temp.path(), &["convert", dump, "x.scda", "--strict", "--verify"]);
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
    assert!(
        text(&done.stdout).contains("x.scda: scda, ") && text(&done.stdout).contains("verified")
    );
    let same = run(temp.path(), &["diff", dump, "x.scda"]);
    assert_eq!((same.status.code(), text(&same.stdout)), (Some(0), String::new()));
    // A file that exists stays.
    assert_eq!(run(temp.path(), &["convert", dump, "x.scda"]).status.code(), Some(2));

    // One array is a TAF file, without the rest.
    let pick = ["convert", dump, "x.taf", "--select", "Wall-time"];
    let done = run(temp.path(), &[&pick[..], &["--dry-run"]].concat());
    assert!(text(&done.stdout).contains("would be taf, 1 array"), "{done:?}");
    assert!(!temp.path().join("x.taf").exists());
    let done = run(temp.path(), &["convert", dump, "x.taf"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("--select"), "{}", text(&done.stderr));
    for (name, words) in [("x.unknown", "no format is known"), ("x.tsv", "are only read")] {
        let told = text(&run(temp.path(), &["convert", dump, name]).stderr);
        assert!(told.contains(words) && told.contains("hint: "), "{name}: {told}");
    }

    // The numbers that an array means are an .npy file.
    let done = run(temp.path(), &["convert", dump, "x.npy", "--select", "ey", "--verify"]);
    assert_eq!(done.status.code(), Some(2), "an identifier is no path");
    let field = ["convert", dump, "x.npy", "--select", "Electric Field/Ey", "--verify"];
    let done = run(temp.path(), &field);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(text(&done.stderr).contains("lost: Electric Field/Ey: name: "), "{done:?}");
    let values = |words: &[&str]| text(&run(temp.path(), words).stdout);
    assert_eq!(values(&["cat", "x.npy"]), values(&["cat", dump, "ey"]));
}

#[test]
fn a_field_on_a_regular_mesh_is_a_grid_in_taf() {
    let temp = tempfile::tempdir().unwrap();
    let dump = golden().join("sdf/epoch1d_normal_0001.sdf");
    let dump = dump.to_str().unwrap();
    let field = ["convert", dump, "x.taf", "--select", "Electric Field/Ex"];
    assert_eq!(run(temp.path(), &field).status.code(), Some(0));
    let shown = run(temp.path(), &["info", "x.taf"]).stdout;
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("start -3.875e-6, step 1.25e-7, end 4e-6"), "{shown}");
}

#[test]
fn a_folder_that_is_a_dataset_is_checked_as_one() {
    let temp = tempfile::tempdir().unwrap();
    let dump = golden().join("sdf/epoch1d_normal_0001.sdf");
    let words = ["convert", dump.to_str().unwrap(), "x.zarr"];
    assert_eq!(run(temp.path(), &words).status.code(), Some(0));
    let check = |path: &str| {
        let done = run(temp.path(), &["check", path]);
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    assert_eq!(check("x.zarr"), (Some(0), "x.zarr: ok (zarr)\n".into()));
    // Among others it is one of them.
    let (code, table) = check(".");
    assert!(code == Some(0) && table.contains("1 file: 1 ok"), "{table}");
    let chunk = temp.path().join("x.zarr/Electric Field/Ex/c/0");
    std::fs::OpenOptions::new().write(true).open(chunk).unwrap().set_len(5).unwrap();
    let (code, found) = check("x.zarr");
    assert!(code == Some(1) && found.contains("\"Electric Field/Ex\", chunk 0: "), "{found}");
    let refused = run(temp.path(), &["salvage", "x.zarr"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("zarr folders"), "{refused:?}");
}

#[test]
fn parts_of_dimensions_are_cut_with_their_coordinates() {
    let temp = tempfile::tempdir().unwrap();
    let dump = golden().join("sdf/epoch2d_4ranks_id4_0001.sdf");
    let dump = dump.to_str().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cut = ["convert", dump, "cut.nc", "--slice", "X=10:30:2", "--slice", "Y=-3", "--verify"];
    let done = run(temp.path(), &cut);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let values = |words: &[&str]| {
        let output = text(&run(temp.path(), words).stdout);
        let lines = output.lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_whitespace).map(ToString::to_string).collect::<Vec<_>>()
    };
    let field = "Derived/Number_Density";
    let part = values(&["cat", "cut.nc", field]);
    assert_eq!(part.len(), 10);
    assert_eq!(part, values(&["cat", dump, field, "10:30:2, -3"]));
    let points = values(&["cat", "cut.nc", "Grid/Grid/X_mid"]);
    assert_eq!(points, values(&["cat", dump, "Grid/Grid/X_mid", "10:30:2"]));
    let wrong = text(&run(temp.path(), &["convert", dump, "x.nc", "--slice", "Q=1"]).stderr);
    assert!(wrong.contains("no array has a dimension \"Q\"") && wrong.contains("X, "), "{wrong}");
}
