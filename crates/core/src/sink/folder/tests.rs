use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::error::ErrorKind;

fn write(path: &Path, overwrite: Overwrite, text: &[u8]) -> FolderSink {
    let sink = FolderSink::create(path, overwrite).unwrap();
    sink.file("top").unwrap().write_all(text).unwrap();
    sink.file("a/b/c").unwrap().write_all(text).unwrap();
    sink
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_folder_is_visible_with_all_files_after_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let sink = write(&path, Overwrite::Never, b"1");
    assert!(!path.exists());
    sink.commit().unwrap();
    assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"1");
    assert_eq!(names(dir.path()), ["x"]);
    // The same mode as a folder made with mkdir.
    fs::create_dir(dir.path().join("plain")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&dir.path().join("plain")));
    let error = FolderSink::create(&path, Overwrite::Never).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Exists);
}

#[test]
fn a_dropped_folder_is_removed_and_the_old_one_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    drop(write(&path, Overwrite::Never, b"1"));
    assert!(names(dir.path()).is_empty());
    write(&path, Overwrite::Never, b"1").commit().unwrap();
    drop(write(&path, Overwrite::Replace, b"2"));
    assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn folders_links_and_files_can_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    write(&path, Overwrite::Never, b"1").commit().unwrap();
    fs::write(path.join("more"), b"old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("x", &link).unwrap();
    write(&link, Overwrite::Replace, b"2").commit().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"2");
    assert!(!path.join("more").exists(), "files of the old folder are removed");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, b"a file").unwrap();
    write(&path, Overwrite::Replace, b"3").commit().unwrap();
    assert_eq!(fs::read(path.join("top")).unwrap(), b"3");
    let mut left = names(dir.path());
    left.sort();
    assert_eq!(left, ["link", "x"]);
}

#[test]
fn replacing_in_two_steps_gives_the_same_result_as_an_exchange() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    write(&path, Overwrite::Never, b"1").commit().unwrap();
    let sink = write(&path, Overwrite::Replace, b"2");
    let replaced = Some(sink.replace_in_two_steps().unwrap());
    Published { sink, replaced }.finish();
    assert_eq!(fs::read(path.join("top")).unwrap(), b"2");
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn undoing_restores_the_old_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    write(&path, Overwrite::Never, b"1").publish().unwrap().undo().unwrap();
    assert!(names(dir.path()).is_empty());
    write(&path, Overwrite::Never, b"1").commit().unwrap();
    write(&path, Overwrite::Replace, b"2").publish().unwrap().undo().unwrap();
    assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
    let sink = write(&path, Overwrite::Replace, b"2");
    let replaced = Some(sink.replace_in_two_steps().unwrap());
    Published { sink, replaced }.undo().unwrap();
    assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn a_target_created_before_the_commit_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let sink = write(&path, Overwrite::Never, b"1");
    // An empty folder would be replaced by a plain rename.
    fs::create_dir(&path).unwrap();
    assert_eq!(sink.commit().unwrap_err().kind(), ErrorKind::Exists);
    assert!(names(&path).is_empty());
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn folders_of_killed_writers_are_removed_and_those_of_running_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let dead = dir.path().join(".x.killed.part");
    fs::create_dir_all(dead.join("a")).unwrap();
    let first = write(&path, Overwrite::Never, b"1");
    assert!(!dead.exists());
    let second = write(&path, Overwrite::Never, b"2");
    first.commit().unwrap();
    assert_eq!(second.commit().unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
}

#[test]
fn a_target_renamed_by_a_killed_writer_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (path, aside) = (dir.path().join("x"), dir.path().join(".x.killed.old"));
    write(&path, Overwrite::Never, b"1").commit().unwrap();
    fs::rename(&path, &aside).unwrap();
    let error = FolderSink::create(&path, Overwrite::Never).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
    // The writer was killed after the second step.
    fs::create_dir(&aside).unwrap();
    write(&path, Overwrite::Replace, b"2").commit().unwrap();
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn concurrent_writers_replace_a_folder_that_did_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let path = dir.path().join("x");
        std::thread::scope(|scope| {
            for text in [b"1", b"2", b"3", b"4"] {
                let path = &path;
                scope.spawn(move || write(path, Overwrite::Replace, text).commit().unwrap());
            }
        });
        let top = fs::read(path.join("top")).unwrap();
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), top, "files of one writer");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[cfg(feature = "testkit")]
#[test]
fn a_folder_that_cannot_be_flushed_is_an_error_and_the_old_one_stays() {
    use crate::testkit::faults::{Call, Fault, arm, disarm};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    for (overwrite, left) in [(Overwrite::Never, None), (Overwrite::Replace, Some(b"1"))] {
        if let Some(text) = left {
            write(&path, Overwrite::Never, text).commit().unwrap();
        }
        let sink = write(&path, overwrite, b"2");
        arm(None);
        sink.commit().unwrap();
        let calls = disarm();
        let last = calls.iter().rposition(|call| *call == Call::SyncFolder).unwrap();
        fs::remove_dir_all(&path).unwrap();
        if let Some(text) = left {
            write(&path, Overwrite::Never, text).commit().unwrap();
        }
        let sink = write(&path, overwrite, b"2");
        arm(Some(Fault { call: last, part: 0, lasting: false }));
        let error = sink.commit().unwrap_err();
        disarm();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(fs::read(path.join("top")).ok().as_deref(), left.map(|t| &t[..]));
        assert_eq!(names(dir.path()).len(), usize::from(left.is_some()));
    }
}

#[test]
fn an_existing_folder_can_be_published() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("x"), dir.path().join("other"));
    write(&path, Overwrite::Never, b"1").commit().unwrap();
    write(&other, Overwrite::Never, b"2").commit().unwrap();
    let sink = FolderSink::create(&path, Overwrite::Replace).unwrap();
    sink.adopt(&other).unwrap();
    sink.commit().unwrap();
    assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"2");
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn names_that_lead_out_of_the_folder_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let sink = FolderSink::create(dir.path().join("x"), Overwrite::Never).unwrap();
    for name in ["", "../y", "/y", "a/../../y", "a//b", "a/./b", "a\0"] {
        assert_eq!(sink.file(name).err().unwrap().kind(), ErrorKind::Argument, "{name}");
    }
    sink.file("a").unwrap();
    assert!(sink.file("a").is_err(), "a file can be created once");
}
