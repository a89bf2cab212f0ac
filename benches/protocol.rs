//! The protocol of the benchmark programs (`common.h`) in Rust. Included with `#[path]`.
#![allow(dead_code)]

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The time of a task, and its count.
pub(crate) type Measurement = Result<(Duration, u64)>;

/// Runs the tasks on standard input, split into fields, until its end.
pub(crate) fn serve(mut run: impl FnMut(&[&str]) -> Measurement) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<&str> = line.split_whitespace().collect();
        reply(run(&fields).map_err(|why| format!("{line}: {why}"))?)?;
    }
    Ok(())
}

/// Prints the reply to a task.
pub(crate) fn reply((time, count): (Duration, u64)) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:.9} {count}", time.as_secs_f64())?;
    out.flush()
}

/// The same random numbers below `below` in every implementation.
pub(crate) fn random(below: u64) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below.max(1)
    })
}

/// A reused buffer that starts at a page boundary: copies into memory from `malloc`, 16 bytes after one, are a
/// third slower.
#[derive(Default)]
pub(crate) struct Buffer<T>(Vec<T>);

impl<T: Copy + From<u8>> Buffer<T> {
    /// The first `count` elements.
    pub(crate) fn first(&mut self, count: usize) -> &mut [T] {
        const PAGE: usize = 4096;
        if self.0.len() < count + PAGE / size_of::<T>() {
            self.0 = vec![T::from(1); count + PAGE / size_of::<T>()];
        }
        let start = self.0.as_ptr().align_offset(PAGE);
        &mut self.0[start..start + count]
    }
}
