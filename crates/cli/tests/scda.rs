//! `spile scda`, and the common verbs on scda files, as typed by a user.

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::path::{Path, PathBuf};

use folder::Folder;
use serde_json::{Value, json};

/// What `pack` says to a manifest that it must refuse.
#[track_caller]
fn refused(folder: &Folder, manifest: &Value) -> String {
    folder.write("bad.json", manifest.to_string());
    let said = folder.bad(&["scda", "pack", "bad.json", "-o", "never.scda"]);
    assert!(!folder.path("never.scda").exists());
    said
}

/// The golden files and their names.
fn golden() -> Vec<(String, PathBuf)> {
    let folder = folder::golden("scda");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "scd"));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    let files: Vec<_> = files.map(|path| (name(&path), path)).collect();
    assert!(files.len() >= 22);
    files
}

#[test]
fn unpack_and_pack_give_golden_files_back() {
    let folder = Folder::new();
    for (name, path) in golden() {
        let (file, parts, raw) = (path.to_str().unwrap(), format!("{name}.d"), format!("{name}.r"));
        folder.good(&["scda", "unpack", file, "-o", &parts]);
        folder.good(&["scda", "unpack", file, "-o", &raw, "--raw"]);
        folder.good(&["scda", "pack", &parts, "-o", "packed.scda", "--overwrite"]);
        let manifest = format!("{raw}/manifest.json");
        folder.good(&["scda", "pack", &manifest, "-o", "raw.scda", "--overwrite"]);
        let hash =
            |file: &str| folder.json(&["hash", "--native", "--json", file])["objects"].take();
        assert_eq!(hash("packed.scda"), hash(file), "{name}");
        // One file has a wrong byte of padding, which is not to be reproduced.
        let original = fs::read(&path).unwrap();
        if name != "a_indirect_nl.scd" {
            assert!(folder.read("raw.scda") == original, "{name}");
            // Deflate streams differ between libraries.
            let text = fs::read_to_string(folder.path(&parts).join("manifest.json")).unwrap();
            if !text.contains("\"encoded\":true") {
                assert!(folder.read("packed.scda") == original, "{name}");
            }
        }
    }
}

#[test]
fn a_file_taken_apart_reads_easily() {
    let folder = Folder::new();
    let sizes = (0..20).map(|k| k.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    folder.write("sizes", &sizes);
    let manifest = json!({
        "user": {"hex": "00ff"},
        "vendor": "somebody",
        "breaks": "mime",
        "sections": [
            {"type": "I", "user": "mark", "text": "exactly thirty-two bytes of text"},
            {"type": "B", "text": "dt = 0.1\n", "encoded": true},
            {"type": "A", "user": "points", "E": 2, "hex": "0102 0304 0506"},
            {"type": "A", "user": "halves", "N": 2, "text": "abcdef"},
            {"type": "A", "user": "listed", "text": ["ab", "cd"], "encoded": true},
            {"type": "V", "user": "words", "text": ["one", "", "three"]},
            {"type": "V", "user": "many", "E": "sizes", "text": "x".repeat(190), "encoded": true},
            {"type": "A", "N": 0, "E": 3},
        ],
    });
    folder.write("m.json", manifest.to_string());
    folder.good(&["scda", "pack", "m.json", "-o", "f.scda"]);
    assert!(folder.good(&["check", "--strict", "f.scda"]).contains("ok (scda)"));
    assert_eq!(folder.good(&["cat", "f.scda", "words", "--element", "2"]), "three\n");
    folder.good(&["scda", "unpack", "f.scda", "-o", "parts"]);
    let mut names: Vec<String> = fs::read_dir(folder.path("parts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let data = ["0.bin", "1.bin", "2.bin", "3.bin", "4.bin", "5.bin", "6.bin", "6.sizes", "7.bin"];
    assert_eq!(names[..9], data);
    assert_eq!(names[9], "manifest.json");
    assert_eq!(folder.read("parts/6.sizes"), sizes.as_bytes());
    assert_eq!(folder.read("parts/5.bin"), b"onethree");
    let written: Value = serde_json::from_slice(&folder.read("parts/manifest.json")).unwrap();
    assert_eq!(
        written,
        json!({
            "vendor": "somebody",
            "user": {"hex": "00ff"},
            "breaks": "mime",
            "sections": [
                {"type": "I", "user": "mark", "file": "0.bin"},
                {"type": "B", "user": "", "E": 9, "encoded": true, "file": "1.bin"},
                {"type": "A", "user": "points", "N": 3, "E": 2, "file": "2.bin"},
                {"type": "A", "user": "halves", "N": 2, "E": 3, "file": "3.bin"},
                {"type": "A", "user": "listed", "N": 2, "E": 2, "encoded": true, "file": "4.bin"},
                {"type": "V", "user": "words", "N": 3, "E": [3, 0, 5], "file": "5.bin"},
                {"type": "V", "user": "many", "N": 20, "E": "6.sizes", "encoded": true, "file": "6.bin"},
                {"type": "A", "user": "", "N": 0, "E": 3, "file": "7.bin"},
            ],
        })
    );
    // Written by ourselves, even the compressed sections come back byte for byte.
    folder.good(&["scda", "pack", "parts", "-o", "again.scda"]);
    assert!(folder.read("again.scda") == folder.read("f.scda"));
    let told = folder.json(&["scda", "pack", "parts", "-o", "x.scda", "--dry-run", "--json"]);
    assert_eq!((&told["sections"], &told["data_bytes"]), (&8.into(), &255.into()));
    assert_eq!((&told["dry_run"], &told["output"]), (&true.into(), &"x.scda".into()));
    let words = ["scda", "pack", "parts", "-o", "x.scda", "--vendor", "me", "--breaks", "unix"];
    assert_eq!(folder.good(&words), "");
    let info = folder.json(&["info", "x.scda", "--json"]);
    assert_eq!(
        (&info["summary"]["vendor"], &info["summary"]["line breaks"]),
        (&"me".into(), &"Unix".into())
    );
}

#[test]
fn an_error_in_a_manifest_has_its_line_or_section() {
    let folder = Folder::new();
    folder.write("five", "12345");
    folder.write("words", "1 two 3");
    let section = |section: Value| json!({"sections": [{"type": "B"}, section]});
    let cases = [
        (json!(5), "bad.json: invalid manifest: invalid type: integer `5`"),
        (json!({}), "bad.json: invalid manifest: missing field `sections` at line 1 column 2"),
        (
            json!({"sections": 5}),
            "bad.json: invalid manifest: invalid type: integer `5`, expected a sequence",
        ),
        (
            json!({"sections": [], "level": 13}),
            "bad.json: \"level\": expected a number from 0 to 12",
        ),
        (
            json!({"sections": [], "breaks": "dos"}),
            "unknown variant `dos`, expected `unix` or `mime`",
        ),
        (
            json!({"sections": [], "vendor": "more than twenty bytes"}),
            "bad.json: \"vendor\": expected at most 20 bytes, found 22",
        ),
        (
            json!({"sections": [], "usr": ""}),
            "unknown field `usr`, expected one of `vendor`, `user`",
        ),
        (
            section(json!({"text": "a"})),
            "bad.json: invalid manifest: missing field `type` at line 1",
        ),
        (section(json!({"type": "Q"})), "unknown variant `Q`, expected one of `I`, `B`, `A`, `V`"),
        (section(json!({"type": "I", "text": "a"})), "expected 32 bytes in an I section, found 1"),
        (
            section(json!({"type": "B", "user": 7})),
            "expected a string or {\"hex\": \"...\"} at line 1",
        ),
        (
            section(json!({"type": "B", "hex": "abc"})),
            "section 1: expected pairs of hexadecimal digits",
        ),
        (section(json!({"type": "B", "E": 4, "file": "five"})), "expected 4 bytes (E), found 5"),
        (section(json!({"type": "B", "N": 4})), "section 1: B sections have no \"N\""),
        (
            section(json!({"type": "B", "file": "none"})),
            "bad.json: section 1: \"file\": none: no such file or folder",
        ),
        (
            section(json!({"type": "B", "file": "five", "text": "a"})),
            "section 1: \"file\", \"text\" and \"hex\" exclude each other",
        ),
        (
            section(json!({"type": "A", "file": "five"})),
            "missing field \"E\": N elements of E bytes",
        ),
        (
            section(json!({"type": "A", "E": 2, "file": "five"})),
            "section 1: expected a multiple of 2 bytes (E), found 5 bytes",
        ),
        (
            section(json!({"type": "A", "N": 2, "file": "five"})),
            "expected 2 elements (N) of one size, found 5 bytes",
        ),
        (
            section(json!({"type": "A", "N": 2, "E": 3, "file": "five"})),
            "expected 2 elements (N) of 3 bytes (E), found 5 bytes",
        ),
        (section(json!({"type": "A", "E": 0, "file": "five"})), "section 1: missing field \"N\""),
        (
            section(json!({"type": "A", "E": -1})),
            "expected a size, a list of sizes, or the name of a file at line 1",
        ),
        (
            section(json!({"type": "A", "text": ["a", "bc"]})),
            "hint: use a V section for elements of different sizes",
        ),
        (
            section(json!({"type": "V", "file": "five"})),
            "missing field \"E\": the sizes of the elements",
        ),
        (
            section(json!({"type": "V", "E": [1, 2], "file": "five"})),
            "expected 3 bytes (sum of E), found 5",
        ),
        (
            section(json!({"type": "V", "N": 3, "E": [2, 3], "file": "five"})),
            "expected 3 sizes (N), found 2",
        ),
        (
            section(json!({"type": "V", "E": [u64::MAX, 6], "file": "five"})),
            "expected more than 2^64 bytes (sum of E), found 5",
        ),
        (
            section(json!({"type": "V", "E": "words", "file": "five"})),
            "bad.json: section 1: \"E\": words: expected the size of an element, found \"two\"",
        ),
        (
            section(json!({"type": "I", "encoded": true})),
            "\"encoded\": I sections cannot be compressed",
        ),
    ];
    for (manifest, words) in cases {
        let said = refused(&folder, &manifest);
        assert!(said.contains(words), "{manifest}: {said}");
    }
    folder.write("bad.json", "{\"sections\": [}");
    let said = folder.bad(&["scda", "pack", "bad.json", "-o", "never.scda"]);
    assert!(said.contains("bad.json: invalid manifest: ") && said.contains("line 1"));
    let said = folder.bad(&["scda", "pack", "bad.json", "-o", "-"]);
    assert!(said.contains("cannot be written to standard output"), "{said}");
}

#[test]
fn unfinished_files_are_listed_and_removed() {
    let folder = Folder::new();
    let unfinished = [".run.scda.Ab12Xy.part", ".b.scda.000000.part"];
    for name in unfinished {
        folder.write(name, "scdata0 and more");
    }
    // Other names, and files of other programs.
    let others = [".run.scda.part", "run.scda.Ab12Xy.part", ".run.scda.Ab12X.part"];
    for name in others {
        folder.write(name, "scdata0 and more");
    }
    folder.write(".movie.Ab12Xy.part", "something else");
    let exists = |name: &str| folder.path(name).exists();
    // They may belong to a running job.
    let said = folder.good(&["scda", "clean", "."]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(unfinished.iter().all(|name| said.contains(name) && exists(name)), "{said}");
    let said = folder.good(&["scda", "clean", ".", "--older", "0", "--dry-run"]);
    assert!(said.lines().count() == 2 && unfinished.iter().all(|name| exists(name)), "{said}");
    let open = fs::File::open(folder.path(unfinished[0])).unwrap();
    folder.good(&["scda", "clean", ".", "--older", "0"]);
    assert!(exists(unfinished[0]) && !exists(unfinished[1]));
    drop(open);
    folder.good(&["scda", "clean", ".", "--older", "0"]);
    assert!(!exists(unfinished[0]));
    assert!(others.iter().all(|name| exists(name)) && exists(".movie.Ab12Xy.part"));
}

#[test]
fn recoding_goes_there_and_back() {
    let folder = Folder::new();
    for (name, path) in golden() {
        if name == "a_indirect_nl.scd" {
            continue;
        }
        let file = path.to_str().unwrap();
        let plain = "plain.scda";
        folder.good(&["scda", "recode", file, plain, "--decode", "--overwrite"]);
        folder.good(&["scda", "recode", plain, "packed.scda", "--encode", "--overwrite"]);
        folder.good(&["scda", "recode", "packed.scda", "again.scda", "--decode", "--overwrite"]);
        assert!(folder.read("again.scda") == folder.read(plain), "{name}");
        assert!(folder.good(&["check", "--strict", "packed.scda"]).contains("ok (scda)"));
        let words = ["--breaks", "mime", "--overwrite"];
        folder.good(&[&["scda", "recode", file, "mime.scda"], &words[..]].concat());
        let words = ["--breaks", "unix", "--overwrite"];
        folder.good(&[&["scda", "recode", "mime.scda", "unix.scda"], &words[..]].concat());
        assert!(folder.read("unix.scda") == fs::read(&path).unwrap(), "{name}");
    }
    let (_, plain) = golden().into_iter().find(|(name, _)| name == "a_basic.scd").unwrap();
    folder.write("plain.scda", fs::read(plain).unwrap());
    folder.write("mine.scda", folder.read("plain.scda"));
    let again = folder.bad(&["scda", "recode", "plain.scda", "mine.scda", "--encode"]);
    assert!(
        again.contains("mine.scda: already exists") && again.contains("--overwrite"),
        "{again}"
    );
    let words = ["scda", "recode", "plain.scda", "new.scda", "--encode", "--dry-run"];
    assert!(folder.good(&words).contains("encoded, 0 decoded (dry run)"));
    assert!(!folder.path("new.scda").exists());
    // A file may take its own place.
    folder.good(&["scda", "recode", "mine.scda", "mine.scda", "--encode", "--overwrite"]);
    let words = ["scda", "recode", "mine.scda", "mine.scda", "--decode", "--overwrite", "--json"];
    let told = folder.json(&words);
    assert_eq!((&told["decoded"], &told["kept"]), (&3.into(), &0.into()));
    assert!(folder.read("mine.scda") == folder.read("plain.scda"));
    let nothing = folder.bad(&["scda", "recode", "mine.scda", "x.scda"]);
    assert!(nothing.contains("--encode|--decode|--breaks"), "{nothing}");
    folder.bad(&["scda", "recode", "mine.scda", "x.scda", "--encode", "--decode"]);
    folder.bad(&["scda", "recode", "mine.scda", "x.scda", "--encode", "--level", "13"]);
    folder.bad(&["scda", "recode", "mine.scda", "x.scda", "--decode", "--level", "3"]);
    folder.bad(&["scda", "recode", "mine.scda", "x.scda", "--breaks", "unix", "--level", "3"]);
}

#[test]
fn damage_leaves_nothing_behind() {
    let folder = Folder::new();
    let manifest = json!({"sections": [
        {"type": "B", "text": "sound"},
        {"type": "A", "user": "cells", "text": ["abcdefgh", "ijklmnop"], "encoded": true},
    ]});
    folder.write("m.json", manifest.to_string());
    folder.good(&["scda", "pack", "m.json", "-o", "f.scda"]);
    let mut bytes = folder.read("f.scda");
    // Base64 of the eight bytes of a size begins like this, and only that.
    let place = bytes.windows(8).position(|code| code == b"AAAAAAAA").unwrap();
    bytes[place] = b'!';
    folder.write("f.scda", &bytes);
    let before = folder.names();
    let said = folder.bad(&["scda", "unpack", "f.scda", "-o", "parts"]);
    assert!(said.contains("f.scda: malformed: section 1, A \"cells\""), "{said}");
    let said = folder.bad(&["scda", "recode", "f.scda", "g.scda", "--decode"]);
    assert!(said.contains("f.scda: malformed: section 1, A \"cells\""), "{said}");
    assert_eq!(folder.names(), before);
    // What is not decoded comes out all the same.
    folder.good(&["scda", "unpack", "f.scda", "-o", "parts", "--raw"]);
    let taken = folder.bad(&["scda", "unpack", "f.scda", "-o", "parts", "--raw"]);
    assert!(taken.contains("parts: already exists; nothing was written\nhint: "), "{taken}");
    let taken = folder.bad(&["scda", "unpack", "f.scda", "-o", "m.json", "--raw"]);
    assert!(taken.contains("m.json: already exists"), "{taken}");
    fs::create_dir(folder.path("empty")).unwrap();
    folder.good(&["scda", "unpack", "f.scda", "-o", "empty", "--raw"]);
    assert!(folder.path("empty/manifest.json").exists());
    let other = folder.bad(&["scda", "unpack", "m.json", "-o", "other"]);
    assert!(other.contains("m.json: not scda"), "{other}");
}

#[test]
fn sections_are_found_by_number_and_elements_in_them() {
    let folder = Folder::new();
    for (name, path) in golden() {
        fs::copy(path, folder.path(&name)).unwrap();
    }
    let listed = folder.good(&["ls", "-l", "a_basic.scd"]);
    assert!(listed.lines().nth(2).unwrap().ends_with("1  doubles"), "{listed}");
    let missing = folder.bad(&["cat", "a_basic.scd", "99"]);
    assert!(missing.contains("a_basic.scd: no object named \"99\"\nhint: "), "{missing}");
    let several = folder.bad(&["cat", "a_basic.scd", "0:5"]);
    assert!(several.contains("the file has 3 arrays; specify one"), "{several}");
    for file in ["a_basic.scd", "v_basic.scd", "enc_v.scd"] {
        let beyond = folder.bad(&["cat", file, "0", "--element", "500"]);
        assert!(beyond.contains("no element 500: the array has "), "{beyond}");
    }
    // A block is bytes, compressed or not.
    folder.good(&["scda", "recode", "enc_b.scd", "plain.scd", "--decode"]);
    let element = |file| folder.good(&["cat", file, "0", "--element", "3", "--raw"]);
    assert_eq!(element("enc_b.scd").len(), 1);
    assert_eq!(element("enc_b.scd"), element("plain.scd"));
    let cut = folder.read("a_basic.scd");
    folder.write("cut.scd", &cut[..700]);
    let done = folder.spile(&["salvage", "cut.scd"]);
    assert_eq!(done.status.code(), Some(3));
    let told = String::from_utf8(done.stdout).unwrap();
    assert!(told.contains("A \"doubles\": 31 of 64 elements are complete"), "{told}");
}

#[test]
fn bytes_are_not_drawn() {
    let folder = Folder::new();
    let (_, path) = golden().into_iter().find(|(name, _)| name == "a_basic.scd").unwrap();
    let error = folder.bad(&["plot", path.to_str().unwrap(), "doubles"]);
    assert!(error.contains("cannot plot \"doubles\": expected numbers, found "), "{error}");
}
