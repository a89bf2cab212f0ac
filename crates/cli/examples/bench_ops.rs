//! Does one task a line and answers with seconds and bytes; `cargo xtask bench ops` asks.
//!
//! | task | what it is |
//! |---|---|
//! | `make FORMAT FILE BYTES` | a file with as many bytes of numbers |
//! | `convert FILE NEW` | writes it as another format |
//! | `diff FILE OTHER` | compares every value of two files that are the same |
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use spile::dtype::DType;
use spile::format::{Dataset, write_file};
use spile::frames::{Cells, FrameCell, Moments};
use spile::layout::{ArrayDesc, Extents, Layout};
use spile::limits::Limits;
use spile::shape::{Order, Shape};
use spile::sink::Overwrite;
use spile::source::Source;
use spile::tree::{ROOT, Tree};
use spile_ops::convert::{self, convert};
use spile_ops::diff::{Rules, diff};

type Answer = Result<(f64, u64), Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (seconds, bytes) = task(&line).map_err(|e| format!("{line}: {e}"))?;
        println!("{seconds:.9} {bytes}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn task(line: &str) -> Answer {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["make", format, file, bytes] => make(format, Path::new(file), bytes.parse()?),
        ["convert", file, new] => written(Path::new(file), Path::new(new)),
        ["diff", file, other] => compared(Path::new(file), Path::new(other)),
        _ => Err("there is no such task".into()),
    }
}

/// What a file of the format usually has: fields of three dimensions, frames of 10,000 particles, one
/// long array.
fn make(format: &str, file: &Path, bytes: u64) -> Answer {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
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
    write_file(format, &content, file, Overwrite::Replace, &limits)?;
    Ok((start.elapsed().as_secs_f64(), used))
}

fn written(file: &Path, new: &Path) -> Answer {
    let limits = Limits::default();
    let start = Instant::now();
    let format = convert::target(&spile::REGISTRY, None, new)?;
    let opened = spile::open(file, &limits)?;
    let plan = convert::plan(format, &*opened.reader, new, &limits)?;
    convert(format, &*opened.reader, &plan, new, Overwrite::Never, &limits)?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = convert::size(new)?;
    // Memory that files fill is slow to come by for whoever is next.
    if new.is_dir() {
        std::fs::remove_dir_all(new)?;
    } else {
        std::fs::remove_file(new)?;
    }
    Ok((seconds, bytes))
}

fn compared(file: &Path, other: &Path) -> Answer {
    let limits = Limits::default();
    let start = Instant::now();
    let (one, two) = (spile::open(file, &limits)?, spile::open(other, &limits)?);
    let found = diff(&*one.reader, &*two.reader, &Rules::default(), &limits)?;
    let seconds = start.elapsed().as_secs_f64();
    if found.differences.is_empty() {
        return Ok((seconds, 2 * one.reader.source().len()));
    }
    Err(format!("{} differences", found.differences.len()).into())
}
