//! Golden files match the manifest in samples, scale, grid and counts; variants without a golden file are built here.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder, read};
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Format as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::registry::Registry;
use spile_core::source::Source;
use spile_keysight::Keysight;

static FORMAT: Keysight = Keysight { hdf5: &spile_hdf5::Hdf5 };

#[test]
fn golden_files_match_the_manifest() {
    check_all(&FORMAT, &folder("keysight"));
}

#[test]
fn an_hdf5_file_is_recognised_by_its_content() {
    static REGISTRY: Registry = Registry(&[&spile_hdf5::Hdf5, &FORMAT]);
    let name = |path: &std::path::Path| {
        let source = Source::open(path).unwrap();
        let opened = REGISTRY.open(source.clone(), &OpenOptions::default()).unwrap();
        assert_eq!(REGISTRY.probe(&source).unwrap().info().name, opened.format().unwrap().name);
        opened.format().unwrap().name
    };
    for file in ["keysight_f32_1ch.h5", "keysight_i16_2ch.h5", "keysight_i16_seg3_onegroup.h5"] {
        assert_eq!(name(&folder("keysight").join(file)), "keysight", "{file}");
    }
    let others = spile_core::testkit::files(folder("hdf5"));
    let others = others.iter().filter(|f| f.extension().is_some_and(|e| e == "h5"));
    assert!(others.map(|file| assert_eq!(name(file), "hdf5")).count() > 3);
}

#[test]
fn records_of_hdf5_files_have_the_common_names_and_attributes() {
    let file = folder("keysight").join("keysight_i16_seg3_onegroup.h5");
    let found = read(&FORMAT, Source::open(file).unwrap());
    let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["Channel 1/segment1", "Channel 1/segment2", "Channel 1/segment3"]);
    assert_eq!(found[0].attr("units").as_deref(), Some("V"));
    assert_eq!(found[0].attr("time_units").as_deref(), Some("s"));
    assert_eq!(found[0].attr("instrument").as_deref(), Some("MSOS804A"));
}

/// A waveform: type, segment number, and buffers of (type, bytes).
type Wave<'a> = (u32, u32, &'a [(u16, Vec<u8>)]);

fn file(version: &str, header: u32, waves: &[Wave<'_>]) -> Vec<u8> {
    let wide = version == "03";
    let length = |out: &mut Vec<u8>, n: u64| {
        out.extend(&n.to_le_bytes()[..if wide { 8 } else { 4 }]);
    };
    let mut body = Vec::new();
    for (kind, segment, buffers) in waves {
        let mut head = vec![0; header as usize];
        let size = if buffers.first().is_some_and(|b| b.0 == 6) { 1 } else { 4 };
        let points = buffers.first().map_or(0, |b| b.1.len() / size) as u32;
        let fields = [header, *kind, buffers.len() as u32, points, 1];
        for (k, field) in fields.iter().enumerate() {
            head[4 * k..4 * k + 4].copy_from_slice(&field.to_le_bytes());
        }
        head[32..40].copy_from_slice(&1e-9_f64.to_le_bytes());
        head[40..48].copy_from_slice(&(-5e-9_f64).to_le_bytes());
        head[48..56].copy_from_slice(&[2, 0, 0, 0, 1, 0, 0, 0]);
        head[112..115].copy_from_slice(b"Ch1");
        if header >= 140 {
            head[136..140].copy_from_slice(&segment.to_le_bytes());
        }
        body.extend(head);
        for (kind, data) in *buffers {
            body.extend(if wide { 16_u32 } else { 12 }.to_le_bytes());
            body.extend(kind.to_le_bytes());
            body.extend(if *kind == 6 { 1_u16 } else { 4 }.to_le_bytes());
            length(&mut body, data.len() as u64);
            body.extend(data);
        }
    }
    let mut out = format!("AG{version}").into_bytes();
    let own = if wide { 16 } else { 12 };
    length(&mut out, own + body.len() as u64);
    out.extend((waves.len() as u32).to_le_bytes());
    out.extend(body);
    out
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn every_version_and_header_length_is_read() {
    for version in ["01", "03", "10"] {
        for header in [128, 140, 152] {
            let buffers = [(1, floats(&[1.5, -2.5]))];
            let bytes = file(version, header, &[(1, 0, &buffers), (3, 0, &buffers)]);
            let found = read(&FORMAT, Source::memory(&bytes[..]));
            assert_eq!(found.len(), 2);
            assert_eq!((found[0].path.as_str(), found[1].path.as_str()), ("Ch1", "Ch1~2"));
            for one in &found {
                assert_eq!((&one.values[..], one.grid()), (&[1.5, -2.5][..], (-5e-9, 1e-9)));
            }
            let source = Source::memory(bytes);
            let report = FORMAT.check(&source, &Limits::default(), true).unwrap();
            assert!(report.findings.is_empty(), "{report:?}");
        }
    }
}

#[test]
fn segments_extremes_and_logic_have_distinct_names() {
    let peaks = [(3, floats(&[0.0, -1.0])), (2, floats(&[2.0, 3.0]))];
    let logic = [(6, vec![1, 2, 255])];
    let bytes = file("03", 140, &[(2, 1, &peaks), (2, 2, &peaks), (6, 0, &logic)]);
    let found = read(&FORMAT, Source::memory(bytes));
    let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["Ch1/min", "Ch1/max", "Ch1~2"]);
    assert_eq!(found[0].desc.shape.lengths(), [2, 2]);
    assert_eq!(found[2].values, [1.0, 2.0, 255.0]);
    assert_eq!(found[1].values, [2.0, 3.0, 2.0, 3.0]);
    assert_eq!(found[2].attr("units"), None);
}

#[test]
fn malformed_files_give_the_right_error() {
    let one = [(1, floats(&[1.0, 2.0]))];
    let valid = file("10", 140, &[(1, 0, &one)]);
    let change = |at: usize, value: u8| {
        let mut bytes = valid.clone();
        bytes[at] = value;
        bytes
    };
    // The buffer header is at byte 152.
    let cases = [
        (change(2, b'2'), "keysight-003", ErrorKind::Unsupported),
        (change(8, 2), "keysight-002", ErrorKind::Truncated),
        (change(12, 100), "keysight-004", ErrorKind::Malformed),
        (change(12 + 8, 2), "keysight-002", ErrorKind::Truncated),
        (change(152, 8), "keysight-004", ErrorKind::Malformed),
        (change(152 + 4, 5), "keysight-005", ErrorKind::Unsupported),
        (change(152 + 6, 2), "keysight-006", ErrorKind::Malformed),
        (change(152 + 8, 12), "keysight-007", ErrorKind::Truncated),
        (change(152 + 11, 255), "keysight-007", ErrorKind::Truncated),
    ];
    for (bytes, code, kind) in cases {
        let error = FORMAT.open(Source::memory(bytes), &OpenOptions::default()).err().unwrap();
        assert_eq!((error.code(), error.kind()), (code, kind), "{error}");
        assert!(error.offset().is_some());
    }
    // Huge numbers of absent waveforms or buffers use no memory.
    for at in [8, 20] {
        let mut bytes = valid.clone();
        bytes[at..at + 4].fill(0xff);
        assert!(FORMAT.open(Source::memory(bytes), &OpenOptions::default()).is_err());
    }
    let short = Source::memory(change(12 + 12, 3));
    let report = FORMAT.check(&short, &Limits::default(), false).unwrap();
    assert_eq!(report.findings[0].code, "keysight-012");
}
