//! The table, the promises, and the part of `docs/performance.md`.

use std::fmt::Write as _;

use super::super::report::Promise;
use super::tasks::{
    DECODE, DECODE_FULL, ENCODE, ENCODE_FULL, FORMAT_LONG, FORMAT_SHORT, MPI_ONE, MPI_TWO,
    NUMBER_OF_ENTRIES, ONE, PARSE_LONG, PARSE_SHORT, READ_8, READ_64, READ_MIB, TASKS, TWO_RANKS,
    TWO_THREADS, WRITE_8, WRITE_64, WRITE_MIB,
};
use super::{C, C_KEEPS, Results};

/// The columns.
const CONTESTANTS: [&str; 6] = [C, ONE, TWO_THREADS, TWO_RANKS, MPI_ONE, MPI_TWO];

const HOW: &str = "\
Sizes at scale 1: A sections of 1 GiB; V sections of 10^6 elements of 48 to 80 bytes, 64 MB in all;
10^5 elements of 1 KiB to compress (2 * 10^4 of those with all digits); 10^6 size entries.

- **C** is `benches/scda/peer.c`, one thread, `-O3 -march=native`. For A and V it is one `write()` or
  `read()` of a whole file as spile writes it, headers and size entries included. For encoded
  sections it is a loop over the elements, zlib's `compress2` at level 9 or `uncompress`, and base64
  by a table, and one `write()` or `read()` of the result, without size entries.
- `compress2` asks for its memory for every element, and with the usual settings of the C library
  it is fresh memory each time, which is most of the time it takes. That is what the loop is,
  and what is compared; how fast it is where the C library is told to keep memory is said
  below the table.
- **spile** is `formats/scda/examples/bench`: `Writer::array` to `Writer::close`, `Cursor::open` to
  the last byte. Level 9. Two ranks are threads of one process and compress on two threads; with
  MPI (Open MPI's MPI-IO as it comes) they are processes of one thread each, started for each
  task before its clock starts.
- Numbers in the table are megabytes (10^6) of data in a second, before compression and without
  headers and size entries.
- The data are in memory and memory for them is there before the clock starts, on both sides: used
  before, used again from round to round, and beginning with a page (the copies of the system are a
  third slower into memory that begins 16 bytes behind one, as that of `malloc` does). A file that
  is written is a new one; the clock stops when it is complete and `fsync` has returned.
- The contestants take turns, round after round, and the median counts. A file is read once before
  the reading is measured.
- The elements are 128 doubles each of a smooth field, two waves that cross: rounded to single
  precision, and with all digits, of which deflate can save nearly none.
- Size entries are formatted and parsed in memory, on one thread, 32768 at a time, as they are when
  a file is written and read. No C here.
- What is read is compared with what was written.
";

/// How it was measured.
pub(super) struct Made {
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) in_memory: bool,
}

/// The table in Markdown.
pub(super) fn table(results: &Results) -> String {
    let mut text = String::from(
        "| MB/s | C | 1 rank | 1 rank, 2 threads | 2 ranks | MPI, 1 rank | MPI, 2 ranks | \
         1 rank / C | 2 threads / 1 | 2 ranks / 1 |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let ratio =
        |task, over, under| match (results.seconds(task, over), results.seconds(task, under)) {
            (Some(over), Some(under)) => format!("{:.2}", under / over),
            _ => "-".into(),
        };
    // Entries are not measured by their bytes.
    for task in TASKS.iter().filter(|task| !task.c.is_empty()) {
        let rate = |who| results.rate(task.name, who).map_or("-".into(), |r| format!("{r:.0}"));
        let rates = CONTESTANTS.map(rate).join(" | ");
        let _ = writeln!(
            text,
            "| {} | {rates} | {} | {} | {} |",
            task.name,
            ratio(task.name, ONE, C),
            ratio(task.name, TWO_THREADS, ONE),
            ratio(task.name, TWO_RANKS, ONE),
        );
    }
    if let Some((kept, one)) = results.rate(ENCODE, C_KEEPS).zip(results.rate(ENCODE, ONE)) {
        let _ = writeln!(
            text,
            "\n{ENCODE}, by C that keeps its memory: {kept:.0} MB/s; 1 rank / C: {:.2}.",
            one / kept
        );
    }
    text
}

/// What spile promises.
pub(super) fn promises(results: &Results) -> Vec<Promise> {
    let mut all = Vec::new();
    // At least `times` as fast as another.
    let mut faster = |text: String, task, who, than, times: f64| {
        let both = results.seconds(task, who).zip(results.seconds(task, than));
        let found = both.map(|(mine, theirs)| (format!("{:.2}", theirs / mine), theirs / mine));
        all.push(Promise { text, found: found.map(|(text, ratio)| (text, ratio >= times)) });
    };
    for task in [WRITE_8, READ_8, WRITE_64, READ_64, WRITE_MIB, READ_MIB] {
        faster(format!("{task}: 0.9 times as fast as C or faster"), task, ONE, C, 0.9);
    }
    for (task, times) in [(ENCODE, 4.0), (ENCODE_FULL, 4.0), (DECODE, 1.3), (DECODE_FULL, 1.3)] {
        let text = format!("{task}: {times} times as fast as C or faster, on one thread");
        faster(text, task, ONE, C, times);
        let text = format!("{task}: 1.7 times as fast again, or faster, on two threads");
        faster(text, task, TWO_THREADS, ONE, 1.7);
    }
    for task in [ENCODE, ENCODE_FULL] {
        all.push(Promise {
            text: format!("{task}: no more bytes than C's"),
            found: results.stored(task, ONE).zip(results.stored(task, C)).map(|(mine, theirs)| {
                let text = format!("{:.2} % and {:.2} % of the data", mine * 1e2, theirs * 1e2);
                (text, mine <= theirs)
            }),
        });
    }
    for task in [FORMAT_SHORT, PARSE_SHORT, FORMAT_LONG, PARSE_LONG] {
        let each = results.seconds(task, ONE).map(|s| s * 1e9 / NUMBER_OF_ENTRIES as f64);
        all.push(Promise {
            text: format!("{task}: 20 ns each or less"),
            found: each.map(|each| (format!("{each:.1} ns"), each <= 20.0)),
        });
    }
    all
}

/// The part of the page.
pub(super) fn part(machine: &str, made: &Made, results: &Results) -> String {
    let promises: Vec<String> = promises(results).iter().map(Promise::line).collect();
    let place = if made.in_memory { "in memory (tmpfs)" } else { "on a disk" };
    format!(
        "# Performance: scda\n\nMade by `cargo xtask bench scda --scale {}`, {} rounds, files {place}; run it \
         to repeat this on your machine.\n\n{machine}\n{}\n## What is promised of scda\n\n```text\n{}\n```\n\n\
         ## What is measured of scda\n\n{HOW}",
        made.scale,
        made.rounds,
        table(results),
        promises.join("\n"),
    )
}
