//! Combination of any file with a changed copy.
#![no_main]

use spile_fuzz::drive;

#[allow(dead_code)]
#[path = "../verbs/mod.rs"]
mod verbs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verbs::merge::run(data));
