//! `spile sdf`, and the other verbs on SDF files, as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use folder::{Folder, good, spile};

fn golden(name: &str) -> PathBuf {
    folder::golden("sdf").join(name)
}

#[test]
fn the_deck_of_a_dump_is_printed_as_it_was() {
    let here = golden("");
    let text = good(&here, &["sdf", "deck", "epoch2d_restart_cpml_deck.sdf"]);
    assert!(text.starts_with("begin:control\n  nx = 32\n") && text.ends_with("end:output\n"));
    assert_eq!(text.len(), 1994);
    let json = good(&here, &["sdf", "deck", "--json", "epoch2d_restart_cpml_deck.sdf"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["decks"][0]["text"], text);
    let none = spile(&here, &["sdf", "deck", "epoch3d_0000.sdf"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no input deck"));
}

#[test]
fn embedded_source_code_goes_into_a_folder_of_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let file = golden("drv_all_blocks.sdf");
    let words = ["sdf", "source", file.to_str().unwrap(), "-o", "code"];
    let names = good(temp.path(), &words);
    assert!(names.contains("src/demo.f90"), "{names}");
    let found: Vec<_> = names.lines().map(|name| temp.path().join(name)).collect();
    assert!(found.len() == 3 && found.iter().all(|path| path.is_file()), "{found:?}");
    // An existing folder is left alone.
    assert_eq!(spile(temp.path(), &words).status.code(), Some(2));
}

#[test]
fn a_dump_is_shown_printed_and_drawn_with_its_own_words() {
    let here = golden("");
    let info = good(&here, &["epoch1d_normal_0001.sdf"]);
    for words in ["Epoch1d", "step", "51", "commit_id", "v4.19.5"] {
        assert!(info.contains(words), "{words}: {info}");
    }
    // By name and by identifier.
    let by = |name: &str| good(&here, &["cat", "epoch1d_normal_0001.sdf", name, "10:13"]);
    assert_eq!(by("ey"), by("Electric Field/Ey"));
    assert_eq!(by("ey").lines().count(), 3);
    // The x axis is the mesh.
    let plot = good(&here, &["plot", "--json", "epoch1d_normal_0001.sdf", "ey"]);
    let plot: serde_json::Value = serde_json::from_str(&plot).unwrap();
    let first = good(&here, &["cat", "epoch1d_normal_0001.sdf", "Grid/Grid/X_mid", "0"]);
    assert_eq!(plot["series"][0]["start"].as_f64().unwrap(), first.trim().parse::<f64>().unwrap());
}

#[test]
fn dumps_of_a_running_job_are_followed() {
    let run = Folder::with(&["sdf/epoch1d_normal_0000.sdf"]);
    let words = ["watch", ".", "--all", "--interval", "0.02", "--count", "2"];
    let mut child = run.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().starts_with("frame 0  step 0  "));
    // A dump comes in two parts: the first is none.
    let dump = std::fs::read(golden("epoch1d_normal_0001.sdf")).unwrap();
    run.write("epoch1d_normal_0001.sdf", &dump[..dump.len() / 3]);
    std::thread::sleep(Duration::from_millis(200));
    run.write("epoch1d_normal_0001.sdf", &dump);
    assert!(next().starts_with("frame 1  step 51  "));
    assert!(child.wait().unwrap().success());
    let error = run.bad(&["watch", "epoch1d_normal_0001.sdf"]);
    assert!(error.contains("no frames to watch\nhint: trajectories and folders with"), "{error}");
}

#[test]
fn an_unfinished_dump_is_told_and_rescued() {
    let temp = tempfile::tempdir().unwrap();
    let file = golden("drv_unfinished.sdf");
    let file = file.to_str().unwrap();
    let done = spile(temp.path(), &[file]);
    let error = String::from_utf8_lossy(&done.stderr);
    // The complete blocks are read.
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&done.stdout).contains("Electric Field/Ex"));
    assert!(
        error.contains("the file was not closed") && error.contains("spile salvage"),
        "{error}"
    );
    assert_eq!(spile(temp.path(), &["check", file]).status.code(), Some(1));
    good(temp.path(), &["-q", "salvage", file, "-o", "saved.sdf"]);
    good(temp.path(), &["-q", "check", "saved.sdf"]);
    assert!(good(temp.path(), &["ls", "saved.sdf"]).contains("Electric Field/Ex"));
}

#[test]
fn a_folder_of_dumps_is_one_dataset_with_a_time_axis() {
    let temp = tempfile::tempdir().unwrap();
    let run = temp.path().join("run");
    std::fs::create_dir(&run).unwrap();
    for k in 0..3 {
        let name = format!("epoch2d_4ranks_id4_000{k}.sdf");
        std::fs::copy(golden(&name), run.join(&name)).unwrap();
    }
    let info = good(temp.path(), &["info", "run"]);
    assert!(info.contains("3 (step 0 to step 36)"), "{info}");
    let list = good(temp.path(), &["ls", "-l", "run"]);
    assert!(list.contains("3 frames"), "{list}");
    let total = "Total Field Energy in Simulation (J)";
    let energy = good(temp.path(), &["cat", "run", total, "--frames", "::2"]);
    let alone = |name: &str| good(&golden(""), &["cat", name, total]);
    let (first, last) =
        (alone("epoch2d_4ranks_id4_0000.sdf"), alone("epoch2d_4ranks_id4_0002.sdf"));
    assert_eq!(energy, format!("0\t{first}2\t{last}"));
    let x = ["cat", "run", "Grid/Particles/electron/X", "--frames", ":"];
    let lines = good(temp.path(), &x);
    assert_eq!(lines.lines().filter(|line| line.starts_with('#')).count(), 3);
    // As many as there are in each.
    assert_eq!(lines.lines().count(), 3 + 719 + 713 + 708);

    // An incomplete dump is skipped and reported.
    let whole = std::fs::read(run.join("epoch2d_4ranks_id4_0001.sdf")).unwrap();
    std::fs::write(run.join("epoch2d_4ranks_id4_0001.sdf"), &whole[..5000]).unwrap();
    let done = spile(temp.path(), &["info", "run"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(told.contains("0001.sdf: skipped: unexpected end of file: the summary of "), "{told}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("2 (step 0 to step 36)"));
    let json: serde_json::Value =
        serde_json::from_str(&good(temp.path(), &["info", "run", "--json"])).unwrap();
    assert_eq!(json["findings"][0]["object"], "epoch2d_4ranks_id4_0001.sdf");
    assert_eq!(json["frames"]["count"], 2);

    // All of them are checked; which bytes are what is asked of one file.
    let done = spile(temp.path(), &["check", "run"]);
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.code() == Some(1) && told.contains("3 files"), "{told}");
    let done = spile(temp.path(), &["map", "run"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && told.contains("hint: "), "{told}");
    std::fs::create_dir(temp.path().join("none")).unwrap();
    let told = spile(temp.path(), &["none"]);
    assert!(String::from_utf8_lossy(&told.stderr).contains("not a dataset of a known format"));
}

#[test]
fn what_the_library_computes_is_there_on_demand() {
    let here = golden("");
    let file = "epoch2d_restart_cpml_deck.sdf";
    assert!(!good(&here, &["ls", file]).contains("rank_map"));
    assert!(good(&here, &["ls", "--derived", file]).contains("CPUs/Original rank_map"));
    let map = good(&here, &["cat", "--derived", file, "CPUs/Original rank_map"]);
    assert_eq!(map, "0\t1\t2\t3\n");
}

#[test]
fn two_dumps_are_compared() {
    let here = golden("");
    // Byte order is no difference.
    let twins = ["hand_bigendian_all.sdf", "hand_littleendian_all.sdf"];
    assert_eq!(good(&here, &["diff", twins[0], twins[1]]), "");
    let dumps = ["epoch2d_4ranks_id4_0001.sdf", "epoch2d_4ranks_id4_0002.sdf"];
    let done = spile(&here, &["diff", dumps[0], dumps[1]]);
    assert_eq!(done.status.code(), Some(1));
    let told = String::from_utf8(done.stdout).unwrap();
    for line in [
        "the file: attribute step: 18 | 36",
        "Particles/Weight/electron: shape: 713 | 708",
        "Electric Field/Ex: 1584 of 1584 values differ, max difference 3.93063e10 (relative 0.956342) \
         at [43, 10] = (5.375e-6, -1.875e-6): -1794390777.779765 | -41100712627.52176",
    ] {
        assert!(told.lines().any(|l| l == line), "{line}\n{told}");
    }
    let grid = ["diff", "--values", "--select", "Grid/Grid", dumps[0], dumps[1]];
    assert_eq!(good(&here, &grid), "");
    let words = ["diff", "--json", "--select", "Wall-time", "--rtol", "1e-3", dumps[0], dumps[1]];
    let done = spile(&here, &words);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &json["same"]), (Some(1), &false.into()));
    assert_eq!(json["differences"][0]["what"], "values");
    let done = spile(&here, &["diff", "missing.sdf", dumps[0]]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).starts_with("error: missing.sdf: no such file"));
}

/// A folder with the dumps of a run and those of another prefix.
fn runs() -> Folder {
    let folder = Folder::new();
    for (name, from) in
        [("n0", "0000"), ("n1", "0001"), ("n2", "0002"), ("r0", "0000"), ("r1", "0001")]
    {
        let source = golden(&format!("epoch2d_4ranks_id4_{from}.sdf"));
        std::fs::copy(source, folder.path(&format!("{name}.sdf"))).unwrap();
    }
    folder
}

#[test]
fn a_pattern_of_a_run_is_one_dataset_and_a_folder_of_two_runs_is_two() {
    let folder = runs();
    let here = &folder.path("");
    let one: serde_json::Value =
        serde_json::from_str(&good(here, &["info", "--json", "n*.sdf"])).unwrap();
    assert_eq!((&one["frames"]["count"], &one["file"]), (&3.into(), &"n*.sdf".into()));
    let both = good(here, &["info", "."]);
    assert!(both.contains("./n*.sdf") && both.contains("./r*.sdf"), "{both}");
    assert_eq!(both.matches("frames").count(), 2);
    let all = good(here, &["info", "*.sdf"]);
    assert_eq!(all.matches("frames").count(), 2);
    let cat = spile(here, &["cat", ".", "ex", ":, 0, 0"]);
    let numbers = |text: &str| text.lines().filter(|line| line.parse::<f64>().is_ok()).count();
    assert_eq!(numbers(&String::from_utf8_lossy(&cat.stdout)), 3);
    let warning = String::from_utf8_lossy(&cat.stderr).into_owned();
    assert!(warning.contains("opened n*.sdf (3 files), ignored r*.sdf (2 files)"), "{warning}");
    assert_eq!(numbers(&good(here, &["cat", "r*.sdf", "ex", ":, 0, 0"])), 2);
}

#[test]
fn particles_are_followed_and_counted() {
    let folder = runs();
    let here = &folder.path("");
    let words =
        ["sdf", "track", "n*.sdf", "Electron", "--fastest", "2", "--variables", "px,weight"];
    good(here, &[&words[..], &["-o", "track.csv"]].concat());
    let text = std::fs::read_to_string(here.join("track.csv")).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!((rows.len(), rows[0]), (7, "\"time (s)\",\"id\",\"px (kg.m/s)\",\"weight\""));
    let words =
        ["sdf", "histogram", "n*.sdf", "electron", "x", "px", "--bins", "8x4", "-o", "h.npz"];
    good(here, &words);
    let total = |name: &str| -> f64 {
        let text = good(here, &["stat", "--json", "--frames", "2", "n*.sdf", "--select", name]);
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let row = &found["arrays"][0];
        row["mean"].as_f64().unwrap() * row["count"].as_f64().unwrap()
    };
    let counts = good(here, &["cat", "h.npz", "count", "2, :, :"]);
    let sum: f64 = counts.split_whitespace().map(|v| v.parse::<f64>().unwrap()).sum();
    let expected = total("Particles/Weight/electron");
    assert!((sum / expected - 1.0).abs() < 1e-12, "{sum} {expected}");
    let energy = good(here, &["sdf", "energy", "n*.sdf"]);
    assert!(energy.starts_with("time (s)\t") && energy.contains("Electric Field/Ex (J/m)"));
    assert_eq!(energy.lines().count(), 4);
    for (wrong, part) in [("px +", "expected a number or a name"), ("pq", "did you mean px")] {
        let failed = spile(here, &["sdf", "histogram", "n*.sdf", "electron", wrong, "-o", "x.nc"]);
        let message = String::from_utf8_lossy(&failed.stderr).to_lowercase();
        assert!(failed.status.code() == Some(2) && message.contains(part), "{message}");
    }
}

#[test]
fn a_field_of_a_run_is_drawn_over_space_and_time() {
    let folder = runs();
    let json = good(&folder.path(""), &["plot", "n*.sdf", "ex", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let text = json.to_string();
    assert!(
        text.contains("\"time\"") && text.contains("the middle"),
        "{}",
        &text[..300.min(text.len())]
    );
}
