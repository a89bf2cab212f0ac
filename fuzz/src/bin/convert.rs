//! Conversion of any file to any format.
#![no_main]

use spile_fuzz::drive;

#[allow(dead_code)]
#[path = "../verbs/mod.rs"]
mod verbs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verbs::convert::run(data));
