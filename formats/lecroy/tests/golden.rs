//! Golden files match the manifest in samples, scale, grid and counts; variants without a golden file are built here.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{Found, check_starting, folder, read};
use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Format as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::source::Source;
use spile_lecroy::LeCroy;

#[test]
fn golden_files_match_the_manifest() {
    let start = |found: &Found| found.grid().0 + found.offsets.first().copied().unwrap_or(0.0);
    check_starting(&LeCroy, &folder("lecroy"), start);
}

#[test]
fn a_sequence_is_one_array_with_the_triggers_as_coordinates() {
    let file = folder("lecroy").join("lecroy_be_sequence4_user.trc");
    let file =
        Dataset::open(&LeCroy, Source::open(file).unwrap(), &OpenOptions::default()).unwrap();
    let trace = file.array("trace").unwrap();
    assert_eq!(
        (trace.shape().lengths(), trace.dims()),
        (&[4, 250][..], &["segment".into(), "time".into()][..])
    );
    let attrs = trace.attrs();
    assert_eq!(trace.units(), Some("V"));
    assert_eq!(attrs.get_str("time_units"), Some("s"));
    assert_eq!(attrs.get_str("instrument"), Some("LECROYSYN"));
    assert_eq!(attrs.get_str("trigger_time"), Some("2023-08-07T12:34:12.5"));
    assert_eq!(attrs.get_str("coordinates"), Some("trigger_offset time_tag"));
    let offsets = file.array("trigger_offset").unwrap().values().unwrap();
    assert_eq!(offsets.len(), 4);
    for (offset, expected) in offsets.iter().zip([0.0, -1e-10, 2e-10, 0.0]) {
        assert!((offset - expected).abs() < 1e-22, "{offset}");
    }
    assert_eq!(file.array("time_tag").unwrap().units(), Some("s"));
}

#[test]
fn the_settings_of_the_instrument_are_attributes() {
    let file = valid().i16(172, 8).i16(326, 2).f32(328, 10.0).i16(334, 1).i16(344, 1).i16(332, 15);
    let file = file.i16(324, 20).i16(318, 99).f32(312, f32::NAN).push_i16(&[1, 2]);
    let found = &read(&LeCroy, file.source())[0];
    for (name, expected) in [
        ("nominal_bits", Some("8")),
        ("coupling", Some("DC 1 MΩ")),
        ("probe_attenuation", Some("10.0")),
        ("bandwidth_limit", Some("on")),
        ("source", Some("C2")),
        ("vertical_scale", Some("0.1 V/div")),
        ("time_per_division", Some("5e-6 s/div")),
        ("processing", Some("99")),
        ("acquisition_duration", None),
    ] {
        assert_eq!(found.attr(name).as_deref(), expected, "{name}");
    }
}

/// Builder of a file in one byte order.
struct Builder {
    bytes: Vec<u8>,
    little: bool,
}

impl Builder {
    fn new(template: &str, size: u32, little: bool) -> Self {
        let mut builder = Self { bytes: vec![0; size as usize], little };
        builder.bytes[..8].copy_from_slice(b"WAVEDESC");
        builder.bytes[16..16 + template.len()].copy_from_slice(template.as_bytes());
        builder.i16(34, i16::from(little)).i32(36, size as i32)
    }

    fn put<const N: usize>(mut self, at: usize, big: [u8; N]) -> Self {
        let mut bytes = big;
        if self.little {
            bytes.reverse();
        }
        self.bytes[at..at + N].copy_from_slice(&bytes);
        self
    }

    fn i16(self, at: usize, value: i16) -> Self {
        self.put(at, value.to_be_bytes())
    }

    fn i32(self, at: usize, value: i32) -> Self {
        self.put(at, value.to_be_bytes())
    }

    fn f32(self, at: usize, value: f32) -> Self {
        self.put(at, value.to_be_bytes())
    }

    fn f64(self, at: usize, value: f64) -> Self {
        self.put(at, value.to_be_bytes())
    }

    fn push_f64(mut self, value: f64) -> Self {
        let bytes = if self.little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn push_i16(mut self, values: &[i16]) -> Self {
        let little = self.little;
        let bytes = values.iter().map(|v| if little { v.to_le_bytes() } else { v.to_be_bytes() });
        self.bytes.extend(bytes.flatten());
        self
    }

    fn source(self) -> Source {
        Source::memory(self.bytes)
    }
}

#[test]
fn template_1_0_is_read_in_both_byte_orders() {
    for little in [true, false] {
        let file = Builder::new("LECROY_1_0", 320, little)
            .i16(32, 1)
            .i32(48, 8)
            .i32(92, 4)
            .i32(96, 3)
            .f32(120, 0.5)
            .f32(134, 1e-9)
            .f64(138, -2e-9)
            .f32(290, 0.25)
            .push_i16(&[1, -2, 300, -400]);
        let found = &read(&LeCroy, file.source())[0];
        assert_eq!(found.values, [0.25, -1.25, 149.75, -200.25]);
        assert_eq!(found.grid(), (-2e-9, f64::from(1e-9_f32)));
    }
}

#[test]
fn template_1_0_sequences_have_trigger_times() {
    for little in [true, false] {
        let file = Builder::new("LECROY_1_0", 320, little)
            .i16(32, 1)
            .i32(40, 16)
            .i32(44, 32)
            .i32(48, 8)
            .i32(92, 4)
            .i32(108, 2)
            .f32(120, 1.0);
        // 16 bytes of user text, then time and offset of both segments.
        let file = [0.0, 0.0, 0.0, -1.0, 5.0, -2.0].into_iter().fold(file, Builder::push_f64);
        let source = file.push_i16(&[1, 2, 3, 4]).source();
        let file = Dataset::open(&LeCroy, source, &OpenOptions::default()).unwrap();
        let values = |name: &str| file.array(name).unwrap().values().unwrap();
        assert_eq!(values("data"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(
            (values("time_tag"), values("trigger_offset")),
            (vec![0.0, 5.0], vec![0.0, -1.0])
        );
        let time = file.array("data").unwrap().coord("time").unwrap();
        assert_eq!(time.uniform(), Some((-1.0, 0.0)));
    }
}

/// A valid header for two 16-bit samples.
fn valid() -> Builder {
    Builder::new("LECROY_2_3", 346, true).i16(32, 1).i32(60, 4).i32(116, 2).f32(156, 1.0)
}

#[test]
fn blocks_between_descriptor_and_samples_are_skipped() {
    let file = valid().i32(40, 8).i32(52, 16);
    let file = [0.0, 0.0, 0.0].into_iter().fold(file, Builder::push_f64).push_i16(&[7, 8]);
    assert_eq!(read(&LeCroy, file.source())[0].values, [7.0, 8.0]);
}

#[test]
fn a_second_array_is_a_second_record() {
    let file = valid().i32(64, 4).push_i16(&[1, 2, 3, 4]);
    let found = read(&LeCroy, file.source());
    assert_eq!((&found[0].values[..], &found[1].values[..]), (&[1.0, 2.0][..], &[3.0, 4.0][..]));
    assert_eq!((found[0].path.as_str(), found[1].path.as_str()), ("data/first", "data/second"));
}

#[test]
fn a_remote_control_header_is_skipped() {
    let mut bytes = b"C1:WF ALL,#9000000350".to_vec();
    bytes.extend(valid().push_i16(&[5, -6]).bytes);
    assert_eq!(read(&LeCroy, Source::memory(bytes))[0].values, [5.0, -6.0]);
}

#[test]
fn malformed_files_give_the_right_error() {
    let cases = [
        (valid().i32(116, 3).push_i16(&[1, 2]), "lecroy-006", ErrorKind::Truncated),
        (valid().i32(116, -1).push_i16(&[1, 2]), "lecroy-005", ErrorKind::Malformed),
        (valid().i32(40, i32::MAX).push_i16(&[1, 2]), "lecroy-002", ErrorKind::Truncated),
        (valid().i16(32, 2).push_i16(&[1, 2]), "lecroy-004", ErrorKind::Malformed),
        (valid().i32(36, 100).push_i16(&[1, 2]), "lecroy-009", ErrorKind::Malformed),
        (
            Builder::new("LECROY_9_9", 346, true).push_i16(&[1, 2]),
            "lecroy-003",
            ErrorKind::Unsupported,
        ),
        (
            valid().i32(144, 2).i32(48, 16).push_f64(0.0).push_f64(0.0).push_i16(&[1, 2]),
            "lecroy-007",
            ErrorKind::Malformed,
        ),
    ];
    for (file, code, kind) in cases {
        let error = LeCroy.open(file.source(), &OpenOptions::default()).err().unwrap();
        assert_eq!((error.code(), error.kind()), (code, kind), "{error}");
        assert!(error.offset().is_some());
    }
    // A huge number of empty segments uses no memory.
    let many = valid().i32(116, i32::MAX).i32(144, i32::MAX).push_i16(&[1]);
    assert!(LeCroy.open(many.source(), &OpenOptions::default()).is_err());
    let longer = valid().i32(60, 6).push_i16(&[1, 2, 3]).source();
    let report = LeCroy.check(&longer, &Limits::default(), false).unwrap();
    assert_eq!(report.findings[0].code, "lecroy-010");
    assert_eq!(report.worst(), Some(Severity::Warning));
}
