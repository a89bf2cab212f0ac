//! Variants without a golden file, built here.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{folder, read};
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Format as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::wire::ByteOrder;
use spile_tektronix::Tektronix;

fn isf(preamble: &str, samples: &[u8]) -> Source {
    let length = samples.len().to_string();
    let mut bytes = format!("{preamble};:CURV #{}{length}", length.len()).into_bytes();
    bytes.extend(samples);
    Source::memory(bytes)
}

fn code(source: Source) -> (&'static str, ErrorKind) {
    let error = Tektronix.open(source, &OpenOptions::default()).err().unwrap();
    assert!(error.offset().is_some(), "{error}");
    (error.code(), error.kind())
}

#[test]
fn waveforms_of_generators_are_named() {
    let mut bytes = b"MAGIC 1000\r\n#44000".to_vec();
    bytes.resize(4018, 0);
    assert_eq!(code(Source::memory(bytes)), ("tektronix-019", ErrorKind::Unsupported));
}

fn check(source: &Source) -> Report {
    Tektronix.check(source, &Limits::default(), false).unwrap()
}

#[test]
fn envelopes_are_pairs_with_twice_the_interval() {
    let preamble =
        ":WFMP:BYT_N 1;BN_F RI;BYT_O MSB;NR_P 4;PT_F ENV;XIN 0.5;XZE 1;PT_O 2;YMU 2;YOF 1";
    let found = &read(&Tektronix, isf(preamble, &[0xff, 5, 0xfe, 6]))[0];
    assert_eq!(found.desc.shape.lengths(), [2, 2]);
    assert_eq!(found.grid(), (0.0, 1.0));
    assert_eq!(found.values, [-4.0, 8.0, -6.0, 10.0]);
    assert_eq!(found.raw, [0xff, 5, 0xfe, 6]);
}

#[test]
fn all_sample_types_of_isf_in_both_orders() {
    let cases: [(&str, &[u8], &[f64]); 6] = [
        ("BYT_NR 1;BN_FMT RP", &[0, 255], &[0.0, 255.0]),
        ("BYT_NR 2;BN_FMT RP", &[0xff, 0xfe], &[65534.0]),
        ("BYT_NR 2;BN_FMT RI", &[0xff, 0xfe], &[-2.0]),
        ("BYT_NR 4;BN_FMT RI", &[0xff, 0xff, 0xff, 0xfe], &[-2.0]),
        ("BYT_NR 4;BN_FMT FP", &[0x3f, 0x80, 0, 0], &[1.0]),
        ("BYT_NR 8;BN_FMT FP", &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0], &[1.0]),
    ];
    for (fields, big, want) in cases {
        let size = big.len() / want.len();
        let little: Vec<u8> = big.chunks(size).flat_map(|s| s.iter().rev().copied()).collect();
        for (order, bytes) in [("MSB", big), ("LSB", &little[..])] {
            let preamble = format!(":WFMOUTPRE:{fields};BYT_OR {order};XINCR 1");
            assert_eq!(read(&Tektronix, isf(&preamble, bytes))[0].values, want, "{preamble}");
        }
    }
}

#[test]
fn a_file_can_have_several_records() {
    let one = |name: &str, value: u8| {
        let preamble = format!(":WFMPRE:BYT_NR 1;BN_FMT RI;XINCR 1;WFID \"{name}, DC\"");
        let source = isf(&preamble, &[value]);
        source.read_vec(0, source.len()).unwrap()
    };
    let bytes = [one("Ch1", 7), b"\n".to_vec(), one("Ch2", 8), b";\r\n".to_vec()].concat();
    let found = read(&Tektronix, Source::memory(bytes));
    let names: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!((names, &found[1].values[..]), (vec!["Ch1", "Ch2"], &[8.0][..]));
}

#[test]
fn samples_can_be_text() {
    let head = ":WFMPRE:BYT_NR 1;BN_FMT RI;ENCDG ASCII;XINCR 1;YMULT 0.5;YOFF 2";
    let text = |rest: &str| Source::memory(format!("{head};{rest}").as_bytes());
    let found = &read(&Tektronix, text("NR_PT 4;:CURVE 12,-128, 0,\r\n127\n"))[0];
    assert_eq!(found.values, [5.0, -65.0, -1.0, 62.5]);
    assert_eq!(found.raw, [12, 0x80, 0, 127]);
    // Values that exceed a byte, and values that are not integers.
    let wide = &read(&Tektronix, text(":CURV 200,-1"))[0];
    assert_eq!((wide.raw.len(), &wide.values[..]), (4, &[99.0, -1.5][..]));
    let real = &read(&Tektronix, text(":CURV 1.5E+1,-.25"))[0];
    assert_eq!(real.values, [6.5, -1.125]);
    let pairs = &read(&Tektronix, text("PT_FMT ENV;:CURV 1,2,3,4,5"))[0];
    assert_eq!((pairs.desc.shape.lengths(), pairs.values.len()), (&[2, 2][..], 4));
    // Two records, the second a block.
    let mut both =
        format!("{head};WFID \"a\";:CURV 1,2;\n{head};WFID \"b\";:CURV #13").into_bytes();
    both.extend([7, 8, 9]);
    let found = read(&Tektronix, Source::memory(both));
    assert_eq!((found[0].path.as_str(), found[1].raw.as_slice()), ("a", &[7, 8, 9][..]));
    // Longer than one chunk.
    let many: Vec<String> = (0..300_000).map(|k| (k % 256 - 128).to_string()).collect();
    let long = &read(&Tektronix, text(&format!(":CURVE {}", many.join(","))))[0];
    assert!((0..300_000).all(|k| long.raw[k] == (k % 256) as u8 ^ 0x80));
    let fewer = check(&text("NR_PT 5;:CURV 1,2"));
    assert_eq!(fewer.findings[0].code, "tektronix-010");
}

#[test]
fn a_block_without_a_length_has_nr_pt_samples() {
    let mut bytes = b":WFMPRE:NR_PT 2;BYT_NR 1;BN_FMT RI;XINCR 1;:CURVE #0".to_vec();
    bytes.extend(b"\x01\x02\n");
    assert_eq!(read(&Tektronix, Source::memory(bytes))[0].values, [1.0, 2.0]);
}

#[test]
fn malformed_isf_files_give_the_right_error() {
    let head = ":WFMPRE:BYT_NR 1;BN_FMT RI;XINCR 1";
    let text = |text: &str| Source::memory(text.as_bytes());
    let cases = [
        (text(&format!("{head};:CURVE #3100x")), "tektronix-006", ErrorKind::Truncated),
        (text(&format!("{head};:CURVE 1,2,x")), "tektronix-016", ErrorKind::Malformed),
        (text(&format!("{head};:CURVE 1,2-3,4")), "tektronix-016", ErrorKind::Malformed),
        (text(&format!("{head};:CURVE x")), "tektronix-015", ErrorKind::Malformed),
        (text(head), "tektronix-002", ErrorKind::Truncated),
        (isf(":WFMPRE:BYT_NR 1;BN_FMT RI", &[1]), "tektronix-004", ErrorKind::Malformed),
        (isf(":WFMPRE:BN_FMT RI;XINCR 1", &[1]), "tektronix-004", ErrorKind::Malformed),
        (isf(":WFMPRE:BYT_NR 3;BN_FMT RI;XINCR 1", &[1]), "tektronix-005", ErrorKind::Unsupported),
        (isf(":WFMPRE:BYT_NR 1;BN_FMT XX;XINCR 1", &[1]), "tektronix-005", ErrorKind::Unsupported),
        (isf(":WFMPRE:BYT_NR 1;XINCR fast", &[1]), "tektronix-003", ErrorKind::Malformed),
    ];
    for (source, expected, kind) in cases {
        assert_eq!(code(source), (expected, kind));
    }
    let fewer = isf(":WFMPRE:NR_PT 5;BYT_NR 1;BN_FMT RI;XINCR 1", &[1, 2]);
    assert_eq!(check(&fewer).findings[0].code, "tektronix-010");
}

/// All frames of a file.
fn frames(source: Source) -> Vec<recordings::Found> {
    read(&Tektronix, source).into_iter().flat_map(recordings::Found::segments).collect()
}

/// Builder of a `.wfm` file whose frames have one sample of precharge, one sample, and one of postcharge.
struct Wfm {
    bytes: Vec<u8>,
    order: ByteOrder,
    update: usize,
}

impl Wfm {
    fn new(version: usize, order: ByteOrder, format: i32, size: usize, frames: usize) -> Self {
        let offsets = [(166, 478, 766), (168, 480, 768), (168, 488, 784)];
        let (values, time, update) = offsets[version - 1];
        let curve = update + 24;
        let tables = curve + 30;
        let start = tables + 54 * (frames - 1);
        let end = start + 3 * size * frames + 8;
        let mark = if order == ByteOrder::Little { [0x0f; 2] } else { [0xf0; 2] };
        let mut file = Self { bytes: vec![0; end], order, update };
        file.bytes[..2].copy_from_slice(&mark);
        file.bytes[2..10].copy_from_slice(format!(":WFM#00{version}").as_bytes());
        file.bytes[15] = size as u8;
        file.i32(11, end as i32 - 15).i32(16, start as i32).i32(72, frames as i32 - 1).i32(122, 2);
        file.i32(values + 72, format).f64(values, 0.5).f64(values + 8, 1.0);
        file.f64(time, 1e-9).f64(time + 8, -2e-9);
        file.curve(curve, size as i32);
        for k in 1..frames {
            file.curve(tables + 24 * (frames - 1) + 30 * (k - 1), size as i32);
        }
        file
    }

    fn curve(&mut self, at: usize, size: i32) {
        self.i32(at + 14, size)
            .i32(at + 18, 2 * size)
            .i32(at + 22, 3 * size)
            .i32(at + 26, 3 * size);
    }

    fn put<const N: usize>(&mut self, at: usize, big: [u8; N]) -> &mut Self {
        let mut bytes = big;
        if self.order == ByteOrder::Little {
            bytes.reverse();
        }
        self.bytes[at..at + N].copy_from_slice(&bytes);
        self
    }

    fn i32(&mut self, at: usize, value: i32) -> &mut Self {
        self.put(at, value.to_be_bytes())
    }

    fn f64(&mut self, at: usize, value: f64) -> &mut Self {
        self.put(at, value.to_be_bytes())
    }

    /// Sets the sample of frame `k`, given in big-endian order.
    fn sample(&mut self, k: usize, big: &[u8]) -> &mut Self {
        let frames = self.int(72) as usize + 1;
        let start = self.update + 54 * frames;
        let at = start + (3 * k + 1) * big.len();
        let mut bytes = big.to_vec();
        if self.order == ByteOrder::Little {
            bytes.reverse();
        }
        self.bytes[at..at + big.len()].copy_from_slice(&bytes);
        self
    }

    fn int(&self, at: usize) -> i32 {
        let bytes: [u8; 4] = self.bytes[at..at + 4].try_into().unwrap();
        match self.order {
            ByteOrder::Little => i32::from_le_bytes(bytes),
            ByteOrder::Big => i32::from_be_bytes(bytes),
        }
    }

    fn source(&self) -> Source {
        let mut bytes = self.bytes.clone();
        let at = bytes.len() - 8;
        let sum: u64 = bytes[..at].iter().map(|b| u64::from(*b)).sum();
        let sum =
            if self.order == ByteOrder::Little { sum.to_le_bytes() } else { sum.to_be_bytes() };
        bytes[at..].copy_from_slice(&sum);
        Source::memory(bytes)
    }
}

#[test]
fn all_sample_formats_versions_and_orders() {
    let formats: [(i32, &[u8], f64); 8] = [
        (0, &[0xff, 0xfe], -2.0),
        (1, &[0xff, 0xff, 0xff, 0xfe], -2.0),
        (2, &[0xff, 0xff, 0xff, 0xfe], 4_294_967_294.0),
        (3, &[0, 0, 1, 0, 0, 0, 0, 2], 1_099_511_627_778.0),
        (4, &[0x3f, 0xc0, 0, 0], 1.5),
        (5, &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], 1.5),
        (6, &[0xfe], 254.0),
        (7, &[0xfe], -2.0),
    ];
    for version in 1..=3 {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for (format, sample, value) in formats {
                let mut file = Wfm::new(version, order, format, sample.len(), 2);
                file.sample(0, sample).sample(1, sample);
                if format > 5 && version < 3 {
                    assert_eq!(code(file.source()), ("tektronix-005", ErrorKind::Unsupported));
                    continue;
                }
                let found = frames(file.source());
                assert_eq!(found.len(), 2);
                for frame in &found {
                    assert_eq!(frame.values, [1.0 + 0.5 * value], "{version} {order:?} {format}");
                    assert_eq!(frame.grid(), (-2e-9, 1e-9));
                }
                assert!(check(&file.source()).findings.is_empty());
            }
        }
    }
}

#[test]
fn empty_frame_specifications_are_those_of_the_first_frame() {
    for version in 1..=3 {
        let mut file = Wfm::new(version, ByteOrder::Big, 0, 2, 3);
        file.sample(0, &[0, 1]).sample(1, &[0, 2]).sample(2, &[0, 3]);
        let tables = file.update + 54;
        file.bytes[tables..tables + 2 * 54].fill(0);
        let found = frames(file.source());
        let values: Vec<f64> = found.iter().map(|f| f.values[0]).collect();
        assert_eq!(values, [1.5, 2.0, 2.5]);
        assert_eq!(found[2].path, "data[2]");
    }
}

#[test]
fn a_version_without_a_colon_and_appended_data_are_accepted() {
    let mut file = Wfm::new(2, ByteOrder::Little, 0, 2, 1);
    file.sample(0, &[0, 9]);
    file.bytes[2..10].copy_from_slice(b"WFM#002\0");
    let source = file.source();
    let mut bytes = source.read_vec(0, source.len()).unwrap();
    bytes.extend(b"tekmeta!");
    let source = Source::memory(bytes);
    assert!(check(&source).findings.is_empty());
    assert_eq!(read(&Tektronix, source)[0].values, [5.5]);
}

#[test]
fn malformed_wfm_files_give_the_right_error() {
    let case = |change: fn(&mut Wfm)| {
        let mut file = Wfm::new(3, ByteOrder::Little, 0, 2, 2);
        change(&mut file);
        code(file.source())
    };
    assert_eq!(case(|m| m.bytes[9] = b'4'), ("tektronix-008", ErrorKind::Unsupported));
    assert_eq!(case(|m| m.bytes[15] = 4), ("tektronix-005", ErrorKind::Unsupported));
    assert_eq!(
        case(|m| {
            m.i32(122, 4);
        }),
        ("tektronix-005", ErrorKind::Unsupported)
    );
    assert_eq!(
        case(|m| {
            m.i32(16, -1);
        }),
        ("tektronix-009", ErrorKind::Malformed)
    );
    assert_eq!(
        case(|m| {
            m.i32(16, 1 << 30);
        }),
        ("tektronix-006", ErrorKind::Truncated)
    );
    assert_eq!(
        case(|m| {
            m.i32(72, 1000);
        }),
        ("tektronix-007", ErrorKind::Truncated)
    );
    assert_eq!(
        case(|m| {
            m.i32(808 + 14, 4).i32(808 + 18, 2);
        }),
        ("tektronix-017", ErrorKind::Malformed)
    );
    assert_eq!(
        case(|m| {
            m.i32(808 + 14, 0).i32(808 + 18, 100);
        }),
        ("tektronix-017", ErrorKind::Malformed)
    );
    let file = Wfm::new(3, ByteOrder::Little, 0, 2, 1);
    let source = file.source();
    let mut bytes = source.read_vec(0, source.len()).unwrap();
    bytes[850 - 8] ^= 1;
    assert_eq!(check(&Source::memory(&bytes[..])).findings[0].code, "tektronix-014");
    bytes.pop();
    let codes: Vec<&str> = check(&Source::memory(bytes)).findings.iter().map(|f| f.code).collect();
    assert_eq!(codes, ["tektronix-011"]);
}

#[test]
fn llwfm_files_have_an_optional_colon_and_a_checksum() {
    let path = folder("tektronix").join("tek_llwfm_nocolon.wfm");
    let plain = std::fs::read(path).unwrap();
    let colon = [b":".to_vec(), plain.clone()].concat();
    let [a, b] = [&plain, &colon].map(|bytes| read(&Tektronix, Source::memory(&bytes[..])));
    assert_eq!((a[0].values.len(), &a[0].values, a[0].grid()), (1000, &b[0].values, b[0].grid()));
    assert_eq!((a[0].attr("units"), a[0].attr("time_units")), (Some("V".into()), Some("s".into())));
    for bytes in [&plain, &colon] {
        assert!(check(&Source::memory(&bytes[..])).findings.is_empty());
    }
    let mut changed = plain.clone();
    changed[1000] ^= 1;
    assert_eq!(check(&Source::memory(changed)).findings[0].code, "tektronix-014");
    // Length with leading zeros.
    let longer = [b"LLWFM #6002186".to_vec(), plain[12..].to_vec()].concat();
    assert_eq!(read(&Tektronix, Source::memory(longer))[0].values, a[0].values);
    let truncated = Source::memory(&plain[..1500]);
    assert_eq!(code(truncated), ("tektronix-006", ErrorKind::Truncated));
    let invalid = [b"LLWFM #x".to_vec(), plain[12..].to_vec()].concat();
    assert_eq!(code(Source::memory(invalid)), ("tektronix-012", ErrorKind::Malformed));
}
