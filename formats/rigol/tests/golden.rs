//! Golden files match the manifest; damaged headers give the right error.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder, read};
use spile_core::error::ErrorKind;
use spile_core::format::{Format as _, OpenOptions};
use spile_core::source::Source;
use spile_rigol::Rigol;

#[test]
fn golden_files_match_the_manifest() {
    check_all(&Rigol, &folder("rigol"));
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder("rigol").join(name)).unwrap()
}

#[test]
fn channels_have_their_settings_as_attributes() {
    let found = read(&Rigol, Source::memory(bytes("ds1000z_3.wfm")));
    let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["CH1", "CH2", "CH4"]);
    let attr = |name: &str| found[0].attr(name);
    assert_eq!(attr("units").as_deref(), Some("V"));
    assert_eq!(attr("coupling").as_deref(), Some("AC"));
    assert_eq!(attr("bandwidth_limit").as_deref(), Some("20 MHz"));
    assert_eq!(attr("probe").as_deref(), Some("10.0"));
}

#[test]
fn only_channels_with_several_segments_have_segments() {
    let paths = |name: &str| -> Vec<String> {
        read(&Rigol, Source::memory(bytes(name))).iter().map(|f| f.path.clone()).collect()
    };
    assert_eq!(paths("mso5000.bin"), ["CH1", "CH2/max", "CH2/min"]);
    assert_eq!(paths("mso5000_segments.bin"), ["CH1"]);
    assert_eq!(paths("dho1000.bin"), ["CH1", "CH4"]);
    let found = read(&Rigol, Source::memory(bytes("mso5000.bin")));
    assert_eq!(found[0].attr("trigger_time").as_deref(), Some("2024-05-06T07:08:09"));
    assert_eq!(found[0].attr("time_tag"), None);
}

/// A golden file with other bytes at `at`.
fn patched(name: &str, at: usize, bytes_at: &[u8]) -> Source {
    let mut all = bytes(name);
    all[at..at + bytes_at.len()].copy_from_slice(bytes_at);
    Source::memory(all)
}

#[test]
fn malformed_and_unsupported_files_give_the_right_error() {
    let mut default_header = bytes("mso5000.bin");
    default_header[12] = 144;
    default_header.truncate(300);
    let cases = [
        (Source::memory(b"RIFF0000".to_vec()), "rigol-001", ErrorKind::NotThisFormat),
        (Source::memory(bytes("ds1000b.wfm")[..90].to_vec()), "rigol-002", ErrorKind::Truncated),
        (patched("mso5000.bin", 2, b"77"), "rigol-003", ErrorKind::Unsupported),
        (patched("mso5000.bin", 12, &[9]), "rigol-004", ErrorKind::Malformed),
        (patched("mso5000.bin", 156, &[9]), "rigol-005", ErrorKind::Unsupported),
        (patched("mso5000.bin", 158, &[8]), "rigol-006", ErrorKind::Malformed),
        (patched("ds1000c.wfm", 28, &[255]), "rigol-007", ErrorKind::Truncated),
        (patched("ds4000.wfm", 4, b"DS7"), "rigol-008", ErrorKind::Unsupported),
        (patched("dho1000.wfm", 24 + 8, &[0, 0]), "rigol-009", ErrorKind::Malformed),
        (patched("dho1000.wfm", 38, &[0xff; 8]), "rigol-017", ErrorKind::Malformed),
        (Source::memory(default_header), "rigol-018", ErrorKind::Unsupported),
    ];
    for (source, code, kind) in cases {
        let error = Rigol.open(source, &OpenOptions::default()).err().unwrap();
        assert_eq!((error.code(), error.kind()), (code, kind), "{error}");
        assert!(error.offset().is_some());
    }
    let error =
        Rigol.open(patched("ds4000.wfm", 4, b"DS7"), &OpenOptions::default()).err().unwrap();
    assert!(error.to_string().contains("\"DS7A1435\" of Rigol"), "{error}");
}

#[test]
fn a_file_without_channels_is_a_warning() {
    let parsed = Rigol.open(patched("ds4000.wfm", 64, &[0]), &OpenOptions::default()).unwrap();
    assert_eq!(parsed.warnings[0].code, "rigol-013");
}
