//! Files of oscilloscopes and digitizers, as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::path::Path;

use folder::{Folder, golden};
use serde_json::Value;

/// Golden files of the manifest that have records.
fn recorded() -> Vec<(String, Value)> {
    let text = fs::read_to_string(golden("digitizer/manifest.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let files = all.as_object().unwrap().iter().filter(|(_, file)| file["records"].is_array());
    let place = |name: &str| match name.split('_').next() {
        Some("isf" | "tek") => format!("tektronix/{name}"),
        Some("nts") => format!("dig/{name}"),
        Some(folder) => format!("{folder}/{name}"),
        None => String::new(),
    };
    files.map(|(name, file)| (place(name), file["records"].clone())).collect()
}

#[test]
fn every_record_becomes_a_taf_file_with_the_same_samples_and_grid() {
    let all = recorded();
    assert_eq!(all.len(), 54);
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let folder = Folder::with(&names);
    folder.good(&["taf", "convert", "*.*"]);
    let mut made = 0;
    for (name, records) in &all {
        let records = records.as_array().unwrap();
        let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
        let source = Path::new(name).file_name().unwrap().to_str().unwrap();
        let shown = folder.json(&["ls", "--json", source]);
        let first = &shown["objects"][0];
        if first["dims"][0] == "segment" {
            // Each segment is a column; the elements of the file are those of the segments in turn.
            let file = format!("{stem}.taf");
            let array = &folder.json(&["ls", "--json", &file])["objects"][0];
            let shape = serde_json::json!([records[0]["n"], records.len()]);
            assert_eq!(
                (&array["shape"], &array["attrs"]["units"]),
                (&shape, &"V".into()),
                "{file}"
            );
            let map = folder.json(&["taf", "map", "--json", &file]);
            let from = map["offset"].as_u64().unwrap() as usize;
            let path = first["path"].as_str().unwrap();
            let raw = folder.spile(&["cat", "--raw", "--stored", source, path]).stdout;
            let bytes = fs::read(folder.path(&file)).unwrap();
            assert_eq!(bytes[from..from + raw.len()], raw, "{file}");
            made += 1;
            continue;
        }
        for (k, record) in records.iter().enumerate() {
            let file = match records.len() {
                1 => format!("{stem}.taf"),
                _ => format!("{stem}-{}.taf", k + 1),
            };
            let hashes = folder.json(&["hash", "--native", "--json", &file]);
            assert_eq!(hashes["objects"][0]["sha256"], record["sha256_raw_le"], "{file}");
            let listed = folder.json(&["ls", "--json", &file]);
            let array = &listed["objects"][0];
            assert_eq!(array["shape"], serde_json::json!([record["n"], 1]), "{file}");
            let number = |text: &Value| text.as_str().unwrap().parse::<f64>().unwrap();
            let grid = &array["coords"][0];
            assert_eq!(grid["start"].as_f64(), Some(number(&record["x0"])), "{file}: {grid}");
            assert_eq!(grid["step"].as_f64(), Some(number(&record["dx"])), "{file}");
            made += 1;
        }
    }
    let written = fs::read_dir(folder.path("")).unwrap();
    let written = written.map(|e| e.unwrap().file_name().into_string().unwrap());
    let is_coordinate = |name: &str| name.contains("-t") && !name.contains("-tek");
    let is_taf = |name: &str| Path::new(name).extension().is_some_and(|e| e == "taf");
    let written = written.filter(|name| is_taf(name) && !is_coordinate(name));
    assert_eq!(written.count(), made);
}

#[test]
fn a_taf_file_says_what_the_instrument_said() {
    let folder = Folder::with(&["lecroy/lecroy_be_sequence4_user.trc"]);
    folder.good(&["taf", "convert", "lecroy_be_sequence4_user.trc"]);
    let shown = folder.good(&["taf", "probe", "lecroy_be_sequence4_user.taf"]);
    for line in [
        "  stored as         int16\n",
        "  shape             250 x 4\n",
        "  intercept         -0.25\n  slope             0.0001250000059371814\n",
        "  grid 1            start -1.5e-8, step 5.00000006675716e-11, end -2.5499998337746708e-9\n",
        "  comments          trace of lecroy_be_sequence4_user.trc\n",
        "                    time_units: s\n                    units: V\n",
        "                    instrument: LECROYSYN\n",
        "                    coupling: DC 1 MΩ\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let tags = folder.good(&["cat", "lecroy_be_sequence4_user-time_tag.taf"]);
    assert_eq!(tags.lines().nth(1), Some("0.001"));
}

#[test]
fn a_bad_file_or_one_that_is_there_already_does_not_stop_the_rest() {
    let folder = Folder::with(&["lecroy/lecroy_le_byte.trc", "lecroy/lecroy_le_word.trc"]);
    let cut = fs::read(folder.path("lecroy_le_word.trc")).unwrap();
    fs::write(folder.path("cut.trc"), &cut[..1000]).unwrap();
    let done = folder.spile(&["taf", "convert", "*.trc"]);
    assert_eq!(done.status.code(), Some(3));
    let told = String::from_utf8(done.stderr).unwrap();
    let expected = "error: cut.trc: truncated: at byte 357: unexpected end of file: the samples \
                    need 2000 bytes, found 643 (lecroy-006)";
    assert_eq!(told.lines().next(), Some(expected));
    assert!(
        folder.path("lecroy_le_byte.taf").exists() && folder.path("lecroy_le_word.taf").exists()
    );
    assert!(!folder.path("cut.taf").exists());
    // Nothing is replaced by itself.
    let before = fs::read(folder.path("lecroy_le_byte.taf")).unwrap();
    let again = folder.spile(&["taf", "convert", "lecroy_le_byte.trc"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(fs::read(folder.path("lecroy_le_byte.taf")).unwrap(), before);
    folder.good(&["taf", "convert", "lecroy_le_byte.trc", "--overwrite"]);
}

#[test]
fn an_evenly_spaced_first_column_is_the_grid_and_another_is_not() {
    let files =
        ["column_plain.txt", "column_nonuniform.txt", "column_single.txt", "column_fortran_d.txt"];
    let folder =
        Folder::with(&files.map(|f| ["columns/", f].concat()).each_ref().map(String::as_str));
    fs::write(folder.path("constant.txt"), "1 2\n1 3\n1 4\n").unwrap();
    fs::write(folder.path("off.txt"), "0 2\n1.00001 3\n2 4\n").unwrap();
    fs::write(folder.path("near.txt"), "0 2\n1.0000001 3\n2 4\n").unwrap();
    folder.good(&["taf", "convert", "*.txt"]);
    let cases = [
        ("column_plain", [50, 2], 0.0, 1e-9),
        ("column_fortran_d", [2, 1], 0.0, 1e-9),
        ("column_nonuniform", [4, 2], 1.0, 1.0),
        ("column_single", [3, 1], 1.0, 1.0),
        ("constant", [3, 2], 1.0, 1.0),
        ("off", [3, 2], 1.0, 1.0),
        ("near", [3, 1], 0.0, 1.0),
    ];
    for (name, shape, start, step) in cases {
        let listed = folder.json(&["ls", "--json", &format!("{name}.taf")]);
        let array = &listed["objects"][0];
        assert_eq!(array["shape"], serde_json::json!(shape), "{name}");
        let grid = &array["coords"][0];
        let near = (grid["step"].as_f64().unwrap() / step - 1.0).abs() < 1e-12;
        assert!(grid["start"].as_f64() == Some(start) && near, "{name}: {grid}");
    }
}

#[test]
fn an_evenly_spaced_first_column_places_the_others_and_stays_in_the_table() {
    let folder = Folder::with(&["columns/column_header.txt", "columns/column_nonuniform.txt"]);
    let shown = folder.good(&["info", "column_header.txt"]);
    assert!(shown.contains("grid       the first column, start 0.0, step 1e-9\n"), "{shown}");
    let array = |file: &str| folder.json(&["ls", "--json", file])["objects"][0].clone();
    let table = array("column_header.txt");
    assert_eq!(table["shape"], serde_json::json!([50, 3]));
    assert_eq!(table["dims"], serde_json::json!(["Time", "column"]));
    assert_eq!(table["coords"][0], serde_json::json!({"start": 0.0, "step": 1e-9}));
    assert_eq!(table["attrs"]["columns"], serde_json::json!(["Time", "ch1", "ch2"]));
    let uneven = array("column_nonuniform.txt");
    assert_eq!(uneven["dims"], serde_json::json!(["row", "column"]));
    assert_eq!(uneven["coords"][0], Value::Null);
    // Nothing is lost on the way to a format without grids.
    folder.good(&["convert", "-q", "column_header.txt", "table.npy"]);
    assert_eq!(folder.good(&["cat", "table.npy"]), folder.good(&["cat", "column_header.txt"]));
    // The grid is not drawn over itself, unless it is asked for.
    let drawn = folder.json(&["plot", "column_header.txt", "--json"]);
    assert_eq!(drawn["x"], serde_json::json!({"label": "Time", "unit": "s"}));
    let labels = |drawn: &Value| {
        let series = drawn["series"].as_array().unwrap().iter();
        series.map(|line| line["label"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&drawn), ["ch1", "ch2"]);
    assert_eq!(
        labels(&folder.json(&["plot", "column_header.txt", ":, 0:2", "--json"])),
        ["Time", "ch1"]
    );
    let uneven = folder.json(&["plot", "column_nonuniform.txt", "--json"]);
    assert_eq!(labels(&uneven), ["column 0", "column 1"]);
}

#[test]
fn values_are_those_of_the_instrument_to_the_last_bit() {
    let all = recorded();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let folder = Folder::with(&names);
    let mut compared = 0;
    for (path, records) in all.iter().filter(|(_, records)| records.as_array().unwrap().len() == 1)
    {
        let name = path.rsplit('/').next().unwrap();
        let path = folder.json(&["ls", "--json", name])["objects"][0]["path"].clone();
        let path = path.as_str().unwrap();
        // Digital lines are further arrays.
        folder.good(&["convert", "-q", name, "y.npy", "--overwrite", "--select", path]);
        let bytes = fs::read(folder.path("y.npy")).unwrap();
        let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        // Samples without a scale keep their type.
        if !bytes[..head].windows(3).any(|w| w == b"<f8") {
            continue;
        }
        let first: Vec<f64> = bytes[head..head + 32]
            .chunks(8)
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
            .collect();
        let wanted = records[0]["y_first"].as_array().unwrap().iter();
        let wanted: Vec<f64> = wanted.map(|y| y.as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(first, wanted, "{name}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
    // What is stored and the two coefficients are the same, so the files are; how it is rounded is not compared.
    folder.good(&["taf", "convert", "isf_msb_i16.isf"]);
    let listed = |file: &str| folder.json(&["ls", "--json", file])["objects"][0]["map"].clone();
    assert_eq!(listed("isf_msb_i16.isf"), listed("isf_msb_i16.taf"));
}

#[test]
fn samples_of_dig_files_may_be_stored_otherwise() {
    let folder = Folder::new();
    let mut bytes = vec![0; 768];
    bytes.extend(b"system\ntime\n2\n16\n1e-9\n0\n0.5\n0\n");
    bytes.resize(1024, 0);
    bytes.extend([0xff, 0xfe, 0, 4]);
    fs::write(folder.path("a.dig"), bytes).unwrap();
    let cases: [(&[&str], &str); 3] = [
        (&[], "32639.5\n512.0\n"),
        (&["--dig-big-endian"], "32767.0\n2.0\n"),
        (&["--dig-big-endian", "--dig-signed"], "-1.0\n2.0\n"),
    ];
    for (options, expected) in cases {
        folder.good(&[&["taf", "convert", "a.dig", "--overwrite"], options].concat());
        assert_eq!(folder.good(&["cat", "a.taf"]), expected, "{options:?}");
    }
}

#[test]
fn other_formats_are_written_from_the_same_view() {
    let folder = Folder::with(&["lecroy/lecroy_le_word.trc", "keysight/keysight_i16_2ch.h5"]);
    folder.good(&["convert", "-q", "lecroy_le_word.trc", "y.npy"]);
    let values = |file: &str| folder.good(&["cat", file]);
    assert_eq!(values("y.npy"), values("lecroy_le_word.trc"));
    // An HDF5 file of the instrument is converted like any other of its files.
    folder.good(&["convert", "-q", "keysight_i16_2ch.h5", "two.npz"]);
    let listed = folder.json(&["ls", "--json", "two.npz"]);
    let paths: Vec<&Value> =
        listed["objects"].as_array().unwrap().iter().map(|o| &o["path"]).collect();
    assert_eq!(paths, ["Channel 1", "Channel 3"]);
    folder.good(&["convert", "-q", "keysight_i16_2ch.h5", "plain.h5"]);
    assert_eq!(folder.json(&["info", "--json", "plain.h5"])["format"], "hdf5");
}

#[test]
fn files_are_shown_in_the_same_words_whoever_made_them() {
    let folder = Folder::with(&["tektronix/tek_wfm003_le_ff3.wfm", "keysight/keysight_i16_2ch.h5"]);
    let shown = folder.good(&["ls", "-l", "tek_wfm003_le_ff3.wfm"]);
    let expected = "type        shape     size  name
int16    3 x 1000  5.9 KiB  synth
float64         3     24 B  trigger_offset
float64         3     24 B  time_tag
";
    assert_eq!(shown, expected);
    let shown = folder.good(&["info", "keysight_i16_2ch.h5"]);
    let expected = "  format     Keysight or Agilent oscilloscope waveforms (keysight)
  file size  19.6 KiB (20083 bytes)
  content    2 arrays
  kind       HDF5
  records    2
";
    assert_eq!(shown, expected);
    assert!(folder.good(&["check", "keysight_i16_2ch.h5"]).contains("ok (keysight)"));
    let listed = folder.json(&["ls", "--json", "keysight_i16_2ch.h5"]);
    let said = &listed["objects"][1]["attrs"];
    assert_eq!((&said["units"], &said["time_units"]), (&"V".into(), &"s".into()));
}

#[test]
fn a_plot_names_the_units_of_both_axes() {
    let folder = Folder::with(&["lecroy/lecroy_le_word.trc"]);
    let drawn = folder.json(&["plot", "lecroy_le_word.trc", "--json"]);
    assert_eq!(drawn["x"], serde_json::json!({"label": "time", "unit": "s"}));
    assert_eq!(drawn["y"]["unit"], "V");
}
