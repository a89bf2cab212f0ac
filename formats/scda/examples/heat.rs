//! Heat equation on a plate: computed half-way on three ranks, saved, and continued on two. The result is
//! bit-identical to that of one rank.
//!
//!     cargo run -p spile-scda --example heat
//!
//! All functions take a `&dyn Comm` and also run under MPI.

use std::path::Path;

use spile_core::comm::{Comm, Serial, Threads};
use spile_core::{Limits, Result};
use spile_scda::{Checkpoint, Field, Options, Restart, split_evenly};

/// Rows of the plate.
pub const ROWS: u64 = 96;
const COLUMNS: usize = 128;

/// Version of the checkpoint fields.
const VERSION: u64 = 1;

/// The rows of one rank.
pub struct Plate {
    /// Number of rows of every rank; it may be 0.
    counts: Vec<u64>,
    temperature: Vec<f64>,
    step: u64,
}

/// The checkpoint field: an element is a row.
fn temperature() -> Field {
    Field::of::<f64>("temperature").shaped(&[COLUMNS as u64]).dims(&["y", "x"]).attr("units", "K")
}

impl Plate {
    /// A cold plate with a hot spot.
    pub fn new(comm: &dyn Comm, counts: Vec<u64>) -> Self {
        let first: u64 = counts[..comm.rank()].iter().sum();
        let spot = |row: u64, column: usize| {
            let (y, x) = (row as f64 - 30.0, column as f64 - 50.0);
            300.0 + 700.0 / (1.0 + (x * x + y * y) / 100.0)
        };
        let rows = first..first + counts[comm.rank()];
        let temperature = rows.flat_map(|y| (0..COLUMNS).map(move |x| spot(y, x))).collect();
        Self { counts, temperature, step: 0 }
    }

    /// Writes a checkpoint. Its bytes do not depend on the number of ranks.
    pub fn save(&self, comm: &dyn Comm, path: &Path, compressed: bool) -> Result<()> {
        let mut field = temperature();
        field.compressed = compressed;
        let mut file = Checkpoint::create(comm, path, "heat", VERSION, Options::default())?;
        file.value("step", self.step)?;
        file.write(&field, &self.counts, &self.temperature)?;
        file.close()
    }

    /// Reads a checkpoint written by any number of ranks.
    pub fn load(comm: &dyn Comm, path: &Path) -> Result<Self> {
        let mut file = Restart::open(comm, path, &Limits::default())?;
        file.expect("heat", VERSION)?;
        let step = file.value("step")?;
        let counts = split_evenly(file.find("temperature")?.count, comm.size());
        let temperature = file.read(&temperature(), &counts)?;
        Ok(Self { counts, temperature, step })
    }

    /// Computes up to `step`. The boundary has 300 K.
    pub fn run(&mut self, comm: &dyn Comm, step: u64) -> Result<()> {
        while self.step < step {
            let (above, below) = self.neighbours(comm)?;
            let old = [above, std::mem::take(&mut self.temperature), below].concat();
            for here in COLUMNS..old.len() - COLUMNS {
                let left = if here % COLUMNS == 0 { 300.0 } else { old[here - 1] };
                let right = if here % COLUMNS == COLUMNS - 1 { 300.0 } else { old[here + 1] };
                let around = left + right + old[here - COLUMNS] + old[here + COLUMNS];
                self.temperature.push(old[here] + 0.2 * (around - 4.0 * old[here]));
            }
            self.step += 1;
        }
        Ok(())
    }

    /// The adjacent rows of the nearest ranks with rows.
    fn neighbours(&self, comm: &dyn Comm) -> Result<(Vec<f64>, Vec<f64>)> {
        let rows = self.temperature.chunks(COLUMNS);
        let edges = rows.clone().take(1).chain(rows.rev().take(1)).flatten();
        let edges: Vec<u8> = edges.flat_map(|value| value.to_le_bytes()).collect();
        let all = comm.allgather(&edges)?;
        let row = |edge: Option<&[u8]>| match edge {
            Some(bytes) => bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            None => vec![300.0; COLUMNS],
        };
        let (before, after) = (&all[..comm.rank()], &all[comm.rank() + 1..]);
        let above = before.iter().rev().find(|edges| !edges.is_empty());
        let below = after.iter().find(|edges| !edges.is_empty());
        Ok((row(above.map(|e| &e[e.len() / 2..])), row(below.map(|e| &e[..e.len() / 2]))))
    }

    /// This rank's temperatures.
    pub fn into_rows(self) -> Vec<f64> {
        self.temperature
    }
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("heat.scda");

    let mut plate = Plate::new(&Serial, vec![ROWS]);
    plate.run(&Serial, 200)?;
    let expected = plate.into_rows();

    let saved = Threads::run(3, |comm| {
        let mut plate = Plate::new(comm, vec![50, 7, 39]);
        plate.run(comm, 100)?;
        plate.save(comm, &path, true)
    });
    saved.into_iter().collect::<Result<()>>()?;

    let computed = Threads::run(2, |comm| {
        let mut plate = Plate::load(comm, &path)?;
        plate.run(comm, 200)?;
        Ok(plate.into_rows())
    });
    let computed = computed.into_iter().collect::<Result<Vec<_>>>()?.concat();

    let same = expected.iter().zip(&computed).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
    println!("{same} of {} temperatures are bit-identical", expected.len());
    assert_eq!(same, expected.len());
    Ok(())
}
