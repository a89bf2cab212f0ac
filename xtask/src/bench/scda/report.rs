//! The cells of the table, the targets and the method.

use super::super::harness::Results;
use super::super::target::Target;
use super::tasks::{
    C, C_KEEPS, DECODE, DECODE_FULL, ENCODE, ENCODE_FULL, FORMAT_LONG, FORMAT_SHORT,
    NUMBER_OF_ENTRIES, ONE, PARSE_LONG, PARSE_SHORT, READ_8, READ_64, READ_MIB, TWO_THREADS,
    WRITE_8, WRITE_64, WRITE_MIB,
};

pub(super) const METHOD: &str = "\
Sizes at scale 1: A sections of 1 GiB; V sections of 10^6 elements of 48 to 80 bytes, 64 MB in total;
10^5 elements of 1 KiB to compress (2 * 10^4 of those with all digits); 10^6 size entries.

- **C** is `benches/scda/peer.c`, one thread, `-O3 -march=native`. For A and V it is one `write()` or `read()` of an
  entire file as written by spile, including headers and size entries. For encoded sections it is a loop over the
  elements with zlib's `compress2` at level 9 or `uncompress`, table-driven base64, and one `write()` or `read()` of the
  result, without size entries.
- `compress2` allocates memory for every element. With the default settings of the C library this is new memory each
  time, which takes most of the time. This is the loop that is compared; the rate with memory kept by the C library is
  given below the table.
- **spile** is `formats/scda/examples/bench_scda`: `Writer::array` to `Writer::close`, `Cursor::open` to the last byte.
  Level 9. Two ranks are threads of one process and compress on two threads; with MPI (Open MPI, default MPI-IO) they
  are processes of one thread each, started before the measurement of each task.
- The table shows megabytes (10^6) of data per second, before compression and without headers and size entries;
  nanoseconds per size entry.
- Memory is allocated and touched before the measurement, reused, and page-aligned, on both sides: copies into memory
  16 bytes after a page boundary, as returned by `malloc`, are a third slower. Files are newly created; writing includes
  `fsync()`.
- Implementations alternate; values are medians. A file is read once before reading is measured.
- The elements are 128 doubles each of a smooth field, two crossing waves: rounded to single precision, and with all
  digits, which deflate hardly compresses.
- Size entries are formatted and parsed in memory, on one thread, 32768 at a time, as in writing and reading.
- Data that are read are compared with the data written.
";

const ENTRIES: [&str; 4] = [FORMAT_SHORT, PARSE_SHORT, FORMAT_LONG, PARSE_LONG];

/// Megabytes of data per second; nanoseconds per size entry.
pub(super) fn cell(results: &Results, task: &'static str, name: &'static str) -> String {
    let text = if ENTRIES.contains(&task) {
        nanoseconds(results, task, name).map(|each| format!("{each:.1} ns"))
    } else {
        rate(results, task, name).map(|rate| format!("{rate:.0}"))
    };
    text.unwrap_or("-".into())
}

fn nanoseconds(results: &Results, task: &'static str, name: &'static str) -> Option<f64> {
    Some(results.seconds(task, name)? * 1e9 / NUMBER_OF_ENTRIES as f64)
}

fn rate(results: &Results, task: &'static str, name: &'static str) -> Option<f64> {
    Some(data(results, task)? as f64 / results.seconds(task, name)? / 1e6)
}

/// Bytes of a task's data, as counted by spile when reading: C also counts headers, and encoding tasks count
/// stored bytes.
fn data(results: &Results, task: &'static str) -> Option<u64> {
    let read = match task {
        ENCODE => DECODE,
        ENCODE_FULL => DECODE_FULL,
        other => other,
    };
    results.bytes(read, ONE)
}

/// Stored bytes per byte of data.
fn stored(results: &Results, task: &'static str, name: &'static str) -> Option<f64> {
    Some(results.bytes(task, name)? as f64 / data(results, task)? as f64)
}

/// Text below the table.
pub(super) fn note(results: &Results) -> String {
    match (rate(results, ENCODE, C_KEEPS), results.speed(ENCODE, ONE, C_KEEPS)) {
        (Some(kept), Some(speed)) => {
            format!("\n{ENCODE}, C with kept memory: {kept:.0} MB/s; {ONE} / C: {speed:.2}.\n")
        }
        _ => String::new(),
    }
}

pub(super) fn targets(results: &Results) -> Vec<Target> {
    let plain = [WRITE_8, READ_8, WRITE_64, READ_64, WRITE_MIB, READ_MIB];
    let mut all: Vec<Target> = plain.map(|task| results.faster(task, ONE, C, 0.9)).into();
    for (task, factor) in [(ENCODE, 4.0), (ENCODE_FULL, 4.0), (DECODE, 1.3), (DECODE_FULL, 1.3)] {
        all.push(results.faster(task, ONE, C, factor));
        all.push(results.faster(task, TWO_THREADS, ONE, 1.7));
    }
    for task in [ENCODE, ENCODE_FULL] {
        let both = stored(results, task, ONE).zip(stored(results, task, C));
        all.push(Target {
            text: format!("{task}: not more bytes than C"),
            found: both.map(|(ours, theirs)| {
                let text = format!("{:.2} % and {:.2} % of the data", ours * 1e2, theirs * 1e2);
                (text, ours <= theirs)
            }),
        });
    }
    for task in ENTRIES {
        let each = nanoseconds(results, task, ONE);
        all.push(Target {
            text: format!("{task}: at most 20 ns each"),
            found: each.map(|each| (format!("{each:.1} ns"), each <= 20.0)),
        });
    }
    all
}
