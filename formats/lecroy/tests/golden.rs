//! Golden files match the manifest in samples, scale, grid and counts; variants without a golden file are built here.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder, read};
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Format as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::source::Source;
use spile_lecroy::LeCroy;

#[test]
fn golden_files_match_the_manifest() {
    check_all(&LeCroy, &folder("lecroy"));
}

#[test]
fn segments_have_trigger_attributes() {
    let file = folder("lecroy").join("lecroy_be_sequence4_user.trc");
    let found = read(&LeCroy, Source::open(file).unwrap());
    let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["trace/segment1", "trace/segment2", "trace/segment3", "trace/segment4"]);
    let second = &found[1];
    assert_eq!(second.attr("units").as_deref(), Some("V"));
    assert_eq!(second.attr("time_units").as_deref(), Some("s"));
    assert_eq!(second.attr("instrument").as_deref(), Some("LECROYSYN"));
    assert_eq!(second.attr("trigger_time").as_deref(), Some("2023-08-07T12:34:12.5"));
    assert!(second.attr("time_tag").is_some());
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
        let found = read(&LeCroy, file.push_i16(&[1, 2, 3, 4]).source());
        let grids: Vec<f64> = found.iter().map(|f| f.grid().0).collect();
        assert_eq!((grids, &found[1].values[..]), (vec![-1.0, -2.0], &[3.0, 4.0][..]));
        assert_eq!(found[1].attr("time_tag").as_deref(), Some("5.0"));
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
