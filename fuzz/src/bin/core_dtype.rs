//! Names of element types: what is accepted reads back as the same type.
#![no_main]

use spile_core::dtype::DType;
use spile_fuzz as _; // the allocator that minds its budget

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(dtype) = text.parse::<DType>() else { return };
    let again: DType = dtype.to_string().parse().expect("a type reads its own name");
    assert_eq!((again.kind(), again.size()), (dtype.kind(), dtype.size()), "{text}");
    assert!(dtype.word() == 1 || again.order() == dtype.order(), "{text}");
});
