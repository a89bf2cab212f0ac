//! Counts the MPI calls of each section, on ranks that are threads, and in jobs of up to a million ranks of
//! which one is run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use spile_core::comm::{Comm, Ranks, Serial, Threads, Transport};
use spile_core::{Limits, Result};
use spile_scda::{
    Checkpoint, Cursor, Elements, Field, Options, Restart, Slots, Writer, split_evenly,
};

/// Number of calls by name.
type Calls = BTreeMap<&'static str, u64>;

/// The MPI calls of one rank, and what the other ranks contribute to them.
struct Counted<'a> {
    job: Job<'a>,
    calls: RefCell<Calls>,
    /// Bytes that this rank received in calls other than reads.
    received: Cell<u64>,
}

enum Job<'a> {
    Threads(&'a Threads<'a>),
    /// One rank of a job whose other ranks contribute nothing.
    One {
        rank: usize,
        size: usize,
    },
}

impl<'a> Counted<'a> {
    fn new(job: Job<'a>) -> Ranks<Self> {
        Ranks::new(Self { job, calls: RefCell::default(), received: Cell::new(0) })
    }

    fn count(&self, call: &'static str, received: usize) {
        *self.calls.borrow_mut().entry(call).or_default() += 1;
        self.received.set(self.received.get() + received as u64);
    }
}

impl Transport for Counted<'_> {
    type File = File;

    fn rank(&self) -> usize {
        match self.job {
            Job::Threads(comm) => comm.rank(),
            Job::One { rank, .. } => rank,
        }
    }

    fn size(&self) -> usize {
        match self.job {
            Job::Threads(comm) => comm.size(),
            Job::One { size, .. } => size,
        }
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        self.count("broadcast", bytes.len());
        match self.job {
            Job::Threads(comm) => comm.broadcast(root, bytes),
            Job::One { .. } => Ok(()),
        }
    }

    fn max(&self, values: &mut [u64]) -> Result<()> {
        self.count("max", values.len() * 8);
        match self.job {
            Job::Threads(comm) => comm.max(values),
            Job::One { .. } => Ok(()),
        }
    }

    fn xor(&self, values: &mut [u64]) -> Result<()> {
        self.count("xor", values.len() * 8);
        match self.job {
            Job::Threads(comm) => comm.xor(values),
            Job::One { .. } => Ok(()),
        }
    }

    fn sum_before(&self, values: &mut [u64; 2]) -> Result<()> {
        self.count("sum_before", 16);
        for value in values {
            *value = match self.job {
                Job::Threads(comm) => comm.sum_before(*value)?,
                Job::One { .. } => 0,
            };
        }
        Ok(())
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.count("allgather", all.len());
        if let Job::Threads(comm) = self.job {
            all.copy_from_slice(&comm.allgather(mine)?.concat());
        }
        Ok(())
    }

    fn open(&self, path: &Path, write: bool) -> Result<File> {
        // As with MPI, all ranks open the file that one of them creates.
        Ok(File::options().read(!write).write(write).create(write).open(path)?)
    }

    fn write_at_all(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<()> {
        self.count("write_at_all", 0);
        Ok(file.write_all_at(bytes, offset)?)
    }

    fn write_at(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<()> {
        self.count("write_at", 0);
        Ok(file.write_all_at(bytes, offset)?)
    }

    fn read_at_all(&self, file: &File, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.count("read_at_all", 0);
        Ok(file.read_exact_at(buffer, offset)?)
    }

    fn close(&self, file: File, keep: bool) -> Result<()> {
        if keep {
            file.sync_all()?;
        }
        Ok(())
    }
}

/// The calls that `body` makes.
fn calls(comm: &Ranks<Counted<'_>>, body: impl FnOnce()) -> Calls {
    comm.transport().calls.take();
    body();
    comm.transport().calls.take()
}

fn expected<const N: usize>(calls: [(&'static str, u64); N]) -> Calls {
    Calls::from(calls)
}

/// Bytes of element `k` of any section.
fn element(k: u64, size: usize) -> Vec<u8> {
    (0..size).map(|byte| (k as usize * 31 + byte) as u8).collect()
}

/// Elements `first..first + number` of `size` bytes.
fn elements(first: u64, number: u64, size: usize) -> Vec<Vec<u8>> {
    (first..first + number).map(|k| element(k, size)).collect()
}

const BLOCK: usize = 100;

/// Writes 300 small A sections, a V section and a B section. Returns the calls of each.
fn write_small(
    comm: &dyn Comm,
    path: &Path,
    mut count: impl FnMut(&mut dyn FnMut()) -> Calls,
) -> Vec<Calls> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut writer = Writer::create(comm, path, b"", Options::default()).unwrap();
    let mut all = Vec::new();
    for section in 0..300 {
        let counts = split_evenly(section % 17 + 8, ranks);
        let first = counts[..rank].iter().sum();
        let data = elements(first, counts[rank], 8).concat();
        all.push(count(&mut || {
            writer.array(b"a", &counts, 8, Elements::Contiguous(&data), false).unwrap();
        }));
    }
    let counts = split_evenly(50, ranks);
    let first: u64 = counts[..rank].iter().sum();
    let each: Vec<_> = (first..first + counts[rank]).map(|k| element(k, k as usize % 7)).collect();
    let sizes: Vec<u64> = each.iter().map(|element| element.len() as u64).collect();
    all.push(count(&mut || {
        let data = each.concat();
        writer.varray(b"v", &counts, &sizes, Elements::Contiguous(&data), false).unwrap();
    }));
    let block = element(5, BLOCK);
    all.push(count(&mut || {
        let data = (rank + 1 == ranks).then_some(&block[..]);
        writer.block(b"b", ranks - 1, BLOCK as u64, data, false).unwrap();
    }));
    writer.close().unwrap();
    all
}

#[test]
fn small_sections_need_two_reductions_and_one_collective_write() {
    let folder = tempfile::tempdir().unwrap();
    let serial = folder.path().join("serial");
    write_small(&Serial, &serial, |body| {
        body();
        Calls::new()
    });
    for ranks in [2, 4] {
        let path = folder.path().join(format!("{ranks}"));
        Threads::run(ranks, |threads| {
            let comm = Counted::new(Job::Threads(threads));
            let all = write_small(&comm, &path, |body| calls(&comm, body));
            let (arrays, others) = all.split_at(300);
            for array in arrays {
                assert_eq!(*array, expected([("max", 2), ("write_at_all", 1)]));
            }
            // Sizes and elements are separate regions of the file.
            assert_eq!(others[0], expected([("max", 3), ("sum_before", 1), ("write_at_all", 2)]));
            // A block is on one rank, which writes it independently.
            let mut block = expected([("max", 2)]);
            if comm.rank() + 1 == ranks {
                block.insert("write_at", 1);
            }
            assert_eq!(others[1], block);
        });
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&serial).unwrap());
    }
}

#[test]
fn small_sections_are_read_with_one_collective_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    write_small(&Serial, &path, |body| {
        body();
        Calls::new()
    });
    Threads::run(3, |threads| {
        let comm = Counted::new(Job::Threads(threads));
        let mut cursor = Cursor::open(&comm, &path, &Limits::default()).unwrap();
        for section in 0..300 {
            let mut header = None;
            let read = calls(&comm, || header = cursor.next(false).unwrap());
            // The arguments are compared; rank 0 reads the header and broadcasts it.
            assert_eq!(read, expected([("max", 1), ("broadcast", 1)]), "section {section}");
            let counts = split_evenly(header.unwrap().count, 3);
            let first = counts[..comm.rank()].iter().sum();
            let wanted = elements(first, counts[comm.rank()], 8).concat();
            let mut mine = vec![0; wanted.len()];
            let read = calls(&comm, || {
                cursor.array_into(&counts, Some(Slots::Contiguous(&mut mine))).unwrap();
            });
            assert_eq!(read, expected([("max", 2), ("read_at_all", 1)]), "section {section}");
            assert!(mine == wanted, "section {section}");
        }
    });
}

#[test]
fn a_field_costs_the_calls_of_two_sections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fields");
    let counts = [3, 4];
    Threads::run(2, |threads| {
        let comm = Counted::new(Job::Threads(threads));
        let mut file = Checkpoint::create(&comm, &path, "test", 1, Options::default()).unwrap();
        let mine = vec![comm.rank() as f64; counts[comm.rank()] as usize];
        for number in 0..10 {
            let field = Field::of::<f64>(&format!("field {number}")).version(1);
            let made = calls(&comm, || file.write(&field, &counts, &mine).unwrap());
            // The description, a block of rank 0, and the elements.
            let mut wanted = expected([("max", 4), ("write_at_all", 1)]);
            if comm.rank() == 0 {
                wanted.insert("write_at", 1);
            }
            assert_eq!(made, wanted, "field {number}");
        }
        file.close().unwrap();
        let mut opened = None;
        let made = calls(&comm, || {
            opened = Some(Restart::open(&comm, &path, &Limits::default()).unwrap());
        });
        // Two headers for each of ten fields, ten descriptions and the one of the program; the length, the header and
        // the end of the file, which may have an index.
        assert_eq!(made["broadcast"], 2 * 10 + 11 + 5, "{made:?}");
        assert!(made["max"] <= 11 + 5, "{made:?}");
        assert!(!made.contains_key("read_at_all"));
        let mut file = opened.unwrap();
        for number in (0..10).rev() {
            let field = Field::of::<f64>(&format!("field {number}")).version(1);
            let made = calls(&comm, || {
                assert_eq!(file.read::<f64>(&field, &counts).unwrap(), mine);
            });
            let wanted = expected([("max", 3), ("broadcast", 1), ("read_at_all", 1)]);
            assert_eq!(made, wanted, "field {number}");
        }
    });
}

#[test]
fn indirect_elements_are_written_and_read_in_large_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("indirect");
    let size = 1 << 20;
    let counts = [20, 3];
    Threads::run(2, |threads| {
        let comm = Counted::new(Job::Threads(threads));
        let first: u64 = counts[..comm.rank()].iter().sum();
        let each = elements(first, counts[comm.rank()], size);
        let slices: Vec<&[u8]> = each.iter().map(Vec::as_slice).collect();
        let mut writer = Writer::create(&comm, &path, b"", Options::default()).unwrap();
        let made = calls(&comm, || {
            let data = Elements::Indirect(&slices);
            writer.array(b"a", &counts, size as u64, data, false).unwrap();
        });
        // 20 MiB of rank 0 in rounds of 16 MiB; rank 0 writes the header, rank 1 the padding.
        assert_eq!(made, expected([("max", 2), ("write_at", 1), ("write_at_all", 2)]));
        writer.close().unwrap();
        let mut cursor = Cursor::open(&comm, &path, &Limits::default()).unwrap();
        cursor.next(false).unwrap().unwrap();
        let mut read = vec![vec![0; size]; each.len()];
        let mut slots: Vec<&mut [u8]> = read.iter_mut().map(Vec::as_mut_slice).collect();
        let made = calls(&comm, || {
            cursor.array_into(&counts, Some(Slots::Indirect(&mut slots))).unwrap();
        });
        assert_eq!(made, expected([("max", 2), ("read_at_all", 2)]));
        assert!(read == each);
    });
    let serial = folder.path().join("serial");
    let mut writer = Writer::create(&Serial, &serial, b"", Options::default()).unwrap();
    let data = elements(0, 23, size).concat();
    writer.array(b"a", &[23], size as u64, Elements::Contiguous(&data), false).unwrap();
    writer.close().unwrap();
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&serial).unwrap());
}

#[test]
fn large_sections_on_one_rank_are_written_independently() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    let data = vec![7; 3 << 20];
    Threads::run(3, |threads| {
        let comm = Counted::new(Job::Threads(threads));
        let here = comm.rank() == 1;
        let counts = [0, data.len() as u64, 0];
        let mut writer = Writer::create(&comm, &path, b"", Options::default()).unwrap();
        let mine = if here { &data[..] } else { &[] };
        let made = calls(&comm, || {
            writer.array(b"a", &counts, 1, Elements::Contiguous(mine), false).unwrap();
        });
        let mut wanted = expected([("max", 2)]);
        match comm.rank() {
            0 => wanted.insert("write_at", 1), // header
            1 => wanted.insert("write_at", 2), // data and padding
            _ => None,
        };
        assert_eq!(made, wanted);
        writer.close().unwrap();
    });
    let serial = folder.path().join("serial");
    let mut writer = Writer::create(&Serial, &serial, b"", Options::default()).unwrap();
    writer.array(b"a", &[data.len() as u64], 1, Elements::Contiguous(&data), false).unwrap();
    writer.close().unwrap();
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&serial).unwrap());
}

#[test]
fn calls_and_messages_do_not_grow_with_the_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for size in [1000, 1_000_000] {
        let comm = Counted::new(Job::One { rank: 0, size });
        let path = folder.path().join(format!("{size}"));
        let mut writer = Writer::create(&comm, &path, b"", Options::default()).unwrap();
        let counts = vec![2; size];
        comm.transport().received.set(0);
        let array = calls(&comm, || {
            writer.array(b"a", &counts, 8, Elements::Contiguous(&[1; 16]), false).unwrap();
        });
        let indirect = calls(&comm, || {
            let data = [&[1; 8][..], &[2; 8]];
            writer.array(b"i", &counts, 8, Elements::Indirect(&data), false).unwrap();
        });
        let varray = calls(&comm, || {
            writer.varray(b"v", &counts, &[5, 6], Elements::Contiguous(&[3; 11]), false).unwrap();
        });
        // The table of sizes may need more space to be reserved, on which the ranks agree.
        assert!((3..=4).contains(&varray["max"]), "{varray:?}");
        assert!(!varray.contains_key("allgather"));
        // Reductions of at most eight numbers, and a scan of two.
        let received = comm.transport().received.get();
        assert!(received <= 8 * 8 * 8 + 16, "{received}");
        seen.push((array, indirect));
    }
    assert_eq!(seen[0].0, expected([("max", 2), ("write_at_all", 1)]));
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn calls_of_reading_do_not_grow_with_the_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut writer = Writer::create(&Serial, &path, b"", Options::default()).unwrap();
    let data: Vec<u8> = (0..64).collect();
    writer.array(b"a", &[8], 8, Elements::Contiguous(&data), false).unwrap();
    writer.varray(b"v", &[8], &[8; 8], Elements::Contiguous(&data), false).unwrap();
    writer.varray(b"skipped", &[8], &[8; 8], Elements::Contiguous(&data), false).unwrap();
    writer.close().unwrap();
    let seen = [2, 1000, 1_000_000].map(|size| {
        let comm = Counted::new(Job::One { rank: 0, size });
        let mut counts = vec![0; size];
        counts[0] = 8;
        let mut cursor = Cursor::open(&comm, &path, &Limits::default()).unwrap();
        comm.transport().received.set(0);
        let made = calls(&comm, || {
            cursor.next(false).unwrap().unwrap();
            assert!(cursor.array(&counts).unwrap() == data);
            cursor.next(false).unwrap().unwrap();
            assert_eq!(cursor.sizes(&counts).unwrap(), [8; 8]);
            assert!(cursor.varray(&counts).unwrap() == data);
            cursor.next(false).unwrap().unwrap();
        });
        assert!(!made.contains_key("allgather"), "{made:?}");
        (made, comm.transport().received.get())
    });
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}
