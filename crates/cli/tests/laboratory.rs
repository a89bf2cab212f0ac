//! Channels, segments, spectra and raw samples, as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use folder::Folder;
use serde_json::{Value, json};

fn labels(drawn: &Value) -> Vec<String> {
    let series = drawn["series"].as_array().unwrap().iter();
    series.map(|line| line["label"].as_str().unwrap().to_string()).collect()
}

#[test]
fn channels_and_files_are_drawn_over_each_other_or_above_each_other() {
    let folder = Folder::with(&[
        "keysight/keysight_ag10_2ch.bin",
        "lecroy/lecroy_le_byte.trc",
        "lecroy/lecroy_le_word.trc",
    ]);
    let drawn = folder.json(&["plot", "keysight_ag10_2ch.bin", "--json"]);
    assert_eq!(labels(&drawn).len(), 2);
    assert_eq!((&drawn["y"]["unit"], &drawn["x"]["unit"]), (&"V".into(), &"s".into()));
    let two = ["plot", "lecroy_le_byte.trc", "lecroy_le_word.trc", "--json"];
    assert_eq!(labels(&folder.json(&two)), ["lecroy_le_byte.trc", "lecroy_le_word.trc"]);
    let stacked = folder.json(&[&two[..], &["--stack"]].concat());
    assert_eq!(stacked["panels"].as_array().unwrap().len(), 2);
    folder.good(&["plot", "keysight_ag10_2ch.bin", "--stack", "-o", "a.png", "--theme", "print"]);
    assert!(fs::read(folder.path("a.png")).unwrap().starts_with(b"\x89PNG"));
    let named =
        folder.json(&["plot", "lecroy_le_word.trc", "--json", "--xlabel", "t", "--ylabel", "u"]);
    assert_eq!((&named["x"]["label"], &named["y"]["label"]), (&"t".into(), &"u".into()));
}

#[test]
fn columns_of_an_array_are_drawn_above_each_other() {
    let folder = Folder::new();
    folder.write("c.txt", "a b\n1 5\n2 7\n4 6\n");
    assert_eq!(labels(&folder.json(&["plot", "c.txt", "data", "--json"])), ["a", "b"]);
    let stacked = folder.json(&["plot", "c.txt", "data", "--stack", "--json"]);
    let panels = stacked["panels"].as_array().unwrap();
    assert_eq!((&panels[0]["y"]["label"], &panels[1]["y"]["label"]), (&"a".into(), &"b".into()));
}

#[test]
fn many_points_that_are_not_evenly_spaced_keep_their_coordinates() {
    let folder = Folder::new();
    let rows = (0..5000_u32).map(|k| format!("{},{}\n", k * k, k % 7));
    folder.write("t.csv", "time (s),u (V)\n".to_string() + &rows.collect::<String>());
    let drawn = folder.json(&["plot", "t.csv", "u", "--json"]);
    assert_eq!((&drawn["x"]["label"], &drawn["x"]["unit"]), (&"time".into(), &"s".into()));
    let x = drawn["series"][0]["x"].as_array().unwrap();
    let last = x.last().unwrap().as_f64().unwrap();
    assert!(last > 0.9 * 4999.0_f64.powi(2), "{last}");
}

#[test]
fn spectra_with_a_given_rate_have_hertz_and_name_the_quantity() {
    let folder = Folder::new();
    folder.write("x.bin", (0..=255).collect::<Vec<u8>>());
    let raw = ["--from", "raw", "--type", "u8", "--rate", "1e6"];
    let drawn = folder.json(&[&["spectrum", "x.bin", "--json"][..], &raw].concat());
    assert_eq!((&drawn["x"]["unit"], &drawn["x"]["label"]), (&"Hz".into(), &"frequency".into()));
    folder.write("c.txt", "1\n2\n1\n0\n1\n2\n1\n0\n");
    let words = ["spectrogram", "c.txt", "--rate", "8", "--segment", "4", "--json"];
    let drawn = folder.json(&words);
    assert_eq!((&drawn["x"]["label"], &drawn["x"]["unit"]), (&"time".into(), &"s".into()));
    assert_eq!(drawn["y"]["unit"], "Hz");
    assert_eq!(drawn["map"]["label"], "power spectral density of data");
}

#[test]
fn segments_with_trigger_times_convert_to_one_named_taf_file() {
    let folder = Folder::with(&["lecroy/lecroy_le_sequence4.trc"]);
    let made = folder.spile(&["taf", "convert", "lecroy_le_sequence4.trc", "-o", "s.taf"]);
    let warning = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && warning.contains("not written: "), "{warning}");
    assert_eq!(folder.names().iter().filter(|name| name.contains(".taf")).count(), 1);
}

/// A Keysight file with channels of these names, three samples each.
fn keysight(names: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for (k, name) in names.iter().enumerate() {
        let mut header = vec![0; 140];
        let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
        for (at, value) in [(0, 140_u32), (4, 1), (8, 1), (12, 3), (48, 2), (52, 1)] {
            put(at, &value.to_le_bytes());
        }
        put(32, &1e-3_f64.to_le_bytes());
        put(112, name.as_bytes());
        body.extend(header);
        body.extend([12_u8, 0, 0, 0, 1, 0, 4, 0, 12, 0, 0, 0]);
        body.extend((0..3).flat_map(|n| (10.0 * k as f32 + n as f32).to_le_bytes()));
    }
    let size = (12 + body.len() as u32).to_le_bytes();
    [b"AG10", &size[..], &(names.len() as u32).to_le_bytes(), &body].concat()
}

#[test]
fn a_channel_called_2_is_a_name() {
    let folder = Folder::new();
    fs::write(folder.path("a.bin"), keysight(&["1", "2"])).unwrap();
    assert_eq!(folder.good(&["cat", "a.bin", "2"]), "10.0\n11.0\n12.0\n");
    let drawn = folder.json(&["plot", "a.bin", "1", "2", "--json"]);
    assert_eq!((&drawn["x"]["label"], &drawn["y"]["label"]), (&"1".into(), &"2".into()));
}

#[test]
fn files_with_one_stem_keep_their_extensions() {
    let folder = Folder::with(&["lecroy/lecroy_le_word.trc"]);
    fs::write(folder.path("lecroy_le_word.csv"), "1 2\n3 4\n").unwrap();
    folder.good(&["taf", "convert", "lecroy_le_word.trc", "lecroy_le_word.csv"]);
    assert!(folder.path("lecroy_le_word.trc.taf").exists());
    assert!(folder.path("lecroy_le_word.csv.taf").exists());
    let listed = folder.json(&["ls", "--json", "lecroy_le_word.trc.taf"]);
    assert_eq!(listed["objects"][0]["attrs"]["units"], "V");
    assert_eq!(listed["objects"][0]["dims"][0], "time");
}

#[test]
fn channels_are_the_columns_of_one_taf_file() {
    let folder = Folder::with(&["keysight/keysight_ag10_2ch.bin"]);
    fs::write(folder.path("a.bin"), keysight(&["left", "right"])).unwrap();
    folder.good(&["taf", "convert", "--stack", "a.bin"]);
    let array = folder.json(&["ls", "--json", "a.taf"])["objects"][0].clone();
    assert_eq!((&array["shape"], &array["attrs"]["units"]), (&json!([3, 2]), &"V".into()));
    assert_eq!(array["attrs"]["columns"], json!(["left", "right"]));
    assert_eq!(array["coords"][0], json!({"start": 0.0, "step": 0.001}));
    assert_eq!(folder.good(&["cat", "a.taf"]), "0.0\t10.0\n1.0\t11.0\n2.0\t12.0\n");
    let error = folder.bad(&["taf", "convert", "--stack", "keysight_ag10_2ch.bin"]);
    assert!(error.contains("differ in length or time base"), "{error}");
    let error = folder.bad(&["taf", "convert", "a.bin", "-o", "x.taf"]);
    assert!(error.contains("--stack"), "{error}");
}

#[test]
fn samples_and_columns_are_appended_to_a_trace() {
    let folder = Folder::new();
    fs::write(folder.path("three.txt"), "1\n2\n3\n").unwrap();
    fs::write(folder.path("two.txt"), "8\n9\n").unwrap();
    folder.good(&["taf", "create", "three.txt", "-o", "a.taf", "-t", "flt64"]);
    let error = folder.bad(&["taf", "append", "a.taf", "two.txt"]);
    assert!(error.contains("along dimension 2") && error.contains("dimension 1"), "{error}");
    let told = folder.good(&["taf", "append", "a.taf", "two.txt", "--dimension", "1"]);
    assert_eq!(told, "a.taf: appended along dimension 1: 3 x 1 -> 5 x 1\n");
    assert_eq!(folder.good(&["cat", "a.taf"]), "1.0\n2.0\n3.0\n8.0\n9.0\n");
    fs::write(folder.path("five.txt"), "1\n1\n1\n1\n1\n").unwrap();
    let told = folder.good(&["taf", "append", "a.taf", "five.txt"]);
    assert_eq!(told, "a.taf: appended along dimension 2: 5 x 1 -> 5 x 2\n");
    let error = folder.bad(&["taf", "append", "a.taf", "two.txt", "--dimension", "1"]);
    assert!(error.contains("dimension 1"), "{error}");
}

#[test]
fn a_growing_signal_is_followed() {
    let folder = Folder::new();
    fs::write(folder.path("a.txt"), "1\n2\n3\n").unwrap();
    folder.good(&["taf", "create", "a.txt", "-o", "a.taf", "-t", "flt64"]);
    let words = ["watch", "a.taf", "--interval", "0.02", "--count", "1", "--json"];
    let watch = folder.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    folder.good(&["taf", "append", "-q", "a.taf", "a.txt", "--dimension", "1"]);
    let shown = watch.wait_with_output().unwrap();
    let line: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&line["dimension"], &line["from"], &line["to"]), (&json!(0), &json!(3), &json!(6)));
    assert_eq!(
        (&line["min"], &line["max"], &line["mean"]),
        (&json!(1.0), &json!(3.0), &json!(2.0))
    );
}

#[test]
fn raw_samples_are_read_as_the_user_says() {
    let folder = Folder::new();
    let samples: Vec<u8> = [1_i16, -2, 300, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(folder.path("a.dat"), [b"head".to_vec(), samples].concat()).unwrap();
    let raw = ["--from", "raw", "--type", "i16", "--rate", "1e3", "--header", "4"];
    assert_eq!(folder.good(&[&["cat", "a.dat"], &raw[..]].concat()), "1\n-2\n300\n4\n");
    let two = [&["ls", "a.dat", "--json"], &raw[..], &["--channels", "2"]].concat();
    let listed = folder.json(&two);
    assert_eq!(listed["objects"][1]["path"], "CH2");
    assert_eq!(listed["objects"][1]["coords"][0], json!({"start": 0.0, "step": 0.001}));
    let error = folder.bad(&["cat", "a.dat", "--from", "raw", "--type", "i7"]);
    assert!(error.contains("invalid type"), "{error}");
}

#[test]
fn wrong_content_is_unrecognised_whatever_the_name() {
    let folder = Folder::new();
    for name in ["a.bin", "a.wfm", "a.h5"] {
        fs::write(folder.path(name), [0xde, 0xad, 0xbe, 0xef].repeat(64)).unwrap();
        let error = folder.bad(&["info", name]);
        assert!(error.contains("unrecognised file format"), "{name}: {error}");
    }
}

#[test]
fn spectra_are_drawn_and_written_with_their_units() {
    let folder = Folder::with(&["lecroy/lecroy_le_word.trc"]);
    let drawn = folder.json(&["spectrum", "lecroy_le_word.trc", "--segment", "256", "--json"]);
    assert_eq!((&drawn["x"]["unit"], &drawn["y"]["unit"]), (&"Hz".into(), &"V^2/Hz".into()));
    folder.good(&["spectrum", "-q", "lecroy_le_word.trc", "-o", "a.csv"]);
    assert!(fs::read_to_string(folder.path("a.csv")).unwrap().contains("frequency"));
    folder.good(&["spectrogram", "-q", "lecroy_le_word.trc", "--segment", "64", "-o", "a.npz"]);
    let listed = folder.json(&["ls", "--json", "a.npz"]);
    let shapes: Vec<&Value> =
        listed["objects"].as_array().unwrap().iter().map(|o| &o["shape"]).collect();
    assert!(shapes.contains(&&json!([30, 33])), "{shapes:?}");
    folder.good(&["spectrogram", "lecroy_le_word.trc", "-o", "a.svg"]);
    let error = folder.bad(&["spectrum", "lecroy_le_word.trc", "--segment", "8", "--overlap", "8"]);
    assert!(error.contains("overlap"), "{error}");
}

#[test]
fn complex_samples_are_drawn_as_two_parts() {
    let folder = Folder::new();
    let samples: Vec<u8> = [1.5_f32, -2.0, 0.25, 8.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
    fs::write(folder.path("iq.raw"), samples).unwrap();
    let raw = ["--from", "raw", "--type", "complex64", "--rate", "2e6", "--json"];
    let drawn = folder.json(&[&["plot", "iq.raw"][..], &raw].concat());
    assert_eq!(labels(&drawn), ["data.real", "data.imag"]);
    assert_eq!(drawn["series"][1]["low"], json!([-2.0, 8.0, 4.0]));
    let part = folder.json(&[&["plot", "iq.raw", "data[1:]"][..], &raw].concat());
    assert_eq!(part["series"][0]["low"], json!([0.25, 3.0]));
}

#[test]
fn a_yokogawa_description_opens_its_samples() {
    let folder = Folder::new();
    let description = "$PublicInfo\nModel DL7440\nEndian Big\nDataFormat Trace\nDataOffset 0\n$Group1\n\
                       TraceNumber 1\nBlockNumber 1\nTraceName CH1\nBlockSize 2\nVResolution 0.5\n\
                       VOffset 0\nVDataType IS2\nVUnit V\nHResolution 1e-6\nHOffset 0\nHUnit s\n";
    fs::write(folder.path("a.hdr"), description).unwrap();
    fs::write(folder.path("a.wvf"), [0, 2, 0xff, 0xfe]).unwrap();
    assert_eq!(folder.good(&["cat", "a.hdr", "CH1"]), "1.0\n-1.0\n");
    assert_eq!(folder.good(&["cat", "a.wvf", "CH1"]), "1.0\n-1.0\n");
    fs::remove_file(folder.path("a.wvf")).unwrap();
    assert!(folder.bad(&["info", "a.hdr"]).contains("Yokogawa waveform without its samples"));
}

#[test]
fn a_window_is_drawn_without_the_rest_and_hidden_values_are_reported() {
    let folder = Folder::new();
    let lines: Vec<String> = (-5..95).map(|k| k.to_string()).collect();
    fs::write(folder.path("a.txt"), lines.join("\n") + "\n").unwrap();
    folder.good(&["taf", "create", "a.txt", "-o", "a.taf", "--grid", "0:0.5"]);
    let drawn = folder.json(&["plot", "a.taf", "--json", "--x-range", "10:12"]);
    // One more point on both sides.
    assert_eq!(
        (&drawn["series"][0]["start"], drawn["series"][0]["low"].as_array().unwrap().len()),
        (&json!(9.5), 7)
    );
    let done = folder.spile(&["plot", "a.taf", "--log", "-o", "a.svg"]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.contains("6 points with values <= 0 not on"), "{told}");
}
