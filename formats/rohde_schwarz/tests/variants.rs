//! Files of both kinds that are built here, and damaged copies of them.

use std::fs;
use std::path::Path;

use spile_core::error::ErrorKind;
use spile_core::{Dataset, Format as _, OpenOptions, Result, Source};
use spile_rohde_schwarz::RohdeSchwarz;

/// A description with the given properties besides those that all files have.
fn description(format: &str, acquisitions: u32, rows: [u32; 3], channels: &[&str]) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<Database FWVersion=\"\" SaveItemType=\"Data\">\n<Group>\n",
    );
    let mut prop = |name: &str, rest: &str| {
        text.extend(["<Prop Avail=\"0\" Name=\"", name, "\" ", rest, "/>\n"]);
    };
    prop("SignalFormat", &format!("Value=\"eRS_SIGNAL_FORMAT_{format}\""));
    prop("TraceType", "Value=\"eRS_TRACE_TYPE_NORMAL\"");
    prop("ByteOrder", "Value=\"eRS_BYTE_ORDER_MSB_FIRST\"");
    prop("BaseUnit", "Value=\"eRS_UNIT_LEVEL_V\"");
    for (name, value) in [
        ("SignalHardwareRecordLength", rows[0]),
        ("LeadingSettlingSamples", rows[1]),
        ("RecordLength", rows[2]),
        ("NumberOfAcquisitions", acquisitions),
        ("NofQuantisationLevels", 200),
    ] {
        prop(name, &format!("Value=\"{value}\""));
    }
    prop("XStart", "Value=\"-1e-6\"");
    prop("XStop", &format!("Value=\"{:e}\"", -1e-6 + 1e-7 * f64::from(rows[2])));
    prop("MultiChannelExport", "Value=\"eRS_ONOFF_ON\"");
    let each = |value: &dyn Fn(usize) -> String| -> String {
        let all: Vec<String> = (0..4).map(|k| format!("I_{k}=\"{}\"", value(k))).collect();
        all.join(" ")
    };
    let on = |k: usize| if k < channels.len() { "eRS_ONOFF_ON" } else { "eRS_ONOFF_OFF" };
    prop("MultiChannelExportState", &each(&|k| on(k).into()));
    let source = |k: usize| channels.get(k).copied().unwrap_or("NONE");
    prop("MultiChannelSource", &each(&|k| format!("eRS_SIGNAL_SOURCE_{}", source(k))));
    prop(
        "MultiChannelVerticalScale",
        &format!("StepFactor=\"10\" {}", each(&|k| format!("{}", 0.5 + k as f64))),
    );
    prop("MultiChannelVerticalOffset", &each(&|_| "0.25".into()));
    prop("MultiChannelVerticalPosition", &each(&|k| format!("{k}")));
    text + "</Group>\n</Database>\n"
}

fn samples(code: u32, rows: u32, values: &[u8]) -> Vec<u8> {
    [&code.to_le_bytes()[..], &rows.to_le_bytes(), values].concat()
}

/// Writes both files and returns their folder.
fn pair(description: &str, samples: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.bin"), description).unwrap();
    fs::write(folder.path().join("a.Wfm.bin"), samples).unwrap();
    folder
}

fn open(folder: &Path, name: &str) -> Result<Dataset> {
    Dataset::open(&RohdeSchwarz, Source::open(folder.join(name))?, &OpenOptions::default())
}

#[test]
fn samples_of_an_adc_are_scaled_and_either_file_can_be_opened() {
    // Four rows of two channels; the first row is not part of the record.
    let values: Vec<u8> = [9_i8, 9, 10, 20, -10, 40, 100, -100].map(|v| v as u8).to_vec();
    let text = description("INT8BIT", 1, [4, 1, 3], &["CH2_TR1", "MATH1"]);
    let folder = pair(&text, &samples(0, 4, &values));
    for name in ["a.bin", "a.Wfm.bin"] {
        let file = open(folder.path(), name).unwrap();
        let first = file.array("CH2").unwrap();
        // 0.25 - 0 * 0.5 + 10 * 0.5 / 200 * x
        assert_eq!(first.read::<Vec<f64>>("...").unwrap(), [0.5, 0.0, 2.75]);
        assert_eq!(first.units(), Some("V"));
        // 0.25 - 1 * 1.5 + 10 * 1.5 / 200 * x
        let second: Vec<f64> = file.array("MATH1").unwrap().read("...").unwrap();
        assert_eq!(second, [0.25, 1.75, -8.75]);
    }
}

#[test]
fn acquisitions_are_one_array_with_all_rows() {
    let values: Vec<u8> = (0..12).flat_map(|k| (k as f32).to_le_bytes()).collect();
    let folder = pair(&description("FLOAT", 3, [4, 1, 2], &["C1W1"]), &samples(4, 4, &values));
    let file = open(folder.path(), "a.bin").unwrap();
    let array = file.array("CH1").unwrap();
    assert_eq!(
        (array.shape().lengths(), array.dims()),
        (&[3, 4][..], &["segment".to_string(), "time".into()][..])
    );
    assert_eq!(array.read::<Vec<f64>>("1, :").unwrap(), [4.0, 5.0, 6.0, 7.0]);
    let (_, _, desc) = file.tree().arrays().next().unwrap();
    let spile_core::Coord::Uniform { start, step } = desc.coords[1] else { panic!() };
    assert!((start + 1.1e-6).abs() < 1e-15 && (step - 1e-7).abs() < 1e-15, "{start} {step}");
}

#[test]
fn times_that_are_not_uniform_are_an_array() {
    let rows = |last: f64| -> Vec<u8> {
        let times = [-1e-6, -9e-7, last];
        times.iter().flat_map(|t| [&t.to_le_bytes()[..], &2_f32.to_le_bytes()].concat()).collect()
    };
    let text = description("XYDOUBLEFLOAT", 1, [3, 0, 3], &["CH1_TR1"]);
    let even = pair(&text, &samples(6, 3, &rows(-8e-7)));
    assert!(open(even.path(), "a.bin").unwrap().array("time").is_err());
    let uneven = pair(&text, &samples(6, 3, &rows(-7e-7)));
    let file = open(uneven.path(), "a.bin").unwrap();
    assert_eq!(file.array("time").unwrap().read::<Vec<f64>>("...").unwrap(), [-1e-6, -9e-7, -7e-7]);
    assert_eq!(file.warnings()[0].code, "rs-013");
}

#[test]
fn errors_name_what_is_missing() {
    let text = description("FLOAT", 1, [2, 0, 2], &["CH1_TR1"]);
    let good = samples(4, 2, &[0; 8]);
    let cases = [
        (text.clone(), samples(4, 2, &[0; 7]), "rs-011", ErrorKind::Truncated),
        (text.clone(), good[..6].to_vec(), "rs-002", ErrorKind::Truncated),
        (text.clone(), samples(1, 2, &[0; 8]), "rs-008", ErrorKind::Malformed),
        (text.replace("XStart", "Start"), good.clone(), "rs-003", ErrorKind::Malformed),
        (text.replace("-1e-6", "soon"), good.clone(), "rs-004", ErrorKind::Malformed),
        (text.replace("\"2\"", "\"-2\""), good.clone(), "rs-005", ErrorKind::Malformed),
        (text.replace("NORMAL", "ENVELOPE"), good.clone(), "rs-007", ErrorKind::Unsupported),
    ];
    for (text, samples, code, kind) in cases {
        let folder = pair(&text, &samples);
        let error = open(folder.path(), "a.bin").err().unwrap();
        assert_eq!((error.code(), error.kind()), (code, kind), "{error}");
    }
    let folder = pair(&text, &good);
    for (kept, lost) in [("a.bin", "a.Wfm.bin"), ("a.Wfm.bin", "a.bin")] {
        let saved = fs::read(folder.path().join(lost)).unwrap();
        fs::remove_file(folder.path().join(lost)).unwrap();
        let error = open(folder.path(), kept).err().unwrap();
        assert_eq!(error.code(), "rs-006");
        assert!(
            error.to_string().contains(lost) && error.to_string().contains("Rohde & Schwarz"),
            "{error}"
        );
        fs::write(folder.path().join(lost), saved).unwrap();
    }
}

#[test]
fn damaged_files_give_an_error_or_values() {
    let text = description("XYDOUBLEFLOAT", 2, [5, 1, 3], &["CH1_TR1", "CH2_TR1"]);
    let data = samples(6, 5, &[7; 160]);
    let check = |text: &[u8], data: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.bin"), text).unwrap();
        fs::write(folder.path().join("a.Wfm.bin"), data).unwrap();
        match open(folder.path(), "a.bin") {
            Ok(file) => {
                for (id, ..) in file.arrays() {
                    let _ = file.array_at(id).and_then(|array| array.read::<Vec<f64>>("..."));
                }
            }
            Err(error) => assert!(!error.code().is_empty(), "{error}"),
        }
    };
    check(text.as_bytes(), &data);
    for at in (0..text.len()).step_by(7) {
        for byte in [b'9', b'"', b'>', 0xff] {
            let mut damaged = text.clone().into_bytes();
            damaged[at] = byte;
            check(&damaged, &data);
        }
        check(&text.as_bytes()[..at], &data);
    }
    for at in 0..data.len() {
        check(text.as_bytes(), &data[..at]);
        let mut damaged = data.clone();
        damaged[at] = 0xff;
        check(text.as_bytes(), &damaged);
    }
}

#[test]
fn random_bytes_are_not_recognised() {
    let head = |bytes: &[u8], len| RohdeSchwarz.probe(spile_core::format::Head { bytes, len });
    assert_eq!(head(&[4, 0, 0, 0, 2, 0, 0, 0], 17), 0);
    assert_eq!(head(&[0; 64], 64), 0);
    assert_eq!(head(b"<?xml version=\"1.0\"?><Root>", 27), 0);
}
