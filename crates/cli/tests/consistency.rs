//! Rules that hold for all verbs: names of objects and frames, outputs, options, exit status.

#[path = "support/folder.rs"]
mod folder;

use folder::Folder;

const TRAJECTORY: &str = "hoomd_many_frames.gsd";
const DUMP: &str = "epoch1d_normal_0001.sdf";

fn folder() -> Folder {
    Folder::with(&[
        "gsd/py-5.0.1/hoomd_many_frames.gsd",
        "sdf/epoch1d_normal_0001.sdf",
        "taf/good/example_2d_101x3.taf",
        "scda/a_basic.scd",
        "iotk/golden/tags.dat",
    ])
}

#[test]
fn a_file_alone_prints_the_summary_and_the_arrays() {
    let folder = folder();
    for file in [TRAJECTORY, DUMP] {
        let alone = folder.good(&[file]);
        assert_eq!(alone, folder.good(&["info", "--arrays", file]));
        assert!(alone.starts_with(&folder.good(&["info", file])), "{alone}");
        assert!(alone.contains("\n\ntype  "), "{alone}");
    }
    assert!(folder.good(&[DUMP]).contains("Electric Field/Ey"));
    let both = folder.good(&[DUMP, TRAJECTORY]);
    assert!(both.starts_with(&format!("{DUMP}\n")), "{both}");
    assert!(both.contains(&format!("\n\n{TRAJECTORY}\n")), "{both}");
}

#[test]
fn help_of_a_verb_is_printed_in_both_forms() {
    let folder = Folder::new();
    assert_eq!(folder.good(&["help"]), folder.good(&["--help"]));
    for verb in [&["cat"][..], &["convert"], &["gsd"], &["gsd", "trim"], &["scda", "recode"]] {
        let help = folder.good(&[&["help"], verb].concat());
        assert_eq!(help, folder.good(&[verb, &["--help"]].concat()), "{verb:?}");
        assert!(help.contains(&format!("Usage: spile {}", verb.join(" "))), "{help}");
    }
    // A name that is not a command is not explained as if it were a file.
    assert!(folder.bad(&["help", "nosuch"]).contains("unknown command \"nosuch\""));
}

#[test]
fn frames_are_the_first_dimension_of_cat() {
    let folder = folder();
    let cat = |words: &[&str]| folder.good(&[&["cat", TRAJECTORY], words].concat());
    let position = "particles/position";
    // An index selects one frame, also from the end.
    assert_eq!(cat(&[position, "-1"]), cat(&[position, "--frame", "99"]));
    assert_eq!(cat(&[position, "-1"]), cat(&[position, "--frame", "-1"]));
    let x = cat(&[position, "-1, :, 0"]);
    assert_eq!(x, cat(&[position, ":, 0", "--frame", "-1"]));
    let rows = cat(&[position, "-1"]);
    let first: Vec<&str> = rows.lines().map(|row| row.split('\t').next().unwrap()).collect();
    assert_eq!(x.lines().collect::<Vec<_>>(), first);
    // A slice selects several frames, and `...` all of them.
    assert_eq!(cat(&[position, "5:8, :, 2"]), cat(&[position, ":, 2", "--frames", "5:8"]));
    assert_eq!(cat(&[position, "..., 2"]), cat(&[position, ":, :, 2"]));
    // Without a selection all frames are printed.
    let all = cat(&["log/E"]);
    assert_eq!(all, cat(&["log/E", ":"]));
    assert!(all.starts_with("# frame 0\n") && all.contains("\n# frame 99\n"), "{all}");
    assert_eq!(all.lines().count(), 200, "{all}");
    let headings = cat(&[position]);
    assert_eq!(headings.lines().filter(|line| line.starts_with("# frame ")).count(), 100);
    // Indices out of bounds are errors.
    for words in [&["100"][..], &["-101"], &["--frame", "100"], &["--frame", "-101"]] {
        let error = folder.bad(&[&["cat", TRAJECTORY, position], words].concat());
        assert!(error.starts_with(&format!("error: {TRAJECTORY}: ")), "{error}");
    }
    let error = folder.bad(&["cat", DUMP, "ey", "--frame", "0"]);
    assert!(error.contains("\"Electric Field/Ey\" has no frames"), "{error}");
}

#[test]
fn stat_prints_one_row_per_array_unless_frames_are_selected() {
    let folder = folder();
    let stat = |words: &[&str]| folder.good(&[&["stat", TRAJECTORY], words].concat());
    let rows = |text: &str| text.lines().skip(1).map(str::to_string).collect::<Vec<_>>();
    let all = rows(&stat(&["--select", "log/E"]));
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].ends_with("log/E (100 frames)") && all[0].contains("100 "), "{all:?}");
    let frames = rows(&stat(&["--select", "log/E", "--frames", "98:"]));
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert!(frames[0].ends_with("log/E [98]") && frames[1].ends_with("log/E [99]"), "{frames:?}");
    // The row covers the values of all frames.
    let json = folder.json(&["stat", TRAJECTORY, "--select", "log/E", "--json"]);
    let values = folder.good(&["cat", TRAJECTORY, "log/E"]);
    let values = values.lines().filter(|line| !line.starts_with('#'));
    let values: Vec<f64> = values.map(|line| line.parse().unwrap()).collect();
    assert_eq!(values.len(), 100);
    let row = &json["arrays"][0];
    assert_eq!(row["count"], 100);
    let mean = values.iter().sum::<f64>() / 100.0;
    assert!((row["mean"].as_f64().unwrap() - mean).abs() <= 1e-12 * mean.abs(), "{row}");
    let max = values.iter().copied().fold(f64::MIN, f64::max);
    assert_eq!(row["max"].as_f64(), Some(max));
}

#[test]
fn the_input_format_can_be_specified() {
    let folder = folder();
    folder.write("table.dat", "1 2\n3 4\n");
    assert_eq!(
        folder.json(&["info", "--json", "--from", "taf", "example_2d_101x3.taf"])["format"],
        "taf"
    );
    assert_eq!(
        folder.json(&["info", "--json", "--from", "columns", "table.dat"])["format"],
        "columns"
    );
    let error = folder.bad(&["info", "--from", "gsd", DUMP]);
    assert!(error.starts_with(&format!("error: {DUMP}: not gsd: ")), "{error}");
    let error = folder.bad(&["info", "--from", "nonsense", DUMP]);
    assert!(error.contains("unknown format \"nonsense\"; known formats: "), "{error}");
}

#[test]
fn objects_are_selected_by_native_id_or_path() {
    let folder = folder();
    for verb in ["ls", "stat", "hash"] {
        let by = |name: &str| folder.good(&[verb, DUMP, "--select", name]);
        assert_eq!(by("ey"), by("Electric Field/Ey"), "{verb}");
        assert!(by("ey").contains("Electric Field/Ey"), "{verb}");
    }
    folder.good(&["-q", "convert", DUMP, "ey.npy", "--select", "ey"]);
    assert_eq!(folder.good(&["cat", "ey.npy"]), folder.good(&["cat", DUMP, "ey"]));
    let error = folder.bad(&["ls", DUMP, "--select", "nothing"]);
    assert!(error.contains("no object matches \"nothing\"\nhint: spile ls "), "{error}");
}

#[test]
fn the_output_is_the_second_argument_or_an_option() {
    let folder = folder();
    let cases: [(&[&str], &[&str]); 4] = [
        (&["convert", "example_2d_101x3.taf"], &["-q", "-t", "npy"]),
        (&["index", DUMP], &["-q"]),
        (&["scda", "recode", "a_basic.scd"], &["--encode"]),
        (&["iotk", "convert", "tags.dat"], &[]),
    ];
    for (command, options) in cases {
        folder.good(&[command, &["first"], options].concat());
        folder.good(&[command, &["-o", "second"], options].concat());
        folder.good(&[command, &["--output", "third"], options].concat());
        assert!(folder.read("first") == folder.read("second"), "{command:?}");
        assert!(folder.read("first") == folder.read("third"), "{command:?}");
        // Exactly one of them is required.
        let error = folder.bad(&[command, &["x", "-o", "y"], options].concat());
        assert!(error.contains("cannot be used with"), "{error}");
        let error = folder.bad(&[command, options].concat());
        assert!(error.contains("required arguments were not provided"), "{error}");
        assert!(!folder.path("x").exists() && !folder.path("y").exists());
        for name in ["first", "second", "third"] {
            std::fs::remove_file(folder.path(name)).unwrap();
        }
    }
}

#[test]
fn unknown_options_are_errors_with_a_suggestion() {
    let folder = folder();
    let cases = [
        (&["plot", DUMP, "ey", "--logg"][..], "unknown option --logg (did you mean --log?)"),
        (&["plot", DUMP, "--heatmapp"], "unknown option --heatmapp (did you mean --heatmap?)"),
        (&["cat", DUMP, "ey", "--frane"], "unknown option --frane (did you mean --frame?)"),
        (&["cat", DUMP, "--stord"], "unknown option --stord (did you mean --stored?)"),
        (&["cat", DUMP, "ey", "--qqqqqqqq"], "unknown option --qqqqqqqq\n"),
        (&["ls", DUMP, "--logn"], "unknown option --logn (did you mean --long?)"),
    ];
    for (words, expected) in cases {
        let error = folder.bad(words);
        assert!(error.starts_with("error: ") && error.contains(expected), "{words:?}: {error}");
    }
    // Selections may start with a hyphen.
    let last = folder.good(&["cat", "example_2d_101x3.taf", "-1:, 0"]);
    assert_eq!(last, "1.0\n");
}

#[test]
fn a_failure_of_some_files_is_partial_success() {
    let folder = folder();
    folder.write("other.bin", b"\x89OTHER\0\x01");
    for verb in ["info", "ls", "stat", "hash", "check"] {
        let code = |files: &[&str]| folder.spile(&[&[verb], files].concat()).status.code();
        assert_eq!(code(&[DUMP, "example_2d_101x3.taf"]), Some(0), "{verb}");
        for bad in ["other.bin", "missing.bin"] {
            assert_eq!(code(&[DUMP, bad]), Some(3), "{verb}");
            assert_eq!(code(&[bad, DUMP]), Some(3), "{verb}");
            assert_eq!(code(&[bad]), Some(2), "{verb}");
            assert_eq!(code(&[bad, bad]), Some(2), "{verb}");
        }
    }
    let done = folder.spile(&["missing.bin", DUMP]);
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert_eq!(error, "error: missing.bin: no such file or folder\n");
    assert!(String::from_utf8(done.stdout).unwrap().contains("Electric Field/Ey"));
}

#[test]
fn line_breaks_in_names_are_escaped() {
    let folder = Folder::new();
    let manifest =
        "{\"sections\": [{\"type\": \"B\", \"user\": \"two\\nlines\", \"text\": \"x\"}]}";
    folder.write("m.json", manifest);
    folder.good(&["scda", "pack", "m.json", "-o", "f.scda"]);
    for words in [&["ls"][..], &["ls", "-l"], &["ls", "--tree"], &["stat"], &["info", "--arrays"]] {
        let text = folder.good(&[words, &["f.scda"]].concat());
        assert!(text.contains("two\\nlines"), "{words:?}: {text}");
        assert!(!text.lines().any(|line| line.starts_with("lines")), "{words:?}: {text}");
    }
    assert_eq!(folder.good(&["ls", "f.scda"]), "two\\nlines\n");
    let sums = folder.good(&["hash", "--select", "**", "f.scda"]);
    assert_eq!(sums.lines().count(), 1, "{sums}");
}

#[test]
fn errors_name_the_file_and_hints_are_commands() {
    let folder = folder();
    let error = folder.bad(&["cat", DUMP, "qqqqqq"]);
    let expected = format!(
        "error: {DUMP}: no object named \"qqqqqq\"\nhint: spile ls {DUMP}    lists the objects\n"
    );
    assert_eq!(error, expected);
    let error = folder.bad(&["inof"]);
    assert!(error.starts_with("error: unknown command or file \"inof\"\nhint: "), "{error}");
    // The command of a hint can be run.
    let bytes = folder.read("example_2d_101x3.taf");
    folder.write("a cut.taf", &bytes[..bytes.len() - 400]);
    let error = folder.bad(&["stat", "a cut.taf"]);
    assert!(error.contains("\nhint: spile salvage 'a cut.taf'    "), "{error}");
}

#[test]
fn frames_of_a_file_without_frames_are_an_error() {
    let folder = folder();
    for verb in [&["ls"][..], &["stat"], &["hash"], &["convert", "-o", "never.nc"]] {
        let error = folder.bad(&[verb, &[DUMP, "--frames", "0"]].concat());
        assert!(error.contains(&format!("{DUMP}: --frames: the file has no frames")), "{error}");
    }
    assert!(!folder.path("never.nc").exists());
    let error = folder.bad(&["cat", TRAJECTORY, "log/E", "--frame", "-101"]);
    assert!(error.contains("no frame -101: the number of frames is 100"), "{error}");
}

#[test]
fn outputs_have_the_same_options_in_every_verb() {
    let folder = Folder::new();
    let mut verbs = vec!["convert", "merge", "index", "plot", "salvage", "gsd trim", "gsd merge"];
    verbs.extend(["scda pack", "scda recode", "iotk convert", "taf create", "taf crop"]);
    verbs.extend(["taf export", "taf convert"]);
    for verb in verbs {
        let words: Vec<&str> = std::iter::once("help").chain(verb.split(' ')).collect();
        let help = folder.good(&words);
        assert!(help.contains("-o, --output <OUTPUT>"), "{verb}: {help}");
        let text = help.rsplit("--overwrite").next().unwrap_or_default().trim_start();
        assert!(text.starts_with("Replace the output if it exists"), "{verb}: {help}");
    }
}
