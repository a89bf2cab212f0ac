//! `spile iotk` and IOTK files in the other commands, as typed by a user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk");
    folder.join(name).to_string_lossy().into_owned()
}

fn spile(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn good(folder: &Path, words: &[&str]) -> String {
    let done = spile(folder, words);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), &*error), (Some(0), ""), "{words:?}");
    String::from_utf8(done.stdout).unwrap()
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
    assert!(String::from_utf8_lossy(&refused.stderr).contains("4 or 8, not 3"));
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
