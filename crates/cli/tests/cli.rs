//! The program as a user meets it: real files, real output, real exit status.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs `spile` in `tests/golden/taf/good`.
fn spile(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(args).current_dir(golden("good")).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn golden(what: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/taf").join(what)
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("not killed by a signal")
}

#[track_caller]
fn good(args: &[&str]) -> String {
    let output = spile(args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((status(&output), err.as_str()), (0, ""), "{args:?}\n{out}");
    out
}

/// Exit status and standard error of a command that prints nothing else.
#[track_caller]
fn bad(args: &[&str]) -> (i32, String) {
    let output = spile(args);
    assert_eq!(text(&output.stdout), "", "{args:?}");
    (status(&output), text(&output.stderr))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    let out = good(args);
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert_eq!(value["schema"], 1);
    assert_eq!(value["spile"], env!("CARGO_PKG_VERSION"));
    assert_eq!(out.matches('\n').count(), 1, "one line a document");
    value
}

#[test]
fn a_file_alone_is_info_with_its_arrays() {
    let short = good(&["example_2d_101x3.taf"]);
    assert_eq!(short, good(&["info", "--arrays", "example_2d_101x3.taf"]));
    assert!(short.starts_with(&good(&["info", "example_2d_101x3.taf"])), "{short}");
    let mut lines = short.lines();
    assert_eq!(lines.next().unwrap().split_whitespace().next(), Some("format"));
    assert!(short.contains("Thrifty Array Format (taf)"), "{short}");
    assert!(short.contains("2.3 KiB (2327 bytes)"), "{short}");
    assert!(short.contains("101 x 3"), "{short}");
    assert!(short.lines().all(|l| l.chars().count() <= 80), "{short}");
    let info = json(&["--json", "example_2d_101x3.taf"]);
    assert_eq!(info, json(&["example_2d_101x3.taf", "--json"]));
    assert_eq!((&info["format"], &info["bytes"]), (&"taf".into(), &2327.into()));
    assert_eq!((&info["arrays"], &info["groups"]), (&1.into(), &0.into()));
}

#[test]
fn ls_lists() {
    assert_eq!(good(&["ls", "big_100003x3_u8.taf"]), "data\n");
    assert_eq!(
        good(&["ls", "-l", "big_100003x3_u8.taf"]),
        "type        shape       size  name\n\
         uint8  100003 x 3  293.0 KiB  data\n"
    );
    assert_eq!(
        good(&["ls", "--tree", "big_100003x3_u8.taf"]),
        "big_100003x3_u8.taf\n└── data  uint8  100003 x 3\n"
    );
    let row = &json(&["ls", "--json", "type_int16_mapped.taf"])["objects"][0];
    assert_eq!((&row["path"], &row["kind"]), (&"data".into(), &"array".into()));
    assert_eq!((&row["dtype"], &row["bytes"]), (&"int16".into(), &70.into()));
    assert_eq!(row["shape"], serde_json::json!([7, 5]));
    assert_eq!(row["map"], serde_json::json!({"intercept": -0.125, "slope": 1.1e-5}));
    assert_eq!(row["coords"][0], serde_json::json!({"start": -1e-6, "step": 2.5e-10}));
    let (code, err) = bad(&["ls", "--select", "nothing*", "scalar_1x1.taf"]);
    assert_eq!(code, 2);
    assert!(
        err.starts_with(
            "error: scalar_1x1.taf: no object matches \"nothing*\"\nhint: spile ls scalar_1x1.taf "
        ),
        "{err}"
    );
}

#[test]
fn cat_slices_as_python_does() {
    let file = "example_2d_101x3.taf";
    assert_eq!(good(&["cat", file]).lines().count(), 101);
    assert_eq!(good(&["cat", file, "0:2"]), "0.0\t0.0\t0.0\n0.01\t0.0001\t0.000001\n");
    assert_eq!(good(&["cat", file, "data", "100"]), "1.0\n1.0\n1.0\n");
    assert_eq!(good(&["cat", file, "-1:,0"]), "1.0\n");
    assert_eq!(
        good(&["cat", file, "50:0:-50", "--json"]),
        good(&["--json", "cat", file, "50:0:-50"])
    );
    let values = json(&["cat", file, "0:101:50, 1", "--json"]);
    assert_eq!(values["values"], serde_json::json!([0.0, 0.25, 1.0]));
    assert_eq!(values["shape"], serde_json::json!([3]));
    let cube = good(&["cat", "example_3d_101x3x2.taf", "0:2"]);
    assert!(cube.starts_with("# 0, :, :\n0.0\t0.0\n"), "{cube}");
    assert!(cube.contains("\n\n# 1, :, :\n"), "{cube}");
    let (code, err) = bad(&["cat", file, "101"]);
    assert_eq!(code, 2);
    assert_eq!(
        err,
        "error: example_2d_101x3.taf: index 101 is out of bounds for a dimension of length 101\n"
    );
}

#[test]
fn cat_maps_unless_stored_values_are_wanted() {
    let file = "type_int16_mapped.taf";
    let raw = spile(&["cat", "--raw", "--stored", file, "0,0"]).stdout;
    assert_eq!(raw, i16::MIN.to_le_bytes());
    let mapped = spile(&["cat", "--raw", file, "0,0"]).stdout;
    let value = -0.125 + 1.1e-5 * f64::from(i16::MIN);
    assert_eq!(mapped, value.to_le_bytes());
    assert_eq!(good(&["cat", "--stored", file, "0,0"]), "-32768\n");
    assert_eq!(json(&["cat", "--json", file, "0,0"])["values"], value);
    // Not a digit is lost of 64-bit integers.
    let whole = good(&["cat", "type_uint64_unmapped.taf", "--json"]);
    assert!(whole.contains("18446744073709551615"), "{whole}");
}

#[test]
fn cat_writes_no_json_that_is_not_json() {
    let values = json(&["cat", "--json", "map_overflow.taf"]);
    assert!(values.to_string().contains("Infinity"), "{values}");
    assert_eq!(json(&["cat", "--json", "zero_5x0.taf"])["values"], serde_json::json!([]));
    assert_eq!(good(&["cat", "zero_5x0.taf"]), "");
}

#[test]
fn a_mistyped_name_gets_a_suggestion() {
    let (code, err) = bad(&["cat", "example_2d_101x3.taf", "dta"]);
    assert_eq!(code, 2);
    assert_eq!(
        err,
        "error: example_2d_101x3.taf: no object named \"dta\"\nhint: did you mean data?\n"
    );
    let (code, err) = bad(&["inof"]);
    assert_eq!(code, 2);
    assert!(err.contains("hint: did you mean `spile info`?"), "{err}");
}

#[test]
fn stat_counts() {
    assert_eq!(
        good(&["stat", "example_2d_101x3.taf"]),
        "count  min  max    mean       std  name\n  \
           303    0    1  0.3625  0.311549  data\n"
    );
    let row = &json(&["stat", "--json", "type_int64_unmapped.taf"])["arrays"][0];
    assert_eq!(row["stored"]["min"], i64::MIN);
    assert_eq!(row["stored"]["max"], i64::MAX);
    let row = &json(&["stat", "--json", "zero_5x0.taf"])["arrays"][0];
    assert_eq!((&row["count"], &row["mean"]), (&0.into(), &Value::Null));
    assert!(good(&["stat", "map_overflow.taf"]).contains("(without "));
}

#[test]
fn map_accounts_for_every_byte() {
    let map = json(&["map", "--json", "example_2d_101x3.taf"]);
    let sum =
        |list: &Value| list.as_array().unwrap().iter().map(|p| p["bytes"].as_u64().unwrap()).sum();
    let parts: u64 = sum(&map["parts"]);
    let roles: u64 = sum(&map["roles"]);
    assert_eq!((parts, roles), (2327, 2327));
    assert_eq!((&map["overlapping"], &map["past_end"]), (&0.into(), &0.into()));
    let table = good(&["map", "example_2d_101x3.taf"]);
    assert!(table.contains("  1104   1212  data    array "), "{table}");
    assert!(table.ends_with("\n2.3 KiB: header 3.8 %, text 44.1 %, data 52.1 %\n"), "{table}");
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
}

#[test]
fn check_answers_with_its_exit_status() {
    assert_eq!(good(&["check", "scalar_1x1.taf"]), "scalar_1x1.taf: ok (taf)\n");
    assert_eq!(good(&["check", "-q", "scalar_1x1.taf"]), "");
    let output = spile(&["check", "../bad/n_0.taf", "scalar_1x1.taf"]);
    let out = text(&output.stdout);
    assert_eq!(status(&output), 1);
    assert!(out.starts_with("../bad/n_0.taf: error: at byte 1048: "), "{out}");
    assert!(
        out.ends_with("../bad/n_0.taf: not ok (taf, 1 error)\nscalar_1x1.taf: ok (taf)\n"),
        "{out}"
    );
    let output = spile(&["check", "--json", "../bad/n_0.taf", "missing.taf", "scalar_1x1.taf"]);
    assert_eq!(status(&output), 3);
    let out = text(&output.stdout);
    let verdicts: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(verdicts.len(), 2, "one bad file does not stop the rest");
    assert_eq!((&verdicts[0]["ok"], &verdicts[1]["ok"]), (&false.into(), &true.into()));
    assert_eq!(verdicts[0]["findings"][0]["offset"], 1048);
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&error["schema"], &error["error"]["kind"]), (&1.into(), &"io".into()));
    assert_eq!(error["error"]["file"], "missing.taf");
    assert_eq!(error["spile"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_golden_file_has_the_sums_of_the_manifest() {
    let manifest = std::fs::read(golden("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut seen = 0;
    for entry in manifest["good"].as_object().unwrap().values() {
        let file = golden(entry["file"].as_str().unwrap());
        let file = file.to_str().unwrap();
        let native = json(&["hash", "--native", "--json", file]);
        let arrays = json(&["hash", "--json", file]);
        assert_eq!(native["format"], "taf");
        assert_eq!(native["objects"][0]["sha256"], entry["sha256_raw"], "{file}");
        assert_eq!(arrays["arrays"][0]["sha256"], entry["sha256_raw"], "{file}");
        assert_eq!(arrays["arrays"][0]["shape"], entry["dims"], "{file}");
        assert_eq!(arrays["digest"].as_str().unwrap().len(), 64);
        seen += 1;
    }
    assert!(seen >= 50);
}

#[test]
fn the_digest_of_a_file_is_one_line_whatever_the_threads_and_the_memory() {
    let line = good(&["hash", "scalar_1x1.taf"]);
    let digest = json(&["hash", "--json", "scalar_1x1.taf"])["digest"].clone();
    assert_eq!(line, format!("{}  scalar_1x1.taf\n", digest.as_str().unwrap()));
    let sums = good(&["hash", "-v", "scalar_1x1.taf"]);
    assert!(sums.starts_with(&line) && sums.ends_with("  data\n"), "{sums}");
    let one = good(&["hash", "-j", "1", "big_100003x3_u8.taf"]);
    assert_eq!(one, good(&["hash", "-j", "2", "--max-memory", "1M", "big_100003x3_u8.taf"]));
}

#[test]
fn files_that_are_not_there_or_not_ours() {
    let (code, err) = bad(&["info", "missing.taf"]);
    assert_eq!((code, err.as_str()), (2, "error: missing.taf: no such file or folder\n"));
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, b"\x89OTHER\0\x01 nobody knows this one").unwrap();
    let (code, err) = bad(&[other.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("other: unrecognised file format"), "{err}");
    assert!(err.contains("(core-unknown)"), "{err}");
    let (code, err) = bad(&["."]);
    assert_eq!(code, 2);
    assert!(err.contains("the folder is not a dataset of a known format"), "{err}");
    let (code, err) = bad(&["scda", "unpack", ".", "-o", "x"]);
    assert_eq!(
        (code, err.as_str()),
        (2, "error: .: is a folder, not a file\nhint: pass the files in it\n")
    );
    let (code, err) = bad(&["info", "nothing-*.taf"]);
    assert_eq!((code, err.as_str()), (2, "error: nothing-*.taf: no file matches this pattern\n"));
    let (code, err) = bad(&["hash", "../bad/size_beyond_by_1.taf"]);
    assert_eq!(code, 2);
    assert!(
        err.starts_with("error: ../bad/size_beyond_by_1.taf: truncated: array at byte 1104: "),
        "{err}"
    );
    assert!(err.contains("(taf-007)\nhint: "), "{err}");
}

#[test]
fn patterns_that_the_shell_left_are_expanded() {
    let sums = good(&["hash", "zero_*.taf"]);
    let names: Vec<&str> = sums.lines().map(|l| l.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(names, ["zero_0x0.taf", "zero_0x3.taf", "zero_3d_4x0x2.taf", "zero_5x0.taf"]);
}

#[test]
fn standard_input_is_a_file_too() {
    let file = std::fs::File::open(golden("good/example_2d_101x3.taf")).unwrap();
    let output = command(&["cat", "-", "100,0"]).stdin(file).output().unwrap();
    assert_eq!((status(&output), text(&output.stdout)), (0, "1.0\n".into()));
    let file = std::fs::File::open(golden("good/big_100003x3_u8.taf")).unwrap();
    let output = command(&["--max-memory", "10K", "-"]).stdin(file).output().unwrap();
    assert_eq!(status(&output), 2);
    let err = text(&output.stderr);
    assert!(err.starts_with("error: -: limit: standard input needs "), "{err}");
}

#[test]
fn a_closed_pipe_is_silent_and_no_failure() {
    for args in [
        &["cat", "big_100003x3_u8.taf"][..],
        &["cat", "--raw", "big_100003x3_u8.taf"],
        &["cat", "--json", "big_100003x3_u8.taf"],
        &["completions", "bash"],
        &["man"],
    ] {
        let mut child =
            command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((status(&output), text(&output.stderr)), (0, String::new()), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_the_output_not_of_the_file() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["cat", "big_100003x3_u8.taf"]).stdout(full).output().unwrap();
    assert_eq!(status(&output), 2);
    let err = text(&output.stderr);
    assert!(err.starts_with("error: standard output: no space left on the device\n"), "{err}");
}

#[test]
fn colour_is_never_in_a_pipe_and_no_color_is_heard() {
    let plain = good(&["check", "scalar_1x1.taf"]);
    assert!(!plain.contains('\x1b'));
    let coloured = good(&["check", "--color", "always", "scalar_1x1.taf"]);
    assert!(coloured.contains("\x1b[32mok"), "{coloured:?}");
    let quiet = command(&["check", "scalar_1x1.taf"]).env("NO_COLOR", "1").output().unwrap();
    assert_eq!(text(&quiet.stdout), plain);
}

#[test]
fn formats_come_from_the_registry() {
    let table = good(&["formats"]);
    let taf = ["taf", "all", "all", "all", "all", "Thrifty", "Array", "Format", ".taf"];
    assert!(table.lines().any(|line| line.split_whitespace().eq(taf)), "{table}");
    let rows = json(&["formats", "--json"]);
    let rows = rows["formats"].as_array().unwrap();
    let taf = rows.iter().find(|row| row["name"] == "taf").unwrap();
    assert_eq!(taf["extensions"], serde_json::json!(["taf"]));
    let markdown = good(&["formats", "--markdown"]);
    let bars: Vec<usize> = markdown.lines().map(|l| l.matches('|').count()).collect();
    assert!(bars.len() >= 3 && bars.iter().all(|n| *n == bars[0]), "{markdown}");
}

#[test]
fn a_file_needs_no_name_that_is_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"b\xff.taf");
    std::fs::copy(golden("good/scalar_1x1.taf"), folder.path().join(name)).unwrap();
    let run = |words: &[&str]| {
        command(words).current_dir(folder.path()).arg(name).output().map(|o| text(&o.stdout))
    };
    assert_eq!(run(&[]).unwrap(), run(&["info", "--arrays"]).unwrap());
    assert_eq!(run(&["--json"]).unwrap(), run(&["info", "--json"]).unwrap());
    assert!(run(&["-q"]).unwrap().contains("Thrifty Array Format"));
    // Where text is wanted, it is still wanted.
    let cat = command(&["cat", "scalar_1x1.taf"]).arg(name).output().unwrap();
    assert_eq!(status(&cat), 2);
    assert!(text(&cat.stderr).contains("invalid UTF-8"), "{cat:?}");
}

#[test]
fn a_new_file_is_no_file_called_dash() {
    let folder = tempfile::tempdir().unwrap();
    let file = golden("good/scalar_1x1.taf");
    let file = file.to_str().unwrap();
    for words in [
        &["merge", file, "-t", "npy", "-o", "-"][..],
        &["salvage", file, "-o", "-"],
        &["index", file, "-"],
        &["scda", "unpack", file, "-o", "-"],
        &["sdf", "source", file, "-o", "-"],
    ] {
        let done = command(words).current_dir(folder.path()).output().unwrap();
        let said = text(&done.stderr);
        assert!(
            said.contains("the output cannot be written to standard output; specify a path"),
            "{words:?}: {said}"
        );
        assert!(!folder.path().join("-").exists(), "{words:?}");
    }
    let text = good(&["taf", "export", file]);
    assert_eq!(good(&["taf", "export", file, "-o", "-"]), text);
}

#[test]
fn what_is_wrong_with_a_format_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(at("notes.taf"), "nothing of the kind").unwrap();
    let (_, said) = bad(&["info", &at("notes.taf")]);
    assert!(said.contains("notes.taf: not taf: at byte 0: "), "{said}");
    let (_, said) = bad(&["convert", "scalar_1x1.taf", &at("x")]);
    assert!(
        said.contains("x: the file name has no extension that determines the format\nhint: "),
        "{said}"
    );
    let (_, said) = bad(&["convert", "scalar_1x1.taf", &at("x"), "-t", "h5"]);
    assert!(
        said.contains(
            "unknown format \"h5\"\nhint: specify the output format with -t: keysight, hdf5, openpmd\n"
        ),
        "{said}"
    );
    // Every loss is one line with its reason.
    let lost = spile(&["convert", "example_2d_101x3.taf", &at("x.npy"), "--dry-run"]);
    let lost = text(&lost.stderr);
    assert!(
        lost.lines().all(|line| {
            let line = line.strip_prefix("warning: example_2d_101x3.taf: ");
            line.is_some_and(|line| {
                line.starts_with("not written: ") || line.starts_with("renamed: ")
            })
        }),
        "{lost}"
    );
    assert!(lost.contains("the file: attribute comments (NumPy cannot store it)\n"), "{lost}");
}

#[test]
fn json_is_spoken_where_text_is_all_there_is() {
    let script = json(&["completions", "fish", "--json"]);
    assert_eq!(script["shell"], "fish");
    assert_eq!(script["script"], good(&["completions", "fish"]));
    assert_eq!(json(&["man", "--json"])["page"], good(&["man"]));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("pages");
    let pages = pages.to_str().unwrap();
    assert_eq!(json(&["man", pages, "--json"])["folder"], pages);
    let samples = folder.path().join("samples");
    let tour = spile(&["tour", samples.to_str().unwrap(), "--json"]);
    assert_eq!(status(&tour), 0);
    let tour: Vec<Value> =
        text(&tour.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(tour.iter().all(|document| document["schema"] == 1));
    assert_eq!(tour[0]["folder"], samples.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(tour[1]["command"], "spile formats");
    assert_eq!(tour[2]["formats"][0]["name"], json(&["formats", "--json"])["formats"][0]["name"]);
    assert_eq!(tour.iter().filter(|document| document["step"].is_string()).count(), 14);
}

#[test]
fn help_man_and_completions_know_every_command() {
    let help = good(&["--help"]);
    let verbs =
        ["info", "ls", "cat", "stat", "map", "check", "hash", "plot", "taf", "tour", "formats"];
    for shell in ["bash", "zsh", "fish"] {
        let script = good(&["completions", shell]);
        assert!(verbs.iter().all(|v| script.contains(v)), "{shell}");
    }
    for verb in verbs {
        assert!(help.lines().any(|l| l.trim_start().starts_with(&format!("{verb} "))), "{verb}");
    }
    assert!(good(&["man"]).starts_with(".ie "));
    let folder = tempfile::tempdir().unwrap();
    good(&["man", folder.path().to_str().unwrap()]);
    for verb in verbs {
        assert!(folder.path().join(format!("spile-{verb}.1")).exists(), "{verb}");
    }
}

#[test]
fn wrong_arguments_are_exit_2() {
    for args in [
        &["cat"][..],
        &["info", "--nonsense", "x"],
        &["-j", "0", "x"],
        &["--max-memory", "much", "x"],
    ] {
        assert_eq!(bad(args).0, 2, "{args:?}");
    }
    assert_eq!(status(&spile(&[])), 2);
    assert_eq!(status(&spile(&["--version"])), 0);
}

#[test]
fn bytes_without_a_type_are_shown_as_text_or_in_hexadecimal() {
    let scda = |name: &str| format!("{}/../scda/{name}", golden("").display());
    let text = good(&["cat", &scda("b_basic.scd"), "0"]);
    assert!(text.ends_with('\n') && text.is_ascii() && text.lines().count() == 1, "{text}");
    let third = good(&["cat", &scda("v_basic.scd"), "0", "--element", "2"]);
    assert_eq!(third, "ccc\n");
    let encoded = good(&["cat", &scda("enc_v.scd"), "0", "--element", "1", "--raw"]);
    assert!(!encoded.is_empty());
    let none = bad(&["cat", &scda("v_basic.scd"), "0", "--element", "99"]);
    assert!(none.0 == 2 && none.1.contains("no element 99: the array has "), "{none:?}");
    let binary = good(&["cat", &scda("big_1mb.scd"), "0", "0:2"]);
    assert!(binary.lines().all(|l| l.bytes().all(|b| b.is_ascii_hexdigit())), "{binary}");
}
