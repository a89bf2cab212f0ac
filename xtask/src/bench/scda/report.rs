//! The cells of the table, the promises, and how it is measured.

use super::super::report::Promise;
use super::super::rounds::Results;
use super::tasks::{
    C, C_KEEPS, DECODE, DECODE_FULL, ENCODE, ENCODE_FULL, FORMAT_LONG, FORMAT_SHORT,
    NUMBER_OF_ENTRIES, ONE, PARSE_LONG, PARSE_SHORT, READ_8, READ_64, READ_MIB, TWO_THREADS,
    WRITE_8, WRITE_64, WRITE_MIB,
};

/// How it is measured.
pub(super) const HOW: &str = "\
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
- **spile** is `formats/scda/examples/bench_scda`: `Writer::array` to `Writer::close`, `Cursor::open` to
  the last byte. Level 9. Two ranks are threads of one process and compress on two threads; with
  MPI (Open MPI's MPI-IO as it comes) they are processes of one thread each, started for each
  task before its clock starts.
- Numbers in the table are megabytes (10^6) of data in a second, before compression and without
  headers and size entries; nanoseconds for each size entry.
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

const ENTRIES: [&str; 4] = [FORMAT_SHORT, PARSE_SHORT, FORMAT_LONG, PARSE_LONG];

/// Megabytes of a task's data in a second; nanoseconds for an entry.
pub(super) fn cell(results: &Results, task: &'static str, who: &'static str) -> String {
    let text = if ENTRIES.contains(&task) {
        nanoseconds(results, task, who).map(|each| format!("{each:.1} ns"))
    } else {
        rate(results, task, who).map(|rate| format!("{rate:.0}"))
    };
    text.unwrap_or("-".into())
}

fn nanoseconds(results: &Results, task: &'static str, who: &'static str) -> Option<f64> {
    Some(results.seconds(task, who)? * 1e9 / NUMBER_OF_ENTRIES as f64)
}

fn rate(results: &Results, task: &'static str, who: &'static str) -> Option<f64> {
    Some(data(results, task)? as f64 / results.seconds(task, who)? / 1e6)
}

/// Bytes of a task's data. C also counts headers, and who encodes says what is stored; but spile
/// says what the data are when it reads them.
fn data(results: &Results, task: &'static str) -> Option<u64> {
    let read = match task {
        ENCODE => DECODE,
        ENCODE_FULL => DECODE_FULL,
        other => other,
    };
    results.bytes(read, ONE)
}

/// Bytes that are stored for a byte of the data.
fn stored(results: &Results, task: &'static str, who: &'static str) -> Option<f64> {
    Some(results.bytes(task, who)? as f64 / data(results, task)? as f64)
}

/// What is said below the table.
pub(super) fn remark(results: &Results) -> String {
    match (rate(results, ENCODE, C_KEEPS), results.speed(ENCODE, ONE, C_KEEPS)) {
        (Some(kept), Some(speed)) => format!(
            "\n{ENCODE}, by C that keeps its memory: {kept:.0} MB/s; {ONE} / C: {speed:.2}.\n"
        ),
        _ => String::new(),
    }
}

/// What spile promises.
pub(super) fn promises(results: &Results) -> Vec<Promise> {
    let mut all = Vec::new();
    for task in [WRITE_8, READ_8, WRITE_64, READ_64, WRITE_MIB, READ_MIB] {
        let text = format!("{task}: 0.9 times as fast as C or faster");
        all.push(results.faster(text, task, ONE, C, 0.9));
    }
    for (task, times) in [(ENCODE, 4.0), (ENCODE_FULL, 4.0), (DECODE, 1.3), (DECODE_FULL, 1.3)] {
        let text = format!("{task}: {times} times as fast as C or faster, on one thread");
        all.push(results.faster(text, task, ONE, C, times));
        let text = format!("{task}: 1.7 times as fast again, or faster, on two threads");
        all.push(results.faster(text, task, TWO_THREADS, ONE, 1.7));
    }
    for task in [ENCODE, ENCODE_FULL] {
        let both = stored(results, task, ONE).zip(stored(results, task, C));
        all.push(Promise {
            text: format!("{task}: no more bytes than C's"),
            found: both.map(|(mine, theirs)| {
                let text = format!("{:.2} % and {:.2} % of the data", mine * 1e2, theirs * 1e2);
                (text, mine <= theirs)
            }),
        });
    }
    for task in ENTRIES {
        let each = nanoseconds(results, task, ONE);
        all.push(Promise {
            text: format!("{task}: 20 ns each or less"),
            found: each.map(|each| (format!("{each:.1} ns"), each <= 20.0)),
        });
    }
    all
}
