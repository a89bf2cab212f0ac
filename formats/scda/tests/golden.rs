//! Golden files section by section, and the verdicts on corrupt files.

use std::path::PathBuf;

use serde_json::Value as Json;
use spile_core::format::Checker as _;
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::source::Source;
use spile_scda::{File, Scda};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/scda")
}

fn manifest() -> Json {
    let text = std::fs::read_to_string(folder().join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn unhex(text: &Json) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|k| u8::from_str_radix(&text[k..k + 2], 16).unwrap()).collect()
}

#[test]
fn every_section_is_as_in_the_manifest() {
    let files = manifest();
    let files = files["files"].as_array().unwrap();
    assert!(files.len() >= 22);
    for want in files {
        let name = want["file"].as_str().unwrap();
        let file = File::open(folder().join(name), &Limits::default()).unwrap();
        assert_eq!(file.header().user, unhex(&want["file_user_hex"]), "{name}");
        assert_eq!(file.header().vendor, want["vendor"].as_str().unwrap().as_bytes(), "{name}");
        let sections = want["sections"].as_array().unwrap();
        assert_eq!(file.sections().len(), sections.len(), "{name}");
        for (section, want) in file.sections().iter().zip(sections) {
            assert_eq!(section.kind.letter().to_string(), want["type"].as_str().unwrap(), "{name}");
            assert_eq!(section.offset(), want["offset"].as_u64().unwrap(), "{name}");
            assert_eq!(section.user(), unhex(&want["user_hex"]), "{name}");
            assert_eq!(section.encoded, want["encoded"].as_bool().unwrap(), "{name}");
            assert_eq!(section.len, want["data_len"].as_u64().unwrap(), "{name}");
            let bytes: u64 = section.raws().map(|r| r.end() - r.head.offset).sum();
            assert_eq!(bytes, want["section_bytes"].as_u64().unwrap(), "{name}");
        }
    }
}

#[test]
fn corrupt_files_get_the_verdict_of_the_specification() {
    let all = manifest();
    let mut counts = [0; 3];
    for want in all["corrupt"].as_array().unwrap() {
        let name = want["file"].as_str().unwrap();
        let source = Source::open(folder().join(name)).unwrap();
        let report = Scda.check(&source, &Limits::default(), false);
        let valid = report.is_ok_and(|r| r.worst().is_none_or(|s| s < Severity::Error));
        match want["seed_verdict"].as_str().unwrap() {
            verdict if verdict.starts_with("invalid") => {
                assert!(!valid, "{name} was accepted: {}", want["what"]);
                counts[0] += 1;
            }
            verdict if verdict.starts_with("valid") => {
                assert!(valid, "{name} was refused: {}", want["what"]);
                counts[1] += 1;
            }
            _ => counts[2] += 1,
        }
    }
    assert!(counts[0] > 50 && counts[1] > 10, "{counts:?}");
}
