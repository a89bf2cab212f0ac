//! The tasks of `cargo xtask bench gsd` with the crate hoomd-gsd. Protocol: `benches/common.h`; tasks:
//! `formats/gsd/examples/bench_gsd.rs`.

#[path = "../../../protocol.rs"]
mod protocol;

use std::hint::black_box;
use std::time::Instant;

use hoomd_gsd::file_layer::{GsdFile, Mode};
use protocol::{Measurement, Result, random, serve};

fn main() -> Result<()> {
    serve(|fields| match *fields {
        ["write", path, n, frames] => write(path, n.parse()?, frames.parse()?),
        ["read", path, _, frames] => read(path, 0..frames.parse()?),
        ["random", path, _, frames] => {
            let frames = frames.parse()?;
            read(path, random(frames).take(frames as usize))
        }
        ["open", path, times] => {
            let times: u32 = times.parse()?;
            let start = Instant::now();
            let mut frames = 0;
            for _ in 0..times {
                frames = GsdFile::open(path, Mode::Read)?.n_frames();
            }
            Ok((start.elapsed() / times, frames))
        }
        ["tiny", path, frames] => tiny(path, frames.parse()?, false),
        ["durable", path, frames] => tiny(path, frames.parse()?, true),
        _ => Err("unknown task".into()),
    })
}

fn create(path: &str) -> Result<GsdFile> {
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
    Ok((start.elapsed(), frames * n * 28))
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
    Ok((start.elapsed(), bytes))
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
    Ok((start.elapsed(), frames))
}
