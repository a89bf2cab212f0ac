//! Any bytes as a file of the format `hdf5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spile_fuzz::drive(&spile_hdf5::Hdf5, data));
