//! Tasks of `cargo xtask bench iotk`.
//!
//! Each line on standard input, or each argument, is a task. The output is one line per task: seconds
//! and bytes.
//!
//! | task | operation | bytes |
//! |---|---|---|
//! | `write-binary FILE COUNT` | write one array of doubles | of the numbers |
//! | `read-binary FILE COUNT` | read into allocated memory | of the numbers |
//! | `write-text FILE COUNT` | write as text, all digits | of the numbers |
//! | `read-text FILE COUNT` | read from text | of the numbers |
//! | `to-text FROM TO COUNT` | convert binary to text | of the numbers |
//! | `to-binary FROM TO COUNT` | convert text to binary | of the numbers |
//! | `place FILE COUNT` | find the offset of the numbers | before the numbers |
//! | `make-tags FILE COUNT` | write many small elements | of the file |
//! | `index FILE COUNT` | index all tags | of the file |
//! | `open FILE COUNT` | index all tags and build the tree | of the file |
//! | `scan FILE COUNT` | find all elements by name, in file order | of the file |
//! | `last FILE COUNT` | find the last element in a complete index | read from the file |
//! | `missing FILE COUNT` | search a missing name in a complete index | read from the file |
//!
//! Memory is reused between tasks and is filled before the timer starts. The time to write a file
//! includes the final rename. Values that were read are compared after the timer has stopped.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use spile_core::format::Reader as _;
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_iotk::wire::Tag;
use spile_iotk::{Cursor, File, Form, Index, Style, Target, Writer, convert};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut numbers = Memory::default();
    let given: Vec<String> = std::env::args().skip(1).collect();
    let asked = std::io::stdin().lock().lines().map_while(std::result::Result::ok);
    let lines: Box<dyn Iterator<Item = String>> =
        if given.is_empty() { Box::new(asked) } else { Box::new(given.into_iter()) };
    for line in lines {
        match task(&line, &mut numbers) {
            Ok((time, bytes)) => {
                let mut out = std::io::stdout().lock();
                let done = writeln!(out, "{:.9} {bytes}", time.as_secs_f64());
                if done.and_then(|()| out.flush()).is_err() {
                    return ExitCode::FAILURE;
                }
            }
            Err(why) => {
                eprintln!("bench: {line}: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// A reusable buffer of numbers, aligned to a page as in the other implementations. Copies to the
/// alignment of `malloc`, 16 bytes after a page, are slower by a third.
#[derive(Default)]
struct Memory(Vec<f64>);

impl Memory {
    fn first(&mut self, count: usize) -> &mut [f64] {
        const PAGE: usize = 4096;
        if self.0.len() < count + PAGE / 8 {
            self.0 = vec![1.0; count + PAGE / 8];
        }
        let start = self.0.as_ptr().cast::<u8>().align_offset(PAGE) / 8;
        &mut self.0[start..start + count]
    }
}

fn task(line: &str, numbers: &mut Memory) -> Result<(Duration, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [task, from, .., count] = fields[..] else { return Err("unknown task".into()) };
    let (from, count) = (Path::new(from), count.parse::<usize>()?);
    let to = Path::new(fields[fields.len() - 2]);
    let bytes = 8 * count as u64;
    let time = match task {
        "write-binary" => write_numbers(to, Target::default(), count, numbers)?,
        "write-text" => write_numbers(to, Target::Text, count, numbers)?,
        "read-binary" | "read-text" => read_numbers(from, count, numbers)?,
        "to-text" => converted(from, to, Target::Text)?,
        "to-binary" => converted(from, to, Target::default())?,
        "make-tags" => make_tags(to, count)?,
        "place" => return Ok((Duration::ZERO, data_offset(from)?)),
        _ => return search(task, from, count),
    };
    Ok((time, bytes))
}

/// A number with all digits; the magnitude varies with `k`.
fn value(k: usize) -> f64 {
    (0.37 * k as f64).sin() * 10_f64.powi((k % 41) as i32 - 20)
}

/// Offset of the first number.
fn data_offset(file: &Path) -> Result<u64> {
    let file = File::open(file, &Limits::default())?;
    let (_, _, array) = file.tree().arrays().next().ok_or("no array")?;
    match &array.layout {
        Layout::Plain { extents, .. } => Ok(extents.parts().first().ok_or("no bytes")?.offset),
        _ => Err("not stored as plain bytes".into()),
    }
}

fn write_numbers(
    file: &Path,
    target: Target,
    count: usize,
    numbers: &mut Memory,
) -> Result<Duration> {
    let numbers = numbers.first(count);
    for (number, k) in numbers.iter_mut().zip(1..) {
        *number = value(k);
    }
    let _ = std::fs::remove_file(file);
    let start = Instant::now();
    let mut sink = Sink::create(file, Overwrite::Never)?;
    let mut writer = Writer::new(BufWriter::new(&mut sink), target, Style::Exact)?;
    writer.head("1.0", false)?;
    writer.begin(&Tag::new("Root"))?;
    writer.dat_slice("x", &[], numbers)?;
    writer.end()?;
    writer.finish()?;
    sink.commit()?;
    Ok(start.elapsed())
}

fn read_numbers(file: &Path, count: usize, numbers: &mut Memory) -> Result<Duration> {
    let numbers = numbers.first(count);
    numbers.fill(0.0);
    let start = Instant::now();
    let file = File::open(file, &Limits::default())?;
    file.read_into("Root/x", numbers)?;
    let time = start.elapsed();
    if numbers.iter().zip(1..).any(|(number, k)| number.to_bits() != value(k).to_bits()) {
        return Err("the numbers differ from those written".into());
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
        writer.dat_slice(&name(k), &[], &[k as f64])?;
    }
    writer.end()?;
    writer.finish()?;
    sink.commit()?;
    Ok(start.elapsed())
}

fn search(task: &str, file: &Path, count: usize) -> Result<(Duration, u64)> {
    let limits = Limits::default();
    let source = Source::open(file)?;
    let len = source.len();
    let start = Instant::now();
    if task == "open" {
        let opened = File::from_source(source, &limits)?;
        return Ok((start.elapsed(), black_box(opened).index().elements().len() as u64));
    }
    let names: Vec<String> = (1..=count).map(name).collect();
    let begun = Instant::now();
    let form = Form::detect(&source)?.ok_or("not an IOTK file")?;
    let index = Index::build(&source, form, &limits)?;
    let built = begun.elapsed();
    let mut cursor = Cursor::new(&index);
    // The first search builds the table of names.
    cursor.begin("Root").ok_or("no Root")?;
    let before = source.bytes_read();
    let start = Instant::now();
    let (time, bytes) = match task {
        "index" => (built, len),
        "scan" => {
            if !names.iter().all(|name| cursor.scan(name).is_some()) {
                return Err("a name was not found".into());
            }
            (begun.elapsed(), len)
        }
        "last" => {
            cursor.scan(&name(count)).ok_or("the last name was not found")?;
            (start.elapsed(), source.bytes_read() - before)
        }
        "missing" => {
            if cursor.scan("missing").is_some() {
                return Err("a missing name was found".into());
            }
            (start.elapsed(), source.bytes_read() - before)
        }
        _ => return Err("unknown task".into()),
    };
    Ok((time, bytes))
}
