//! Selections: any text on any shape. The input is the lengths, `/` and the text.
#![no_main]

use spile_core::select::Selection;
use spile_core::shape::Shape;
use spile_fuzz as _; // for its allocator

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|byte| *byte == b'/').unwrap_or(0);
    let lengths: Vec<u64> = data[..cut].iter().map(|byte| length(*byte)).collect();
    let Ok(text) = std::str::from_utf8(&data[cut..]) else { return };
    let Ok(selection) = text.trim_start_matches('/').parse::<Selection>() else { return };
    let Ok(spans) = selection.resolve(&Shape::new(lengths.clone())) else { return };
    assert_eq!(spans.len(), lengths.len(), "expected one span per dimension");
    for (span, length) in spans.iter().zip(lengths) {
        assert!(span.step != 0 && span.count <= length, "{span:?} of {length}");
        if span.count > 0 {
            let reach = i128::from(span.step) * i128::from(span.count - 1);
            let last = i128::from(span.start) + reach;
            assert!(span.start < length && (0..i128::from(length)).contains(&last), "{span:?}");
        }
    }
});

/// Small lengths, and lengths near powers of two.
fn length(byte: u8) -> u64 {
    match byte {
        0..=199 => u64::from(byte),
        200..=227 => (1 << (byte - 164)) - 1,
        228..=254 => 1 << (byte - 191),
        255 => u64::MAX,
    }
}
