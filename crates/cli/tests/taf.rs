//! `spile taf`, `plot`, `salvage` and `tour` as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::fs;

use folder::Folder;

/// Makes a small file.
fn example(folder: &Folder) -> &'static str {
    folder.good(&["taf", "create", "--example", "2", "-o", "e.taf", "--overwrite"]);
    "e.taf"
}

#[test]
fn files_are_made_from_text_and_read_back() {
    let folder = Folder::new();
    fs::write(folder.path("t.csv"), "t,u\n0.0,1\n0.5,2\n1.0,4\n").unwrap();
    folder.good(&["taf", "create", "t.csv", "--grid-column", "-t", "64", "-o", "t.taf"]);
    assert_eq!(folder.good(&["taf", "read", "t.taf"]), "0\t1\n0.5\t2\n1\t4\n");
    assert_eq!(folder.good(&["taf", "read", "t.taf", "--grid", "0.4:"]), "0.5\t2\n1\t4\n");
    assert_eq!(folder.good(&["taf", "read", "t.taf", "--index", "2:2"]), "0.5\t2\n");
    assert_eq!(folder.json(&["taf", "read", "t.taf", "--json"])["rows"][2][1], 4.0);
    let again = folder.bad(&["taf", "create", "t.csv", "-o", "t.taf"]);
    assert!(
        again.contains("t.taf: already exists; nothing was written\nhint: --overwrite"),
        "{again}"
    );
    let odd = folder.bad(&["taf", "create", "t.csv", "-t", "int7", "-o", "x.taf"]);
    assert!(odd.contains("unknown TAF element type \"int7\""), "{odd}");
    fs::write(folder.path("uneven.txt"), "0 1\n1 2\n3 4\n").unwrap();
    let words = ["taf", "create", "uneven.txt", "--grid-column", "-o", "x.taf"];
    let made = folder.spile(&words);
    let warning = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{warning}");
    assert!(warning.contains("row 2: the grid is not evenly spaced"), "{warning}");
    assert_eq!(folder.good(&["taf", "read", "x.taf"]), "1\t0\t1\n2\t1\t2\n3\t3\t4\n");
    let comments = folder.json(&["taf", "probe", "x.taf", "--json"])["comments"].clone();
    assert_eq!(comments, "column 1: grid of dimension 1\n");
}

#[test]
fn channels_of_an_oscilloscope_csv_file_are_columns_with_its_times() {
    let folder = Folder::new();
    let rigol = "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-1,0.5,\n0,1,4,\n1,2,5,\n2,3,6,\n";
    folder.write("rigol.csv", rigol);
    folder.good(&["taf", "create", "rigol.csv", "--grid-column", "-t", "64", "-o", "r.taf"]);
    assert_eq!(folder.good(&["taf", "read", "r.taf"]), "-1\t1\t4\n-0.5\t2\t5\n0\t3\t6\n");
    folder.good(&["taf", "create", "rigol.csv", "-t", "int16", "-o", "i.taf"]);
    assert_eq!(folder.json(&["taf", "read", "i.taf", "--json"])["rows"][2][2], 6.0);
    // One channel, whose times are not uniform.
    folder.write("odd.csv", "Model,X\nVertical Units,V\n\nTIME,CH1\n0,1\n1,2\n50,3\n60,4\n");
    let made = folder.spile(&["taf", "create", "odd.csv", "--grid-column", "-o", "o.taf"]);
    assert!(made.status.success() && !made.stderr.is_empty());
    assert_eq!(folder.good(&["taf", "read", "o.taf"]), "1\t0\t1\n2\t1\t2\n3\t50\t3\n4\t60\t4\n");
}

#[test]
fn clipped_values_are_told() {
    let folder = Folder::new();
    fs::write(folder.path("t.txt"), "1\n2\nnan\ninf\n").unwrap();
    let told = folder.good(&["taf", "create", "t.txt", "-t", "8", "-o", "t.taf"]);
    assert_eq!(told, "t.taf: 2 values were clipped\n");
    let words = ["taf", "create", "t.txt", "-t", "8", "-o", "t.taf", "--overwrite", "--json"];
    assert_eq!(folder.json(&words)["clipped"], 2);
}

#[test]
fn every_operation_of_the_table_has_its_word() {
    let folder = Folder::new();
    let file = example(&folder);
    assert!(folder.good(&["taf", "probe", file]).contains("2D example"));
    assert_eq!(folder.json(&["taf", "probe", file, "--json"])["comments"], "2D example\n");
    folder.good(&["taf", "addComment", file, "more"]);
    folder.good(&["taf", "add-comment", file, "-5 V"]);
    assert_eq!(
        folder.json(&["taf", "probe", file, "--json"])["comments"],
        "2D example\nmore\n-5 V\n"
    );
    folder.good(&["taf", "setComment", file, "only\n"]);
    folder.good(&["taf", "adjust", file, "1", "shift", "-0.5"]);
    folder.good(&["taf", "crop", file, "1", "--grid", "-0.1:0.1", "--index", "1:55"]);
    assert_eq!(
        folder.json(&["--json", "ls", file])["objects"][0]["shape"],
        serde_json::json!([15, 3])
    );
    let copy = folder.good(&["taf", "backup", file]);
    assert_eq!(copy, "e-backup-1.taf\n");
    folder.good(&["taf", "append", file, "e-backup-1.taf", "--safe"]);
    folder.good(&["taf", "transpose", file]);
    folder.good(&["taf", "permute", file, "2,1", "-o", "p.taf"]);
    let summary = folder.json(&["taf", "summarize", "p.taf", "--json"]);
    assert_eq!(summary["columns"].as_array().unwrap().len(), 7);
    assert_eq!(summary["columns"][1]["mean"], summary["columns"][4]["mean"]);
    folder.good(&["taf", "export", "e-backup-1.taf", "-o", "e.txt"]);
    assert!(fs::read_to_string(folder.path("e.txt")).unwrap().starts_with("# only\n"));
    let before = folder.good(&["hash", "--native", "--json", "e-backup-1.taf"]);
    folder.good(&["taf", "replace", "e-backup-1.taf", "e-backup-1.taf"]);
    assert_eq!(folder.good(&["hash", "--native", "--json", "e-backup-1.taf"]), before);
    let map = folder.json(&["taf", "map", "p.taf", "--json"]);
    assert_eq!((&map["offset"], &map["type"]), (&1104.into(), &"flt32".into()));
    assert!(folder.good(&["taf", "plot", "p.taf"]).contains("p.taf"));
    folder.good(&["taf", "convert", "e.txt", "--overwrite"]);
    let wrong = folder.bad(&["taf", "adjust", "p.taf", "1", "span", "1"]);
    assert!(wrong.contains("expected two values for span"), "{wrong}");
    let wrong = folder.bad(&["taf", "adjust", "p.taf", "3", "shift", "1"]);
    assert!(wrong.contains("p.taf: no dimension 3: the array has 2"), "{wrong}");
    let nothing = folder.bad(&["taf", "crop", "p.taf", "1", "--grid", "5:6"]);
    assert!(nothing.contains("p.taf: dimension 1: no element inside the bounds"), "{nothing}");
}

#[test]
fn one_bad_file_does_not_stop_a_conversion() {
    let folder = Folder::new();
    fs::write(folder.path("a.txt"), "1\n2\n").unwrap();
    fs::write(folder.path("b.txt"), "words\n").unwrap();
    let done = folder.spile(&["taf", "convert", "*.txt"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(folder.path("a.taf").exists() && !folder.path("b.taf").exists());
    assert!(String::from_utf8_lossy(&done.stderr).contains("b.txt: "));
    fs::write(folder.path("columns.txt"), "0 1\n1 2\n2 4\n").unwrap();
    folder.good(&["taf", "convert", "columns.txt", "-o", "named.taf"]);
    folder.good(&["check", "named.taf"]);
    let wrong = ["taf", "convert", "columns.txt", "columns.txt", "-o", "two.taf"];
    assert!(folder.bad(&wrong).contains("-o requires one file"));
}

#[test]
fn pictures_are_drawn_whole() {
    let folder = Folder::new();
    let file = example(&folder);
    folder.good(&["plot", file, "-o", "p.svg"]);
    let svg = fs::read_to_string(folder.path("p.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("column 0") && svg.contains("column 2"));
    folder.good(&["plot", file, ":, 1", "-o", "p.png", "--width", "300", "--height", "200"]);
    let png = fs::read(folder.path("p.png")).unwrap();
    assert_eq!(png[16..24], [0, 0, 2, 88, 0, 0, 1, 144], "600 x 400 pixels");
    let drawn = folder.good(&["plot", file, "--width", "60", "--height", "12"]);
    assert_eq!(drawn.lines().count(), 12);
    assert!(drawn.lines().all(|line| line.chars().count() <= 60), "{drawn}");
    let numbers = folder.json(&["plot", file, "::-1, 0", "--json"]);
    assert_eq!(
        (&numbers["series"][0]["start"], &numbers["series"][0]["low"][0]),
        (&1.0.into(), &1.0.into())
    );
    assert!(folder.bad(&["plot", file, "-o", "p.gif"]).contains(".svg or .png"));
    assert!(folder.bad(&["plot", file, "3, 1"]).contains("single element"));
    folder.good(&["taf", "create", "--example", "3", "-o", "cube.taf"]);
    folder.good(&["taf", "transpose", "e.taf"]);
    let many = folder.bad(&["plot", "e.taf", "--lines"]);
    assert!(
        many.contains("too many lines: the selection has 101 columns, the maximum is 12")
            && many.contains("hint:"),
        "{many}"
    );
}

#[test]
fn a_cut_file_is_salvaged_with_exit_3() {
    let folder = Folder::new();
    let file = folder.path(example(&folder));
    let bytes = fs::read(&file).unwrap();
    fs::write(folder.path("cut.taf"), &bytes[..1104 + 900]).unwrap();
    let done = folder.spile(&["salvage", "cut.taf"]);
    assert_eq!(done.status.code(), Some(3));
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(told.contains("cut-salvaged.taf") && told.contains("array 101 x 2"), "{told}");
    folder.good(&["check", "cut-salvaged.taf"]);
    fs::write(folder.path("head.taf"), &bytes[..500]).unwrap();
    assert!(folder.bad(&["salvage", "head.taf"]).contains("truncated"));
    assert!(!folder.path("head-salvaged.taf").exists());
    assert_eq!(folder.spile(&["salvage", "e.taf", "-o", "whole.taf"]).status.code(), Some(0));
    assert_eq!(fs::read(folder.path("whole.taf")).unwrap(), bytes);
}

#[test]
fn the_tour_shows_every_format_and_leaves_its_files() {
    let folder = Folder::new();
    let tour = folder.good(&["tour", "samples"]);
    for words in ["$ spile info trajectory.gsd", "not ok (sdf, 1 error)", "kept     block"] {
        assert!(tour.contains(words), "{words}: {tour}");
    }
    assert!(folder.path("samples/ex.png").exists());
    assert!(folder.bad(&["tour", "samples"]).contains("already exists"));
}
