//! Measures spile for `cargo xtask bench gsd`.
//!
//! Each line of standard input is a task. The answer is a line with seconds and bytes (or frames, where a
//! task is about frames; chunks for `find`, arrays for `tree`):
//!
//! | task | what is measured |
//! |---|---|
//! | `write FILE N FRAMES` | writing a new file with frames of N positions and orientations |
//! | `open FILE TIMES` | opening the file and getting the number of frames, once |
//! | `tree FILE TIMES` | opening the file as a tree of arrays, once |
//! | `read FILE N FRAMES` | reading all chunks in frame order |
//! | `cold FILE N FRAMES` | opening and reading after dropping the page cache of the file |
//! | `random FILE N FRAMES` | reading the same number of frames in random order |
//! | `find FILE FRAMES TIMES` | finding a chunk of a random frame |
//! | `tiny FILE FRAMES` | writing frames of eight bytes and closing |
//! | `close FILE FRAMES` | closing alone |
//! | `commit FILE FRAMES` | frames of three chunks, each committed, no sync |
//! | `durable FILE FRAMES` | frames of one chunk, each committed and synced |
//! | `frames FILE FRAMES` | reading HOOMD frames with all values |
//! | `log FILE` | reading all logged quantities |
//! | `make-hoomd FILE N FRAMES` | writing the file of the last two |
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, Write as _};
use std::ops::DerefMut;
use std::path::Path;
use std::time::Instant;

use memmap2::{Advice, MmapMut};
use spile_core::format::Format as _;
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_gsd::semantics::{Precision, Snapshot, Trajectory, TrajectoryWriter, Values};
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Gsd, Mode, Version, Writer};

type Answer = Result<(f64, u64), Box<dyn Error>>;

/// Chunks of a frame: name and number of columns.
const CHUNKS: [(&str, u64); 2] = [("particles/position", 3), ("particles/orientation", 4)];

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (seconds, bytes) = answer(&line).map_err(|why| format!("{line}: {why}"))?;
        writeln!(out, "{seconds:.9} {bytes}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> Answer {
    let mut fields = line.split_whitespace();
    let (task, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let mut number =
        || -> Result<u64, Box<dyn Error>> { Ok(fields.next().ok_or("missing number")?.parse()?) };
    let path = Path::new(path);
    match task {
        "write" => write(path, number()?, number()?),
        "open" => open(path, number()?),
        "tree" => tree(path, number()?),
        "read" => read(path, number()?, 0..number()?, false),
        "cold" => {
            let (n, frames) = (number()?, number()?);
            drop_cache(path)?;
            read(path, n, 0..frames, true)
        }
        "random" => {
            let (n, frames) = (number()?, number()?);
            read(path, n, random(frames).take(frames as usize), false)
        }
        "find" => find(path, number()?, number()?),
        "tiny" => tiny(path, number()?, true),
        "close" => tiny(path, number()?, false),
        "commit" => commit(path, number()?),
        "durable" => durable(path, number()?),
        "frames" => frames(path, number()?),
        "log" => log(path),
        "make-hoomd" => make_hoomd(path, number()?, number()?),
        _ => Err("unknown task".into()),
    }
}

/// Pseudo-random numbers, the same for every implementation.
fn random(below: u64) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below.max(1)
    })
}

fn create(path: &Path, mode: Mode) -> Result<Writer, Box<dyn Error>> {
    let _ = std::fs::remove_file(path);
    let about =
        About { application: "bench".into(), schema: "bench".into(), schema_version: 1 << 16 };
    Ok(Writer::create(path, Overwrite::Never, Version::V2_1, &about, mode)?)
}

fn write(path: &Path, n: u64, frames: u64) -> Answer {
    let mut data = memory((16 * n) as usize)?;
    (0_u64..).zip(data.iter_mut()).for_each(|(k, byte)| *byte = ((k * 31) >> 3) as u8);
    let _ = std::fs::remove_file(path);
    let start = Instant::now();
    let mut file = create(path, Mode::default())?;
    let mut bytes = 0;
    for _ in 0..frames {
        for (name, columns) in CHUNKS {
            let data = &data[..(4 * n * columns) as usize];
            file.write_chunk(name, Type::Float, n, columns, data)?;
            bytes += data.len() as u64;
        }
        file.end_frame()?;
    }
    file.close()?;
    Ok((start.elapsed().as_secs_f64(), bytes))
}

fn open(path: &Path, times: u64) -> Answer {
    let start = Instant::now();
    let mut frames = 0;
    for _ in 0..times {
        frames = File::open(path, &Limits::default())?.nframes()?;
    }
    Ok((start.elapsed().as_secs_f64() / times as f64, frames))
}

fn tree(path: &Path, times: u64) -> Answer {
    let start = Instant::now();
    let mut arrays = 0;
    for _ in 0..times {
        arrays = Gsd.open(Source::open(path)?, &Limits::default())?.tree().arrays().count();
    }
    Ok((start.elapsed().as_secs_f64() / times as f64, arrays as u64))
}

/// Memory for chunks, in huge pages from 2 MiB on, as in NumPy.
fn memory(bytes: usize) -> std::io::Result<Box<dyn DerefMut<Target = [u8]>>> {
    if bytes < 2 << 20 {
        return Ok(Box::new(vec![1; bytes]));
    }
    let mut memory = MmapMut::map_anon(bytes)?;
    memory.advise(Advice::HugePage)?;
    memory.fill(1);
    Ok(Box::new(memory))
}

fn read(path: &Path, n: u64, frames: impl Iterator<Item = u64>, cold: bool) -> Answer {
    let mut buffer = memory((16 * n) as usize)?;
    let start = Instant::now();
    let file = File::open(path, &Limits::default())?;
    let start = if cold { start } else { Instant::now() };
    let mut bytes = 0;
    for frame in frames {
        for (name, columns) in CHUNKS {
            let buffer = &mut buffer[..(4 * n * columns) as usize];
            if !file.read_into(frame, name, buffer)? {
                return Err("missing chunk".into());
            }
            bytes += buffer.len() as u64;
        }
    }
    Ok((start.elapsed().as_secs_f64(), bytes))
}

/// Drops the page cache of a file.
fn drop_cache(path: &Path) -> Result<(), Box<dyn Error>> {
    let file = std::fs::File::open(path)?;
    file.sync_all()?;
    let advice = rustix::fs::Advice::DontNeed;
    Ok(rustix::fs::fadvise(&file, 0, None, advice)?)
}

fn find(path: &Path, frames: u64, times: u64) -> Answer {
    let file = File::open(path, &Limits::default())?;
    let start = Instant::now();
    let mut sum = 0;
    for frame in random(frames).take(times as usize) {
        sum += file.find_chunk(frame, "x")?.ok_or("missing chunk")?.data.len;
    }
    Ok((start.elapsed().as_secs_f64() / times as f64, sum))
}

fn tiny(path: &Path, frames: u64, all: bool) -> Answer {
    let _ = std::fs::remove_file(path);
    let start = Instant::now();
    let mut file = create(path, Mode::default())?;
    for frame in 0..frames {
        file.write_chunk("x", Type::UInt64, 1, 1, &frame.to_le_bytes())?;
        file.end_frame()?;
    }
    let start = if all { start } else { Instant::now() };
    file.close()?;
    Ok((start.elapsed().as_secs_f64(), frames))
}

fn commit(path: &Path, frames: u64) -> Answer {
    let mut file = create(path, Mode { commit: Commit::Frames(1), durable: false })?;
    let start = Instant::now();
    for frame in 0..frames {
        for name in ["a", "b", "c"] {
            file.write_chunk(name, Type::UInt64, 1, 1, &frame.to_le_bytes())?;
        }
        file.end_frame()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    file.close()?;
    Ok((seconds, frames))
}

fn durable(path: &Path, frames: u64) -> Answer {
    let mut file = create(path, Mode::default())?;
    let start = Instant::now();
    for frame in 0..frames {
        file.write_chunk("x", Type::UInt64, 1, 1, &frame.to_le_bytes())?;
        file.end_frame()?;
        file.flush()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    file.close()?;
    Ok((seconds, frames))
}

fn make_hoomd(path: &Path, n: u64, frames: u64) -> Answer {
    let start = Instant::now();
    let (mode, precision) = (Mode::default(), Precision::Single);
    let mut file = TrajectoryWriter::create(path, Overwrite::Replace, "bench", precision, mode)?;
    for step in 0..frames {
        let mut s = Snapshot::new(100 * step + 1, n as u32);
        s.box_ = [50.0, 50.0, 50.0, 0.0, 0.0, 0.0];
        let numbers = |add: u64| {
            let numbers = (0..3 * n).map(|k| ((k * 37 + step + add) % 400) as f64 / 10.0 - 20.0);
            numbers.collect::<Vec<f64>>().into()
        };
        s.particles.types = vec!["A".into(), "B".into()];
        s.particles.typeid = (0..n as u32).map(|k| k % 2).collect();
        (s.particles.position, s.particles.velocity) = (numbers(0), numbers(7));
        for (name, count) in [("energy", 1_u32), ("pressure", 6), ("temperature", 1), ("volume", 1)]
        {
            let bytes =
                (0..count).flat_map(|k| (step as f64 + f64::from(k)).to_le_bytes()).collect();
            let values = Values { kind: Type::Double, n: count.into(), m: 1, bytes };
            s.log.insert(name.into(), Some(values));
        }
        file.write(&s)?;
    }
    file.close()?;
    Ok((start.elapsed().as_secs_f64(), frames))
}

fn frames(path: &Path, frames: u64) -> Answer {
    let file = Trajectory::new(File::open(path, &Limits::default())?)?;
    let start = Instant::now();
    for frame in 0..frames {
        black_box(file.read(frame)?);
    }
    Ok((start.elapsed().as_secs_f64(), frames))
}

fn log(path: &Path) -> Answer {
    let start = Instant::now();
    let log = Trajectory::new(File::open(path, &Limits::default())?)?.read_log()?;
    Ok((start.elapsed().as_secs_f64(), log.steps.len() as u64))
}
