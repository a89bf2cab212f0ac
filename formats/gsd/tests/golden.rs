//! The golden files of every version compared with their manifest, and the errors of the corrupt ones.

use std::path::PathBuf;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use spile_core::error::ErrorKind;
use spile_core::format::Checker as _;
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::source::Source;
use spile_gsd::wire::{Abi, Form};
use spile_gsd::{File, Gsd};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd")
}

fn manifest() -> Vec<(String, Json)> {
    let text = std::fs::read_to_string(folder().join("manifest.json")).unwrap();
    let all: Json = serde_json::from_str(&text).unwrap();
    all.as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

/// Files that were written by valid calls and must be readable.
fn good(name: &str) -> bool {
    !name.starts_with("corrupt/")
}

#[test]
fn every_entry_matches_the_manifest() {
    let (mut files, mut chunks, mut twins) = (0, 0, 0);
    for (name, want) in manifest().iter().filter(|(name, _)| good(name)) {
        let file = File::open(folder().join(name), &Limits::default()).unwrap();
        let header = file.header();
        let text = |key: &str| want["header"][key].as_str().unwrap();
        let number = |key: &str| want["header"][key].as_u64().unwrap();
        assert_eq!(header.version_text(), want["format"].as_str().unwrap(), "{name}");
        assert_eq!(header.application, text("application"), "{name}");
        assert_eq!(header.schema, text("schema"), "{name}");
        assert_eq!(u64::from(header.schema_version), number("schema_version"), "{name}");
        assert_eq!(header.index.location, number("index_location"), "{name}");
        assert_eq!(header.index.allocated, number("index_allocated_entries"), "{name}");
        assert_eq!(header.form.header_size(), want["header_size"].as_u64().unwrap(), "{name}");
        assert_eq!(header.form.entry_size(), want["entry_size"].as_u64().unwrap(), "{name}");
        if let Some(abi) = want["abi"].as_str() {
            let known = [("x86_64", Abi::X86_64), ("i386", Abi::I386), ("packed", Abi::Packed)];
            let abi = known.iter().find(|(name, _)| *name == abi).unwrap().1;
            assert_eq!(header.form, Form::V0_0_1(abi), "{name}");
        } else if !name.starts_with("edge/") {
            let names: Vec<&str> =
                want["names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
            assert_eq!(file.find_matching_names(""), names, "{name}");
        }
        assert_eq!(file.nframes().unwrap(), want["nframes"].as_u64().unwrap(), "{name}");
        assert_eq!(file.nchunks(), want["n_index_entries"].as_u64().unwrap(), "{name}");
        let mut wanted = want["chunks"].as_array().unwrap().iter();
        file.each_chunk(|chunk| {
            let chunk = chunk.unwrap_or_else(|e| panic!("{name}: {e}"));
            let want = wanted.next().unwrap();
            let number = |key: &str| want[key].as_u64().unwrap();
            assert_eq!(chunk.entry.frame, number("frame"), "{name}");
            // Names that the library cannot return are not in the manifest.
            if !name.starts_with("edge/empty") {
                assert_eq!(&*chunk.name, want["name"].as_str().unwrap(), "{name}");
            }
            assert_eq!(u64::from(chunk.entry.code), number("type"), "{name}");
            assert_eq!((chunk.entry.n, chunk.entry.m), (number("N"), number("M")), "{name}");
            assert_eq!(chunk.data.offset, number("location"), "{name}");
            assert_eq!(chunk.data.len, number("nbytes"), "{name}");
            if let Some(step) = want["step"].as_u64() {
                assert_eq!(chunk.entry.step, step, "{name}");
            }
            let sum = hex(&Sha256::digest(file.read_chunk(&chunk).unwrap()));
            assert_eq!(sum, want["sha256"].as_str().unwrap(), "{name}");
            // The chunk is found by frame and name; of two, the last one.
            let found = file.find_chunk(chunk.entry.frame, &chunk.name).unwrap().unwrap();
            assert_eq!((found.entry.frame, &found.name), (chunk.entry.frame, &chunk.name));
            // Truncated names have several ids.
            if found.entry.id == chunk.entry.id {
                assert!(found.number >= chunk.number, "{name}");
                twins += u64::from(found.number > chunk.number);
            } else {
                assert!(name.contains("/names") && chunk.name.len() == 63, "{name}");
            }
            chunks += 1;
            Ok(())
        })
        .unwrap();
        assert!(wanted.next().is_none(), "{name}");
        files += 1;
    }
    assert!(files >= 287 && chunks > 13_000, "{files} files, {chunks} chunks");
    assert!((1..30).contains(&twins), "{twins}");
}

#[test]
fn valid_files_have_no_errors_and_edge_cases_have_findings() {
    for (name, _) in manifest().iter().filter(|(name, _)| good(name)) {
        let source = Source::open(folder().join(name)).unwrap();
        let report = Gsd.check(&source, &Limits::default(), false).unwrap();
        let worst = report.worst();
        assert!(worst < Some(Severity::Error), "{name}: {:?}", report.findings);
    }
    let codes = |name: &str| -> Vec<&'static str> {
        let source = Source::open(folder().join(name)).unwrap();
        let report = Gsd.check(&source, &Limits::default(), false).unwrap();
        report.findings.iter().map(|f| f.code).collect()
    };
    let sparse = codes("edge/200_empty_frames_then_chunk_REFERENCE_CALLS_CORRUPT.gsd");
    assert_eq!(sparse, ["gsd-018"]);
    let unnamed = codes("edge/empty_chunk_name_REFERENCE_CALLS_CORRUPT.gsd");
    assert_eq!(unnamed, ["gsd-027", "gsd-027"]);
    assert_eq!(codes("code-v5.0.1/duplicate_name_in_frame.gsd"), ["gsd-029"]);
}

#[test]
fn corrupt_files_have_the_expected_errors() {
    use Severity::{Error, Note, Warning};
    let expected = [
        ("v001_bad_check", Some(Error), "gsd-004"),
        ("v001_bad_checksum_entry1", Some(Error), "gsd-013"),
        ("v001_frame_decreasing", Some(Error), "gsd-012"),
        ("v001_name_not_terminated", Some(Warning), "gsd-030"),
        ("v001_trunc_index", Some(Error), "gsd-005"),
        ("v001_version_2", Some(Error), "gsd-002"),
        // The name was changed to a unique one.
        ("v2_duplicate_names", None, ""),
        ("v2_entry0_N_overflow", Some(Error), "gsd-014"),
        ("v2_entry0_N_past_eof", Some(Error), "gsd-009"),
        ("v2_entry0_flags_1", Some(Error), "gsd-008"),
        ("v2_entry0_id_oob", Some(Error), "gsd-011"),
        ("v2_entry0_loc_negative", Some(Error), "gsd-010"),
        ("v2_entry0_type_0", Some(Error), "gsd-007"),
        ("v2_entry3_type_0_unprobed", Some(Error), "gsd-007"),
        ("v2_entry5_N_past_eof_unprobed", Some(Error), "gsd-009"),
        ("v2_entry5_frame_decreasing", Some(Error), "gsd-012"),
        ("v2_entry5_loc_in_header", Some(Error), "gsd-010"),
        ("v2_entry5_loc_zero_hole", Some(Error), "gsd-015"),
        ("v2_index_alloc_overflow", Some(Error), "gsd-005"),
        ("v2_index_alloc_zero", Some(Error), "gsd-005"),
        ("v2_index_loc_zero", Some(Error), "gsd-005"),
        ("v2_namelist_alloc_zero", Some(Error), "gsd-006"),
        ("v2_namelist_not_terminated", Some(Warning), "gsd-024"),
        ("v2_namelist_past_eof", Some(Error), "gsd-006"),
        ("v2_reserved_nonzero", Some(Note), "gsd-021"),
        ("v2_trunc_in_index", Some(Error), "gsd-005"),
        ("v2_unsorted_ids", Some(Warning), "gsd-028"),
        ("v2_version_0_2", Some(Error), "gsd-002"),
        ("v2_version_2_7", Some(Note), "gsd-020"),
        ("v2_version_3_0", Some(Error), "gsd-002"),
    ];
    let corrupt = manifest().iter().filter(|(name, _)| !good(name)).count();
    assert_eq!(corrupt, expected.len() + 1);
    for (name, severity, code) in expected {
        let source = Source::open(folder().join(format!("corrupt/{name}.gsd"))).unwrap();
        let report = Gsd.check(&source, &Limits::default(), false).unwrap();
        assert_eq!(report.worst(), severity, "{name}: {:?}", report.findings);
        let found = report.findings.iter().any(|f| f.code == code);
        assert!(found || code.is_empty(), "{name}: {:?}", report.findings);
        assert!(report.findings.iter().all(|f| f.offset.is_some()), "{name}");
    }
    let empty = Source::open(folder().join("corrupt/v2_empty_file.gsd")).unwrap();
    let error = Gsd.check(&empty, &Limits::default(), false).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::NotThisFormat, "gsd-001"));
}

#[test]
fn chunks_out_of_order_are_still_found() {
    let file =
        File::open(folder().join("corrupt/v2_unsorted_ids.gsd"), &Limits::default()).unwrap();
    let mut found = 0;
    file.each_chunk(|chunk| {
        let chunk = chunk?;
        let again = file.find_chunk(chunk.entry.frame, &chunk.name)?.unwrap();
        assert_eq!(again, chunk);
        found += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(found, 17);
}
