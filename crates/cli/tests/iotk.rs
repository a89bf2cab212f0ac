//! `spile iotk` and IOTK files in the other commands, as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::path::{Path, PathBuf};

use folder::{command, good, spile};
use serde_json::Value;

fn golden(name: &str) -> String {
    folder::golden("iotk").join(name).to_string_lossy().into_owned()
}

#[test]
fn files_go_from_one_form_to_the_other_and_back() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    let path = |name: &str| -> PathBuf { folder.join(name) };
    let original = golden("golden/tags.dat");
    good(folder, &["iotk", "convert", &original, "-o", "a.xml"]);
    good(folder, &["iotk", "convert", "a.xml", "-o", "a.dat"]);
    assert_eq!(fs::read(path("a.dat")).unwrap(), fs::read(&original).unwrap());
    good(folder, &["iotk", "convert", "a.xml", "same.xml"]);
    assert_eq!(fs::read(path("same.xml")).unwrap(), fs::read(path("a.xml")).unwrap());
    let other = ["--endian", "big", "--marker", "8", "--subrecord", "100", "--to", "binary"];
    good(folder, &[&["iotk", "convert", &original, "-o", "b.dat"][..], &other[..]].concat());
    assert_ne!(fs::read(path("b.dat")).unwrap(), fs::read(&original).unwrap());
    assert_eq!(
        good(folder, &["hash", "b.dat"]).replace("b.dat", ""),
        good(folder, &["hash", "a.dat"]).replace("a.dat", "")
    );
    let text =
        good(folder, &["iotk", "convert", &golden("golden/types.dat"), "-o", "-", "--compat"]);
    assert_eq!(text.into_bytes(), fs::read(golden("golden/types.xml")).unwrap());

    let again = spile(folder, &["iotk", "convert", &original, "-o", "a.xml"]);
    assert_eq!(again.status.code(), Some(2));
    let lost = spile(folder, &["iotk", "convert", &golden("golden/types.xml"), "-o", "c.dat"]);
    assert_eq!(lost.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&lost.stderr).contains("iotk-012"));
    assert!(!path("c.dat").exists());
    let marker = ["iotk", "convert", &original, "-o", "d.dat", "--marker", "3"];
    let refused = spile(folder, &marker);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("expected 4 or 8, found 3"));
}

#[test]
fn a_conversion_that_makes_no_sense_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    let original = golden("golden/types.dat");
    for (words, said) in [
        (&["--endian", "big"][..], "--to binary"),
        (&["--subrecord", "100"], "--to binary"),
        (&["--to", "binary", "--subrecord", "0"], "2147483639"),
        (&["--to", "binary", "--marker", "16"], "4 or 8"),
        (&["--to", "html"], "text, binary"),
    ] {
        let done = spile(folder, &[&["iotk", "convert", &original, "-o", "x"][..], words].concat());
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(2) && error.contains(said), "{words:?}: {error}");
    }
    fs::write(folder.join("notes.txt"), "nothing of the kind").unwrap();
    for name in ["notes.txt", "missing.dat", "."] {
        for verb in [&["iotk", "dump", name][..], &["iotk", "convert", name, "-o", "x"]] {
            let done = spile(folder, verb);
            assert_eq!(done.status.code(), Some(2), "{verb:?}");
            assert!(
                String::from_utf8_lossy(&done.stderr).starts_with(&format!("error: {name}: ")),
                "{verb:?}"
            );
        }
    }
    assert!(!folder.join("x").exists());
    // What has no place in the other form is told, and the exit code tells it, too.
    fs::write(folder.join("loose.xml"), "<R><a>x</a></R> words behind").unwrap();
    let done = spile(folder, &["iotk", "convert", "loose.xml", "-o", "loose.dat"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&done.stderr).contains("outside of all elements"));
    assert!(folder.join("loose.dat").exists());
    // From a pipe into a pipe.
    let mut command = command(folder, &["iotk", "convert", "-", "-o", "-"]);
    command.stdin(fs::File::open(&original).unwrap());
    let text = command.output().unwrap().stdout;
    assert!(text.starts_with(b"<?xml version=\"1.0\"?>\n<?iotk ") && text.ends_with(b"</Root>\n"));
}

#[test]
fn one_damaged_element_does_not_hide_the_others() {
    let temp = tempfile::tempdir().unwrap();
    let text = "<R><a type='integer' size='1'>***</a><b type='real' size='1' kind='16'>1e4000</b>\
                <c type='character' size='1' len='9'>\n\u{1b}[31mred\n</c></R>";
    fs::write(temp.path().join("a.xml"), text).unwrap();
    let done = spile(temp.path(), &["iotk", "dump", "a.xml"]);
    let shown = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert!(shown.contains("a  error: expected integer(4), found \"***\" (iotk-012)\n"), "{shown}");
    assert!(shown.contains("b  float128 [1]: 1e+4000\n"), "{shown}");
    // Nothing that a terminal would obey.
    assert!(shown.contains("c  text[9] [1]: \"\\u{1b}[31mred\"\n"), "{shown}");
    let json = spile(temp.path(), &["iotk", "dump", "--json", "a.xml"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["elements"][1]["error"].as_str().unwrap().contains("iotk-012"));
    assert_eq!(json["elements"][3]["data"]["first"][0], "\u{1b}[31mred");
    let wide = good(Path::new("."), &["iotk", "dump", &golden("golden/types.dat")]);
    assert!(wide.lines().all(|line| line.chars().count() <= 80), "{wide}");
}

#[test]
fn a_folder_of_quantum_espresso_is_one_dataset() {
    let folder = golden("qe54_si/si.save");
    let info = good(Path::new("."), &[&folder]);
    for words in ["PWSCF 5.4.0", "charge density, 12 x 12 x 12", "in 3 folders, K00001 to K00003"] {
        assert!(info.contains(words), "{info}");
    }
    let bands = good(Path::new("."), &["cat", &folder, "Root/EIGENVALUES/bands"]);
    // Spins, k-points, bands.
    let row = "-0.1880411097688038\t0.2412515818917432\t0.2412515820899894\t";
    assert!(bands.starts_with(&format!("# 0, :, :\n{row}")), "{bands}");
    assert_eq!(bands.lines().count(), 4, "{bands}");
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("data-file.xml"), "<Root><a iotk_link='../b.xml'/></Root>").unwrap();
    let astray = spile(temp.path(), &["info", "."]);
    assert_eq!(astray.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&astray.stderr).contains("../b.xml"));
}

#[test]
fn the_tree_of_a_file_is_shown() {
    let folder = Path::new(".");
    let density = golden("qe54_si/si.save/charge-density.dat");
    let dump = good(folder, &["iotk", "dump", "--values", "2", &density]);
    assert!(
        dump.contains("  CHARGE-DENSITY\n    INFO nr1=\"12\" nr2=\"12\" nr3=\"12\"\n"),
        "{dump}"
    );
    assert!(dump.contains("    z.12  float64 [144]: ") && dump.contains("... 142 more"), "{dump}");
    let json: Value =
        serde_json::from_str(&good(folder, &["iotk", "dump", "--json", &density])).unwrap();
    assert_eq!(json["elements"][3]["path"], "Root/CHARGE-DENSITY/z.1");
    assert_eq!(json["elements"][3]["data"]["more"], 138);
    let info = good(folder, &[&density]);
    assert!(info.contains("charge density, 12 x 12 x 12"), "{info}");
    let info = good(folder, &[&golden("qe54_si/si.save/data-file.xml")]);
    assert!(info.contains("PWSCF 5.4.0") && info.contains("k-points"), "{info}");
    let name = "Root/CHARGE-DENSITY/density";
    let plot = good(folder, &["plot", &density, name, ":, 0, 0"]);
    assert!(plot.lines().count() > 5, "{plot}");
}
