//! Any sequence of TAF operations on any file.
#![no_main]

use spile_fuzz::drive;

#[allow(dead_code)]
#[path = "../verbs/mod.rs"]
mod verbs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verbs::taf_ops::run(data));
