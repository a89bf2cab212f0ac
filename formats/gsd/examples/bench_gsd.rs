//! The tasks of `cargo xtask bench gsd` with spile. Protocol: `benches/common.h`; the count is the number of bytes or
//! frames.
//!
//! | task | measured |
//! |---|---|
//! | `write FILE N FRAMES` | a new file: frames of N positions and orientations, with close |
//! | `open FILE TIMES` | opening the file and reading the number of frames, once |
//! | `read FILE N FRAMES` | reading all chunks, frame by frame |
//! | `cold FILE N FRAMES` | opening the file and reading all chunks, not in the page cache |
//! | `random FILE N FRAMES` | reading FRAMES frames in random order |
//! | `find FILE FRAMES TIMES` | finding a chunk in random frames, once |
//! | `tiny FILE FRAMES` | writing frames of eight bytes, with close |
//! | `close FILE FRAMES` | only the close after these frames |
//! | `commit FILE FRAMES` | frames of three chunks, each committed, without sync |
//! | `durable FILE FRAMES` | frames of one chunk, each synced to disk |
//! | `frames FILE FRAMES` | HOOMD frames with defaults filled in |
//! | `log FILE` | all logged quantities as columns |
//! | `make-hoomd FILE N FRAMES` | creates the file of the last two |
#![forbid(unsafe_code)]

#[path = "../../../benches/protocol.rs"]
mod protocol;

use std::hint::black_box;
use std::ops::DerefMut;
use std::path::Path;
use std::time::Instant;

use memmap2::{Advice, MmapMut};
use protocol::{Measurement, Result, random, serve};
use spile_core::{Limits, Overwrite};
use spile_gsd::semantics::{Precision, Snapshot, Trajectory, TrajectoryWriter, Values};
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Mode, Version, Writer};

/// The chunks of a frame of the protocol: name and columns.
const CHUNKS: [(&str, u64); 2] = [("particles/position", 3), ("particles/orientation", 4)];

fn main() -> Result<()> {
    serve(|fields| match *fields {
        [task, path, ref numbers @ ..] => run(task, Path::new(path), numbers),
        _ => Err("expected a task and a file".into()),
    })
}

fn run(task: &str, path: &Path, numbers: &[&str]) -> Measurement {
    let numbers: Vec<u64> =
        numbers.iter().map(|n| n.parse()).collect::<std::result::Result<_, _>>()?;
    match (task, numbers.as_slice()) {
        ("write", &[n, frames]) => write(path, n, frames),
        ("open", &[times]) => open(path, times),
        ("read", &[n, frames]) => read(path, n, 0..frames, false),
        ("cold", &[n, frames]) => {
            evict(path)?;
            read(path, n, 0..frames, true)
        }
        ("random", &[n, frames]) => read(path, n, random(frames).take(frames as usize), false),
        ("find", &[frames, times]) => find(path, frames, times),
        ("tiny", &[frames]) => tiny(path, frames, true),
        ("close", &[frames]) => tiny(path, frames, false),
        ("commit", &[frames]) => commit(path, frames),
        ("durable", &[frames]) => durable(path, frames),
        ("frames", &[frames]) => frames_of(path, frames),
        ("log", &[]) => log(path),
        ("make-hoomd", &[n, frames]) => make_hoomd(path, n, frames),
        _ => Err("unknown task".into()),
    }
}

fn create(path: &Path, mode: Mode) -> Result<Writer> {
    let _ = std::fs::remove_file(path);
    let about =
        About { application: "bench".into(), schema: "bench".into(), schema_version: 1 << 16 };
    Ok(Writer::create(path, Overwrite::Never, Version::V2_1, &about, mode)?)
}

fn write(path: &Path, n: u64, frames: u64) -> Measurement {
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
    Ok((start.elapsed(), bytes))
}

fn open(path: &Path, times: u64) -> Measurement {
    let start = Instant::now();
    let mut frames = 0;
    for _ in 0..times {
        frames = File::open(path, &Limits::default())?.nframes()?;
    }
    Ok((start.elapsed().div_f64(times as f64), frames))
}

/// Memory for chunks; large ones in huge pages, as NumPy requests them.
fn memory(bytes: usize) -> std::io::Result<Box<dyn DerefMut<Target = [u8]>>> {
    if bytes < 2 << 20 {
        return Ok(Box::new(vec![1; bytes]));
    }
    let mut memory = MmapMut::map_anon(bytes)?;
    memory.advise(Advice::HugePage)?;
    memory.fill(1);
    Ok(Box::new(memory))
}

fn read(path: &Path, n: u64, frames: impl Iterator<Item = u64>, cold: bool) -> Measurement {
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
    Ok((start.elapsed(), bytes))
}

/// Removes a file from the page cache.
fn evict(path: &Path) -> Result<()> {
    let file = std::fs::File::open(path)?;
    file.sync_all()?;
    let advice = rustix::fs::Advice::DontNeed;
    Ok(rustix::fs::fadvise(&file, 0, None, advice)?)
}

fn find(path: &Path, frames: u64, times: u64) -> Measurement {
    let file = File::open(path, &Limits::default())?;
    let start = Instant::now();
    let mut sum = 0;
    for frame in random(frames).take(times as usize) {
        sum += file.find_chunk(frame, "x")?.ok_or("missing chunk")?.data.len;
    }
    Ok((start.elapsed().div_f64(times as f64), sum))
}

fn tiny(path: &Path, frames: u64, writing: bool) -> Measurement {
    let _ = std::fs::remove_file(path);
    let start = Instant::now();
    let mut file = create(path, Mode::default())?;
    for frame in 0..frames {
        file.write_chunk("x", Type::UInt64, 1, 1, &frame.to_le_bytes())?;
        file.end_frame()?;
    }
    let start = if writing { start } else { Instant::now() };
    file.close()?;
    Ok((start.elapsed(), frames))
}

fn commit(path: &Path, frames: u64) -> Measurement {
    let mut file = create(path, Mode { commit: Commit::Frames(1), durable: false })?;
    let start = Instant::now();
    for frame in 0..frames {
        for name in ["a", "b", "c"] {
            file.write_chunk(name, Type::UInt64, 1, 1, &frame.to_le_bytes())?;
        }
        file.end_frame()?;
    }
    let time = start.elapsed();
    file.close()?;
    Ok((time, frames))
}

fn durable(path: &Path, frames: u64) -> Measurement {
    let mut file = create(path, Mode::default())?;
    let start = Instant::now();
    for frame in 0..frames {
        file.write_chunk("x", Type::UInt64, 1, 1, &frame.to_le_bytes())?;
        file.end_frame()?;
        file.flush()?;
    }
    let time = start.elapsed();
    file.close()?;
    Ok((time, frames))
}

fn make_hoomd(path: &Path, n: u64, frames: u64) -> Measurement {
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
    Ok((start.elapsed(), frames))
}

fn frames_of(path: &Path, frames: u64) -> Measurement {
    let file = Trajectory::new(File::open(path, &Limits::default())?)?;
    let start = Instant::now();
    for frame in 0..frames {
        black_box(file.read(frame)?);
    }
    Ok((start.elapsed(), frames))
}

fn log(path: &Path) -> Measurement {
    let start = Instant::now();
    let log = Trajectory::new(File::open(path, &Limits::default())?)?.read_log()?;
    Ok((start.elapsed(), log.steps.len() as u64))
}
