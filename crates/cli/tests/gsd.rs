//! `spile gsd` as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use folder::Folder;
use serde_json::Value;
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile_gsd::semantics::Trajectory;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Mode, Version, Writer};

#[test]
fn an_upgrade_keeps_the_content() {
    let folder =
        Folder::with(&["gsd/code-v1.0.0/many_frames_growth.gsd", "gsd/v0.0.1/ce10462_steps.gsd"]);
    for name in ["many_frames_growth.gsd", "ce10462_steps.gsd"] {
        let before = folder.json(&["hash", "--json", name]);
        let told = folder.json(&["gsd", "upgrade", name, "--json"]);
        assert_eq!(told["to"], "2.1");
        let after = folder.json(&["hash", "--json", name]);
        assert_eq!(before["digest"], after["digest"], "{name}");
        assert!(folder.good(&["info", name]).contains("2.1"));
        assert!(folder.good(&["check", name]).contains("ok"));
    }
}

#[test]
fn frames_are_kept_and_joined() {
    let folder = Folder::with(&["gsd/py-5.0.1/hoomd_many_frames.gsd"]);
    let name = "hoomd_many_frames.gsd";
    folder.good(&["gsd", "trim", name, "0:100:10", "-o", "some.gsd"]);
    folder.good(&["gsd", "trim", name, "-1", "-o", "last.gsd"]);
    let told = folder.json(&["gsd", "merge", "some.gsd", "last.gsd", "-o", "all.gsd", "--json"]);
    assert_eq!(told["frames"], 11);
    let steps = |name: &str| folder.json(&["gsd", "log", name, "--json"])["step"].clone();
    let (all, some) = (steps(name), steps("all.gsd"));
    for k in 0..10 {
        assert_eq!(some[k], all[10 * k]);
    }
    assert_eq!(some[10], all[99]);
    let again = folder.spile(&["gsd", "trim", name, "0", "-o", "last.gsd"]);
    assert_eq!(again.status.code(), Some(2));
    let none = folder.spile(&["gsd", "trim", name, "100:", "-o", "none.gsd"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("100: selects no frames"));
}

#[test]
fn logs_are_printed_as_columns() {
    let folder = Folder::with(&[
        "gsd/py-5.0.1/hoomd_many_frames.gsd",
        "gsd/edge/hoomd_log_absent_in_frame0_REFERENCE_KEYERROR_FRAME2.gsd",
    ]);
    let text = folder.good(&["gsd", "log", "hoomd_many_frames.gsd", "--csv"]);
    let mut lines = text.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(columns > 1);
    assert!(lines.clone().all(|line| line.split(',').count() == columns), "{text}");
    assert_eq!(lines.count(), 100);
    let edge = "hoomd_log_absent_in_frame0_REFERENCE_KEYERROR_FRAME2.gsd";
    let json = folder.json(&["gsd", "log", edge, "--json"]);
    let missing: Vec<bool> =
        json["columns"]["E"].as_array().unwrap().iter().map(Value::is_null).collect();
    assert_eq!(missing, [true, false, true]);
}

#[test]
fn a_text_is_printed_as_one() {
    let name = "hoomd_string_log_only_frame0_REFERENCE_CRASHES_ON_FRAME1.gsd";
    let folder = Folder::with(&[&format!("gsd/edge/{name}")]);
    assert_eq!(folder.good(&["cat", name, "log/cat", "--frame", "0"]), "abc\n");
}

#[test]
fn frames_of_a_running_job_are_followed() {
    let folder = Folder::with(&["gsd/code-v5.0.1/one_frame.gsd"]);
    let mut child = folder
        .command(&["watch", "one_frame.gsd", "--all", "--interval", "0.01", "--count", "4"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("frame 0  "));
    let mode = Mode { commit: Commit::Frames(1), durable: false };
    let path = folder.path("one_frame.gsd");
    let mut writer = Writer::append(path, mode, &Limits::default()).unwrap();
    for frame in 1..4 {
        writer.write_chunk("x", Type::UInt8, 2, 1, &[1, 2]).unwrap();
        writer.end_frame().unwrap();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line, format!("frame {frame}  1 array, 2 B"));
    }
    assert!(child.wait().unwrap().success());
    drop(writer);
    let same = ["gsd", "watch", "one_frame.gsd", "--all", "--count", "4", "--json"];
    let last = folder.good(&same).lines().last().unwrap().to_string();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&last["frame"], &last["arrays"], &last["bytes"]),
        (&3.into(), &1.into(), &2.into())
    );
}

#[test]
fn frames_are_selected_and_damage_is_told() {
    let folder = Folder::with(&["gsd/py-5.0.1/hoomd_varying_N.gsd"]);
    let name = "hoomd_varying_N.gsd";
    let rows = folder.json(&["hash", "--json", name, "--frames", "1:", "--select", "**/position"]);
    assert!(rows["arrays"].as_array().unwrap().iter().all(|row| row["frame"] != 0));
    let positions = folder.good(&["cat", name, "particles/position", "--frame", "1"]);
    assert!(positions.lines().all(|line| line.split('\t').count() == 3), "{positions}");
    let path = folder.path(name);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let check = folder.spile(&["check", name]);
    assert_eq!(check.status.code(), Some(1));
    let saved = folder.spile(&["salvage", name, "-o", "saved.gsd"]);
    assert_eq!(saved.status.code(), Some(3));
    folder.good(&["check", "--strict", "saved.gsd"]);
}

#[test]
fn the_same_command_writes_the_same_bytes() {
    let folder = Folder::with(&["gsd/py-5.0.1/hoomd_full.gsd"]);
    let bytes = |name: &str| {
        folder.good(&["gsd", "trim", "hoomd_full.gsd", ":", "-o", name]);
        fs::read(folder.path(name)).unwrap()
    };
    let first = bytes("0.gsd");
    for k in 1..6 {
        assert!(bytes(&format!("{k}.gsd")) == first, "run {k}");
    }
}

#[test]
fn a_new_file_needs_a_name() {
    let folder = Folder::with(&["gsd/py-5.0.1/hoomd_full.gsd"]);
    for words in [&["trim", "hoomd_full.gsd", "0"][..], &["merge", "hoomd_full.gsd"]] {
        let done = folder.spile(&[&["gsd"], words, &["-o", "-"]].concat());
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(String::from_utf8_lossy(&done.stderr).contains("standard output"), "{done:?}");
        assert!(!folder.path("-").exists());
    }
}

#[test]
fn where_a_value_comes_from_that_a_frame_lacks() {
    let folder = Folder::with(&["gsd/py-5.0.1/hoomd_many_frames.gsd", "gsd/code-v5.0.1/names.gsd"]);
    let cat = ["cat", "hoomd_many_frames.gsd", "particles/N", "--frame", "5"];
    let told = folder.spile(&[&cat[..], &["--stored"]].concat());
    assert_eq!(told.status.code(), Some(2));
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("frame 5 does not have \"particles/N\""), "{told}");
    // The values of frame 0, as gsd.hoomd shows them.
    assert_eq!(folder.good(&cat), "4\n");
    let references = |words: &[&str]| {
        folder.good(
            &[&["index", "hoomd_many_frames.gsd", "-o", "x.json", "--overwrite"], words].concat(),
        );
        let index: Value =
            serde_json::from_slice(&fs::read(folder.path("x.json")).unwrap()).unwrap();
        let document = index["refs"]["particles/N/.zarray"].as_str().unwrap().to_string();
        serde_json::from_str::<Value>(&document).unwrap()["shape"][0].as_u64()
    };
    let (all, stored) = (references(&[]), references(&["--stored"]));
    assert!(all > stored && stored == Some(1), "{all:?} {stored:?}");
}

#[test]
fn a_damaged_entry_is_told_by_everything_that_would_miss_it() {
    let name = "v2_entry3_type_0_unprobed.gsd";
    let folder = Folder::with(&[&format!("gsd/corrupt/{name}")]);
    let info = folder.spile(&["info", name]);
    assert_eq!(info.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&info.stdout).contains("damaged  "), "{info:?}");
    let warning = String::from_utf8_lossy(&info.stderr).into_owned();
    let hint = format!("hint: spile salvage {name}    recovers every complete frame\n");
    assert_eq!(warning, format!("warning: {name}: always: unknown element type 0\n{hint}"));
    for verb in ["stat", "hash"] {
        let done = folder.spile(&[verb, name]);
        assert_ne!(done.status.code(), Some(0), "{verb}");
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(told.contains("gsd-007"), "{verb}: {told}");
    }
    let check = folder.spile(&["check", name]);
    assert_eq!(check.status.code(), Some(1));
    // Other frames of the same array, and other arrays, can be read.
    for words in
        [&["cat", name, "always", "--frame", "0"][..], &["hash", name, "--select", "third"]]
    {
        assert_eq!(folder.spile(words).status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn help_tells_what_the_columns_are() {
    let folder = Folder::new();
    let help = folder.good(&["gsd", "log", "--help"]);
    assert!(help.contains("Frames without a value have the value of frame 0"), "{help}");
}

/// Writes frames of the HOOMD schema whose values come from the frame, from frame 0 or from the defaults.
fn write_mixed_frames(path: &Path) {
    let about =
        About { application: "test".into(), schema: "hoomd".into(), schema_version: 1 << 16 | 4 };
    let (version, mode) = (Version::V2_1, Mode::default());
    let mut file = Writer::create(path, Overwrite::Never, version, &about, mode).unwrap();
    let floats = |n: u64, add: f32| -> Vec<u8> {
        (0..n).flat_map(|k| (k as f32 + add).to_le_bytes()).collect()
    };
    for frame in 0_u64..5 {
        let mut add = |name: &str, kind, n, m, bytes: &[u8]| {
            file.write_chunk(name, kind, n, m, bytes).unwrap();
        };
        if frame < 4 {
            add("configuration/step", Type::UInt64, 1, 1, &(10 * frame).to_le_bytes());
        }
        match frame {
            0 => {
                add("particles/N", Type::UInt32, 1, 1, &[2, 0, 0, 0]);
                add("particles/position", Type::Float, 2, 3, &floats(6, 0.5));
                add("log/energy", Type::Double, 1, 1, &1.5_f64.to_le_bytes());
            }
            1 => {
                add("particles/N", Type::UInt32, 1, 1, &[3, 0, 0, 0]);
                add("particles/types", Type::Int8, 2, 3, b"B\0\0CC\0");
                add("particles/position", Type::Float, 3, 3, &floats(9, 7.5));
                add("particles/orientation", Type::Float, 3, 4, &floats(12, 0.25));
                add("angles/types", Type::Int8, 1, 2, b"x\0");
                add("configuration/box", Type::Float, 6, 1, &floats(6, 1.0));
                add("log/late", Type::Double, 1, 2, &[7; 16]);
            }
            3 => {
                add("bonds/N", Type::UInt32, 1, 1, &[1, 0, 0, 0]);
                add("bonds/group", Type::UInt32, 1, 2, &[0, 0, 0, 0, 1, 0, 0, 0]);
                add("log/count", Type::Int32, 1, 1, &[9, 0, 0, 0]);
            }
            4 => add("log/energy", Type::Double, 1, 1, &2.5_f64.to_le_bytes()),
            _ => {}
        }
        file.end_frame().unwrap();
    }
    file.close().unwrap();
}

/// The frames of a file; a logged quantity without a value is NaN.
fn frames_of(path: &Path) -> Vec<String> {
    let file = File::open(path, &Limits::default()).unwrap();
    let trajectory = Trajectory::new(file).unwrap();
    let frames = 0..trajectory.len().unwrap();
    let frames = frames.map(|frame| {
        let mut frame = trajectory.read(frame).unwrap();
        frame.log.retain(|_, value| value.as_ref().is_some_and(|v| !v.to_f64()[0].is_nan()));
        format!("{frame:?}")
    });
    frames.collect()
}

#[test]
fn converted_frames_have_the_values_of_the_source() {
    let folder = Folder::new();
    write_mixed_frames(&folder.path("a.gsd"));
    let all = frames_of(&folder.path("a.gsd"));
    let some = |frames: &[usize]| frames.iter().map(|k| all[*k].clone()).collect::<Vec<_>>();
    for (frames, wanted) in [
        ("0:", &[0, 1, 2, 3, 4][..]),
        ("0::2", &[0, 2, 4]),
        ("1:3", &[1, 2]),
        ("1:4:2", &[1, 3]),
        ("2:", &[2, 3, 4]),
        ("2", &[2]),
        ("4", &[4]),
        ("2::-1", &[2, 1, 0]),
        ("1::-1", &[1, 0]),
    ] {
        folder.good(&["convert", "a.gsd", "b.gsd", "--frames", frames, "--overwrite"]);
        assert_eq!(frames_of(&folder.path("b.gsd")), some(wanted), "{frames}");
        folder.good(&["gsd", "trim", "a.gsd", frames, "-o", "c.gsd", "--overwrite"]);
        assert_eq!(frames_of(&folder.path("c.gsd")), some(wanted), "trim {frames}");
    }
    folder.good(&[
        "convert",
        "a.gsd",
        "b.gsd",
        "--frames",
        "1:3",
        "--overwrite",
        "--strict",
        "--verify",
    ]);
    // An integer has no NaN: the frame after frame 0 would show its value.
    let lost =
        folder.spile(&["convert", "a.gsd", "b.gsd", "--frames", "3:", "--overwrite", "--strict"]);
    let text = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(!lost.status.success() && text.contains("log/count"), "{text}");
}
