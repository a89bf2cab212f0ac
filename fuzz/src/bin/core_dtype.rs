//! Names of element types: formatting and parsing an accepted type gives the same type.
#![no_main]

use spile_core::dtype::DType;
use spile_fuzz as _; // for its allocator

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(dtype) = text.parse::<DType>() else { return };
    let again: DType = dtype.to_string().parse().expect("expected a valid type name");
    assert_eq!((again.kind(), again.size()), (dtype.kind(), dtype.size()), "{text}");
    assert!(dtype.word() == 1 || again.order() == dtype.order(), "{text}");
});
