//! The C interface on any file.
#![no_main]

use spile_fuzz::drive;

#[allow(dead_code)]
#[path = "../verbs/mod.rs"]
mod verbs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verbs::c_abi::run(data));
