//! Golden files match the manifest in samples, scale, grid and counts; variants without a golden file are built here.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder, read, read_all};
use spile_core::format::{Format as _, Head, OpenOptions};
use spile_core::source::Source;
use spile_core::wire::ByteOrder;
use spile_dig::{Dig, SampleFormat};

#[test]
fn golden_files_match_the_manifest() {
    check_all(&Dig, &folder("dig"));
}

fn file(text: &str, at: usize, samples: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
    bytes.extend(samples);
    bytes
}

#[test]
fn the_header_is_the_last_six_lines_at_any_offset() {
    let text = "one\n\ntwo\n   \nsystem 7\r\nsome time\r\n2\r\n16\r\n1e-9\r\n-5e-9\r\n0.5\r\n1\r\n";
    for at in [512, 600, 768] {
        let bytes = file(text, at, &[1, 0, 0, 1]);
        let found = &read(&Dig, Source::memory(bytes))[0];
        assert_eq!((found.values.as_slice(), found.grid()), (&[1.5, 129.0][..], (-5e-9, 1e-9)));
        assert_eq!(found.attr("instrument").as_deref(), Some("system 7"));
        assert_eq!(found.attr("trigger_time").as_deref(), Some("some time"));
    }
}

#[test]
fn the_caller_can_set_sign_and_byte_order() {
    let bytes = file("s\nt\n2\n16\n1\n0\n1\n0\n", 768, &[0xff, 0xfe, 0, 3]);
    let values = |signed, order| {
        let (source, format) = (Source::memory(&bytes[..]), SampleFormat { signed, order });
        let file = spile_dig::open(source, format, &OpenOptions::default());
        read_all(&file.unwrap())[0].values.clone()
    };
    assert_eq!(values(true, ByteOrder::Big), [-2.0, 3.0]);
    assert_eq!(values(false, ByteOrder::Big), [65534.0, 3.0]);
    assert_eq!(values(true, ByteOrder::Little), [-257.0, 768.0]);
}

#[test]
fn other_files_are_rejected() {
    let good = file("s\nt\n2\n8\n1\n0\n1\n0\n", 768, &[1, 2]);
    let score = |bytes: &[u8]| Dig.probe(Head { bytes, len: bytes.len() as u64 });
    assert_eq!((score(&good), score(&good[..1025]), score(&good[..1000])), (80, 10, 0));
    let bad = [
        ("s\nt\n2\n12\n1\n0\n1\n0\n", "dig-002"),
        ("s\nt\n-2\n8\n1\n0\n1\n0\n", "dig-002"),
        ("s\nt\n2.5\n8\n1\n0\n1\n0\n", "dig-002"),
        ("2\n8\n1\n0\n1\n", "dig-002"),
        ("s\nt\n2\n8\n1\nx\n1\n0\n", "dig-002"),
        ("s\nt\n3\n8\n1\n0\n1\n0\n", "dig-004"),
        ("s\nt\n8e15\n32\n1\n0\n1\n0\n", "dig-004"),
    ];
    for (text, code) in bad {
        let error = Dig.open(Source::memory(file(text, 768, &[1, 2])), &OpenOptions::default());
        assert_eq!(error.err().unwrap().code(), code, "{text}");
    }
    let truncated = Dig.open(Source::memory(&good[..900]), &OpenOptions::default()).err().unwrap();
    assert_eq!((truncated.code(), truncated.offset()), ("dig-001", Some(900)));
}
