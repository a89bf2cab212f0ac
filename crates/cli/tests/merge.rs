//! `spile merge`: the files of a run as one.

#[path = "support/folder.rs"]
mod folder;

use std::process::Output;

use folder::{golden, spile};

fn output_of(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn dumps_become_frames_of_any_format() {
    let temp = tempfile::tempdir().unwrap();
    // Out of order: the times decide.
    let dumps: Vec<String> = [2, 0, 1]
        .map(|k| golden(&format!("sdf/epoch1d_normal_000{k}.sdf")).to_str().unwrap().to_string())
        .into();
    let dumps: Vec<&str> = dumps.iter().map(String::as_str).collect();
    for new in ["run.gsd", "run.zarr", "run.nc", "run.scda", "run.npz"] {
        let words = [&["merge"], &dumps[..], &["-o", new, "--verify"]].concat();
        let (code, text) = output_of(&spile(temp.path(), &words));
        assert_eq!(code, Some(0), "{new}: {text}");
        assert!(text.contains("verified"), "{new}: {text}");
        for (frame, dump) in ["0", "1", "2"].into_iter().zip([dumps[1], dumps[2], dumps[0]]) {
            let field = ["cat", new, "Electric Field/Ey", "--frames", frame];
            let (code, merged) = output_of(&spile(temp.path(), &field));
            let (_, alone) = output_of(&spile(temp.path(), &["cat", dump, "Electric Field/Ey"]));
            assert_eq!(code, Some(0), "{merged}");
            let numbers = |text: &str| {
                let lines = text.lines().filter(|line| !line.starts_with('#'));
                lines.map(ToString::to_string).collect::<Vec<_>>()
            };
            assert_eq!(numbers(&merged), numbers(&alone), "{new} frame {frame}");
        }
    }
}

#[test]
fn trajectories_follow_each_other_and_formats_are_not_mixed() {
    let temp = tempfile::tempdir().unwrap();
    let one = golden("gsd/v0.0.1/ce10462_one_frame.gsd");
    let dump = golden("sdf/epoch1d_normal_0000.sdf");
    let (one, dump) = (one.to_str().unwrap(), dump.to_str().unwrap());
    let (code, text) = output_of(&spile(temp.path(), &["merge", one, one, one, "-o", "three.npz"]));
    assert_eq!(code, Some(0), "{text}");
    let (_, text) = output_of(&spile(temp.path(), &["info", "three.npz"]));
    assert!(text.contains('3'), "{text}");
    let (code, text) = output_of(&spile(temp.path(), &["merge", one, dump, "-o", "x.gsd"]));
    assert_eq!(code, Some(2));
    assert!(text.contains("expected gsd as in the first file, found sdf"), "{text}");
    assert!(!temp.path().join("x.gsd").exists());
}
