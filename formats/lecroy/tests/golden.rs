//! Every golden file gives the samples, scale, grid and counts of the manifest.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder, read};
use spile_core::error::ErrorKind;
use spile_core::format::Format as _;
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::source::Source;
use spile_lecroy::LeCroy;

#[test]
fn golden_files_give_what_the_manifest_says() {
    check_all(&LeCroy, &folder("lecroy"));
}

#[test]
fn segments_know_their_triggers() {
    let file = folder("lecroy").join("lecroy_be_sequence4_user.trc");
    let found = read(&LeCroy, Source::open(file).unwrap());
    let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["trace/segment1", "trace/segment2", "trace/segment3", "trace/segment4"]);
    let second = &found[1];
    assert_eq!(second.said("units").as_deref(), Some("V"));
    assert_eq!(second.said("time_units").as_deref(), Some("s"));
    assert_eq!(second.said("instrument").as_deref(), Some("LECROYSYN"));
    assert_eq!(second.said("trigger_time").as_deref(), Some("2023-08-07T12:34:12.5"));
    assert!(second.said("time_tag").is_some());
}

/// Fields of a descriptor, written in one of the byte orders.
struct Made {
    bytes: Vec<u8>,
    little: bool,
}

impl Made {
    fn new(template: &str, size: u32, little: bool) -> Self {
        let mut made = Self { bytes: vec![0; size as usize], little };
        made.bytes[..8].copy_from_slice(b"WAVEDESC");
        made.bytes[16..16 + template.len()].copy_from_slice(template.as_bytes());
        made.i16(34, i16::from(little)).i32(36, size as i32)
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
fn the_old_template_is_read_in_both_orders() {
    for little in [true, false] {
        let made = Made::new("LECROY_1_0", 320, little)
            .i16(32, 1)
            .i32(48, 8)
            .i32(92, 4)
            .i32(96, 3)
            .f32(120, 0.5)
            .f32(134, 1e-9)
            .f64(138, -2e-9)
            .f32(290, 0.25)
            .push_i16(&[1, -2, 300, -400]);
        let found = &read(&LeCroy, made.source())[0];
        assert_eq!(found.values, [0.25, -1.25, 149.75, -200.25]);
        assert_eq!(found.grid(), (-2e-9, f64::from(1e-9_f32)));
    }
}

#[test]
fn old_sequences_have_trigger_times_too() {
    for little in [true, false] {
        let made = Made::new("LECROY_1_0", 320, little)
            .i16(32, 1)
            .i32(40, 16)
            .i32(44, 32)
            .i32(48, 8)
            .i32(92, 4)
            .i32(108, 2)
            .f32(120, 1.0);
        // User text of two numbers, then time and offset of both segments.
        let made = [0.0, 0.0, 0.0, -1.0, 5.0, -2.0].into_iter().fold(made, Made::push_f64);
        let found = read(&LeCroy, made.push_i16(&[1, 2, 3, 4]).source());
        let grids: Vec<f64> = found.iter().map(|f| f.grid().0).collect();
        assert_eq!((grids, &found[1].values[..]), (vec![-1.0, -2.0], &[3.0, 4.0][..]));
        assert_eq!(found[1].said("time_tag").as_deref(), Some("5.0"));
    }
}

/// Two samples of a word each, of a file that is sound.
fn sound() -> Made {
    Made::new("LECROY_2_3", 346, true).i16(32, 1).i32(60, 4).i32(116, 2).f32(156, 1.0)
}

#[test]
fn everything_between_descriptor_and_samples_is_passed_over() {
    let made = sound().i32(40, 8).i32(52, 16);
    let made = [0.0, 0.0, 0.0].into_iter().fold(made, Made::push_f64).push_i16(&[7, 8]);
    assert_eq!(read(&LeCroy, made.source())[0].values, [7.0, 8.0]);
}

#[test]
fn a_second_array_is_a_second_record() {
    let made = sound().i32(64, 4).push_i16(&[1, 2, 3, 4]);
    let found = read(&LeCroy, made.source());
    assert_eq!((&found[0].values[..], &found[1].values[..]), (&[1.0, 2.0][..], &[3.0, 4.0][..]));
    assert_eq!((found[0].path.as_str(), found[1].path.as_str()), ("data/first", "data/second"));
}

#[test]
fn a_prefix_of_the_remote_control_does_not_matter() {
    let mut bytes = b"C1:WF ALL,#9000000350".to_vec();
    bytes.extend(sound().push_i16(&[5, -6]).bytes);
    assert_eq!(read(&LeCroy, Source::memory(bytes))[0].values, [5.0, -6.0]);
}

#[test]
fn what_is_wrong_is_said() {
    let cases = [
        (sound().i32(116, 3).push_i16(&[1, 2]), "lecroy-006", ErrorKind::Truncated),
        (sound().i32(116, -1).push_i16(&[1, 2]), "lecroy-005", ErrorKind::Malformed),
        (sound().i32(40, i32::MAX).push_i16(&[1, 2]), "lecroy-002", ErrorKind::Truncated),
        (sound().i16(32, 2).push_i16(&[1, 2]), "lecroy-004", ErrorKind::Malformed),
        (sound().i32(36, 100).push_i16(&[1, 2]), "lecroy-005", ErrorKind::Malformed),
        (
            Made::new("LECROY_9_9", 346, true).push_i16(&[1, 2]),
            "lecroy-003",
            ErrorKind::Unsupported,
        ),
        (
            sound().i32(144, 2).i32(48, 16).push_f64(0.0).push_f64(0.0).push_i16(&[1, 2]),
            "lecroy-007",
            ErrorKind::Malformed,
        ),
    ];
    for (made, code, kind) in cases {
        let error = LeCroy.open(made.source(), &Limits::default()).err().unwrap();
        assert_eq!((error.code(), error.kind()), (code, kind), "{error}");
        assert!(error.offset().is_some());
    }
    // A million million segments of nothing cost nothing.
    let many = sound().i32(116, i32::MAX).i32(144, i32::MAX).push_i16(&[1]);
    assert!(LeCroy.open(many.source(), &Limits::default()).is_err());
    let odd = sound().i32(60, 6).push_i16(&[1, 2, 3]).source();
    let report = LeCroy.check(&odd, &Limits::default(), false).unwrap();
    assert_eq!(report.findings[0].code, "lecroy-010");
    assert_eq!(report.worst(), Some(Severity::Warning));
}
