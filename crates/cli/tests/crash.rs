//! Real kills and a real full disk: whatever happens, the file is the old one or the new one.

#[path = "../../core/tests/support/machine.rs"]
mod machine;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SPILE: &str = env!("CARGO_BIN_EXE_spile");

/// Kills of each operation.
const KILLS: u32 = 60;

/// Rows and columns of the file that is changed: 4 MiB, some milliseconds of work.
const ROWS: usize = 4096;
const COLUMNS: usize = 512;

fn spile(words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(SPILE);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command
}

fn run(words: &[&str], folder: &Path) -> Output {
    spile(words, folder).output().unwrap()
}

fn must(words: &[&str], folder: &Path) {
    let done = run(words, folder);
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Numbers that are easy to recognise, as NumPy saves them.
fn npy(rows: usize, columns: usize, first: u16) -> Vec<u8> {
    let header =
        format!("{{'descr': '<u2', 'fortran_order': True, 'shape': ({rows}, {columns}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend((0..rows * columns).flat_map(|k| (first.wrapping_add(k as u16)).to_le_bytes()));
    bytes
}

/// A folder with the file to change (`old.taf`) and the inputs of the operations.
fn prepare(folder: &Path) {
    fs::write(folder.join("all.npy"), npy(ROWS, COLUMNS, 0)).unwrap();
    fs::write(folder.join("other.npy"), npy(ROWS, COLUMNS, 7)).unwrap();
    fs::write(folder.join("more.npy"), npy(ROWS, 128, 9)).unwrap();
    let make = ["taf", "create", "all.npy", "-t", "uint16", "--comment", "kept", "-o", "old.taf"];
    must(&make, folder);
}

/// What an operation does to `work.taf`, and how long it takes.
struct Case {
    words: &'static [&'static str],
    old: Vec<u8>,
    new: Vec<u8>,
    time: Duration,
}

impl Case {
    fn new(words: &'static [&'static str], folder: &Path) -> Self {
        let (old, work) = (folder.join("old.taf"), folder.join("work.taf"));
        fs::copy(&old, &work).unwrap();
        let start = Instant::now();
        must(words, folder);
        let time = start.elapsed();
        Self { words, old: fs::read(&old).unwrap(), new: fs::read(&work).unwrap(), time }
    }

    /// Starts the operation and kills it `after` a while.
    fn kill(&self, folder: &Path, after: Duration) -> Vec<u8> {
        let work = folder.join("work.taf");
        fs::write(&work, &self.old).unwrap();
        let mut child = spile(self.words, folder).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        let _ = child.kill();
        child.wait().unwrap();
        fs::read(&work).unwrap()
    }
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_file_or_the_new_one() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    prepare(folder);
    let operations: [&[&str]; 9] = [
        &["taf", "crop", "work.taf", "1", "--index", "2:4000"],
        &["taf", "transpose", "work.taf"],
        &["taf", "permute", "work.taf", "2,1"],
        &["taf", "replace", "work.taf", "other.npy"],
        &["taf", "append", "work.taf", "more.npy", "--safe"],
        &["taf", "append", "work.taf", "more.npy"],
        &["taf", "add-comment", "work.taf", "another"],
        &["taf", "adjust", "work.taf", "1", "span", "0", "1"],
        &["taf", "create", "other.npy", "-t", "uint16", "-o", "work.taf", "--overwrite"],
    ];
    let (mut kept, mut changed) = (0, 0);
    for words in operations {
        let case = Case::new(words, folder);
        for k in 0..KILLS {
            let found = case.kill(folder, case.time * k * 8 / (KILLS * 5));
            if found == case.old {
                kept += 1;
            } else if found == case.new {
                changed += 1;
            } else {
                panic!("{words:?} killed after {k}: {} bytes that are neither", found.len());
            }
        }
    }
    // The kills really came before and after the moment of change.
    assert!(kept > 50 && changed > 5, "{kept} kept, {changed} changed");
}

#[test]
fn signals_remove_unfinished_output() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    // 128 MiB of zeros that take no space, in 16,384 chunks.
    let header = "{'descr': '<u2', 'fortran_order': False, 'shape': (8192, 8192), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    fs::write(folder.join("large.npy"), bytes).unwrap();
    let file = fs::OpenOptions::new().write(true).open(folder.join("large.npy")).unwrap();
    file.set_len(128 + 2 * 8192 * 8192).unwrap();
    let names = || fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name());
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let words = ["convert", "large.npy", "x.zarr", "--chunks", "dim1=64,dim2=64", "-q"];
        let mut child = spile(&words, folder).spawn().unwrap();
        let start = Instant::now();
        while !names().any(|name| name.to_string_lossy().ends_with(".part")) {
            assert!(
                start.elapsed() < Duration::from_mins(1) && child.try_wait().unwrap().is_none()
            );
        }
        let sent = Instant::now();
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
        assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
        assert_eq!(names().collect::<Vec<_>>(), ["large.npy"], "{signal}");
    }
}

#[test]
fn a_full_disk_gives_an_error_and_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let _disk = match machine::Disk::mount(temp.path(), 20) {
        Ok(disk) => disk,
        Err(why) => return machine::skipped(&format!("no file system to fill: {why}")),
    };
    let folder = temp.path();
    prepare(folder);
    fs::rename(folder.join("old.taf"), folder.join("work.taf")).unwrap();
    let before = fs::read(folder.join("work.taf")).unwrap();
    // About half a megabyte is left.
    let mut filler = fs::File::create(folder.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let full = filler.metadata().unwrap().len();
    filler.set_len(full - (512 << 10)).unwrap();
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let listed = names();
    let long = "x".repeat(100_000);
    for words in [
        &["taf", "crop", "work.taf", "1", "--index", "2:4000"][..],
        &["taf", "crop", "work.taf", "1", "--index", "2:4000", "-o", "new.taf"],
        &["taf", "transpose", "work.taf"],
        &["taf", "replace", "work.taf", "other.npy"],
        &["taf", "append", "work.taf", "more.npy"],
        &["taf", "append", "work.taf", "more.npy", "--safe"],
        &["taf", "backup", "work.taf"],
        &["taf", "create", "all.npy", "-o", "made.taf"],
        &["taf", "export", "work.taf", "-o", "text.txt"],
    ] {
        let done = run(words, folder);
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {message}");
        assert!(message.contains("no space left"), "{words:?}: {message}");
        assert!(fs::read(folder.join("work.taf")).unwrap() == before, "{words:?} changed the file");
        assert_eq!(names(), listed, "{words:?}");
    }
    // Comments need room too.
    filler.set_len(full).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    for verb in ["add-comment", "set-comment"] {
        let done = run(&["taf", verb, "work.taf", &long], folder);
        assert_eq!(done.status.code(), Some(2), "{verb}");
        assert!(fs::read(folder.join("work.taf")).unwrap() == before, "{verb} changed the file");
    }
}
