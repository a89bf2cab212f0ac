//! Archives and tables, histograms, and many files at once, as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::path::PathBuf;

use folder::{good, spile};
use serde_json::Value;

fn golden(name: &str) -> String {
    folder::golden(name).to_str().unwrap().into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn stat_draws_a_histogram_and_tells_of_components() {
    let folder = PathBuf::from(golden("taf/good"));
    let shown =
        good(&folder, &["stat", "example_2d_101x3.taf", "--hist", "--bins", "4", "--components"]);
    let expected = "\
count  min  max    mean       std  name
  303    0    1  0.3625  0.311549  data
  101    0    1     0.5  0.293002  data [..., 0]
  101    0    1   0.335  0.302797  data [..., 1]
  101    0    1  0.2525  0.288987  data [..., 2]

     0 |███████████████████████████████████████████████████████████████████ 138
  0.25 |██████████████████████████████▋                                      63
   0.5 |█████████████████████████▎                                           52
  0.75 |████████████████████████▎                                            50
     1 |
";
    assert_eq!(shown, expected);
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    let json = good(&folder, &["stat", "--json", "--hist", "--components", "example_2d_101x3.taf"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let row = &json["arrays"][0];
    let counts = row["histogram"]["counts"].as_array().unwrap();
    assert_eq!(counts.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 303);
    assert_eq!((counts.len(), row["components"].as_array().unwrap().len()), (20, 3));
    // Nothing to draw, one value, all of it infinite.
    good(&folder, &["stat", "--hist", "zero_5x0.taf"]);
    assert!(good(&folder, &["stat", "--hist", "--bins", "1", "scalar_1x1.taf"]).contains("█ 1\n"));
    good(&folder, &["stat", "--hist", "map_overflow.taf"]);
    assert_eq!(
        spile(&folder, &["stat", "--bins", "0", "--hist", "scalar_1x1.taf"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_folder_is_checked_as_a_whole() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    std::fs::create_dir_all(at("run/below")).unwrap();
    std::fs::copy(golden("taf/good/scalar_1x1.taf"), at("run/a.taf")).unwrap();
    std::fs::copy(golden("npz/stored.npz"), at("run/below/b.npz")).unwrap();
    std::fs::write(at("run/notes.md"), "words\n").unwrap();
    std::fs::write(at("run/.hidden.taf"), "words\n").unwrap();
    let expected = "\
verdict  errors  warnings  format  file             first error
ok            0         0  taf     run/a.taf
ok            0         0  npz     run/below/b.npz
2 files: 2 ok; 1 other of unknown format
";
    assert_eq!(good(temp.path(), &["check", "run"]), expected);
    assert_eq!(good(temp.path(), &["check", "-q", "run"]), "");

    std::fs::copy(golden("taf/bad/n_0.taf"), at("run/c.taf")).unwrap();
    let done = spile(temp.path(), &["check", "run"]);
    assert_eq!(done.status.code(), Some(1));
    let shown = text(&done.stdout);
    assert!(
        shown.contains("not ok        1         0  taf     run/c.taf        at byte 1048: "),
        "{shown}"
    );
    assert!(shown.ends_with("3 files: 2 ok, 1 not ok; 1 other of unknown format\n"), "{shown}");

    // One that cannot be examined among others is a part; nothing else is an error.
    let done = spile(temp.path(), &["check", "--summary", "run/a.taf", "missing.taf"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(text(&done.stderr).contains("missing.taf"));
    assert_eq!(spile(temp.path(), &["check", "--summary", "missing.taf"]).status.code(), Some(2));
    // Nor is a folder good in which there was nothing to look at.
    std::fs::create_dir(at("empty")).unwrap();
    let done = spile(temp.path(), &["check", "empty"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        text(&done.stderr).contains("empty: the folder contains no file of a known format"),
        "{done:?}"
    );
    let done = spile(temp.path(), &["check", "--json", "run"]);
    let lines: Vec<Value> =
        text(&done.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[3]["not_ok"], &lines[3]["unknown"]), (4, &1.into(), &1.into()));
    assert_eq!(lines[1]["file"], "run/below/b.npz");
}

#[test]
fn many_files_are_salvaged_into_a_folder() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    std::fs::create_dir_all(at("run/below")).unwrap();
    let whole = std::fs::read(golden("taf/good/example_2d_101x3.taf")).unwrap();
    std::fs::write(at("run/whole.taf"), &whole).unwrap();
    std::fs::write(at("run/below/cut.taf"), &whole[..whole.len() - 100]).unwrap();
    std::fs::write(at("run/a.csv"), "\"x\"\n1\n").unwrap();
    let done = spile(temp.path(), &["salvage", "run", "--into", "saved"]);
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let shown = text(&done.stdout);
    assert!(shown.starts_with("verdict   kept  lost  file"), "{shown}");
    assert!(shown.contains("run/below/cut.taf  saved/below/cut.taf\n"), "{shown}");
    assert!(shown.ends_with("2 files: 1 complete, 1 partial; 1 other skipped\n"), "{shown}");
    good(temp.path(), &["check", "-q", "saved"]);
    // Nothing is replaced without being asked; what can be done is done.
    let done =
        spile(temp.path(), &["salvage", "run/whole.taf", "run/below/cut.taf", "--into", "saved"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(text(&done.stderr).contains("exists"), "{done:?}");
    assert_eq!(spile(temp.path(), &["salvage", "run", "-o", "one.taf"]).status.code(), Some(2));
}

#[test]
fn trees_come_back_from_archives_and_tables() {
    let temp = tempfile::tempdir().unwrap();
    let dump = golden("sdf/epoch1d_normal_0001.sdf");
    good(temp.path(), &["-q", "convert", &dump, "x.npz", "--strict", "--verify"]);
    assert_eq!(good(temp.path(), &["diff", &dump, "x.npz"]), "");
    assert_eq!(good(temp.path(), &["check", "x.npz"]), "x.npz: ok (npz)\n");
    let log = golden("gsd/py-5.0.1/hoomd_many_frames.gsd");
    let pick = ["-q", "convert", log.as_str(), "log.csv", "--select", "log/*", "--verify"];
    assert_eq!(spile(temp.path(), &pick).status.code(), Some(0));
    let table = std::fs::read_to_string(temp.path().join("log.csv")).unwrap();
    assert!(table.starts_with("\"frame\",\"step\","), "{}", &table[..80]);
    // A table has one set of axes; the arrays with other ones are reported, and can be selected.
    let warnings = text(&spile(temp.path(), &["convert", &dump, "x.csv"]).stderr);
    assert!(warnings.contains("arrays (its axes differ from those of the table of"), "{warnings}");
    let strict = spile(temp.path(), &["convert", &dump, "y.csv", "--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    assert!(!temp.path().join("y.csv").exists());
    good(temp.path(), &["-q", "convert", &dump, "ex.csv", "--select", "Electric Field/Ex"]);
    let table = std::fs::read_to_string(temp.path().join("ex.csv")).unwrap();
    assert!(table.contains("Ex"), "{}", &table[..80]);
}
