//! Any bytes as a file of the format `keysight`.
#![no_main]

static FORMAT: spile_keysight::Keysight = spile_keysight::Keysight { hdf5: &spile_hdf5::Hdf5 };

libfuzzer_sys::fuzz_target!(|data: &[u8]| spile_fuzz::drive(&FORMAT, data));
