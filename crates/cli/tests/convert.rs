//! Every golden file converted to every writable format: the result differs from the source by exactly
//! the declared losses.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rayon::prelude::*;
use spile::Dataset;
use spile::error::ErrorKind;
use spile::format::{Format, Grade, Loss, LossKind, WriteOptions};
use spile::sink::Overwrite;
use spile_ops::convert::{self, compare, convert, is_addition, is_loss};
use spile_ops::diff::Row;

/// Larger files are skipped, in bytes.
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

/// Everything that decides how a file is converted. Files of many versions of a format agree in it.
fn structure(dataset: &Dataset) -> String {
    let tree = dataset.tree();
    let mut text = format!("{:?} {:?}", tree.frames().map(|axis| axis.len()), tree.attrs().len());
    for (_, node) in tree.iter() {
        let names: Vec<&str> = node.attrs.iter().map(|(name, _)| name).collect();
        write!(text, "\n{} {names:?} {:?}", node.path, node.array).unwrap();
    }
    text
}

/// Results of the conversions of one file.
#[derive(Default)]
struct Tally {
    written: u64,
    refused: u64,
    losses: u64,
    problems: Vec<String>,
}

/// Whether the loss is one of the differences. Of an array with another name and of a group that is missing,
/// nothing else is one.
fn is_difference(loss: &Loss, differences: &[Row]) -> bool {
    let inside = |row: &Row| {
        let rest = loss.path.strip_prefix(row.path.as_str());
        let inside = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        row.what == "first only" && row.frame.is_none() && inside
    };
    differences.iter().any(|row| is_loss(row, loss) || inside(row))
}

/// Converts one file to every format that can be written, reads the results and compares.
fn convert_and_compare(path: &Path, source: &Dataset) -> Tally {
    // Thousands of small files: in memory where possible.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut tally = Tally::default();
    // Formats that are only written are read by other programs in tests/interop.
    let both = |f: &&&dyn Format| f.info().write != Grade::None && f.info().read != Grade::None;
    let writable = spile::REGISTRY.0.iter().filter(both);
    // Extensions of VTK are different forms, and IOTK is binary or text.
    let forms = writable.flat_map(|f| {
        let count = match f.info().name {
            "vtk" => f.info().extensions.len(),
            "iotk" => 2,
            _ => 1,
        };
        f.info().extensions.iter().take(count).map(move |extension| (f, *extension))
    });
    for (format, extension) in forms {
        // Every array is a folder.
        if extension == "zarr" && source.tree().len() > 100 {
            continue;
        }
        let place = format!("{} as .{extension}", path.display());
        // Collections and multiblock files have a folder of the same name.
        let new = temp.path().join(format!("new-{extension}")).with_extension(extension);
        let options = WriteOptions::default();
        let mut plan = match convert::plan(*format, source, &new, &options) {
            Ok(plan) => plan,
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Argument) => {
                tally.refused += 1;
                continue;
            }
            Err(e) => {
                tally.problems.push(format!("{place}: {e}"));
                continue;
            }
        };
        let found = match convert(*format, source, &plan, &new, &options, Overwrite::Replace, false)
        {
            Ok(found) => found,
            // Values that the type cannot represent are found while writing.
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Argument) => {
                tally.refused += 1;
                continue;
            }
            Err(e) => {
                tally.problems.push(format!("{place}: {e}"));
                continue;
            }
        };
        plan.losses.extend(found);
        let (arrays, differences) = match compare(*format, source, &new) {
            Ok(diff) => (diff.arrays, diff.differences),
            Err(e) => {
                tally.problems.push(format!("{place}: {e}"));
                continue;
            }
        };
        let tree = source.tree();
        let is_array = |path: &str| tree.at(path).is_some_and(|id| tree.node(id).array.is_some());
        // Objects in a group that is missing are not listed.
        let is_first_only = |loss: &&Loss| {
            let first_only = differences.iter().filter(|row| row.what == "first only").cloned();
            let first_only: Vec<Row> = first_only.collect();
            loss.kind == LossKind::Name && is_array(&loss.path) && is_difference(loss, &first_only)
        };
        let renamed = plan.losses.iter().filter(is_first_only).count() as u64;
        // The only array is compared under its new name.
        let only = plan.arrays == 1 && arrays == 1;
        if !only && arrays + renamed != plan.arrays {
            let message = format!("{place}: {} arrays planned, {arrays} written", plan.arrays);
            tally.problems.push(message);
        }
        // SDF stores coordinates in a mesh that it adds.
        let adds_mesh = |row: &Row| {
            let first = row.first.as_deref().unwrap_or_default();
            let mesh = format!("Some(\"Grid/{}\")", row.path);
            let with_mesh = first.replacen("None", &mesh, 1);
            let added = row.what == "meaning" && row.second.as_ref() == Some(&with_mesh);
            format.info().name == "sdf" && added
        };
        let is_known = |row: &Row| {
            adds_mesh(row)
                || plan.contained.contains(&row.path)
                || plan.losses.iter().any(|loss| is_loss(row, loss))
        };
        let mut unknown = differences.iter().filter(|row| !is_known(row) && !is_addition(row));
        if let Some(row) = unknown.next() {
            tally.problems.push(format!("{place}: not declared: {row:?}"));
        }
        // Objects that cannot be read are in neither dataset, and the name of the only array is not
        // compared.
        let is_visible = |loss: &&Loss| loss.kind != LossKind::Name || plan.arrays != 1;
        // Losses are computed without values: the points of a coordinate array may by chance be those of
        // the grid that every TAF file has.
        let may_be_equal = |loss: &&Loss| {
            let array = tree.at(&loss.path).and_then(|id| tree.node(id).array.as_ref());
            let has_node =
                array.is_some_and(|array| array.coords.iter().any(|c| c.node().is_some()));
            // Rounded cell vectors and labels of species may be exact.
            let rounded = matches!(format.info().name, "cube" | "xsf");
            let grid = format.info().name == "taf" && loss.kind == LossKind::Coordinates;
            (grid && has_node) || (rounded && loss.kind == LossKind::Values)
        };
        let mut visible = plan.losses.iter().skip(plan.unreadable).filter(is_visible);
        let is_kept = |loss: &&Loss| !is_difference(loss, &differences) && !may_be_equal(loss);
        if let Some(loss) = visible.find(is_kept) {
            tally.problems.push(format!("{place}: declared, but not lost: {loss:?}"));
        }
        tally.written += 1;
        tally.losses += plan.losses.len() as u64;
    }
    tally
}

#[test]
fn what_is_lost_is_what_was_announced() {
    let mut all = Vec::new();
    files(&golden(), &mut all);
    all.sort();
    let mut seen = HashSet::new();
    let mut opened: Vec<(PathBuf, Dataset)> = Vec::new();
    for path in all {
        let Ok(file) = spile::open(&path) else { continue };
        // Values that cannot be read cannot be compared.
        if spile_ops::content(&file).is_ok() && seen.insert(structure(&file)) {
            opened.push((path, file));
        }
    }
    let tallies = opened.par_iter().map(|(path, file)| convert_and_compare(path, file));
    let all = tallies.reduce(Tally::default, |a, b| Tally {
        written: a.written + b.written,
        refused: a.refused + b.refused,
        losses: a.losses + b.losses,
        problems: [a.problems, b.problems].concat(),
    });
    let Tally { written, refused, losses, problems } = all;
    println!("{} files, {written} written, {losses} losses, {refused} refused", opened.len());
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
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
    for (name, words) in
        [("x.unknown", "unknown file name extension"), ("x.tsv", "is not supported")]
    {
        let told = text(&run(temp.path(), &["convert", dump, name]).stderr);
        assert!(told.contains(words) && told.contains("hint: "), "{name}: {told}");
    }

    // The numbers that an array means are an .npy file.
    let done = run(temp.path(), &["convert", dump, "x.npy", "--select", "ey", "--verify"]);
    assert_eq!(done.status.code(), Some(0), "a native identifier selects: {done:?}");
    let field =
        ["convert", dump, "x.npy", "--select", "Electric Field/Ey", "--verify", "--overwrite"];
    let done = run(temp.path(), &field);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(text(&done.stderr).contains("renamed: Electric Field/Ey (an array"), "{done:?}");
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
    assert!(shown.contains("start -3.9375e-6, step 1.25e-7, end 3.9375e-6"), "{shown}");
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
    let chunk = temp.path().join("x.zarr/Electric_Field_Ex/c/0");
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

#[test]
fn arrays_of_the_source_that_cannot_be_read_are_losses() {
    let temp = tempfile::tempdir().unwrap();
    let source = golden().join("hdf5/unsupported_new.h5");
    let source = source.to_str().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let strict = run(temp.path(), &["convert", source, "x.npz", "--strict"]);
    assert_eq!(strict.status.code(), Some(2), "{strict:?}");
    assert!(text(&strict.stderr).contains("cannot be read: "), "{strict:?}");
    assert!(!temp.path().join("x.npz").exists());
    // Without --strict the others are written, and the losses are listed.
    let done = run(temp.path(), &["convert", source, "x.npz"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(
        text(&done.stderr).contains("not written: plugin: array (cannot be read: "),
        "{done:?}"
    );
    let verified = run(temp.path(), &["convert", source, "x.npz", "--verify", "--overwrite"]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    assert!(text(&verified.stdout).contains("plugin: unreadable: cannot be read: "));
    assert!(!text(&verified.stdout).contains("verified"), "{verified:?}");
    let json = run(temp.path(), &["convert", source, "x.npz", "--overwrite", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let lost = json["lost"].as_array().unwrap();
    let row = lost.iter().find(|row| row["path"] == "plugin").unwrap();
    assert_eq!(row["what"], "array");
    assert!(row["reason"].as_str().unwrap().starts_with("cannot be read: "), "{row}");
    // A selection of readable arrays has no losses.
    let select = ["convert", source, "good.npz", "--select", "good", "--strict", "--verify"];
    let done = run(temp.path(), &select);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(!text(&done.stderr).contains("not written"), "{done:?}");
}

#[test]
fn comments_instructions_and_the_spelling_of_attributes_stay_in_iotk() {
    let temp = tempfile::tempdir().unwrap();
    let text = "<?xml version=\"1.0\"?>\n<Root>\n  <!-- a comment -->\n  <?program option=\"1\"?>\n  \
                <cell id=\"007\" label=\"1.10\">\n    <a type=\"real\" size=\"2\">1.0 2.0</a>\n    \
                <!-- at the end -->\n  </cell>\n</Root>\n";
    std::fs::write(temp.path().join("a.xml"), text).unwrap();
    for new in ["b.xml", "b.dat"] {
        let words = ["convert", "a.xml", new, "-t", "iotk", "--strict", "--verify"];
        let done = run(temp.path(), &words);
        assert_eq!(done.status.code(), Some(0), "{new}: {done:?}");
        let written = std::fs::read(temp.path().join(new)).unwrap();
        let written = String::from_utf8_lossy(&written);
        for part in [
            "<!-- a comment -->",
            "<?program option=\"1\"?>",
            "id=\"007\"",
            "label=\"1.10\"",
            "<!-- at the end -->",
        ] {
            assert!(written.contains(part), "{new}: {part} in {written}");
        }
    }
}
