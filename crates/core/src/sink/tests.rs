//! Tests of files.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn the_file_is_visible_after_commit_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    sink.write_all(b"hello").unwrap();
    assert!(!path.exists());
    sink.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    let error = Sink::create(&path, Overwrite::Never).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Exists);
}

#[test]
fn a_stream_is_written_in_order_only() {
    let (mut reader, writer) = io::pipe().unwrap();
    let writer = File::from(std::os::fd::OwnedFd::from(writer));
    let mut sink = Sink::stream(writer, "standard output");
    sink.write_all(b"one").unwrap();
    sink.write_all_at(3, b" two").unwrap();
    assert!(sink.write_all_at(0, b"again").is_err());
    assert!(sink.write_all_at(9, b"gap").is_err());
    sink.commit().unwrap();
    let mut text = String::new();
    io::Read::read_to_string(&mut reader, &mut text).unwrap();
    assert_eq!(text, "one two");
}

#[test]
fn a_dropped_sink_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    drop(Sink::create(dir.path().join("a"), Overwrite::Never).unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_target_created_before_the_commit_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let sink = Sink::create(&path, Overwrite::Never).unwrap();
    fs::write(&path, b"theirs").unwrap();
    assert_eq!(sink.commit().unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn the_target_of_a_dangling_link_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    std::os::unix::fs::symlink("real", &link).unwrap();
    Sink::create(&link, Overwrite::Replace).unwrap().commit().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && real.exists());
}

#[test]
fn edits_are_serialised_and_see_a_replaced_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("count");
    fs::write(&path, b"").unwrap();
    std::thread::scope(|scope| {
        for k in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    let edit = Sink::edit(path).unwrap();
                    let mut bytes = fs::read(path).unwrap();
                    bytes.push(k);
                    if k % 2 == 0 {
                        edit.write_all_at(0, &bytes).unwrap();
                    } else {
                        let mut new = Sink::create(path, Overwrite::Replace).unwrap();
                        new.write_all(&bytes).unwrap();
                        new.commit().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(fs::read(&path).unwrap().len(), 160);
}

#[test]
fn edit_alone_fails_while_the_file_is_locked_and_readers_are_not_blocked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, b"old").unwrap();
    let edit = Sink::edit_alone(&path).unwrap();
    let second = Sink::edit_alone(&path).err().unwrap();
    assert_eq!(second.kind(), ErrorKind::Io);
    assert!(second.to_string().contains("another process is writing"), "{second}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(edit);
    assert!(Sink::edit_alone(&path).is_ok());
}

#[test]
fn replacing_keeps_the_mode_and_follows_links() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::write(&real, b"old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut sink = Sink::create(&link, Overwrite::Replace).unwrap();
    sink.write_all(b"new").unwrap();
    sink.commit().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

#[cfg(feature = "testkit")]
#[test]
fn a_folder_that_cannot_be_flushed_is_an_error_and_the_target_is_unchanged() {
    use crate::testkit::faults::{Call, Fault, arm, disarm};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    for (overwrite, old) in [(Overwrite::Never, None), (Overwrite::Replace, Some(b"old"))] {
        if let Some(text) = old {
            fs::write(&path, text).unwrap();
        }
        let mut sink = Sink::create(&path, overwrite).unwrap();
        sink.write_all(b"new").unwrap();
        arm(Some(Fault { call: 0, part: 0, lasting: false }));
        let error = sink.commit().unwrap_err();
        assert_eq!(disarm(), [Call::SyncFolder]);
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(path.as_path())));
        assert_eq!(fs::read(&path).ok().as_deref(), old.map(|text| &text[..]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), usize::from(old.is_some()));
    }
}

#[test]
fn a_copy_replaces_the_file_when_it_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, b"0123456789").unwrap();
    let copy = Sink::copy_of(&path, 10).unwrap().unwrap();
    copy.write_all_at(2, b"--").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"0123456789");
    copy.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"01--456789");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
