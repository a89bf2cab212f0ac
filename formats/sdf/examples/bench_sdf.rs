//! Benchmark driver for SDF.
//!
//! Each line on standard input is a task; the answer is a line with the elapsed seconds and a count:
//!
//! | task | operation | count |
//! |---|---|---|
//! | `make FOLDER CELLS FIELDS PARTICLES BLOCKS DUMPS` | writes the input files of the other tasks | offset of the data of the first field |
//! | `open FILE` | reads header, blocks and tree | peak memory in bytes |
//! | `list FILE` | reads header and blocks | blocks |
//! | `tree FILE` | reads header, blocks and tree | nodes |
//! | `read FILE NAME` | reads an array | bytes |
//! | `all FILE` | reads every stored array | bytes |
//! | `part FILE NAME SPAN...` | reads a part of an array | bytes |
//! | `series FOLDER` | opens all dumps of a folder | dumps |
//! | `write FILE CELLS FIELDS PARTICLES` | writes a dump | bytes |
//!
//! Every task opens its file. Buffers are reused. The time of writing includes the rename of the
//! finished file.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use spile_core::format::{Folder, Format as _, Reader as _};
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::sink::Overwrite;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{
    BlockType, Data, File, Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Sdf, View,
    Writer, write_file,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut memory = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line?;
        let args: Vec<&str> = line.split_whitespace().collect();
        let (time, count) = task(&args, &mut memory).map_err(|e| format!("{line}: {e}"))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{:.9} {count}", time.as_secs_f64())?;
        out.flush()?;
    }
    Ok(())
}

fn task(args: &[&str], memory: &mut Vec<u8>) -> Result<(Duration, u64)> {
    let limits = Limits::default();
    let start = Instant::now();
    let count = match *args {
        ["make", folder, cells, fields, particles, blocks, dumps] => {
            let folder = Path::new(folder);
            let size = Size::parse(cells, fields, particles)?;
            size.write(&folder.join("dump.sdf"), 0, memory)?;
            many_blocks(&folder.join("blocks.sdf"), blocks.parse()?)?;
            let series = folder.join("series");
            std::fs::create_dir(&series)?;
            let small = Size { side: 16, fields: 6, particles: 1000 };
            for step in 0..dumps.parse()? {
                small.write(&series.join(format!("{step:04}.sdf")), step, memory)?;
            }
            let file = File::open(folder.join("dump.sdf"), &limits)?;
            file.find("f0").next().ok_or("no field")?.header.data_location
        }
        ["open", file] => {
            View::open(file, &limits)?;
            peak()?
        }
        ["list", file] => File::open(file, &limits)?.blocks().len() as u64,
        ["tree", file] => View::open(file, &limits)?.tree().len() as u64,
        ["read", file, name] => {
            let file = View::open(file, &limits)?;
            read(&file.array(name)?, &Selection::all(), memory)?
        }
        ["all", file] => {
            let file = View::open(file, &limits)?;
            let mut bytes = 0;
            for (_, _, desc) in file.tree().arrays() {
                if matches!(desc.layout, Layout::Plain { .. }) {
                    let array = Array::open(file.source(), file.tree(), desc, &limits)?;
                    bytes += read(&array, &Selection::all(), memory)?;
                }
            }
            bytes
        }
        ["part", file, name, ref spans @ ..] => {
            let file = View::open(file, &limits)?;
            read(&file.array(name)?, &spans.join(",").parse()?, memory)?
        }
        ["series", folder] => {
            let series = Sdf.open_folder(&Folder::open(folder)?, &limits)?.ok_or("no dumps")?;
            series.tree().frames().ok_or("no frames")?.len()
        }
        ["write", file, cells, fields, particles] => {
            let _ = std::fs::remove_file(file);
            let size = Size::parse(cells, fields, particles)?;
            // The time does not include the generation of the data.
            size.numbers(memory);
            let start = Instant::now();
            size.write(Path::new(file), 0, memory)?;
            return Ok((start.elapsed(), std::fs::metadata(file)?.len()));
        }
        _ => return Err("not a task".into()),
    };
    Ok((start.elapsed(), count))
}

/// Reads into a reused buffer. Returns the number of bytes.
fn read(array: &Array, selection: &Selection, memory: &mut Vec<u8>) -> Result<u64> {
    let selected = array.select(selection, Axes::Stored)?;
    let bytes = selected.count() as usize * array.dtype().size();
    // Copies into page-aligned memory are faster.
    if memory.len() < bytes + PAGE {
        memory.resize(bytes + PAGE, 1);
    }
    let first = memory.as_ptr().align_offset(PAGE);
    selected.read_into(&mut memory[first..first + bytes])?;
    Ok(bytes as u64)
}

/// Peak memory of the process in bytes.
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse::<u64>()? * 1024)
}

/// Size of a dump: fields on a cube of cells, and particles with position, momentum and weight.
struct Size {
    side: u64,
    fields: u64,
    particles: u64,
}

const PAGE: usize = 4096;
const REAL: DataType = DataType::Real8;

impl Size {
    fn parse(cells: &str, fields: &str, particles: &str) -> Result<Self> {
        let side = cells.parse::<f64>()?.cbrt().round() as u64;
        Ok(Self { side, fields: fields.parse()?, particles: particles.parse()? })
    }

    /// Fills `memory` with the data of the largest block.
    fn numbers(&self, memory: &mut Vec<u8>) {
        let most = self.side.pow(3).max(self.particles);
        if (memory.len() as u64) < most * 8 {
            memory.clear();
            memory.extend((0..most).flat_map(|k| (k as f64).to_le_bytes()));
        }
    }

    fn write(&self, path: &Path, step: i32, memory: &mut Vec<u8>) -> Result<()> {
        self.numbers(memory);
        let bytes = |count: u64| Data::Bytes(&memory[..count as usize * 8]);
        let (code_name, time) = ("Epoch3d".into(), f64::from(step));
        let header = FileHeader { code_name, step, time, ..FileHeader::default() };
        write_file(path, &header, Overwrite::Never, |file| {
            run_info(file)?;
            let nodes = self.side + 1;
            let axis = || (0..nodes).flat_map(|k| (k as f64).to_le_bytes());
            let axes: Vec<u8> = (0..3).flat_map(|_| axis()).collect();
            let grid = Meta::Mesh(mesh(&[nodes; 3]));
            let kind = BlockType::PlainMesh;
            file.block("grid", "Grid/Grid", kind, REAL, &grid, Data::Bytes(&axes))?;
            for k in 0..self.fields {
                let (id, name) = (format!("f{k}"), format!("Field/F{k}"));
                let meta = Meta::PlainVariable(variable(&[self.side; 3]));
                let data = bytes(self.side.pow(3));
                file.block(&id, &name, BlockType::PlainVariable, REAL, &meta, data)?;
            }
            let (np, species_id) = (self.particles, String::from("electron"));
            let points = PointMesh { mesh: mesh(&[0]), np, species_id: species_id.clone() };
            let (name, points) = ("Grid/Particles/electron", Meta::PointMesh(points));
            file.block("grid/electron", name, BlockType::PointMesh, REAL, &points, bytes(np))?;
            let meta = Meta::PointVariable(PointVariable {
                mult: 1.0,
                units: "1".into(),
                mesh_id: "grid/electron".into(),
                np,
                species_id,
            });
            for name in ["Px", "Weight"] {
                let (id, name) = (format!("{name}/electron"), format!("Particles/{name}/electron"));
                file.block(&id, &name, BlockType::PointVariable, REAL, &meta, bytes(np))?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Required by sdf-xarray.
fn run_info(file: &mut Writer<'_>) -> spile_core::error::Result<()> {
    let (kind, info) = (BlockType::RunInfo, Meta::RunInfo(RunInfo::default()));
    file.block("run_info", "Run_info", kind, DataType::Other, &info, Data::None)?;
    Ok(())
}

fn mesh(dims: &[u64]) -> Mesh {
    let n = dims.len();
    Mesh {
        mults: vec![1.0; n],
        labels: ["X", "Y", "Z"].iter().take(n).map(ToString::to_string).collect(),
        units: vec!["m".into(); n],
        geometry: 1,
        minval: vec![0.0; n],
        maxval: vec![1.0; n],
        dims: dims.to_vec(),
    }
}

fn variable(dims: &[u64]) -> PlainVariable {
    PlainVariable {
        mult: 1.0,
        units: "V/m".into(),
        mesh_id: "grid".into(),
        dims: dims.to_vec(),
        stagger: 0,
    }
}

/// A mesh and many small variables on it.
fn many_blocks(path: &Path, blocks: u64) -> Result<()> {
    let nodes: Vec<u8> = (0..9).flat_map(|k| f64::from(k).to_le_bytes()).collect();
    write_file(path, &FileHeader::default(), Overwrite::Never, |file| {
        run_info(file)?;
        let grid = Meta::Mesh(mesh(&[9]));
        let kind = BlockType::PlainMesh;
        file.block("grid", "Grid/Grid", kind, REAL, &grid, Data::Bytes(&nodes))?;
        for k in 2..blocks {
            let (id, name) = (format!("v{k}"), format!("Group{}/Variable{k}", k / 50));
            let meta = Meta::PlainVariable(variable(&[8]));
            let data = Data::Bytes(&nodes[..64]);
            file.block(&id, &name, BlockType::PlainVariable, REAL, &meta, data)?;
        }
        Ok(())
    })?;
    Ok(())
}
