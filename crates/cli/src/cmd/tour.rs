//! `spile tour`: a demonstration on sample files.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use spile::Dataset;
use spile::comm::Serial;
use spile::dtype::DType;
use spile::error::{Error, Result};
use spile::layout::{ArrayDesc, Layout};
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

/// A lattice in the form of Quantum ESPRESSO.
const CELL: &str = "<Root>\n  <CELL UNITS=\"Bohr\">\n    <a1 type=\"real\" size=\"3\">\n -5.1 0.0 5.1\n    \
                    </a1>\n  </CELL>\n</Root>\n";

/// Number of samples of the example signal.
const SAMPLES: u64 = 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct TourArgs {
    /// New folder for the sample files [default: a temporary folder]
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
    // The commands run in the folder of the samples, so that they can be copied as printed.
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
        ("Supported formats:", &["formats"]),
        ("Summary of a file:", &["info", "example.taf"]),
        (
            "Arrays of several files:",
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
        ("Values of an array:", &["cat", "example.taf", "98:, :"]),
        ("Statistics:", &["stat", "burst.taf", "example.taf"]),
        ("A plot of a million samples in the terminal:", &["plot", "burst.taf", "--height", "16"]),
        ("The same plot as an image:", &["plot", "burst.taf", "-o", "burst.svg"]),
        ("Logged quantities of a simulation:", &["gsd", "log", "run.gsd"]),
        ("Byte ranges and their meaning:", &["map", "example.taf"]),
        ("Check of a valid file:", &["check", "example.taf"]),
        ("Check of a truncated file:", &["check", "cut.taf"]),
        ("Recovery of the truncated file:", &["salvage", "cut.taf", "-o", "saved.taf"]),
        ("Checksums, independent of the layout:", &["hash", "example.taf", "saved.taf"]),
    ];
    if context.json {
        let mut document = out.document()?;
        document.field("folder", &folder.to_string_lossy())?;
        document.end()?;
    } else {
        writeln!(out, "Sample files: {}", folder.display())?;
    }
    for (title, command) in show {
        step(title, command, context, out)?;
    }
    if context.json {
        return Ok(Exit::Yes);
    }
    writeln!(
        out,
        "\nEnd of the tour. `spile --help` lists all commands. The sample files are kept in"
    )?;
    writeln!(out, "{}", folder.display())?;
    Ok(Exit::Yes)
}

/// Prints and runs one command.
fn step(title: &str, command: &[&str], context: &Context, out: &mut Output) -> Result<()> {
    let shown: Vec<String> = command
        .iter()
        .map(|w| if w.contains([' ', ',']) { format!("'{w}'") } else { (*w).into() })
        .collect();
    let line = format!("spile {}", shown.join(" "));
    if context.json {
        let mut document = out.document()?;
        document.field("step", title)?;
        document.field("command", &line)?;
        document.end()?;
    } else {
        let line = out.paint(style::NAME, &format!("$ {line}"));
        writeln!(out, "\n{title}\n{line}")?;
    }
    let args = std::iter::once("spile").chain(command.iter().copied());
    let cli = Cli::try_parse_from(args).map_err(|e| Error::argument(e.to_string()))?;
    match super::run(&cli.command, context, out) {
        Ok(_) => Ok(()),
        Err(error) => {
            out.flush()?;
            context.fail(&error);
            Ok(())
        }
    }
}

/// A noisy burst as recorded by an 8-bit digitizer.
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

/// Six numbers in the NumPy format.
fn npy() -> Vec<u8> {
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend((1..=6_i32).flat_map(i32::to_le_bytes));
    bytes
}

/// A checkpoint with one block.
fn checkpoint(path: &Path) -> Result<()> {
    let mut file = Writer::create(&Serial, path, b"a checkpoint", spile_scda::Options::default())?;
    file.block(b"last step", 0, 8, Some(b"step 42\n"), false)?;
    file.close()
}

/// A pulse on a grid, like a dump of EPOCH.
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

/// Ten frames of four particles, like a trajectory of HOOMD-blue.
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

/// Writes a truncated copy that ends in the last column.
fn damaged(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from)?;
    fs::write(to, &bytes[..bytes.len() * 7 / 8])?;
    Ok(())
}
