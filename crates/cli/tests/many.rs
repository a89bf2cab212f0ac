//! `spile convert --into` and `spile convert INPUT -`.

#[path = "support/folder.rs"]
mod support;

use support::Folder;

const DUMPS: [&str; 2] = ["sdf/epoch1d_normal_0000.sdf", "sdf/epoch1d_normal_0001.sdf"];

#[test]
fn several_files_are_converted_into_a_folder_and_existing_outputs_are_skipped() {
    let folder = Folder::with(&DUMPS);
    let words = ["convert", "*.sdf", "--into", "out", "-t", "netcdf"];
    let done = folder.good(&words);
    assert!(done.ends_with("2 files: 2 written\n"), "{done}");
    let first = folder.read("out/epoch1d_normal_0000.nc");
    std::fs::remove_file(folder.path("out/epoch1d_normal_0001.nc")).unwrap();
    let done = folder.good(&words);
    assert!(done.ends_with("2 files: 1 written, 1 skipped (output exists)\n"), "{done}");
    assert_eq!(folder.read("out/epoch1d_normal_0000.nc"), first);
    let done = folder.good(&[&words[..], &["--overwrite"]].concat());
    assert!(done.ends_with("2 files: 2 written\n"), "{done}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = Folder::with(&DUMPS);
    let done = folder.good(&["convert", "*.sdf", "--into", "out", "-t", "netcdf", "--dry-run"]);
    assert!(done.ends_with("2 files: 2 to be written\n"), "{done}");
    assert!(!folder.path("out").exists());
}

#[test]
fn the_exit_status_tells_whether_some_or_all_files_failed() {
    let folder = Folder::with(&DUMPS[..1]);
    let dump = std::fs::read(folder.path("epoch1d_normal_0000.sdf")).unwrap();
    std::fs::write(folder.path("header.sdf"), &dump[..60]).unwrap();
    let some = folder.spile(&["convert", "*.sdf", "--into", "out", "-t", "netcdf"]);
    assert_eq!(some.status.code(), Some(3), "{some:?}");
    folder.bad(&["convert", "header.sdf", "--into", "out", "-t", "netcdf"]);
    let one = folder.bad(&["convert", "a.sdf", "b.sdf", "c.nc"]);
    assert!(one.contains("--into"), "{one}");
}

#[test]
fn every_file_has_a_json_document() {
    let folder = Folder::with(&DUMPS);
    let done = folder.good(&["convert", "*.sdf", "--into", "out", "-t", "netcdf", "--json"]);
    let rows: Vec<serde_json::Value> =
        done.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1]["output"], "out/epoch1d_normal_0001.nc");
    assert_eq!((&rows[2]["written"], &rows[2]["skipped"]), (&2.into(), &0.into()));
}

#[test]
fn two_files_with_the_same_output_are_refused() {
    let folder = Folder::with(&DUMPS[..1]);
    std::fs::copy(folder.path("epoch1d_normal_0000.sdf"), folder.path("epoch1d_normal_0000.dat"))
        .unwrap();
    let error = folder.bad(&["convert", "epoch1d*", "--into", "out", "-t", "netcdf"]);
    assert!(error.contains("have the same output"), "{error}");
}

#[test]
fn many_losses_with_one_reason_are_one_line() {
    let folder = Folder::with(&["hdf5/attributes_new.h5"]);
    let lines = |words: &[&str]| {
        let done = folder.spile(words);
        let text = String::from_utf8(done.stderr).unwrap();
        text.lines().filter(|line| line.contains("not written: ")).count()
    };
    let short =
        lines(&["convert", "attributes_new.h5", "x.npy", "--select", "group/data", "--dry-run"]);
    let long = lines(&[
        "convert",
        "attributes_new.h5",
        "x.npy",
        "--select",
        "group/data",
        "--dry-run",
        "-v",
    ]);
    assert!(0 < short && short < long, "{short} {long}");
}

#[test]
fn formats_that_stream_are_written_to_standard_output() {
    let folder = Folder::with(&["taf/good/example_2d_101x3.taf"]);
    let from = "example_2d_101x3.taf";
    for format in ["csv", "npy"] {
        let file = format!("x.{format}");
        folder.spile(&["convert", from, &file]);
        let streamed = folder.spile(&["convert", from, "-", "-t", format]);
        assert_eq!(streamed.status.code(), Some(0), "{streamed:?}");
        assert_eq!(streamed.stdout, folder.read(&file), "{format}");
    }
    for format in ["zarr", "hdf5"] {
        let error = folder.bad(&["convert", from, "-", "-t", format]);
        assert!(error.contains("cannot be written to a pipe"), "{error}");
    }
}

#[test]
fn options_that_cannot_be_applied_are_refused_by_a_dry_run() {
    let folder = Folder::with(&DUMPS[..1]);
    let field = ["convert", "epoch1d_normal_0000.sdf", "--select", "Electric Field/Ex"];
    for (output, options, message) in [
        ("x.arrow", "--compress=gzip", "arrow files are compressed with zstd"),
        ("x.csv.gz", "--compress=zstd", "differs from that of the file name"),
        ("x.csv", "--compress=lz4", "csv files are compressed with gzip or zstd"),
        ("x.nc", "--compress=lz4", "not compressed with lz4"),
        ("x.mat", "--compress=zstd", "not compressed with zstd"),
        ("x.zarr", "--compress=lz4", "not written with lz4"),
        ("x.zarr", "--chunks=nope=4", "unknown dimension \"nope\""),
        ("x.h5", "--chunks=nope=4", "no array has a dimension \"nope\""),
        ("x.mat", "--chunks=nope=4", "no array has a dimension \"nope\""),
        ("x.npy", "--chunks=X=4", "npy files have no chunks"),
    ] {
        let written = folder.bad(&[&field[..], &[output, options]].concat());
        let planned = folder.bad(&[&field[..], &[output, options, "--dry-run"]].concat());
        assert!(planned.contains(message), "{output} {options}: {planned}");
        assert_eq!(planned, written, "{output} {options}");
    }
}

#[test]
fn merging_writes_the_same_bytes_in_every_run() {
    let folder = Folder::with(&DUMPS);
    let bytes = |name: &str| {
        let dumps = ["epoch1d_normal_0000.sdf", "epoch1d_normal_0001.sdf"];
        folder.good(&["-q", "merge", dumps[0], dumps[1], "-o", name]);
        std::fs::read(folder.path(name)).unwrap()
    };
    let first = bytes("0.h5");
    for k in 1..4 {
        assert!(bytes(&format!("{k}.h5")) == first, "run {k}");
    }
}
