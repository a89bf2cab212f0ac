//! Any bytes as a store of one array: metadata up to the first zero byte, then the first chunk.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (meta, chunk) = data.split_at(end);
    let chunk = chunk.get(1..).unwrap_or_default();
    spile_fuzz::drive_folder(
        &spile_zarr::Zarr,
        &[("zarr.json", meta), (".zarray", meta), ("c/0", chunk), ("0", chunk)],
    );
});
