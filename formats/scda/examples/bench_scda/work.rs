//! The tasks of `cargo xtask bench scda` with spile, on the ranks of any job. Protocol: `benches/common.h`, on
//! standard input of rank 0.
//!
//! | task | measured | count |
//! |---|---|---|
//! | `write-array FILE BYTES SIZE` | writing elements of SIZE bytes | bytes of all elements |
//! | `read-array FILE BYTES SIZE` | reading them | bytes of all elements |
//! | `write-varray FILE NUMBER` | writing NUMBER elements of 48 to 80 bytes | bytes of all elements |
//! | `read-varray FILE NUMBER` | reading them | bytes of all elements |
//! | `write-small FILE NUMBER` | writing NUMBER sections of 1000 doubles | bytes of all elements |
//! | `write-indirect FILE BYTES SIZE` | writing elements of SIZE bytes at scattered addresses | bytes of all elements |
//! | `write-one FILE BYTES` | writing an A section whose elements are all on rank 0 | bytes of all elements |
//! | `write-encoded FILE FIELD SIZE` | writing the elements in FIELD, compressed | stored bytes |
//! | `read-encoded FILE FIELD SIZE` | reading them | bytes of all elements |
//! | `format-entries DIGITS NUMBER` | formatting size entries of up to DIGITS digits | entries |
//! | `parse-entries DIGITS NUMBER` | parsing them | entries |
//! | `make-field FILE NUMBER single\|double` | creating NUMBER elements of 1 KiB to compress | elements |
//!
//! Memory is reused and touched before the measurement. Writing ends with the rename of the file. Data
//! are verified after the measurement.

#[path = "../../../../benches/protocol.rs"]
mod protocol;

use std::error::Error;
use std::f64::consts::TAU;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use protocol::{Buffer, reply};
use spile_core::comm::{Comm, broadcast_message, gather_numbers};
use spile_core::{Limits, Overwrite};
use spile_scda::wire::{Breaks, format_entries, parse_entries};
use spile_scda::{Cursor, Elements, Options, Slots, Writer};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Entries that are formatted at once, as in the writer.
const ENTRIES: usize = 1 << 15;

/// Period of the data of an array, in bytes; no part of a file has this size.
const PERIOD: usize = 4093;

/// Runs tasks until the end of standard input.
pub(crate) fn serve(comm: &dyn Comm) -> Result<()> {
    let mut bench = Bench { comm, memory: Buffer::default(), field: Default::default() };
    loop {
        let mut line = String::new();
        if comm.rank() == 0 {
            std::io::stdin().read_line(&mut line)?;
        }
        let line = String::from_utf8(broadcast_message(comm, 0, line.as_bytes())?)?;
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.is_empty() {
            return Ok(());
        }
        let result = bench.task(&fields).map_err(|e| format!("{}: {e}", line.trim_end()))?;
        if comm.rank() == 0 {
            reply(result)?;
        }
    }
}

/// The state of one rank.
struct Bench<'a> {
    comm: &'a dyn Comm,
    memory: Buffer<u8>,
    /// The file of the elements to compress, and the elements of this rank.
    field: (PathBuf, Vec<u8>),
}

impl Bench<'_> {
    fn task(&mut self, fields: &[&str]) -> Result<(Duration, u64)> {
        match *fields {
            ["write-array", file, bytes, size] => {
                self.write_array(Path::new(file), bytes.parse()?, size.parse()?)
            }
            ["read-array", file, bytes, size] => {
                self.read_array(Path::new(file), bytes.parse()?, size.parse()?)
            }
            ["write-small", file, number] => self.write_small(Path::new(file), number.parse()?),
            ["write-indirect", file, bytes, size] => {
                self.write_indirect(Path::new(file), bytes.parse()?, size.parse()?)
            }
            ["write-one", file, bytes] => self.write_one(Path::new(file), bytes.parse()?),
            ["write-varray", file, number] => self.write_varray(Path::new(file), number.parse()?),
            ["read-varray", file, number] => self.read_varray(Path::new(file), number.parse()?),
            ["write-encoded", file, field, size] => {
                self.write_encoded(Path::new(file), Path::new(field), size.parse()?)
            }
            ["read-encoded", file, field, size] => {
                self.read_encoded(Path::new(file), Path::new(field), size.parse()?)
            }
            ["format-entries", digits, number] => entries(digits.parse()?, number.parse()?, false),
            ["make-field", file, number, digits] => {
                make_field(Path::new(file), number.parse()?, digits == "single")
            }
            ["parse-entries", digits, number] => entries(digits.parse()?, number.parse()?, true),
            _ => Err("unknown task".into()),
        }
    }

    fn write_array(&mut self, file: &Path, bytes: u64, size: u64) -> Result<(Duration, u64)> {
        let counts = self.partition(bytes / size);
        let mine = self.fill(counts[self.comm.rank()] * size)?;
        let data = Elements::Contiguous(self.memory.first(mine));
        let time =
            write(self.comm, file, |writer| writer.array(b"bench", &counts, size, data, false))?;
        Ok((time, bytes / size * size))
    }

    fn write_small(&mut self, file: &Path, number: u64) -> Result<(Duration, u64)> {
        let counts = self.partition(1000);
        let mine = self.fill(counts[self.comm.rank()] * 8)?;
        let data = Elements::Contiguous(self.memory.first(mine));
        let time = write(self.comm, file, |writer| {
            (0..number).try_for_each(|_| writer.array(b"small", &counts, 8, data, false))
        })?;
        Ok((time, number * 8000))
    }

    /// Every second one of the elements in memory is written.
    fn write_indirect(&mut self, file: &Path, bytes: u64, size: u64) -> Result<(Duration, u64)> {
        let counts = self.partition(bytes / size);
        let all = self.fill(2 * counts[self.comm.rank()] * size)?;
        let parts: Vec<&[u8]> = self.memory.first(all).chunks(size as usize).step_by(2).collect();
        let data = Elements::Indirect(&parts);
        let time =
            write(self.comm, file, |writer| writer.array(b"bench", &counts, size, data, false))?;
        Ok((time, bytes / size * size))
    }

    fn write_one(&mut self, file: &Path, bytes: u64) -> Result<(Duration, u64)> {
        let mut counts = vec![0; self.comm.size()];
        counts[0] = bytes;
        let mine = self.fill(counts[self.comm.rank()])?;
        let data = Elements::Contiguous(self.memory.first(mine));
        let time =
            write(self.comm, file, |writer| writer.array(b"bench", &counts, 1, data, false))?;
        Ok((time, bytes))
    }

    fn read_array(&mut self, file: &Path, bytes: u64, size: u64) -> Result<(Duration, u64)> {
        let counts = self.partition(bytes / size);
        let mine = self.blank(counts[self.comm.rank()] * size);
        let (comm, into) = (self.comm, self.memory.first(mine));
        let time =
            read(comm, file, |cursor| cursor.array_into(&counts, Some(Slots::Contiguous(into))))?;
        self.is_filled(mine)?;
        Ok((time, bytes / size * size))
    }

    fn write_varray(&mut self, file: &Path, number: u64) -> Result<(Duration, u64)> {
        let (counts, sizes) = self.varray(number);
        let mine = self.fill(sizes.iter().sum())?;
        let data = Elements::Contiguous(self.memory.first(mine));
        let time =
            write(self.comm, file, |writer| writer.varray(b"bench", &counts, &sizes, data, false))?;
        Ok((time, self.sum(mine as u64)?))
    }

    fn read_varray(&mut self, file: &Path, number: u64) -> Result<(Duration, u64)> {
        let (counts, sizes) = self.varray(number);
        let mine = self.blank(sizes.iter().sum());
        let (comm, into) = (self.comm, self.memory.first(mine));
        let mut found = Vec::new();
        let time = read(comm, file, |cursor| {
            found = cursor.sizes(&counts)?;
            cursor.varray_into(&counts, Some(Slots::Contiguous(into)))
        })?;
        if found != sizes {
            return Err("unexpected sizes".into());
        }
        self.is_filled(mine)?;
        Ok((time, self.sum(mine as u64)?))
    }

    fn write_encoded(&mut self, file: &Path, field: &Path, size: u64) -> Result<(Duration, u64)> {
        let counts = self.load(field, size)?;
        let data = Elements::Contiguous(&self.field.1);
        let time =
            write(self.comm, file, |writer| writer.array(b"bench", &counts, size, data, true))?;
        Ok((time, self.stored(file, &counts)?))
    }

    fn read_encoded(&mut self, file: &Path, field: &Path, size: u64) -> Result<(Duration, u64)> {
        let counts = self.load(field, size)?;
        let mine = self.blank(self.field.1.len() as u64);
        let (comm, into) = (self.comm, self.memory.first(mine));
        let time =
            read(comm, file, |cursor| cursor.array_into(&counts, Some(Slots::Contiguous(into))))?;
        if *self.memory.first(mine) != self.field.1 {
            return Err("unexpected elements".into());
        }
        Ok((time, self.sum(mine as u64)?))
    }

    /// The number of elements of each rank.
    fn partition(&self, number: u64) -> Vec<u64> {
        let ranks = self.comm.size() as u64;
        (0..ranks).map(|rank| number * (rank + 1) / ranks - number * rank / ranks).collect()
    }

    /// The number of elements of each rank, and the sizes of those of this rank.
    fn varray(&self, number: u64) -> (Vec<u64>, Vec<u64>) {
        let counts = self.partition(number);
        let first: u64 = counts[..self.comm.rank()].iter().sum();
        let sizes = (first..first + counts[self.comm.rank()]).map(|k| 48 + mixed(k) % 33);
        (counts, sizes.collect())
    }

    /// Loads the elements of this rank; returns the number of elements of each rank.
    fn load(&mut self, field: &Path, size: u64) -> Result<Vec<u64>> {
        let counts = self.partition(std::fs::metadata(field)?.len() / size);
        if self.field.0 != field {
            let first: u64 = counts[..self.comm.rank()].iter().sum();
            let all = std::fs::read(field)?;
            let mine = counts[self.comm.rank()] * size;
            let mine = all[(first * size) as usize..][..mine as usize].to_vec();
            self.field = (field.to_path_buf(), mine);
        }
        Ok(counts)
    }

    /// The stored bytes of all elements.
    fn stored(&self, file: &Path, counts: &[u64]) -> Result<u64> {
        let mut cursor = Cursor::open(self.comm, file, &Limits::default())?;
        cursor.next(false)?;
        cursor.next(false)?;
        let mine = cursor.sizes(counts)?.iter().sum();
        self.sum(mine)
    }

    fn sum(&self, mine: u64) -> Result<u64> {
        Ok(gather_numbers(self.comm, mine)?.iter().sum())
    }

    /// Fills the memory with the data of this rank.
    fn fill(&mut self, bytes: u64) -> Result<usize> {
        let pattern = self.pattern(bytes)?;
        for part in self.memory.first(bytes as usize).chunks_mut(PERIOD) {
            part.copy_from_slice(&pattern[..part.len()]);
        }
        Ok(bytes as usize)
    }

    fn is_filled(&mut self, bytes: usize) -> Result<()> {
        let pattern = self.pattern(bytes as u64)?;
        if self.memory.first(bytes).chunks(PERIOD).all(|part| *part == pattern[..part.len()]) {
            return Ok(());
        }
        Err("unexpected bytes".into())
    }

    /// One period of the data, from the first byte of this rank.
    fn pattern(&self, bytes: u64) -> Result<Vec<u8>> {
        let before: u64 = gather_numbers(self.comm, bytes)?[..self.comm.rank()].iter().sum();
        let period = PERIOD as u64;
        Ok((0..period).map(|k| mixed((before + k) % period) as u8).collect())
    }

    /// Fills the memory with other bytes than the data.
    fn blank(&mut self, bytes: u64) -> usize {
        self.memory.first(bytes as usize).fill(b'?');
        bytes as usize
    }
}

/// Writes a section to a new file.
fn write(
    comm: &dyn Comm,
    file: &Path,
    section: impl FnOnce(&mut Writer<'_>) -> spile_core::error::Result<()>,
) -> Result<Duration> {
    if comm.rank() == 0 {
        let _ = std::fs::remove_file(file);
    }
    timed(comm, || {
        let options = Options { overwrite: Overwrite::Replace, ..Options::default() };
        let mut writer = Writer::create(comm, file, b"cargo xtask bench scda", options)?;
        section(&mut writer)?;
        writer.close()
    })
}

/// Reads the only section of a file.
fn read(
    comm: &dyn Comm,
    file: &Path,
    data: impl FnOnce(&mut Cursor<'_>) -> spile_core::error::Result<()>,
) -> Result<Duration> {
    let mut found = false;
    let time = timed(comm, || {
        let mut cursor = Cursor::open(comm, file, &Limits::default())?;
        found = cursor.next(true)?.is_some();
        if found { data(&mut cursor) } else { Ok(()) }
    })?;
    if found { Ok(time) } else { Err("no section".into()) }
}

/// The time until all ranks have finished.
fn timed(
    comm: &dyn Comm,
    work: impl FnOnce() -> spile_core::error::Result<()>,
) -> Result<Duration> {
    comm.allgather(&[])?;
    let start = Instant::now();
    work()?;
    comm.allgather(&[])?;
    Ok(start.elapsed())
}

/// Writes the elements to compress, 128 doubles each: two crossing waves, one of them damped, with all digits or
/// rounded to single precision.
fn make_field(file: &Path, number: u64, single: bool) -> Result<(Duration, u64)> {
    let start = Instant::now();
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    for k in 0..128 * number {
        let (x, y) = ((k % 1280) as f64 / 1280.0, (k / 1280) as f64 / 1000.0);
        let damped = 0.5 * (TAU * (5.0 * y - 2.0 * x)).cos() * (-x).exp();
        let value = (TAU * (3.0 * x + y)).sin() + damped;
        let value = if single { f64::from(value as f32) } else { value };
        out.write_all(&value.to_le_bytes())?;
    }
    out.flush()?;
    Ok((start.elapsed(), number))
}

/// Formats or parses entries on the calling thread, through a reused buffer as in the writer. The result is the
/// median over the buffers, because other programs interrupt some of them.
fn entries(digits: u32, number: usize, parse: bool) -> Result<(Duration, u64)> {
    let most = 10_u64.checked_pow(digits).ok_or("too many digits")?;
    // Uniform in the number of digits.
    let value = |k: u64| mixed(k) % (most / 10_u64.pow(mixed(!k) as u32 % digits)).max(2);
    let values: Vec<u64> = (0..number as u64).map(value).collect();
    let mut found = vec![0; ENTRIES];
    let mut bytes = Vec::new();
    let mut times = Vec::new();
    for values in values.chunks_exact(ENTRIES) {
        let start = Instant::now();
        format_entries(b'E', values, Breaks::Unix, &mut bytes);
        let formatted = start.elapsed();
        let start = Instant::now();
        parse_entries(&bytes, b'E', 0, &mut found)?;
        times.push(if parse { start.elapsed() } else { formatted });
        if found != values {
            return Err("unexpected sizes".into());
        }
    }
    times.sort();
    let median = times.get(times.len() / 2).ok_or("too few entries")?;
    Ok((median.mul_f64(number as f64 / ENTRIES as f64), number as u64))
}

/// A hash of `k`.
fn mixed(k: u64) -> u64 {
    let k = (k ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    k ^ k >> 29
}
