//! Creates the files: the same bytes on every machine.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::super::harness::{Values, paths};
use crate::Result;

const OFFSET: u64 = 1056 + 2 * 24;
const INTERCEPT: f64 = -0.5;
const SLOPE: f64 = 1.0 / 256.0;
const STEP: f64 = 1e-9;
const WINDOW: u64 = 1_000_000;
const PIXELS: u64 = 1000;

/// A fast generator with the same numbers everywhere (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Creates the files in `folder`: `scale` times 10^9 samples of uint8, 10^8 of int16 and 4 * 10^8 of float32.
pub(super) fn make(folder: &Path, scale: f64) -> Result<Values> {
    let scaled = |n: f64| (n * scale).max(1.0) as u64;
    // The window has the same size at every scale.
    let (bytes, shorts) = (scaled(1e9).max(4 * WINDOW), scaled(1e8).max(WINDOW));
    let (side, lines) = ((20_000.0 * scale.sqrt()).max(16.0) as u64, scaled(2e6).max(1000));
    let mut values = paths(
        folder,
        &[
            ("u8", "u8.taf"),
            ("i16", "i16.taf"),
            ("f32", "f32.taf"),
            ("small", "small.taf"),
            ("text", "text.taf"),
            ("h5", "u8.h5"),
            ("out", "out"),
        ],
    );
    write_u8(&values["u8"], bytes)?;
    write_u8(&values["small"], 2 * WINDOW)?;
    write_i16(&values["i16"], shorts)?;
    write_i16(&values["text"], lines)?;
    write_f32(&values["f32"], side)?;
    let numbers = [
        ("offset", OFFSET),
        ("pixels", PIXELS),
        ("window", WINDOW),
        ("half", bytes / 2),
        ("half-end", bytes / 2 + WINDOW),
        ("u8-count", bytes),
        ("i16-count", shorts),
        ("text-count", lines),
        ("side", side),
    ];
    values.extend(numbers.map(|(name, number)| (name, number.to_string())));
    values.extend([("intercept", INTERCEPT.to_string()), ("slope", SLOPE.to_string())]);
    Ok(values)
}

/// A sine with noise, as recorded by an 8-bit digitizer.
fn write_u8(path: &str, count: u64) -> Result<()> {
    let wave: Vec<u8> = sine(4096).map(|y| (124.0 + 110.0 * y) as u8).collect();
    let mut random = Random(1);
    file(path, "uint8", true, [count, 1], |out| {
        let mut part = Vec::with_capacity(4096);
        for start in (0..count).step_by(4096) {
            part.clear();
            for eight in wave.as_chunks::<8>().0 {
                let low = (random.next() & 0x0707_0707_0707_0707).to_le_bytes();
                part.extend(eight.iter().zip(low).map(|(y, low)| y + low));
            }
            out.write_all(&part[..(count - start).min(4096) as usize])?;
        }
        Ok(())
    })
}

fn write_i16(path: &str, count: u64) -> Result<()> {
    let wave: Vec<i16> = sine(4096).map(|y| (30_000.0 * y) as i16).collect();
    let mut random = Random(2);
    file(path, "int16", true, [count, 1], |out| {
        for k in 0..count {
            let value = wave[(k % 4096) as usize] + (random.next() & 255) as i16;
            out.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    })
}

fn write_f32(path: &str, side: u64) -> Result<()> {
    let mut random = Random(3);
    file(path, "flt32", false, [side, side], |out| {
        for _ in 0..side * side {
            out.write_all(&((random.next() >> 40) as f32).to_le_bytes())?;
        }
        Ok(())
    })
}

fn sine(period: u32) -> impl Iterator<Item = f64> {
    (0..period).map(move |k| (f64::from(k) * std::f64::consts::TAU / f64::from(period)).sin())
}

/// Writes a two-dimensional TAF file.
fn file(
    path: &str,
    name: &str,
    scaled: bool,
    lengths: [u64; 2],
    data: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let fail = |e: std::io::Error| format!("{path}: {e}");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(fail)?);
    out.write_all(&header(name, scaled, lengths)).map_err(fail)?;
    data(&mut out).map_err(fail)?;
    out.write_all(b"made by cargo xtask bench\n").map_err(fail)?;
    let file = out.into_inner().map_err(|e| fail(e.into_error()))?;
    // Otherwise later writes wait for this one.
    file.sync_all().map_err(fail)
}

fn header(name: &str, scaled: bool, lengths: [u64; 2]) -> Vec<u8> {
    let mut head = b"TAF \x01\x00\x00\n".to_vec();
    head.resize(1024, b' ');
    head.extend(name.bytes());
    head.resize(1032, 0);
    let (a, b) = if scaled { (INTERCEPT, SLOPE) } else { (f64::INFINITY, f64::INFINITY) };
    head.extend([a.to_le_bytes(), b.to_le_bytes(), 2_u64.to_le_bytes()].concat());
    for (length, step) in lengths.iter().zip([STEP, 1.0]) {
        head.extend([length.to_le_bytes(), 0_f64.to_le_bytes(), step.to_le_bytes()].concat());
    }
    head
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_have_the_expected_size_and_are_reproducible() {
        let folder = std::env::temp_dir().join(format!("spile-sample-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.taf").to_string_lossy().into_owned();
        write_u8(&path, 5000).unwrap();
        let first = fs::read(&path).unwrap();
        write_u8(&path, 5000).unwrap();
        assert_eq!(first, fs::read(&path).unwrap());
        assert_eq!(first.len(), OFFSET as usize + 5000 + b"made by cargo xtask bench\n".len());
        assert_eq!(first[1024..1032], *b"uint8\0\0\0");
        fs::remove_dir_all(&folder).unwrap();
    }
}
