//! Fields: any number of ranks, any tree, and what is not quite one.

use std::path::Path;

use proptest::prelude::*;
use spile_core::comm::{Comm, Serial, Threads};
use spile_core::error::{ErrorKind, Result};
use spile_core::format::{Format as _, Reader as _};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_scda::wire::Kind;
use spile_scda::{Checkpoint, Elements, Field, File, Options, Restart, Scda, Writer, split_evenly};

/// `number` elements cut at `cuts`.
fn share(number: u64, ranks: usize, cuts: &[u64]) -> Vec<u64> {
    let mut ends: Vec<u64> = (0..ranks - 1).map(|k| cuts[k % cuts.len()] % (number + 1)).collect();
    ends.sort_unstable();
    ends.push(number);
    let mut start = 0;
    ends.iter().map(|end| end - std::mem::replace(&mut start, *end)).collect()
}

/// The part of `all` that `rank` has, `width` numbers an element.
fn part<'a, T>(all: &'a [T], counts: &[u64], rank: usize, width: usize) -> &'a [T] {
    let first = counts[..rank].iter().sum::<u64>() as usize;
    &all[first * width..(first + counts[rank] as usize) * width]
}

fn positions() -> Field {
    Field::of::<f32>("particles/position").shaped(&[3]).version(2).attr("units", "m")
}

fn ids() -> Field {
    Field::of::<i64>("particles/id")
}

fn paths() -> Field {
    Field::of::<u16>("paths").shaped(&[2])
}

/// What is in a checkpoint of the tests.
#[derive(Clone, Debug)]
struct State {
    positions: Vec<f32>,
    ids: Vec<i64>,
    /// Points of two numbers each.
    paths: Vec<Vec<u16>>,
}

fn save(comm: &dyn Comm, path: &Path, state: &State, cuts: &[u64], encode: bool) -> Result<()> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let code = |mut field: Field| {
        field.compressed = encode;
        field
    };
    let mut file = Checkpoint::create(comm, path, "test", 7, Options::default())?;
    file.value("time", 0.1)?;
    file.value("particles/species", "argon")?;
    let counts = share(state.ids.len() as u64, ranks, cuts);
    file.write(&code(positions()), &counts, part(&state.positions, &counts, rank, 3))?;
    file.write(&code(ids()), &counts, part(&state.ids, &counts, rank, 1))?;
    let counts = share(state.paths.len() as u64, ranks, cuts);
    let mine = part(&state.paths, &counts, rank, 1);
    let lengths: Vec<u64> = mine.iter().map(|path| path.len() as u64 / 2).collect();
    file.write_ragged(&code(paths()), &counts, &lengths, &mine.concat())?;
    file.close()
}

fn load(comm: &dyn Comm, path: &Path, cuts: &[u64]) -> Result<State> {
    let ranks = comm.size();
    let mut file = Restart::open(comm, path, &Limits::default())?;
    file.expect("test", 7)?;
    assert_eq!(file.value::<f64>("time")?, 0.1);
    assert_eq!(file.value::<String>("particles/species")?, "argon");
    // In another order than they were written.
    let counts = share(file.find("paths")?.count, ranks, cuts);
    let (lengths, all) = file.read_ragged::<u16>(&paths(), &counts)?;
    let mut left = &all[..];
    let mut path = |length: &u64| {
        let (path, rest) = left.split_at(*length as usize * 2);
        left = rest;
        path.to_vec()
    };
    let paths = lengths.iter().map(&mut path).collect();
    let counts = share(file.find("particles/id")?.count, ranks, cuts);
    let ids = file.read(&ids(), &counts)?;
    let positions = file.read(&positions(), &counts)?;
    Ok(State { positions, ids, paths })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_checkpoint_is_the_same_on_any_number_of_ranks(
        ids in proptest::collection::vec(any::<i64>(), 0..40),
        paths in proptest::collection::vec(proptest::collection::vec(any::<[u16; 2]>(), 0..5), 0..20),
        writers in 2_usize..6, readers in 1_usize..6,
        cuts in proptest::collection::vec(any::<u64>(), 1..5),
        encode in any::<bool>(),
    ) {
        let positions = ids.iter().flat_map(|id| [*id as f32, 0.5, -0.0]).collect();
        let paths = paths.iter().map(|path| path.concat()).collect();
        let state = State { positions, ids, paths };
        let folder = tempfile::tempdir().unwrap();
        let (one, many) = (folder.path().join("one"), folder.path().join("many"));
        save(&Serial, &one, &state, &cuts, encode).unwrap();
        Threads::run(writers, |comm| save(comm, &many, &state, &cuts, encode).unwrap());
        prop_assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&many).unwrap());

        let parts = Threads::run(readers, |comm| load(comm, &many, &cuts[1..].iter().chain(&[3]).copied().collect::<Vec<_>>()).unwrap());
        let floats: Vec<u32> = parts.iter().flat_map(|p| &p.positions).map(|x| x.to_bits()).collect();
        prop_assert_eq!(floats, state.positions.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        prop_assert_eq!(parts.iter().flat_map(|p| p.ids.clone()).collect::<Vec<_>>(), state.ids);
        prop_assert_eq!(parts.iter().flat_map(|p| p.paths.clone()).collect::<Vec<_>>(), state.paths);
        let report = Scda.check(&Source::open(&many).unwrap(), &Limits::default(), true).unwrap();
        prop_assert!(report.findings.is_empty());
    }
}

#[test]
fn elements_are_split_evenly() {
    assert_eq!(split_evenly(10, 4), [3, 3, 2, 2]);
    assert_eq!(split_evenly(2, 3), [1, 1, 0]);
    assert_eq!(split_evenly(0, 2), [0, 0]);
}

fn sample(path: &Path) {
    let state =
        State { positions: vec![0.0; 12], ids: vec![1, 2, 3, 4], paths: vec![vec![1, 2], vec![]] };
    save(&Serial, path, &state, &[1], false).unwrap();
}

#[test]
fn what_a_program_does_not_expect_is_explained_on_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    sample(&path);
    let counts = |comm: &dyn Comm, number| split_evenly(number, comm.size());
    let wrong = |ask: &(dyn Fn(&mut Restart<'_>, &dyn Comm) -> Result<()> + Sync),
                 says: &[&str]| {
        let answers = Threads::run(3, |comm| {
            let mut file = Restart::open(comm, &path, &Limits::default()).unwrap();
            let error = ask(&mut file, comm).unwrap_err();
            // The job goes on: everybody is where the others are.
            file.read::<i64>(&ids(), &counts(comm, 4)).unwrap();
            format!("{error}; {}", error.hint_text().unwrap_or_default())
        });
        for answer in answers {
            assert!(says.iter().all(|words| answer.contains(words)), "{says:?}: {answer}");
        }
    };
    let read = |field: Field| {
        move |file: &mut Restart<'_>, comm: &dyn Comm| {
            file.elements(&field, &counts(comm, 4)).map(drop)
        }
    };
    wrong(&read(Field::of::<i32>("particles/id")), &["int64 in the file, int32 in the program"]);
    wrong(&read(ids().shaped(&[2])), &["scalar in the file, 2 in the program", "particles/id"]);
    wrong(&read(ids().version(1)), &["none in the file, 1 in the program"]);
    wrong(&read(positions().version(3)), &["version"]);
    wrong(&read(Field::of::<i64>("particle/id")), &["no such field", "did you mean particles/id?"]);
    wrong(&read(paths()), &["different sizes", "read_ragged"]);
    wrong(&|file, _| file.expect("test", 8), &["version 7", "version 8"]);
    wrong(&|file, _| file.value::<u64>("time").map(drop), &["0.1 is not a whole number", "time"]);
    wrong(&|file, _| file.value::<u64>("tine").map(drop), &["no such value", "time"]);
    wrong(
        &|file, comm| file.read::<f32>(&ids(), &counts(comm, 4)).map(drop),
        &["those in memory float32"],
    );
    wrong(
        &|file, comm| file.read::<i64>(&ids(), &counts(comm, 5)).map(drop),
        &["does not cover 4"],
    );
    // One rank alone is mistaken.
    wrong(
        &|file, comm| {
            let name = if comm.rank() == 1 { "nonsense" } else { "particles/id" };
            file.read::<i64>(&Field::of::<i64>(name), &counts(comm, 4)).map(drop)
        },
        &["nonsense"],
    );
}

#[test]
fn a_writer_is_told_what_is_wrong_before_the_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let errors = Threads::run(2, |comm| {
        let start = || Checkpoint::create(comm, &path, "test", 1, Options::default()).unwrap();
        let counts = [1, 1];
        let mut twice = start();
        twice.write(&ids(), &counts, &[1_i64]).unwrap();
        [
            twice.write(&ids(), &counts, &[1_i64]).unwrap_err(),
            start().write(&ids(), &counts, &[1.0_f64]).unwrap_err(),
            start().write(&ids(), &counts, &vec![1_i64; comm.rank()]).unwrap_err(),
            start().write(&ids().dims(&["a", "b"]), &counts, &[1_i64]).unwrap_err(),
            start().value("rank", comm.rank() as u64).unwrap_err(),
            start().value("a//b", 1_u64).unwrap_err(),
        ]
        .map(|e| (e.kind(), e.to_string()))
    });
    assert_eq!(errors[0], errors[1]);
    let words = [
        "already",
        "those in memory float64",
        "gave 0 bytes",
        "2 dimensions",
        "different arguments",
        "has no name",
    ];
    for ((_, error), says) in errors[0].iter().zip(words) {
        assert!(error.contains(says), "{error}");
    }
    assert!(!path.exists());
}

#[test]
fn what_does_not_conform_stays_plain_sections() {
    let folder = tempfile::tempdir().unwrap();
    let good = r#"{"name":"x","dtype":"<f8","shape":[]}"#;
    let cases: [(&str, &str, Kind); 6] = [
        ("not JSON", "x", Kind::Array),
        ("another size", r#"{"name":"x","dtype":"<f4","shape":[]}"#, Kind::Array),
        ("an inline section", good, Kind::Inline),
        ("the end", good, Kind::Block),
        ("ragged, not whole", r#"{"name":"x","dtype":"<f8","shape":[2]}"#, Kind::Varray),
        ("dimensions", r#"{"name":"x","dtype":"<f8","shape":[],"dims":["a","b"]}"#, Kind::Array),
    ];
    for (case, text, kind) in cases {
        let path = folder.path().join(case);
        let mut file = Writer::create(&Serial, &path, b"mine", Options::default()).unwrap();
        file.block(b"spile field 00", 0, text.len() as u64, Some(text.as_bytes()), false).unwrap();
        let data = Elements::Contiguous(&[0; 24]);
        match kind {
            Kind::Array => file.array(b"x", &[3], 8, data, false).unwrap(),
            Kind::Varray => file.varray(b"x", &[2], &[16, 8], data, false).unwrap(),
            Kind::Inline => file.inline(b"x", 0, Some(&[0; 32])).unwrap(),
            Kind::Block => {}
        }
        file.close().unwrap();
        let open = File::open(&path, &Limits::default()).unwrap();
        let ids: Vec<_> = open.tree().iter().map(|(_, node)| node.id.clone().unwrap()).collect();
        assert_eq!(ids.len(), open.sections().len(), "{case}");
        assert_eq!(open.tree().attrs(), &vec![("user".into(), Value::from("mine"))]);
        let report = Scda.check(open.source(), &Limits::default(), true).unwrap();
        let codes: Vec<_> = report.findings.iter().map(|f| f.code).collect();
        assert_eq!(codes, ["scda-023"], "{case}");
        let file = Restart::open(&Serial, &path, &Limits::default()).unwrap();
        if kind != Kind::Varray {
            assert_eq!(file.find("x").unwrap_err().kind(), ErrorKind::Argument, "{case}");
        }
    }
}

#[test]
fn a_damaged_checkpoint_gives_every_rank_the_same_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good"), folder.path().join("bad"));
    let state =
        State { positions: vec![0.5; 12], ids: vec![1, 2, 3, 4], paths: vec![vec![1, 2], vec![]] };
    let mut failed = 0;
    for encode in [false, true] {
        save(&Serial, &good, &state, &[1], encode).unwrap();
        let bytes = std::fs::read(&good).unwrap();
        std::fs::remove_file(&good).unwrap();
        for at in (128..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] = damaged[at].wrapping_add(1);
            std::fs::write(&bad, &damaged).unwrap();
            let answers = Threads::run(2, |comm| {
                let mut file = Restart::open(comm, &bad, &Limits::default())?;
                file.expect("test", 7)?;
                let counts = split_evenly(file.find("particles/id")?.count, 2);
                file.read::<f32>(&positions(), &counts)?;
                let counts = split_evenly(file.find("paths")?.count, 2);
                file.read_ragged::<u16>(&paths(), &counts).map(drop)
            });
            let answers: Vec<_> =
                answers.into_iter().map(|a| a.map_err(|e| e.to_string())).collect();
            assert_eq!(answers[0], answers[1], "byte {at}");
            failed += usize::from(answers[0].is_err());
        }
    }
    assert!(failed > 200, "{failed}");
}
