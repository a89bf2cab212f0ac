//! Any bytes as a store of one array: metadata up to the first zero byte, then the first chunk.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spile_fuzz::drive_members(
    &spile_zarr::Zarr,
    &spile_fuzz::one_array(data)
));
