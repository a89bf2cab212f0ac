//! Any bytes as a file of the format `cube`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spile_fuzz::drive(&spile_cube::Cube, data));
