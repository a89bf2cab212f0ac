//! Runs of Quantum ESPRESSO and Fortran records, as typed by a user.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn spile(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(words).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn good(words: &[&str]) -> String {
    let done = spile(words);
    assert_eq!(done.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[track_caller]
fn json(words: &[&str]) -> Value {
    let all: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&good(&all)).unwrap()
}

/// A save folder of Quantum ESPRESSO 7 with HDF5 files.
fn silicon() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/qe/Si.save");
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
    }
    folder.is_dir().then_some(folder)
}

#[test]
fn a_run_with_hdf5_files_has_its_density_and_normalised_wavefunctions() {
    let Some(folder) = silicon() else { return };
    let run = spile::open(&folder).unwrap();
    // The folder has the wavefunctions of 3 of 10 k-points.
    let messages: Vec<&str> = run.warnings().iter().map(|w| w.message.as_str()).collect();
    assert_eq!(messages, ["7 of 10 files of wavefunctions are missing"]);
    let density: Vec<f64> = run.array("density").unwrap().read("...").unwrap();
    let [a, b, c] = run.cell(0).unwrap().unwrap().vectors;
    let volume = a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0]);
    let electrons = density.iter().sum::<f64>() / density.len() as f64 * volume.abs();
    assert!((electrons / 8.0 - 1.0).abs() < 1e-6, "{electrons}");
    let waves = run.arrays().filter(|(_, node, _)| node.name == "coefficients");
    let mut points = 0;
    for (id, node, _) in waves {
        let array = run.array_at(id).unwrap();
        let [bands, count] = array.shape().lengths() else { panic!("{}", node.path) };
        let bytes = array.bytes().unwrap();
        let values: Vec<f64> =
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        for band in values.chunks(2 * *count as usize) {
            let norm: f64 = band.iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-8, "{}: {norm}", node.path);
        }
        assert_eq!(*bands, 4);
        points += 1;
    }
    assert_eq!(points, 3);
    // Opening has read no values.
    let run = spile::open(&folder).unwrap();
    assert!(run.source().bytes_read() < 4_096, "{}", run.source().bytes_read());
}

#[test]
fn a_missing_file_of_a_run_is_reported_with_exit_status_1() {
    let Some(folder) = silicon() else { return };
    let temp = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, temp.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = temp.path().to_str().unwrap();
    for k in 4..=10 {
        let copy = temp.path().join(format!("wfc{k}.hdf5"));
        std::fs::copy(folder.join("wfc1.hdf5"), copy).unwrap();
    }
    assert!(json(&["check", path])["ok"].as_bool().unwrap());
    for (name, message) in [
        ("wfc2.hdf5", "1 of 10 files of wavefunctions are missing (iotk-049)"),
        ("charge-density.hdf5", "charge-density.hdf5: the file is missing (iotk-049)"),
        ("Si.pz-vbc.UPF", "Si.pz-vbc.UPF: the file is missing (iotk-049)"),
    ] {
        std::fs::remove_file(temp.path().join(name)).unwrap();
        let done = spile(&["check", path]);
        assert_eq!(done.status.code(), Some(1), "{name}");
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn bands_are_drawn_with_the_highest_occupied_level() {
    let Some(folder) = silicon() else { return };
    let figure = json(&["plot", folder.to_str().unwrap(), "bands"]);
    let labels: Vec<&str> =
        figure["series"].as_array().unwrap().iter().map(|s| s["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["bands", "highest occupied level"]);
    assert_eq!(figure["y"]["unit"], "eV");
    assert_eq!(figure["x"]["label"], "distance along the k-points");
}

/// Fortran records with four-byte markers.
fn records(parts: &[&[u8]]) -> Vec<u8> {
    let marker = |part: &[u8]| (part.len() as i32).to_le_bytes();
    parts.iter().flat_map(|part| [&marker(part)[..], part, &marker(part)].concat()).collect()
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn records_have_the_types_of_a_template() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("run.dat");
    let table: Vec<u8> = (0..3_i32)
        .flat_map(|k| [&k.to_le_bytes()[..], &bytes(&[f64::from(k), 0.5])].concat())
        .collect();
    let all = [&2_i32.to_le_bytes()[..], &bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), &table, b""];
    std::fs::write(&path, records(&all)).unwrap();
    let path = path.to_str().unwrap();
    let listed = json(&["records", path]);
    let lengths: Vec<u64> = listed["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!((lengths, listed["marker"].as_u64()), (vec![4, 48, 60, 0], Some(4)));
    let out = temp.path().join("run.npz");
    let types = "i4=n; f8*3*n=x; i4,f8,f8; f8";
    good(&["records", path, "--as", types, "-o", out.to_str().unwrap()]);
    let back = spile::open(&out).unwrap();
    let read = |name: &str| back.array(name).unwrap().read::<Vec<f64>>("...").unwrap();
    // First index fastest.
    assert_eq!(read("x"), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(read("record.3/field.2"), [0.0, 1.0, 2.0]);
    assert_eq!(read("record.3/field.1"), [0.0, 1.0, 2.0]);
    let text = good(&["records", path, "--as", types]);
    assert!(
        text.starts_with("n  int32 [scalar]: 2\nx  float64 [3 x 2]: 1.0 2.0 3.0 ... 3 more\n"),
        "{text}"
    );
    for (types, message) in [
        ("i4=n; f8*4*n=x; i4,f8,f8", "expected a record of 64 bytes or more, found 48 (iotk-053)"),
        ("i4; f8*m", "no single integer \"m\""),
        ("f8*", "4 bytes are not a multiple"),
    ] {
        let done = spile(&["records", path, "--as", types]);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{types}");
        assert!(error.contains(message), "{error}");
    }
    assert!(spile(&["records", path, "--as", "x9"]).status.code() == Some(2));
}

#[test]
fn a_record_beyond_2_gib_is_one_array() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("large.dat");
    let file = File::create(&path).unwrap();
    // Two sub-records of four-byte markers: the first is continued, the second continues.
    let (first, second) = (2_147_483_639_u64, 1_001_u64);
    let write = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).unwrap();
    write(0, &(-(first as i32)).to_le_bytes());
    write(4 + first, &(first as i32).to_le_bytes());
    let next = 8 + first;
    write(next, &(second as i32).to_le_bytes());
    write(next + 4 + second, &(-(second as i32)).to_le_bytes());
    write(next + 4 + second - 8, &2.5_f64.to_le_bytes());
    // The value across the two sub-records.
    let value = 1.25_f64.to_le_bytes();
    write(first + 4 - 7, &value[..7]);
    write(next + 4, &value[7..]);
    let path = path.to_str().unwrap();
    let listed = json(&["records", path]);
    assert_eq!(listed["records"][0]["bytes"], first + second);
    assert_eq!(listed["records"][0]["subrecords"], 2);
    let source = spile::Source::open(path).unwrap();
    let template = "f8".parse().unwrap();
    let limits = spile::Limits::default();
    let opened = spile_iotk::records::open(source, None, &template, &limits).unwrap();
    let array = opened.array("record.1").unwrap();
    assert_eq!(array.read::<Vec<f64>>("-1:").unwrap(), [2.5]);
    assert_eq!(array.read::<Vec<f64>>("268435454:268435456").unwrap(), [1.25, 0.0]);
}
