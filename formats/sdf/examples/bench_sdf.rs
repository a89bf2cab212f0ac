//! The tasks of `cargo xtask bench sdf` with spile. Protocol: `benches/common.h`.
//!
//! | task | measured | count |
//! |---|---|---|
//! | `make FOLDER CELLS FIELDS PARTICLES BLOCKS DUMPS` | creating the files of the other tasks | offset of the first field |
//! | `link FOLDER NEW DUMPS` | creating a folder with links to the first dumps | dumps |
//! | `open FILE` | header, blocks and tree | peak memory of this process in bytes |
//! | `list FILE` | header and blocks | blocks |
//! | `tree FILE` | header, blocks and tree | nodes |
//! | `read FILE NAME` | an entire array | bytes |
//! | `all FILE` | all arrays that are stored as blocks | bytes |
//! | `part FILE NAME SPAN...` | a part of an array | bytes |
//! | `series FOLDER` | all dumps of a folder as one dataset | dumps |
//! | `write FILE CELLS FIELDS PARTICLES` | writing a dump | bytes |
//!
//! Every task opens its file. Memory is reused. Writing ends with the rename of the file.

#[path = "../../../benches/protocol.rs"]
mod protocol;

use std::path::Path;
use std::time::Instant;

use protocol::{Buffer, Measurement, Result, serve};
use spile_core::{Array, Axes, Dataset, Layout, Limits, OpenOptions, Overwrite, Selection};
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{
    BlockType, File, Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Sdf, Writer,
    write_file,
};

/// Data to write, and the buffer for reading.
#[derive(Default)]
struct Memory {
    numbers: Vec<u8>,
    buffer: Buffer<u8>,
}

fn main() -> Result<()> {
    let mut memory = Memory::default();
    serve(|fields| task(fields, &mut memory))
}

fn task(fields: &[&str], memory: &mut Memory) -> Measurement {
    let limits = Limits::default();
    let start = Instant::now();
    let count = match *fields {
        ["make", folder, cells, fields, particles, blocks, dumps] => {
            let folder = Path::new(folder);
            let size = Size::parse(cells, fields, particles)?;
            size.write(&folder.join("dump.sdf"), 0, &mut memory.numbers)?;
            many_blocks(&folder.join("blocks.sdf"), blocks.parse()?)?;
            let series = folder.join("series");
            std::fs::create_dir(&series)?;
            let small = Size { side: 16, fields: 6, particles: 1000 };
            for step in 0..dumps.parse()? {
                small.write(&series.join(format!("{step:04}.sdf")), step, &mut memory.numbers)?;
            }
            let file = File::open(folder.join("dump.sdf"), &limits)?;
            file.find("f0").next().ok_or("no field")?.header.data_location
        }
        ["link", folder, new, dumps] => {
            std::fs::create_dir(new)?;
            let dumps = dumps.parse()?;
            for name in (0..dumps).map(|step| format!("{step:04}.sdf")) {
                std::os::unix::fs::symlink(
                    Path::new(folder).join(&name),
                    Path::new(new).join(&name),
                )?;
            }
            dumps
        }
        ["open", file] => {
            open(file)?;
            peak()?
        }
        ["list", file] => File::open(file, &limits)?.blocks().len() as u64,
        ["tree", file] => open(file)?.tree().len() as u64,
        ["read", file, name] => {
            let file = open(file)?;
            read(&file.array(name)?, &Selection::all(), &mut memory.buffer)?
        }
        ["all", file] => {
            let file = open(file)?;
            let mut bytes = 0;
            for (id, _, desc) in file.arrays() {
                if matches!(desc.layout, Layout::Plain { .. }) {
                    let array = file.array_at(id)?;
                    bytes += read(&array, &Selection::all(), &mut memory.buffer)?;
                }
            }
            bytes
        }
        ["part", file, name, ref spans @ ..] => {
            let file = open(file)?;
            read(&file.array(name)?, &spans.join(",").parse()?, &mut memory.buffer)?
        }
        ["series", folder] => {
            let series = open(folder)?;
            series.tree().frames().ok_or("no frames")?.len()
        }
        ["write", file, cells, fields, particles] => {
            let _ = std::fs::remove_file(file);
            let size = Size::parse(cells, fields, particles)?;
            // Creating the numbers is not measured.
            size.numbers(&mut memory.numbers);
            let start = Instant::now();
            size.write(Path::new(file), 0, &mut memory.numbers)?;
            return Ok((start.elapsed(), std::fs::metadata(file)?.len()));
        }
        _ => return Err("unknown task".into()),
    };
    Ok((start.elapsed(), count))
}

/// Opens a file, or the dumps of a folder.
fn open(path: &str) -> spile_core::Result<Dataset> {
    Dataset::open_path(&Sdf, path, &OpenOptions::default())
}

/// Reads a part of an array; returns its bytes.
fn read(array: &Array, selection: &Selection, buffer: &mut Buffer<u8>) -> Result<u64> {
    let selected = array.select(selection, Axes::Stored)?;
    let bytes = selected.count() as usize * array.dtype().size();
    selected.read_into(buffer.first(bytes))?;
    Ok(bytes as u64)
}

/// The peak memory of this process in bytes.
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).ok_or("VmHWM without a number")?.parse::<u64>()? * 1024)
}

/// A dump: fields on a cube of cells, and particles with a position, a momentum and a weight.
struct Size {
    side: u64,
    fields: u64,
    particles: u64,
}

const REAL: DataType = DataType::Real8;

impl Size {
    fn parse(cells: &str, fields: &str, particles: &str) -> Result<Self> {
        let side = cells.parse::<f64>()?.cbrt().round() as u64;
        Ok(Self { side, fields: fields.parse()?, particles: particles.parse()? })
    }

    /// Fills `memory` with the numbers of the largest block.
    fn numbers(&self, memory: &mut Vec<u8>) {
        let most = self.side.pow(3).max(self.particles);
        if (memory.len() as u64) < most * 8 {
            memory.clear();
            memory.extend((0..most).flat_map(|k| (k as f64).to_le_bytes()));
        }
    }

    fn write(&self, path: &Path, step: i32, memory: &mut Vec<u8>) -> Result<()> {
        self.numbers(memory);
        let bytes = |count: u64| &memory[..count as usize * 8];
        let (code_name, time) = ("Epoch3d".into(), f64::from(step));
        let header = FileHeader { code_name, step, time, ..FileHeader::default() };
        write_file(path, &header, Overwrite::Never, |file| {
            run_info(file)?;
            let nodes = self.side + 1;
            let axis = || (0..nodes).flat_map(|k| (k as f64).to_le_bytes());
            let axes: Vec<u8> = (0..3).flat_map(|_| axis()).collect();
            let grid = Meta::Mesh(mesh(&[nodes; 3]));
            let kind = BlockType::PlainMesh;
            file.block("grid", "Grid/Grid", kind, REAL, &grid, &axes)?;
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

/// A block that sdf-xarray requires.
fn run_info(file: &mut Writer<'_>) -> spile_core::error::Result<()> {
    let (kind, info) = (BlockType::RunInfo, Meta::RunInfo(RunInfo::default()));
    file.block("run_info", "Run_info", kind, DataType::Other, &info, &[])?;
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
        file.block("grid", "Grid/Grid", kind, REAL, &grid, &nodes)?;
        for k in 2..blocks {
            let (id, name) = (format!("v{k}"), format!("Group{}/Variable{k}", k / 50));
            let meta = Meta::PlainVariable(variable(&[8]));
            let data = &nodes[..64];
            file.block(&id, &name, BlockType::PlainVariable, REAL, &meta, data)?;
        }
        Ok(())
    })?;
    Ok(())
}
