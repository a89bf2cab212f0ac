//! The files that are measured: the same bytes on every machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Result;

const OFFSET: u64 = 1056 + 2 * 24;
const INTERCEPT: f64 = -0.5;
const SLOPE: f64 = 1.0 / 256.0;
const STEP: f64 = 1e-9;
const WINDOW: u64 = 1_000_000;
const PIXELS: u64 = 1000;

/// Samples of each file.
#[derive(Clone, Copy)]
struct Sizes {
    bytes: u64,
    words: u64,
    side: u64,
    lines: u64,
}

/// Noise that is quick to make and the same everywhere (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What the words in braces stand for.
pub(super) type Words = BTreeMap<&'static str, String>;

/// Makes the files in `folder`. The whole is `scale` times 10^9 bytes, 10^8 words of 16 bits and
/// a square of 4 * 10^8 floats.
pub(super) fn make(folder: &Path, scale: f64) -> Result<Words> {
    let times = |n: f64| (n * scale).max(1.0) as u64;
    // A window of the same size has to fit in the smallest of files.
    let sizes = Sizes {
        bytes: times(1e9).max(4 * WINDOW),
        words: times(1e8).max(WINDOW),
        side: (20_000.0 * scale.sqrt()).max(16.0) as u64,
        lines: times(2e6).max(1000),
    };
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (u8, i16, f32) = (path("u8.taf"), path("i16.taf"), path("f32.taf"));
    let (small, text) = (path("small.taf"), path("text.taf"));
    bytes(&u8, sizes.bytes)?;
    bytes(&small, 2 * WINDOW)?;
    words(&i16, sizes.words)?;
    words(&text, sizes.lines)?;
    floats(&f32, sizes.side)?;
    let half = sizes.bytes / 2;
    Ok(Words::from([
        ("u8", u8),
        ("i16", i16),
        ("f32", f32),
        ("small", small),
        ("text", text),
        ("h5", path("u8.h5")),
        ("out", path("out")),
        ("offset", OFFSET.to_string()),
        ("intercept", INTERCEPT.to_string()),
        ("slope", SLOPE.to_string()),
        ("pixels", PIXELS.to_string()),
        ("window", WINDOW.to_string()),
        ("half", half.to_string()),
        ("half-end", (half + WINDOW).to_string()),
        ("u8-count", sizes.bytes.to_string()),
        ("i16-count", sizes.words.to_string()),
        ("text-count", sizes.lines.to_string()),
        ("side", sizes.side.to_string()),
    ]))
}

/// A sine with noise, as a digitizer of eight bits sees it.
fn bytes(path: &str, count: u64) -> Result<()> {
    let wave: Vec<u8> = sine(4096).map(|y| (124.0 + 110.0 * y) as u8).collect();
    let mut noise = Noise(1);
    file(path, "uint8", true, [count, 1], |out| {
        let mut part = Vec::with_capacity(4096);
        for start in (0..count).step_by(4096) {
            part.clear();
            for eight in wave.as_chunks::<8>().0 {
                let low = (noise.next() & 0x0707_0707_0707_0707).to_le_bytes();
                part.extend(eight.iter().zip(low).map(|(y, low)| y + low));
            }
            out.write_all(&part[..(count - start).min(4096) as usize])?;
        }
        Ok(())
    })
}

fn words(path: &str, count: u64) -> Result<()> {
    let wave: Vec<i16> = sine(4096).map(|y| (30_000.0 * y) as i16).collect();
    let mut noise = Noise(2);
    file(path, "int16", true, [count, 1], |out| {
        for k in 0..count {
            let value = wave[(k % 4096) as usize] + (noise.next() & 255) as i16;
            out.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    })
}

fn floats(path: &str, side: u64) -> Result<()> {
    let mut noise = Noise(3);
    file(path, "flt32", false, [side, side], |out| {
        for _ in 0..side * side {
            out.write_all(&((noise.next() >> 40) as f32).to_le_bytes())?;
        }
        Ok(())
    })
}

fn sine(period: u32) -> impl Iterator<Item = f64> {
    (0..period).map(move |k| (f64::from(k) * std::f64::consts::TAU / f64::from(period)).sin())
}

/// A TAF file of two dimensions.
fn file(
    path: &str,
    name: &str,
    mapped: bool,
    lengths: [u64; 2],
    data: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let fail = |e: std::io::Error| format!("{path}: {e}");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(fail)?);
    out.write_all(&header(name, mapped, lengths)).map_err(fail)?;
    data(&mut out).map_err(fail)?;
    out.write_all(b"made by cargo xtask bench\n").map_err(fail)?;
    let file = out.into_inner().map_err(|e| fail(e.into_error()))?;
    // Later writes would otherwise wait for this one.
    file.sync_all().map_err(fail)
}

fn header(name: &str, mapped: bool, lengths: [u64; 2]) -> Vec<u8> {
    let mut head = b"TAF \x01\x00\x00\n".to_vec();
    head.resize(1024, b' ');
    head.extend(name.bytes());
    head.resize(1032, 0);
    let (a, b) = if mapped { (INTERCEPT, SLOPE) } else { (f64::INFINITY, f64::INFINITY) };
    head.extend([a.to_le_bytes(), b.to_le_bytes(), 2_u64.to_le_bytes()].concat());
    for (length, step) in lengths.iter().zip([STEP, 1.0]) {
        head.extend([length.to_le_bytes(), 0_f64.to_le_bytes(), step.to_le_bytes()].concat());
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_size_and_do_not_change() {
        let folder = std::env::temp_dir().join(format!("spile-sample-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.taf").to_string_lossy().into_owned();
        bytes(&path, 5000).unwrap();
        let first = fs::read(&path).unwrap();
        bytes(&path, 5000).unwrap();
        assert_eq!(first, fs::read(&path).unwrap());
        assert_eq!(first.len(), OFFSET as usize + 5000 + b"made by cargo xtask bench\n".len());
        assert_eq!(first[1024..1032], *b"uint8\0\0\0");
        fs::remove_dir_all(&folder).unwrap();
    }
}
