//! The tasks of `cargo xtask bench iotk` with spile. Protocol: `benches/common.h`.
//!
//! | task | measured | count |
//! |---|---|---|
//! | `write-binary FILE COUNT` | writing one array of doubles | bytes of the numbers |
//! | `read-binary FILE COUNT` | reading it | bytes of the numbers |
//! | `write-text FILE COUNT` | writing it as text, with all digits | bytes of the numbers |
//! | `read-text FILE COUNT` | reading it | bytes of the numbers |
//! | `to-text FROM TO COUNT` | conversion from binary to text | bytes of the numbers |
//! | `to-binary FROM TO COUNT` | conversion from text to binary | bytes of the numbers |
//! | `offset FILE COUNT` | | offset of the numbers |
//! | `make-tags FILE COUNT` | a file of many small elements | bytes of the numbers |
//! | `index FILE COUNT` | indexing all tags | bytes of the file |
//! | `open FILE COUNT` | index and tree | elements |
//! | `scan FILE COUNT` | index, and finding all elements by name, in order | bytes of the file |
//! | `last FILE COUNT` | finding the last element by name in an index | bytes read |
//! | `missing FILE COUNT` | searching a missing name in an index | bytes read |
//!
//! Memory is reused and touched before the measurement. Writing ends with the rename of the file. Numbers
//! are verified after the measurement.
#![forbid(unsafe_code)]

#[path = "../../../benches/protocol.rs"]
mod protocol;

use std::hint::black_box;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, Instant};

use protocol::{Buffer, Measurement, Result, serve};
use spile_core::{Attrs, Layout, Limits, Overwrite, Sink, Source};
use spile_iotk::wire::Tag;
use spile_iotk::{Cursor, File, Form, Index, Style, Target, Writer, convert};

fn main() -> Result<()> {
    let mut numbers = Buffer::default();
    serve(|fields| task(fields, &mut numbers))
}

fn task(fields: &[&str], numbers: &mut Buffer<f64>) -> Measurement {
    let [task, from, .., count] = *fields else { return Err("expected a task and a file".into()) };
    let (from, count) = (Path::new(from), count.parse::<usize>()?);
    let to = Path::new(fields[fields.len() - 2]);
    let bytes = 8 * count as u64;
    let time = match task {
        "write-binary" => write_numbers(to, Target::default(), numbers.first(count))?,
        "write-text" => write_numbers(to, Target::Text, numbers.first(count))?,
        "read-binary" | "read-text" => read_numbers(from, numbers.first(count))?,
        "to-text" => converted(from, to, Target::Text)?,
        "to-binary" => converted(from, to, Target::default())?,
        "make-tags" => make_tags(to, count)?,
        "offset" => return Ok((Duration::ZERO, offset(from)?)),
        _ => return search(task, from, count),
    };
    Ok((time, bytes))
}

/// All digits, many magnitudes.
fn value(k: usize) -> f64 {
    (0.37 * k as f64).sin() * 10_f64.powi((k % 41) as i32 - 20)
}

/// The offset of the numbers.
fn offset(file: &Path) -> Result<u64> {
    let file = File::open(file, &Limits::default())?;
    let first = file.index().elements().iter().position(|element| !element.data.is_empty());
    let data = file.data(first.ok_or("no array")?)?.ok_or("no data")?;
    match &data.array.layout {
        Layout::Plain { extents, .. } => Ok(extents.parts().first().ok_or("no bytes")?.offset),
        _ => Err("expected a plain layout".into()),
    }
}

fn write_numbers(file: &Path, target: Target, numbers: &mut [f64]) -> Result<Duration> {
    for (number, k) in numbers.iter_mut().zip(1..) {
        *number = value(k);
    }
    let _ = std::fs::remove_file(file);
    let start = Instant::now();
    let mut sink = Sink::create(file, Overwrite::Never)?;
    let mut writer = Writer::new(BufWriter::new(&mut sink), target, Style::Exact)?;
    writer.head("1.0", false)?;
    writer.begin(&Tag::new("Root"))?;
    writer.dat_slice("x", &Attrs::new(), numbers)?;
    writer.end()?;
    writer.finish()?;
    sink.commit()?;
    Ok(start.elapsed())
}

fn read_numbers(file: &Path, numbers: &mut [f64]) -> Result<Duration> {
    numbers.fill(0.0);
    let start = Instant::now();
    let file = File::open(file, &Limits::default())?;
    file.read_into("Root/x", numbers)?;
    let time = start.elapsed();
    if numbers.iter().zip(1..).any(|(number, k)| number.to_bits() != value(k).to_bits()) {
        return Err("unexpected numbers".into());
    }
    Ok(time)
}

fn converted(from: &Path, to: &Path, target: Target) -> Result<Duration> {
    let _ = std::fs::remove_file(to);
    let start = Instant::now();
    let mut sink = Sink::create(to, Overwrite::Never)?;
    let out = BufWriter::with_capacity(1 << 18, &mut sink);
    convert(&Source::open(from)?, target, Style::Exact, out, &Limits::default())?;
    sink.commit()?;
    Ok(start.elapsed())
}

fn name(k: usize) -> String {
    format!("tag.{k}")
}

fn make_tags(file: &Path, count: usize) -> Result<Duration> {
    let _ = std::fs::remove_file(file);
    let start = Instant::now();
    let mut sink = Sink::create(file, Overwrite::Never)?;
    let mut writer = Writer::new(BufWriter::new(&mut sink), Target::default(), Style::Exact)?;
    writer.head("1.0", false)?;
    writer.begin(&Tag::new("Root"))?;
    for k in 1..=count {
        writer.dat_slice(&name(k), &Attrs::new(), &[k as f64])?;
    }
    writer.end()?;
    writer.finish()?;
    sink.commit()?;
    Ok(start.elapsed())
}

fn search(task: &str, file: &Path, count: usize) -> Measurement {
    let limits = Limits::default();
    let source = Source::open(file)?;
    let len = source.len();
    let start = Instant::now();
    if task == "open" {
        let file = File::from_source(source, &limits)?;
        return Ok((start.elapsed(), black_box(file).index().elements().len() as u64));
    }
    let names: Vec<String> = (1..=count).map(name).collect();
    let opened = Instant::now();
    let form = Form::detect(&source)?;
    let index = Index::build(&source, form, &limits)?;
    let built = opened.elapsed();
    let mut cursor = Cursor::new(&index);
    // The first search builds the table of names.
    cursor.begin("Root").ok_or("no Root")?;
    let before = source.bytes_read();
    let start = Instant::now();
    let (time, bytes) = match task {
        "index" => (built, len),
        "scan" => {
            if !names.iter().all(|name| cursor.scan(name).is_some()) {
                return Err("name not found".into());
            }
            (opened.elapsed(), len)
        }
        "last" => {
            cursor.scan(&name(count)).ok_or("last name not found")?;
            (start.elapsed(), source.bytes_read() - before)
        }
        "missing" => {
            if cursor.scan("missing").is_some() {
                return Err("found a missing name".into());
            }
            (start.elapsed(), source.bytes_read() - before)
        }
        _ => return Err("unknown task".into()),
    };
    Ok((time, bytes))
}
