//! `spile tour`: a newcomer's first minute.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use spile::comm::Serial;
use spile::dtype::DType;
use spile::error::{Error, Result};
use spile::layout::{ArrayDesc, Layout};
use spile::Dataset;
use spile::select::Selection;
use spile::shape::{Order, Shape};
use spile::sink::Overwrite;
use spile::source::Source;
use spile::tree::Tree;
use spile_scda::Writer;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{BlockType, Data, Mesh, Meta, PlainVariable};
use spile_taf::ops::{self, Create};

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, style};

/// A lattice as Quantum ESPRESSO describes it.
const CELL: &str = "<Root>\n  <CELL UNITS=\"Bohr\">\n    <a1 type=\"real\" size=\"3\">\n -5.1 0.0 5.1\n    \
                    </a1>\n  </CELL>\n</Root>\n";

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
    checkpoint(file("state.scda"))?;
    dump(file("0001.sdf"))?;
    fs::write("cell.xml", CELL)?;
    trajectory(file("run.gsd"))?;
    damaged(file("example.taf"), file("cut.taf"))?;

    let show: [(&str, &[&str]); 13] = [
        ("These are the formats spile knows.", &["formats"]),
        ("What is in a file:", &["info", "example.taf"]),
        (
            "Its arrays, as in a folder:",
            &[
                "ls",
                "-l",
                "example.taf",
                "table.txt",
                "counts.npy",
                "state.scda",
                "0001.sdf",
                "cell.xml",
                "run.gsd",
            ],
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
    if context.json {
        let mut document = out.document()?;
        document.field("folder", &folder.to_string_lossy())?;
        document.end()?;
    } else {
        writeln!(out, "Samples are in {}", folder.display())?;
    }
    for (words, command) in show {
        step(words, command, context, out)?;
    }
    if context.json {
        return Ok(Exit::Yes);
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
    let line = format!("spile {}", shown.join(" "));
    if context.json {
        let mut document = out.document()?;
        document.field("step", words)?;
        document.field("command", &line)?;
        document.end()?;
    } else {
        let line = out.paint(style::NAME, &format!("$ {line}"));
        writeln!(out, "\n{words}\n{line}")?;
    }
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
    let array = Dataset::new(Source::memory([]), Tree::new(limits)).open_array(&desc)?;
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

/// A block, as a parallel program would leave it.
fn checkpoint(path: &Path) -> Result<()> {
    let mut file = Writer::create(&Serial, path, b"a checkpoint", spile_scda::Options::default())?;
    file.block(b"where it stopped", 0, 8, Some(b"step 42\n"), false)?;
    file.close()
}

/// A pulse on a grid, as EPOCH would dump it.
fn dump(path: &Path) -> Result<()> {
    const CELLS: u64 = 200;
    let bytes = |n: u64, value: &dyn Fn(f64) -> f64| -> Vec<u8> {
        (0..n).flat_map(|k| value(k as f64 / CELLS as f64).to_le_bytes()).collect()
    };
    let header =
        FileHeader { code_name: "tour".into(), step: 1, time: 1e-14, ..Default::default() };
    spile_sdf::write_file(path, &header, Overwrite::Never, |file| {
        let mesh = Meta::Mesh(Mesh {
            mults: vec![1.0],
            labels: vec!["X".into()],
            units: vec!["m".into()],
            geometry: 1,
            minval: vec![0.0],
            maxval: vec![1e-5],
            dims: vec![CELLS + 1],
        });
        let nodes = bytes(CELLS + 1, &|t| 1e-5 * t);
        let (real, data) = (DataType::Real8, Data::Bytes(&nodes));
        file.block("grid", "Grid/Grid", BlockType::PlainMesh, real, &mesh, data)?;
        let field = Meta::PlainVariable(PlainVariable {
            mult: 1.0,
            units: "V/m".into(),
            mesh_id: "grid".into(),
            dims: vec![CELLS],
            stagger: 0,
        });
        let values =
            bytes(CELLS, &|t| 1e12 * (-(8.0 * (t - 0.5)).powi(2)).exp() * (60.0 * t).sin());
        let data = Data::Bytes(&values);
        file.block("ey", "Electric Field/Ey", BlockType::PlainVariable, real, &field, data)?;
        Ok(())
    })
}

/// Ten frames of four particles, as HOOMD-blue would write them.
fn trajectory(path: &Path) -> Result<()> {
    use spile_gsd::wire::{About, Type};
    use spile_gsd::{Mode, Version, Writer};
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
