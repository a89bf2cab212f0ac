//! Test program for `mpirun`: `ranks TASK ARGUMENT...` runs a task of `main`. Prints "ok" on rank 0 and exits
//! with 0 if it succeeds.

#[cfg(feature = "mpi")]
#[path = "../../../formats/scda/tests/support/sections.rs"]
mod sections;

#[cfg(feature = "mpi")]
#[path = "../../../formats/sdf/tests/support/dump.rs"]
mod dump;

#[cfg(feature = "mpi")]
#[allow(dead_code, unreachable_pub)] // `main` is not used.
#[path = "../../../formats/scda/examples/heat.rs"]
mod heat;

#[cfg(not(feature = "mpi"))]
fn main() {}

#[cfg(feature = "mpi")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = spile_mpi::run(|comm| {
        match arguments.as_slice() {
            ["property", folder, cases] => tasks::property(comm, folder, cases),
            ["corrupt", folder] => tasks::corrupt(comm, folder),
            ["wrong", folder] => tasks::wrong(comm, folder),
            ["full", folder] => tasks::full(comm, folder),
            ["dump", folder] => tasks::dump(comm, folder),
            ["heat", file, action] => tasks::heat(comm, file, action),
            ["large", folder] => sections::large(comm, std::path::Path::new(folder)),
            other => panic!("unknown task: {other:?}"),
        }
        comm.allgather(&[]).map(|_| comm.rank())
    });
    if done.unwrap() == 0 {
        println!("ok");
    }
}

#[cfg(feature = "mpi")]
mod tasks {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    use spile_core::comm::{Comm, Serial};
    use spile_core::error::{Error, ErrorKind};
    use spile_core::limits::Limits;
    use spile_core::wire::ByteOrder;
    use spile_scda::wire::Breaks;
    use spile_scda::{Cursor, Elements, Options, Writer};

    use crate::dump::Dump;
    use crate::heat;
    use crate::sections::{Form, any_form, any_item, compare, read_sections, write};

    /// Files have the same bytes on any number of ranks, and any partition reads them back.
    pub(super) fn property(comm: &dyn Comm, folder: &str, cases: &str) {
        let folder = Path::new(folder);
        // The cases depend on the number of ranks and are the same on every rank.
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[comm.size() as u8; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let items = proptest::collection::vec(any_item(), 0..5);
        let cuts = || proptest::collection::vec(any::<u64>(), 1..8);
        let strategy = (items, any::<bool>(), 0_u32..=9, cuts(), cuts(), any_form());
        for case in 0..cases.parse().unwrap() {
            let (items, mime, level, cuts, others, form) =
                strategy.new_tree(&mut runner).unwrap().current();
            let breaks = if mime { Breaks::Mime } else { Breaks::Unix };
            let options = || Options { breaks, level, ..Options::default() };
            let path = folder.join(format!("{}-{case}", comm.size()));
            write(comm, &path, b"u", &items, options(), &cuts, form).unwrap();
            if comm.rank() == 0 {
                let alone = folder.join(format!("alone-{}-{case}", comm.size()));
                write(&Serial, &alone, b"u", &items, options(), &cuts, Form::Contiguous).unwrap();
                assert!(std::fs::read(&path).unwrap() == std::fs::read(&alone).unwrap(), "{case}");
            }
            compare(comm, &path, &items, &others, form == Form::Indirect);
        }
    }

    /// An SDF file written by all ranks has the bytes of one written by one process.
    pub(super) fn dump(comm: &dyn Comm, folder: &str) {
        let folder = Path::new(folder);
        for (order, across) in [(ByteOrder::Little, false), (ByteOrder::Big, true)] {
            let dump = Dump { dims: vec![30, 20, 10], particles: 1234, order, revision: 4 };
            let path = folder.join(format!("{}-{across}.sdf", comm.size()));
            dump.write_parts(comm, &path, across).unwrap();
            if comm.rank() == 0 {
                let alone = folder.join(format!("alone-{}-{across}.sdf", comm.size()));
                dump.write_alone(&alone).unwrap();
                assert!(std::fs::read(&path).unwrap() == std::fs::read(&alone).unwrap());
            }
        }
    }

    /// The checkpoint example: saved by one job, continued by another, bit-identical to an uninterrupted run.
    pub(super) fn heat(comm: &dyn Comm, file: &str, action: &str) {
        let file = Path::new(file);
        if action == "save" {
            let mut counts = vec![10; comm.size()];
            counts[0] = heat::ROWS - 10 * (comm.size() as u64 - 1);
            let mut plate = heat::Plate::new(comm, counts);
            plate.run(comm, 100).unwrap();
            return plate.save(comm, file, true).unwrap();
        }
        let mut plate = heat::Plate::load(comm, file).unwrap();
        plate.run(comm, 200).unwrap();
        let bytes = |rows: Vec<f64>| rows.iter().flat_map(|t| t.to_le_bytes()).collect::<Vec<u8>>();
        let all = comm.allgather(&bytes(plate.into_rows())).unwrap().concat();
        let mut alone = heat::Plate::new(&Serial, vec![heat::ROWS]);
        alone.run(&Serial, 200).unwrap();
        assert!(all == bytes(alone.into_rows()), "the temperatures differ");
    }

    /// Checks that `answer` is the same on every rank.
    fn same(comm: &dyn Comm, answer: &str) {
        let all = comm.allgather(answer.as_bytes()).unwrap();
        assert!(all.iter().all(|other| other == answer.as_bytes()), "{answer}");
    }

    pub(super) fn corrupt(comm: &dyn Comm, folder: &str) {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut refused = 0;
        for file in &files {
            for decode in [true, false] {
                let answer = read_sections(comm, file, decode);
                refused += u32::from(answer.is_err());
                same(comm, &format!("{answer:?}"));
            }
        }
        assert!(refused > 100, "{refused} of {}", files.len());
    }

    /// A call with an invalid argument on some rank.
    type Case<'a> = &'a dyn Fn(&mut Writer<'_>) -> Result<(), Error>;

    /// An invalid argument on one rank is an error on all ranks and leaves no file.
    pub(super) fn wrong(comm: &dyn Comm, folder: &str) {
        let path = Path::new(folder).join("never.scda");
        let last = comm.rank() + 1 == comm.size();
        let counts = vec![1; comm.size()];
        let cases: [Case<'_>; 4] = [
            &|writer| writer.inline(&[b'x'; 59][..if last { 59 } else { 1 }], 0, Some(&[0; 32])),
            &|writer| writer.block(b"", comm.size() + 3, 0, None, false),
            &|writer| {
                let mine = vec![0; if last { 7 } else { 8 }];
                writer.array(b"", &counts, 8, Elements::Contiguous(&mine), false)
            },
            &|writer| {
                let mut counts = counts.clone();
                counts[0] += 5 * u64::from(last);
                let sizes = vec![1; counts[comm.rank()] as usize];
                let mine = vec![1; sizes.len()];
                writer.varray(b"", &counts, &sizes, Elements::Contiguous(&mine), true)
            },
        ];
        for (k, case) in cases.iter().enumerate() {
            let mut writer = Writer::create(comm, &path, b"", Options::default()).unwrap();
            let answer = case(&mut writer);
            // The last case differs between ranks; on one rank it is valid.
            if comm.size() > 1 || k < 3 {
                let error = answer.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
                same(comm, &error.to_string());
            }
            drop(writer);
        }
        let open = Cursor::open(comm, &path, &Limits::default()).err().unwrap();
        assert_eq!(open.kind(), ErrorKind::Io);
        same(comm, &open.to_string());
        let missing = path.join("below").join("file");
        let created = Writer::create(comm, &missing, b"", Options::default()).err().unwrap();
        same(comm, &created.to_string());
        comm.allgather(&[]).unwrap();
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }

    /// The disk is too small for the data of all ranks.
    pub(super) fn full(comm: &dyn Comm, folder: &str) {
        let path = Path::new(folder).join("large.scda");
        let mine = vec![7; 8 << 20];
        let counts = vec![8; comm.size()];
        let mut writer = Writer::create(comm, &path, b"", Options::default()).unwrap();
        let error = (0..4)
            .map(|_| writer.array(b"", &counts, 1 << 20, Elements::Contiguous(&mine), false))
            .find_map(Result::err);
        let error = match error {
            Some(error) => {
                drop(writer);
                error
            }
            None => writer.close().unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        same(comm, &error.to_string());
        comm.allgather(&[]).unwrap();
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "files were left behind");
    }
}
