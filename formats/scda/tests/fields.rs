//! Fields and checkpoints: any number of ranks, errors, and descriptions that cannot be used.

use std::path::Path;

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::comm::{Comm, Serial, Threads};
use spile_core::error::{ErrorKind, Result};
use spile_core::format::{Checker as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::tree::Attrs;
use spile_scda::wire::Kind;
use spile_scda::{
    Checkpoint, Cursor, Elements, Field, File, Options, Restart, Scda, Writer, split_evenly,
};

/// Number of elements of each rank if `number` elements are split at `cuts`.
fn partition(number: u64, ranks: usize, cuts: &[u64]) -> Vec<u64> {
    let mut ends: Vec<u64> = (0..ranks - 1).map(|k| cuts[k % cuts.len()] % (number + 1)).collect();
    ends.sort_unstable();
    ends.push(number);
    let mut start = 0;
    ends.iter().map(|end| end - std::mem::replace(&mut start, *end)).collect()
}

/// The part of `all` on `rank`; an element has `width` values.
fn part<'a, T>(all: &'a [T], counts: &[u64], rank: usize, width: usize) -> &'a [T] {
    let first = counts[..rank].iter().sum::<u64>() as usize;
    &all[first * width..(first + counts[rank] as usize) * width]
}

fn open(path: &Path, limits: &Limits) -> Result<Dataset> {
    Dataset::open_path(&Scda, path, &OpenOptions::from(limits))
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

/// Content of a test checkpoint.
#[derive(Clone, Debug)]
struct State {
    positions: Vec<f32>,
    ids: Vec<i64>,
    /// Points of two values each.
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
    let counts = partition(state.ids.len() as u64, ranks, cuts);
    file.write(&code(positions()), &counts, part(&state.positions, &counts, rank, 3))?;
    file.write(&code(ids()), &counts, part(&state.ids, &counts, rank, 1))?;
    let counts = partition(state.paths.len() as u64, ranks, cuts);
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
    // Not in the order of writing.
    let counts = partition(file.find("paths")?.count, ranks, cuts);
    let (lengths, all) = file.read_ragged::<u16>(&paths(), &counts)?;
    let mut left = &all[..];
    let mut path = |length: &u64| {
        let (path, rest) = left.split_at(*length as usize * 2);
        left = rest;
        path.to_vec()
    };
    let paths = lengths.iter().map(&mut path).collect();
    let counts = partition(file.find("particles/id")?.count, ranks, cuts);
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
fn a_field_that_differs_from_the_expected_one_is_the_same_error_on_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    sample(&path);
    let counts = |comm: &dyn Comm, number| split_evenly(number, comm.size());
    let wrong = |call: &(dyn Fn(&mut Restart<'_>, &dyn Comm) -> Result<()> + Sync),
                 parts: &[&str]| {
        let answers = Threads::run(3, |comm| {
            let mut file = Restart::open(comm, &path, &Limits::default()).unwrap();
            let error = call(&mut file, comm).unwrap_err();
            // All ranks can go on reading.
            file.read::<i64>(&ids(), &counts(comm, 4)).unwrap();
            format!("{error}; {}", error.suggestion().map(ToString::to_string).unwrap_or_default())
        });
        for answer in answers {
            assert!(parts.iter().all(|part| answer.contains(part)), "{parts:?}: {answer}");
        }
    };
    let read = |field: Field| {
        move |file: &mut Restart<'_>, comm: &dyn Comm| {
            file.elements(&field, &counts(comm, 4)).map(drop)
        }
    };
    wrong(&read(Field::of::<i32>("particles/id")), &["expected type int32, found int64"]);
    wrong(&read(ids().shaped(&[2])), &["expected element shape 2, found scalar", "particles/id"]);
    wrong(&read(ids().version(1)), &["expected version 1, found none"]);
    wrong(&read(positions().version(3)), &["version"]);
    wrong(
        &read(Field::of::<i64>("particle/id")),
        &["no field named", "did you mean particles/id?"],
    );
    wrong(&read(paths()), &["different sizes", "read it as a ragged field"]);
    wrong(&|file, _| file.expect("test", 8), &["version 7", "version 8"]);
    wrong(&|file, _| file.value::<u64>("time").map(drop), &["0.1 is not", "time"]);
    wrong(&|file, _| file.value::<u64>("tine").map(drop), &["no value named", "time"]);
    wrong(
        &|file, comm| file.read::<f32>(&ids(), &counts(comm, 4)).map(drop),
        &["expected values of type int64, found float32"],
    );
    wrong(
        &|file, comm| file.read::<i64>(&ids(), &counts(comm, 5)).map(drop),
        &["expected a partition of 4 elements"],
    );
    // A wrong argument on one rank.
    wrong(
        &|file, comm| {
            let name = if comm.rank() == 1 { "nonsense" } else { "particles/id" };
            file.read::<i64>(&Field::of::<i64>(name), &counts(comm, 4)).map(drop)
        },
        &["nonsense"],
    );
}

#[test]
fn wrong_arguments_of_a_writer_are_errors_before_anything_is_written() {
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
    let messages = [
        "already",
        "found float64",
        "found 0 bytes",
        "found 2",
        "different arguments",
        "is not a valid path",
    ];
    for ((_, error), message) in errors[0].iter().zip(messages) {
        assert!(error.contains(message), "{error}");
    }
    assert!(!path.exists());
}

#[test]
fn descriptions_that_do_not_fit_stay_plain_sections() {
    let folder = tempfile::tempdir().unwrap();
    let good = r#"{"name":"x","dtype":"<f8","shape":[]}"#;
    let cases: [(&str, &str, Kind); 6] = [
        ("not JSON", "x", Kind::Array),
        ("another size", r#"{"name":"x","dtype":"<f4","shape":[]}"#, Kind::Array),
        ("an inline section", good, Kind::Inline),
        ("the end", good, Kind::Block),
        ("incomplete items", r#"{"name":"x","dtype":"<f8","shape":[2]}"#, Kind::Varray),
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
        let open = open(&path, &Limits::default()).unwrap();
        let sections = File::open(&path, &Limits::default()).unwrap().sections().len();
        let ids: Vec<_> = open.tree().iter().map(|(_, node)| node.id.clone().unwrap()).collect();
        assert_eq!(ids.len(), sections, "{case}");
        assert_eq!(open.attrs(), &Attrs::from([("user", "mine".into())]));
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
fn a_damaged_checkpoint_is_the_same_error_on_every_rank() {
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

/// Writes a file with one field description `text`, followed by three values and an I section.
fn with_description(path: &Path, text: &str, compressed: bool) {
    let mut file = Writer::create(&Serial, path, b"", Options::default()).unwrap();
    let (size, bytes) = (text.len() as u64, Some(text.as_bytes()));
    file.block(b"spile field 00", 0, size, bytes, compressed).unwrap();
    file.array(b"data", &[3], 8, Elements::Contiguous(&[7; 24]), false).unwrap();
    file.inline(b"last", 0, Some(&[b'.'; 32])).unwrap();
    file.close().unwrap();
}

#[test]
fn an_odd_description_never_hides_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let field = |name: &str| format!(r#"{{"name":"{name}","dtype":"<f8","shape":[]}}"#);
    let long_parts = vec!["x".repeat(20_000); 500].join("/");
    let list = |n: usize| vec!["1"; n].join(",");
    let cases = [
        ("200,000 parts", field(&vec!["a"; 200_000].join("/"))),
        ("1,001 parts", field(&vec!["a"; 1001].join("/"))),
        ("long parts", field(&long_parts)),
        ("empty parts", field(&"/".repeat(200_000))),
        ("long key", format!(r#"{{"{}":1}}"#, "k".repeat(300_000))),
        (
            "too large",
            format!(
                r#"{{"name":"a","dtype":"<f8","shape":[],"attrs":{{"x":[{}]}}}}"#,
                list(1_000_000)
            ),
        ),
        ("many dimensions", format!(r#"{{"name":"a","dtype":"<f8","shape":[{}]}}"#, list(500_000))),
        ("deep JSON", "[".repeat(200_000)),
    ];
    let limits = Limits::default().with_memory(16 << 20);
    for (case, text) in &cases {
        for compressed in [false, true] {
            let path = folder.path().join(format!("{case} {compressed}"));
            with_description(&path, text, compressed);
            let file = open(&path, &limits).unwrap();
            let ids: Vec<_> =
                file.tree().iter().map(|(_, node)| node.id.clone().unwrap()).collect();
            assert_eq!(ids, ["0", "1", "2"], "{case}");
            let data = file.array("1").unwrap();
            assert_eq!(
                data.read_bytes(&Selection::all(), Axes::Stored).unwrap(),
                [7; 24],
                "{case}"
            );
            let [finding] = file.warnings() else { panic!("{case}: {:?}", file.warnings()) };
            assert_eq!((finding.code, finding.severity), ("scda-023", Severity::Warning), "{case}");
            assert!(finding.message.len() < 1000, "{case}");
            let report = Scda.check(file.source(), &limits, true).unwrap();
            assert_eq!(report.findings, file.warnings(), "{case}");
            let answers = Threads::run(2, |comm| {
                let file = Restart::open(comm, &path, &limits).unwrap();
                file.find("nothing").unwrap_err().to_string()
            });
            assert_eq!(answers[0], answers[1], "{case}");
        }
    }
}

#[test]
fn sections_and_sizes_are_charged_before_they_are_built() {
    let folder = tempfile::tempdir().unwrap();
    let opens = |path: &Path, memory: u64| {
        let opened = open(path, &Limits::default().with_memory(memory));
        opened.map(drop).map_err(|e| e.kind())
    };
    // About 1 KiB per section.
    let path = folder.path().join("many");
    let mut file = Writer::create(&Serial, &path, b"", Options::default()).unwrap();
    for _ in 0..5000 {
        file.inline(b"mark", 0, Some(&[b'.'; 32])).unwrap();
    }
    file.close().unwrap();
    assert_eq!(opens(&path, 1 << 20), Err(ErrorKind::Limit));
    assert_eq!(opens(&path, 8 << 20), Ok(()));
    // 8 bytes per element.
    let path = folder.path().join("sizes");
    let mut file = Writer::create(&Serial, &path, b"", Options::default()).unwrap();
    let bytes = vec![0; 100_000];
    let data = Elements::Contiguous(&bytes);
    file.varray(b"v", &[100_000], &vec![1; 100_000], data, false).unwrap();
    file.close().unwrap();
    let sections = |memory| {
        let opened = File::open(&path, &Limits::default().with_memory(memory));
        opened.map(drop).map_err(|e| e.kind())
    };
    assert_eq!(sections(790_000), Err(ErrorKind::Limit));
    assert_eq!(sections(810_000), Ok(()));
    // As a dataset, sizes that do not fit are only added up.
    for (memory, shape, warnings) in [(1_200_000, 100_000, 0), (100_000, 100_000, 1)] {
        let file = open(&path, &Limits::default().with_memory(memory)).unwrap();
        assert_eq!(file.array("v").unwrap().shape().lengths(), [shape]);
        assert_eq!(file.warnings().len(), warnings);
    }
    // Skipping adds the sizes up and keeps none.
    let tight = Limits::default().with_memory(1000);
    let mut cursor = Cursor::open(&Serial, &path, &tight).unwrap();
    assert_eq!(cursor.next(true).unwrap().unwrap().count, 100_000);
    assert_eq!(cursor.next(true).unwrap(), None);
}
