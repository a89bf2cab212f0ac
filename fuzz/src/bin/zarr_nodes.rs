//! Any members as a store with groups, arrays and chunks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spile_fuzz::drive_members(
    &spile_zarr::Zarr,
    &spile_fuzz::members(data)
));
