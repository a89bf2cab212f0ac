//! Any bytes as a file of the format `rohde_schwarz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spile_fuzz::drive(
    &spile_rohde_schwarz::RohdeSchwarz,
    data
));
