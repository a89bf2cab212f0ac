//! A dump written by any number of ranks, for the tests with threads and with MPI.

use std::path::Path;

use spile_core::comm::Comm;
use spile_core::error::Result;
use spile_core::sink::Overwrite;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{
    BlockType, Mesh, Meta, Part, PlainVariable, PointMesh, PointVariable, SharedWriter, write_file,
};

const REAL: (BlockType, DataType) = (BlockType::PlainVariable, DataType::Real8);

/// A grid and some particles.
#[derive(Clone, Debug)]
pub(crate) struct Dump {
    pub(crate) dims: Vec<u64>,
    pub(crate) particles: u64,
    pub(crate) order: ByteOrder,
    pub(crate) revision: u32,
}

impl Dump {
    fn header(&self) -> FileHeader {
        FileHeader {
            code_name: "parts".into(),
            step: 5,
            order: self.order,
            revision: self.revision,
            ..FileHeader::default()
        }
    }

    fn mesh(directions: usize) -> Mesh {
        Mesh {
            mults: vec![1.0; directions],
            labels: vec!["X".into(); directions],
            units: vec!["m".into(); directions],
            geometry: 1,
            minval: vec![0.0; directions],
            maxval: vec![1.0; directions],
            dims: Vec::new(),
        }
    }

    fn grid(&self) -> (Meta, Vec<u8>) {
        let mesh = Mesh { dims: self.dims.clone(), ..Self::mesh(self.dims.len()) };
        let nodes = self.dims.iter().flat_map(|n| (0..*n).map(|k| k as f64));
        (Meta::Mesh(mesh), nodes.flat_map(f64::to_le_bytes).collect())
    }

    fn field(&self) -> Meta {
        Meta::PlainVariable(PlainVariable {
            mult: 1.0,
            units: "V/m".into(),
            mesh_id: "grid".into(),
            dims: self.dims.clone(),
            stagger: 7,
        })
    }

    fn positions(&self) -> Meta {
        let species_id = "electron".into();
        Meta::PointMesh(PointMesh { mesh: Self::mesh(3), np: self.particles, species_id })
    }

    fn weight(&self) -> Meta {
        Meta::PointVariable(PointVariable {
            mult: 1.0,
            units: "1".into(),
            mesh_id: "places".into(),
            np: self.particles,
            species_id: "electron".into(),
        })
    }

    /// Values of the points of a part: the index of each point, first direction fastest.
    fn values(dims: &[u64], start: &[u64], count: &[u64]) -> Vec<u8> {
        let points: u64 = count.iter().product();
        let number = |mut point: u64| {
            let (mut number, mut stride) = (0, 1);
            for ((dim, start), count) in dims.iter().zip(start).zip(count) {
                number += (start + point % count) * stride;
                point /= count;
                stride *= dim;
            }
            number as f64
        };
        (0..points).flat_map(|point| number(point).to_le_bytes()).collect()
    }

    /// Writes the dump with the serial writer.
    pub(crate) fn write_alone(&self, path: &Path) -> Result<()> {
        let all_values = |dims: &[u64]| Self::values(dims, &vec![0; dims.len()], dims);
        write_file(path, &self.header(), Overwrite::Never, |file| {
            let (mesh, nodes) = self.grid();
            let (variable, real) = REAL;
            file.block("grid", "Grid", BlockType::PlainMesh, real, &mesh, &nodes)?;
            let all = all_values(&self.dims);
            file.block("ex", "E/Ex", variable, real, &self.field(), &all)?;
            let all = all_values(&[self.particles, 3]);
            file.block("places", "P", BlockType::PointMesh, real, &self.positions(), &all)?;
            let all = all_values(&[self.particles]);
            file.block("w", "W", BlockType::PointVariable, real, &self.weight(), &all)?;
            Ok(())
        })
    }

    /// Writes the dump in parallel: the grid is divided along its last direction or, with `across`,
    /// along its first; with three and more ranks the last but one has no points.
    pub(crate) fn write_parts(&self, comm: &dyn Comm, path: &Path, across: bool) -> Result<()> {
        let mut file = SharedWriter::create(comm, path, &self.header(), Overwrite::Never)?;
        let real = DataType::Real8;
        let (mesh, nodes) = self.grid();
        file.block(comm.size() - 1, "grid", "Grid", (BlockType::PlainMesh, real), &mesh, &nodes)?;
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let (own, shares) = match ranks {
            1 | 2 => (rank, ranks),
            _ if rank == ranks - 1 => (rank - 1, ranks - 1),
            _ => (rank, ranks - 1),
        };
        let empty = ranks > 2 && rank == ranks - 2;
        let range = |n: u64| {
            let (start, end) = (n * own / shares, n * (own + 1) / shares);
            if empty { (0, 0) } else { (start, end - start) }
        };
        let along = if across { 0 } else { self.dims.len() - 1 };
        let (mut start, mut count) = (vec![0; self.dims.len()], self.dims.clone());
        (start[along], count[along]) = range(self.dims[along]);
        let data = Self::values(&self.dims, &start, &count);
        let part = Part { start: &start, count: &count, data: &data };
        file.variable("ex", "E/Ex", REAL, &self.field(), part)?;
        let (first, mine) = range(self.particles);
        let data = Self::values(&[self.particles, 3], &[first, 0], &[mine, 3]);
        let part = Part { start: &[first, 0], count: &[mine, 3], data: &data };
        file.variable("places", "P", (BlockType::PointMesh, real), &self.positions(), part)?;
        let data = Self::values(&[self.particles], &[first], &[mine]);
        let part = Part { start: &[first], count: &[mine], data: &data };
        file.variable("w", "W", (BlockType::PointVariable, real), &self.weight(), part)?;
        file.close()
    }
}
