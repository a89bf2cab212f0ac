//! The golden files, field by field against their manifest.

use std::path::PathBuf;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, FormatWriter as _};
use spile_core::layout::Linear;
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::sink::{Overwrite, Sink};
use spile_core::{Dataset, OpenOptions};
use spile_taf::wire::Spelling;
use spile_taf::{File, Taf};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/taf")
}

fn manifest(section: &str) -> Vec<(String, Json)> {
    let text = std::fs::read_to_string(folder().join("manifest.json")).unwrap();
    let all: Json = serde_json::from_str(&text).unwrap();
    all[section].as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

/// Bits of a number of the manifest, which writes non-finite ones as text or as hexadecimal bits.
fn number(json: &Json) -> u64 {
    let text = json.as_str().unwrap();
    match text.strip_prefix("0x") {
        Some(bits) => u64::from_str_radix(bits, 16).unwrap(),
        None => text.parse::<f64>().unwrap().to_bits(),
    }
}

#[test]
fn every_good_file_matches_the_manifest() {
    let files = manifest("good");
    assert!(files.len() >= 54);
    for (name, want) in files {
        let path = folder().join(want["file"].as_str().unwrap());
        let file = File::open(&path, &Limits::default()).unwrap_or_else(|e| panic!("{e}"));
        let header = file.header();
        let version = (want["version"][0].as_u64(), want["version"][1].as_u64());
        assert_eq!(version, (Some(header.version.0.into()), Some(header.version.1.into())));
        assert_eq!(header.intercept.to_bits(), number(&want["intercept"]), "{name}");
        assert_eq!(header.slope.to_bits(), number(&want["slope"]), "{name}");
        assert_eq!(header.map().is_some(), want["mapped"].as_bool().unwrap(), "{name}");
        let lengths: Vec<u64> =
            want["dims"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
        assert_eq!(header.shape().lengths(), lengths, "{name}");
        for (d, grid) in header.dimensions.iter().zip(want["grid"].as_array().unwrap()) {
            for (got, want) in [(d.start, &grid[0]), (d.step, &grid[1])] {
                let want = f64::from_bits(number(want));
                assert!(got == want || (got.is_nan() && want.is_nan()), "{name}");
            }
        }
        assert_eq!(header.data_offset(), want["data_offset"].as_u64().unwrap(), "{name}");
        assert_eq!(header.comment_offset(), want["comment_offset"].as_u64().unwrap(), "{name}");
        assert_eq!(hex(&file.comments().unwrap()), want["comment_hex"].as_str().unwrap(), "{name}");

        let array = file.array().unwrap();
        let raw = array.read_bytes(&Selection::all(), Axes::Stored).unwrap();
        assert_eq!(hex(&Sha256::digest(&raw)), want["sha256_raw"].as_str().unwrap(), "{name}");
        let (values, _) = file.read(&Selection::all()).unwrap();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(hex(&Sha256::digest(&bytes)), want["sha256_f64"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn every_good_file_is_written_back_byte_for_byte() {
    let temp = tempfile::tempdir().unwrap();
    let limits = Limits::default();
    let mut identical = 0;
    for (name, want) in manifest("good") {
        let path = folder().join(want["file"].as_str().unwrap());
        let file = File::open(&path, &limits).unwrap();
        let copy = temp.path().join(&name);
        let mut sink = Sink::create(&copy, Overwrite::Never).unwrap();
        let dataset = Dataset::open_path(&Taf, &path, &OpenOptions::default()).unwrap();
        Taf.write(&dataset, &mut sink, &spile_core::format::WriteOptions::default()).unwrap();
        sink.commit().unwrap();
        // Canonical type name, current version, and infinity for unmapped data.
        let header = file.header();
        let canonical = header.spelling == Spelling::Canonical
            && header.version == (1, 0)
            && (header.map().is_some()
                || (header.intercept, header.slope) == (f64::INFINITY, f64::INFINITY));
        if canonical {
            assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&copy).unwrap(), "{name}");
            identical += 1;
        }
    }
    assert!(identical >= 40, "{identical}");
}

#[test]
fn the_examples_are_those_of_the_report() {
    let temp = tempfile::tempdir().unwrap();
    for (dimensions, golden) in [(2, "example_2d_101x3"), (3, "example_3d_101x3x2")] {
        let path = temp.path().join(golden);
        spile_taf::ops::example(&path, dimensions, Overwrite::Never).unwrap();
        let want = std::fs::read(folder().join(format!("good/{golden}.taf"))).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), want, "{golden}");
    }
}

#[test]
fn every_bad_file_gives_the_right_error_at_the_right_byte() {
    use ErrorKind::{Malformed, NotThisFormat, Truncated};
    let expected = [
        ("n_0", Malformed, "taf-005", 1048),
        ("n_huge", Malformed, "taf-005", 1048),
        ("n_beyond_file", Truncated, "taf-003", 1056),
        ("magic_nospace", NotThisFormat, "taf-001", 3),
        ("magic_nonewline", Malformed, "taf-002", 7),
        ("short_magic", Truncated, "taf-003", 4),
        ("trunc_opening", Truncated, "taf-003", 8),
        ("trunc_header", Truncated, "taf-003", 1056),
        ("size_beyond_file", Truncated, "taf-007", 1104),
        ("size_beyond_by_1", Truncated, "taf-007", 1104),
        ("overflow_product", Malformed, "taf-006", 1080),
        ("overflow_to_zero", Malformed, "taf-006", 1080),
        ("overflow_bytes", Malformed, "taf-006", 1080),
        ("overflow_length_u64max", Malformed, "taf-006", 1056),
        ("type_unknown", Malformed, "taf-004", 1024),
        ("type_flt16", Malformed, "taf-004", 1024),
        ("type_empty", Malformed, "taf-004", 1024),
        ("type_double", Malformed, "taf-004", 1024),
        ("type_single", Malformed, "taf-004", 1024),
        ("type_leading_nul", Malformed, "taf-004", 1024),
        ("type_garbage_after_nul", Malformed, "taf-004", 1024),
        ("legacy_24", Malformed, "taf-004", 1024),
        ("bigendian", Malformed, "taf-005", 1048),
    ];
    let files = manifest("bad");
    assert_eq!(files.len(), expected.len() + 1);
    for (name, kind, code, offset) in expected {
        let path = folder().join(format!("bad/{name}.taf"));
        let error = File::open(&path, &Limits::default()).err().unwrap();
        let got = (error.kind(), error.code(), error.offset());
        assert_eq!(got, (kind, code, Some(offset)), "{name}: {error}");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
    // A length of zero makes the array empty, whatever the other lengths are.
    let empty = folder().join("bad/overflow_zero_dim.taf");
    let file = File::open(&empty, &Limits::default()).unwrap();
    let array = file.array().unwrap();
    assert!(array.read_f64(&Selection::all(), Axes::Stored).unwrap().is_empty());
    assert_eq!(file.read(&Selection::all()).unwrap_err().kind(), ErrorKind::Limit);
    let report = Taf.check(file.source(), &Limits::default(), false).unwrap();
    assert_eq!(report.findings[0].code, "taf-020");
}

#[test]
fn mapping_rounds_twice_and_is_never_fused() {
    // 0.1 * 3 rounds up; a fused multiply-add does not round and gives a negative value.
    let map = Linear::new(-0.300_000_000_000_000_04, 0.1);
    assert_ne!(0.1_f64.mul_add(3.0, map.intercept), 0.0);
    assert_eq!(map.apply(3.0), 0.0);
    let mut values = Vec::new();
    spile_core::convert::to_f64(spile_core::dtype::DType::U8, Some(map), &[3; 100], &mut values);
    assert_eq!(values, [0.0; 100]);
}
