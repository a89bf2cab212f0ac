//! The tasks of `cargo xtask bench gsd` with the crate hoomd-gsd. Protocol: `benches/common.h`; tasks:
//! `formats/gsd/examples/bench_gsd.rs`.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use hoomd_gsd::file_layer::{GsdFile, Mode};

type Measurement = Result<(f64, u64), Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (seconds, bytes) = run(&line).map_err(|why| format!("{line}: {why}"))?;
        writeln!(out, "{seconds:.9} {bytes}")?;
        out.flush()?;
    }
    Ok(())
}

fn run(line: &str) -> Measurement {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |k: usize| -> Result<u64, Box<dyn Error>> {
        Ok(fields.get(k).ok_or("a number is missing")?.parse()?)
    };
    let path = fields.get(1).ok_or("a file is missing")?;
    match fields[0] {
        "write" => write(path, number(2)?, number(3)?),
        "read" => read(path, 0..number(3)?),
        "random" => {
            let frames = number(3)?;
            let mut state = 1_u64;
            let draw = move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005);
                state = state.wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % frames
            };
            read(path, (0..frames).map(draw))
        }
        "open" => {
            let times = number(2)?;
            let start = Instant::now();
            let mut frames = 0;
            for _ in 0..times {
                frames = GsdFile::open(path, Mode::Read)?.n_frames();
            }
            Ok((start.elapsed().as_secs_f64() / times as f64, frames))
        }
        "tiny" => tiny(path, number(2)?, false),
        "durable" => tiny(path, number(2)?, true),
        _ => Err("unknown task".into()),
    }
}

fn create(path: &str) -> Result<GsdFile, Box<dyn Error>> {
    let _ = std::fs::remove_file(path);
    Ok(GsdFile::create(path, "bench", "bench", (1, 0))?)
}

fn write(path: &str, n: u64, frames: u64) -> Measurement {
    let rows = n as usize;
    let (position, orientation) = (vec![[1.0_f32; 3]; rows], vec![[1.0_f32; 4]; rows]);
    let _ = std::fs::remove_file(path);
    let start = Instant::now();
    let mut file = create(path)?;
    for _ in 0..frames {
        file.write_arrays("particles/position", position.iter().copied())?;
        file.write_arrays("particles/orientation", orientation.iter().copied())?;
        file.end_frame()?;
    }
    file.sync_all()?;
    drop(file);
    Ok((start.elapsed().as_secs_f64(), frames * n * 28))
}

fn read(path: &str, frames: impl Iterator<Item = u64>) -> Measurement {
    let file = GsdFile::open(path, Mode::Read)?;
    let (mut three, mut four) = (Vec::new(), Vec::new());
    let start = Instant::now();
    let mut bytes = 0;
    for frame in frames {
        three.clear();
        three.extend(file.iter_arrays::<f32, 3>(frame, "particles/position")?);
        four.clear();
        four.extend(file.iter_arrays::<f32, 4>(frame, "particles/orientation")?);
        bytes += (12 * three.len() + 16 * four.len()) as u64;
        black_box((&three, &four));
    }
    Ok((start.elapsed().as_secs_f64(), bytes))
}

fn tiny(path: &str, frames: u64, durable: bool) -> Measurement {
    let start = Instant::now();
    let mut file = create(path)?;
    for frame in 0..frames {
        file.write_scalars("x", [frame])?;
        file.end_frame()?;
        if durable {
            file.sync_all()?;
        }
    }
    file.sync_all()?;
    drop(file);
    Ok((start.elapsed().as_secs_f64(), frames))
}
