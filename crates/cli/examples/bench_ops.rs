//! The tasks of `cargo xtask bench ops` and `bench digitizer` with spile, and the files of `bench taf`. Protocol: `benches/common.h`.
//!
//! | task | measured |
//! |---|---|
//! | `make FORMAT FILE BYTES` | creating a file with so many bytes of numbers |
//! | `convert FILE NEW` | conversion to another format |
//! | `diff FILE OTHER` | comparison of two equal files |
//! | `record KIND FILE BYTES` | creating an oscilloscope file with so many bytes of samples |
//! | `samples TYPE FILE COLUMN ROW` | creating a two-dimensional TAF file with columns and rows of these lengths |
//! | `run BYTES NEW PROGRAM ARGS...` | a program that reads so many bytes and may create a file |
#![forbid(unsafe_code)]

#[path = "../../../benches/protocol.rs"]
mod protocol;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::{Measurement, Result, serve};
use spile::Dataset;
use spile::dtype::DType;
use spile::format::{WriteOptions, write_file};
use spile::frames::{Cells, FrameCell, Moments};
use spile::layout::{ArrayDesc, Extents, Layout, Linear};
use spile::limits::Limits;
use spile::shape::{Order, Shape};
use spile::sink::Overwrite;
use spile::source::Source;
use spile::tree::{ROOT, Tree};
use spile_ops::convert::{self, convert};
use spile_ops::diff::{Rules, diff};
use spile_taf::wire::{Dimension, Header, parse_type};

fn main() -> Result<()> {
    serve(task)
}

fn task(fields: &[&str]) -> Measurement {
    match *fields {
        ["make", format, file, bytes] => make(format, Path::new(file), bytes.parse()?),
        ["convert", file, new] => convert_file(Path::new(file), Path::new(new)),
        ["diff", file, other] => compare(Path::new(file), Path::new(other)),
        ["record", kind, file, bytes] => {
            let bytes = bytes.parse()?;
            let head = if kind == "bin" { keysight(bytes)? } else { lecroy(kind, bytes)? };
            record(kind, Path::new(file), &head, bytes)
        }
        ["samples", kind, file, column, row] => {
            let dtype = parse_type(kind)?;
            let (column, row): (u64, u64) = (column.parse()?, row.parse()?);
            let map = (kind != "flt32").then_some(Linear::new(-0.5, 1.0 / 256.0));
            let grid = |length, step| Dimension { length, start: 0.0, step };
            let head = Header::new(dtype, map, vec![grid(column, 1e-9), grid(row, 1.0)]).encode();
            record(kind, Path::new(file), &head, column * row * dtype.size() as u64)
        }
        ["run", bytes, new, program, ref args @ ..] => {
            Ok((run(Path::new(new), program, args)?, bytes.parse()?))
        }
        _ => Err("unknown task".into()),
    }
}

/// Creates a typical file of the format: three-dimensional fields, frames of 10,000 particles, or one long array.
fn make(format: &str, file: &Path, bytes: u64) -> Measurement {
    let mut tree = Tree::new(&Limits::default());
    let plain =
        |offset: u64, len: u64, order| Layout::Plain { extents: Extents::one(offset, len), order };
    let mut add = |name: &str, dtype: DType, shape: Shape, layout: Layout| {
        tree.add_array(ROOT, name, ArrayDesc::new(dtype, shape, layout))
    };
    let used = match format {
        "sdf" => {
            // Eight fields, first index fastest.
            let side = ((bytes as f64 / 64.0).cbrt() as u64).max(1);
            let field = 8 * side * side * side;
            for k in 0..8 {
                let shape = Shape::new([side, side, side]);
                add(&format!("field {k}"), DType::F64, shape, plain(k * field, field, Order::F))?;
            }
            8 * field
        }
        "gsd" => {
            let frame = 4 * 3 * 10_000;
            let count = (bytes / frame).max(1);
            let cell = |k: u64| {
                let layout = plain(k * frame, frame, Order::C);
                Some(FrameCell { shape: Shape::new([10_000, 3]), layout })
            };
            let table = Layout::PerFrame(Arc::new(Cells((0..count).map(cell).collect())));
            add("particles/position", DType::F32, Shape::new([10_000, 3]), table)?;
            let steps = (0..count).map(|k| (Some(k), None)).collect();
            tree.set_frames(Arc::new(Moments(steps)));
            count * frame
        }
        _ => {
            let count = (bytes / 8).max(1);
            add("data", DType::F64, Shape::new([count]), plain(0, 8 * count, Order::C))?;
            8 * count
        }
    };
    let numbers: Vec<u8> =
        (0..used.div_ceil(8)).flat_map(|k| ((k as f64 * 0.37).sin()).to_le_bytes()).collect();
    let content = Dataset::new(Source::memory(numbers), tree);
    let start = Instant::now();
    let format = spile::REGISTRY.named(format)?;
    write_file(format, &content, file, Overwrite::Replace)?;
    Ok((start.elapsed(), used))
}

fn convert_file(file: &Path, new: &Path) -> Measurement {
    let start = Instant::now();
    let format = convert::target(&spile::REGISTRY, None, new)?;
    let content = spile::open(file)?;
    let options = WriteOptions::default();
    let plan = convert::plan(format, &content, new, &options)?;
    convert(format, &content, &plan, new, &options, Overwrite::Never, false)?;
    let time = start.elapsed();
    let bytes = convert::size(new)?;
    // Otherwise the next task has to wait for free memory.
    if new.is_dir() {
        std::fs::remove_dir_all(new)?;
    } else {
        std::fs::remove_file(new)?;
    }
    Ok((time, bytes))
}

fn compare(file: &Path, other: &Path) -> Measurement {
    let start = Instant::now();
    let (one, two) = (spile::open(file)?, spile::open(other)?);
    let found = diff(&one, &two, &Rules::default())?;
    let time = start.elapsed();
    if found.differences.is_empty() {
        return Ok((time, 2 * one.source().len()));
    }
    Err(format!("{} differences", found.differences.len()).into())
}

/// Writes a header and so many bytes of samples of a sine with noise.
fn record(kind: &str, file: &Path, head: &[u8], bytes: u64) -> Measurement {
    let start = Instant::now();
    let mut out = std::fs::File::create(file)?;
    out.write_all(head)?;
    let mut noise = 1_u64;
    let mut samples = Vec::new();
    for k in 0..1_u32 << 18 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let y = (f64::from(k) * 1e-3).sin() * 0.9 + (noise >> 40) as f64 / (1 << 28) as f64;
        match kind {
            "trc8" => samples.push((y * 120.0) as i8 as u8),
            "uint8" => samples.push((y * 120.0 + 120.0) as u8),
            "bin" | "flt32" => samples.extend((y as f32).to_le_bytes()),
            "trc16" | "int16" => samples.extend(((y * 30_000.0) as i16).to_le_bytes()),
            _ => samples.extend(((y * 30_000.0) as i16).to_be_bytes()),
        }
    }
    let mut left = bytes as usize;
    while left > 0 {
        let part = left.min(samples.len());
        out.write_all(&samples[..part])?;
        left -= part;
    }
    out.sync_all()?;
    Ok((start.elapsed(), bytes))
}

/// The header of a LeCroy file with samples of 8 or 16 bits, in either byte order.
fn lecroy(kind: &str, bytes: u64) -> Result<Vec<u8>> {
    let little = kind != "trc16be";
    let mut head = vec![0; 346];
    let mut put = |at: usize, big: &[u8]| {
        let field = &mut head[at..at + big.len()];
        field.copy_from_slice(big);
        if little {
            field.reverse();
        }
    };
    let count = if kind == "trc8" { bytes } else { bytes / 2 };
    put(32, &i16::from(kind != "trc8").to_be_bytes());
    put(34, &i16::from(little).to_be_bytes());
    put(36, &346_i32.to_be_bytes());
    put(60, &i32::try_from(bytes)?.to_be_bytes());
    put(116, &i32::try_from(count)?.to_be_bytes());
    put(156, &1.25e-4_f32.to_be_bytes());
    put(176, &1e-10_f32.to_be_bytes());
    head[..8].copy_from_slice(b"WAVEDESC");
    head[16..26].copy_from_slice(b"LECROY_2_3");
    Ok(head)
}

/// The header of a Keysight file with samples of 32 bits.
fn keysight(bytes: u64) -> Result<Vec<u8>> {
    let bytes = u32::try_from(bytes)?;
    let mut head = b"AG10".to_vec();
    head.extend([164 + bytes, 1, 140, 1, 1, bytes / 4, 1].iter().flat_map(|n| n.to_le_bytes()));
    head.resize(12 + 140, 0);
    head[12 + 32..12 + 40].copy_from_slice(&1e-10_f64.to_le_bytes());
    head.extend([12, 0, 0, 0, 1, 0, 4, 0]);
    head.extend(bytes.to_le_bytes());
    Ok(head)
}

/// The time from the start of a program to its end. The file that it creates is removed, so that all implementations
/// have the same free memory.
fn run(new: &Path, program: &str, args: &[&str]) -> Result<Duration> {
    let remove = || if new.exists() { std::fs::remove_file(new) } else { Ok(()) };
    remove()?;
    let start = Instant::now();
    let done = std::process::Command::new(program).args(args).output()?;
    let time = start.elapsed();
    remove()?;
    if done.status.success() {
        return Ok(time);
    }
    Err(String::from_utf8_lossy(&done.stderr).into_owned().into())
}
