//! `spile tour`: a newcomer's first minute.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use spile::dtype::DType;
use spile::error::{Error, Result};
use spile::layout::{ArrayDesc, Layout};
use spile::read::Array;
use spile::select::Selection;
use spile::shape::{Order, Shape};
use spile::sink::Overwrite;
use spile::source::Source;
use spile::tree::Tree;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Mode, Version, Writer};
use spile_taf::ops::{self, Create};

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, style};

/// Samples in the signal that the tour draws.
const SAMPLES: u64 = 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct TourArgs {
    /// Put the samples here; a folder that does not exist yet [default: a new temporary folder]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &TourArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let folder = match &args.folder {
        Some(folder) => {
            fs::create_dir(folder).map_err(|e| Error::io(folder, e))?;
            folder.clone()
        }
        None => tempfile::Builder::new().prefix("spile-tour-").tempdir()?.keep(),
    };
    // The commands are run where the samples are, so that what is shown can be typed as it is.
    let folder = fs::canonicalize(&folder).map_err(|e| Error::io(&folder, e))?;
    std::env::set_current_dir(&folder).map_err(|e| Error::io(&folder, e))?;
    let file = Path::new;
    ops::example(file("example.taf"), 2, Overwrite::Never)?;
    signal(file("burst.taf"), context)?;
    fs::write("table.txt", "time (s)\tvoltage (V)\n0.0\t1.5\n0.1\t1.25\n0.2\t0.75\n")?;
    fs::write("counts.npy", npy())?;
    fs::write("state.scda", scda())?;
    trajectory(file("run.gsd"))?;
    damaged(file("example.taf"), file("cut.taf"))?;

    let show: [(&str, &[&str]); 13] = [
        ("These are the formats spile knows.", &["formats"]),
        ("What is in a file:", &["info", "example.taf"]),
        (
            "Its arrays, as in a folder:",
            &["ls", "-l", "example.taf", "table.txt", "counts.npy", "state.scda", "run.gsd"],
        ),
        ("A few rows of it:", &["cat", "example.taf", "98:, :"]),
        ("Statistics, on all cores:", &["stat", "burst.taf", "example.taf"]),
        ("A million samples, drawn in the terminal:", &["plot", "burst.taf", "--height", "16"]),
        ("The same as a picture:", &["plot", "burst.taf", "-o", "burst.svg"]),
        ("What a simulation logged:", &["gsd", "log", "run.gsd"]),
        ("Which bytes are what:", &["map", "example.taf"]),
        ("Is it sound?", &["check", "example.taf"]),
        ("And this one, which ends too early?", &["check", "cut.taf"]),
        ("What can be saved of it:", &["salvage", "cut.taf", "-o", "saved.taf"]),
        ("Sums that do not depend on the layout:", &["hash", "example.taf", "saved.taf"]),
    ];
    writeln!(out, "Samples are in {}", folder.display())?;
    for (words, command) in show {
        step(words, command, context, out)?;
    }
    writeln!(out, "\nThat was the tour. `spile --help` lists all commands; the files stay in")?;
    writeln!(out, "{}", folder.display())?;
    Ok(Exit::Yes)
}

/// Runs one command as if it had been typed.
fn step(words: &str, command: &[&str], context: &Context, out: &mut Output) -> Result<()> {
    let shown: Vec<String> = command
        .iter()
        .map(|w| if w.contains([' ', ',']) { format!("'{w}'") } else { (*w).into() })
        .collect();
    let line = out.paint(style::NAME, &format!("$ spile {}", shown.join(" ")));
    writeln!(out, "\n{words}\n{line}")?;
    let words = std::iter::once("spile").chain(command.iter().copied());
    let cli = Cli::try_parse_from(words).map_err(|e| Error::argument(e.to_string()))?;
    match super::run(&cli.command, context, out) {
        Ok(_) => Ok(()),
        Err(error) => {
            out.flush()?;
            context.fail(&error);
            Ok(())
        }
    }
}

/// A noisy burst as an 8-bit digitizer would see it.
fn signal(path: &Path, context: &Context) -> Result<()> {
    let mut noise = 1_u32;
    let samples = (0..SAMPLES).flat_map(|k| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let t = k as f64 / SAMPLES as f64;
        let envelope = (-((t - 0.4) / 0.12).powi(2)).exp();
        let volts = envelope * (t * 180.0).sin() + (f64::from(noise >> 16) - 32_768.0) / 1e6;
        (volts as f32).to_le_bytes()
    });
    let layout = Layout::Inline(samples.collect::<Vec<u8>>().into(), Order::F);
    let desc = ArrayDesc::new(DType::F32, Shape::new([SAMPLES]), layout);
    let limits = &context.limits;
    let array = Array::open(&Source::memory([]), &Tree::new(limits), &desc, limits)?;
    let options = Create {
        dtype: DType::U8,
        grids: vec![(-4e-4, 1e-9)],
        comments: b"a burst, one million samples of 8 bits\n".to_vec(),
        overwrite: Overwrite::Never,
    };
    ops::create(path, &array, &Selection::all(), &options).map(drop)
}

/// Six numbers as NumPy saves them.
fn npy() -> Vec<u8> {
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend((1..=6_i32).flat_map(i32::to_le_bytes));
    bytes
}

/// A file header and a block, as a parallel program would leave them.
fn scda() -> Vec<u8> {
    let pad = |text: &str, length: usize| format!("{:-<1$}-\n", format!("{text} "), length - 2);
    let header = format!("scdata0 {}F {}", pad("spile tour", 24), pad("a checkpoint", 62));
    let block = format!("B {}E {}step 42\n", pad("where it stopped", 62), pad("8", 30));
    format!("{header}\n={0:=<28}\n\n{block}{0:=<22}\n\n", "").into_bytes()
}

/// Ten frames of four particles, as HOOMD-blue would write them.
fn trajectory(path: &Path) -> Result<()> {
    let about =
        About { application: "spile".into(), schema: "hoomd".into(), schema_version: 1 << 16 | 4 };
    let mode = Mode::default();
    let mut run = Writer::create(path, Overwrite::Never, Version::V2_1, &about, mode)?;
    for frame in 0..10_u64 {
        let shift = frame as f32 * 0.25;
        let positions: Vec<u8> =
            (0..12_u8).flat_map(|k| (f32::from(k) / 4.0 - shift).to_le_bytes()).collect();
        let energy = (frame as f64).mul_add(-0.5, 8.0).to_le_bytes();
        run.write_chunk("configuration/step", Type::UInt64, 1, 1, &(100 * frame).to_le_bytes())?;
        run.write_chunk("particles/N", Type::UInt32, 1, 1, &4_u32.to_le_bytes())?;
        run.write_chunk("particles/position", Type::Float, 4, 3, &positions)?;
        run.write_chunk("log/energy", Type::Double, 1, 1, &energy)?;
        run.end_frame()?;
    }
    run.close()
}

/// A copy that ends in the middle of the last column.
fn damaged(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from)?;
    fs::write(to, &bytes[..bytes.len() * 7 / 8])?;
    Ok(())
}
