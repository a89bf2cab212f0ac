//! `.isf`: words and numbers as the instrument would answer a remote control, then a block of samples.
//!
//! `:WFMPRE:BYT_NR 2;BN_FMT RI;...;:CURVE #42000` and 2000 bytes, or `:CURVE 12,13,-5`; a file may have
//! several of these.

use std::borrow::Cow;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Role;
use spile_core::layout::{Coord, Linear};
use spile_core::limits::Limits;
use spile_core::recording::{self, Record, Recording, region, samples};
use spile_core::report::Report;
use spile_core::shape::Shape;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_core::wire::{ByteOrder, fetch};

use crate::ascii::Numbers;

/// The longest list of words that is looked at.
const LONGEST: usize = 64 << 10;

/// A list of words begins like this.
pub(crate) fn begins(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b":").unwrap_or(text);
    let start = text.get(..4).map(<[u8]>::to_ascii_uppercase);
    // WFMPRE, WFMP, WFMOUTPRE, WFMO.
    matches!(start.as_deref(), Some(b"WFMP" | b"WFMO"))
}

pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    let mut report = Report::default();
    let (mut records, mut headers) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        recording::allow(records.len() as u64 + 1, limits)?;
        let preamble = Preamble::read(&source, at)?;
        headers.push(region(at, preamble.block.0 - at, Role::Header, "preamble", ""));
        records.push(preamble.record(&source, &mut report)?);
        at = preamble.block.0 + preamble.block.1;
        let more = fetch(&source, at, 64)?;
        // Line ends and semicolons may follow, and another channel.
        let skipped = more.iter().take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
        at += skipped as u64;
        if !begins(&more[skipped..]) {
            break;
        }
    }
    let summary = vec![("kind".to_string(), Value::from("ISF"))];
    let file = Recording::new(source, records, headers, limits)?;
    Ok(file.with_summary(summary).with_findings(report))
}

/// The words of one record.
#[derive(Default)]
struct Preamble {
    at: u64,
    /// Words, what is said under them, and where.
    said: Vec<(String, String, u64)>,
    /// First byte and number of bytes of the samples.
    block: (u64, u64),
    /// The samples, where they are text.
    text: Option<Numbers>,
}

impl Preamble {
    fn read(source: &Source, at: u64) -> Result<Self> {
        let text = fetch(source, at, LONGEST)?;
        let mut preamble = Self { at, ..Self::default() };
        let mut rest = &text[..];
        loop {
            let skipped =
                rest.iter().take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
            rest = &rest[skipped..];
            let place = at + (text.len() - rest.len()) as u64;
            if rest.is_empty() {
                let message = "the list of words ends before the samples (\":CURVE #\")";
                return Err(Error::truncated("tektronix-002", message).at(place));
            }
            let end = rest.iter().position(|b| b.is_ascii_whitespace() || *b == b';' || *b == b'#');
            let (command, value) = rest.split_at(end.unwrap_or(rest.len()));
            let command = String::from_utf8_lossy(command).to_ascii_uppercase();
            let key = command.rsplit(':').next().unwrap_or_default();
            let value = value.trim_ascii_start();
            if is(key, "CURV", "CURVE") {
                let place = at + (text.len() - value.len()) as u64;
                if matches!(value.first(), Some(b'0'..=b'9' | b'+' | b'-' | b'.')) {
                    let numbers = Numbers::find(source, place)?;
                    preamble.block = (place, numbers.len);
                    preamble.text = Some(numbers);
                } else {
                    preamble.block = block(source, value, place, &preamble)?;
                }
                return Ok(preamble);
            }
            let end = unquoted_end(value);
            let said = String::from_utf8_lossy(&value[..end]);
            let said = said.trim().trim_matches('"').to_string();
            preamble.said.push((key.to_string(), said, place));
            rest = &value[end..];
        }
    }

    /// What is said under a key, short or long; the last time counts.
    fn get(&self, short: &str, long: &str) -> Option<&str> {
        self.place(short, long).map(|(value, _)| value)
    }

    /// The same with its byte in the file.
    fn place(&self, short: &str, long: &str) -> Option<(&str, u64)> {
        let found = self.said.iter().rev().find(|(key, ..)| is(key, short, long));
        found.map(|(_, value, at)| (value.as_str(), *at))
    }

    fn number(&self, short: &str, long: &str) -> Result<Option<f64>> {
        let Some((text, at)) = self.place(short, long) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            Error::malformed("tektronix-003", format!("{long} is \"{text}\", not a number")).at(at)
        })
    }

    fn whole(&self, short: &str, long: &str) -> Result<Option<u64>> {
        let Some(number) = self.number(short, long)? else { return Ok(None) };
        if number >= 0.0 && number.fract() == 0.0 && number < 9e15 {
            return Ok(Some(number as u64));
        }
        let at = self.place(short, long).map_or(self.at, |(_, at)| at);
        let message = format!("{long} is {number}, not a number of something");
        Err(Error::malformed("tektronix-003", message).at(at))
    }

    fn missing(&self, key: &str) -> Error {
        let message = format!("the list of words has no {key}");
        Error::malformed("tektronix-004", message).at(self.at).in_object("header")
    }

    fn dtype(&self) -> Result<DType> {
        let size = self.whole("BYT_N", "BYT_NR")?.ok_or_else(|| self.missing("BYT_NR"))?;
        let word =
            |short, long, usual: &str| self.get(short, long).unwrap_or(usual).to_ascii_uppercase();
        let order = match word("BYT_O", "BYT_OR", "MSB").as_str() {
            "LSB" => ByteOrder::Little,
            "MSB" => ByteOrder::Big,
            other => return Err(self.unknown("BYT_OR", other)),
        };
        let kind = match word("BN_F", "BN_FMT", "RI").as_str() {
            "RI" => Kind::Int,
            "RP" => Kind::UInt,
            "FP" => Kind::Float,
            other => return Err(self.unknown("BN_FMT", other)),
        };
        let known =
            matches!((kind, size), (Kind::Float, 4 | 8) | (Kind::Int | Kind::UInt, 1 | 2 | 4 | 8));
        let dtype = DType::new(kind, size as u32, order).filter(|_| known);
        dtype.ok_or_else(|| self.unknown("BYT_NR", &size.to_string()))
    }

    fn unknown(&self, key: &str, value: &str) -> Error {
        Error::unsupported("tektronix-005", format!("{key} \"{value}\" is not read")).at(self.at)
    }

    fn record(&self, source: &Source, report: &mut Report) -> Result<Record> {
        let dtype = self.dtype()?;
        let count = self.text.map_or(self.block.1 / dtype.size() as u64, |text| text.count);
        if let Some(promised) = self.whole("NR_P", "NR_PT")?.filter(|n| *n != count) {
            let message = format!("NR_PT is {promised}, the block has {count} samples");
            report.warn("tektronix-010", message).at(self.at);
        }
        let some = |count| match self.text {
            Some(text) => Ok(text.array(dtype, count)),
            None => samples(source, dtype, count, self.block.0, "tektronix-006"),
        };
        let mut array = some(count)?;
        let step = self.number("XIN", "XINCR")?.ok_or_else(|| self.missing("XINCR"))?;
        let start = self.number("XZE", "XZERO")?.unwrap_or(0.0)
            - self.number("PT_O", "PT_OFF")?.unwrap_or(0.0) * step;
        let envelope = self.get("PT_F", "PT_FMT").is_some_and(|f| f.eq_ignore_ascii_case("ENV"));
        if envelope {
            // Smallest and largest of two intervals each, one after the other.
            array = some(count / 2 * 2)?;
            array.shape = Shape::new([count / 2, 2]);
            array.dims.push("extreme".into());
            array.coords.push(Coord::None);
        }
        let slope = self.number("YMU", "YMULT")?.unwrap_or(1.0);
        let zero = self.number("YZE", "YZERO")?.unwrap_or(0.0);
        let origin = self.number("YOF", "YOFF")?.unwrap_or(0.0);
        let id = self.get("WFI", "WFID").unwrap_or_default();
        let channel = id.split(',').next().unwrap_or_default().trim();
        let text = |short, long| self.get(short, long).unwrap_or_default();
        Ok(Record::new(channel, array)
            .mapped(Linear::around(origin, zero, slope))
            .on_grid(start, if envelope { 2.0 * step } else { step }, text("XUN", "XUNIT"))
            .say("units", text("YUN", "YUNIT"))
            .say("label", id)
            .say("point_format", if envelope { "envelope: smallest, largest" } else { "" }))
    }
}

/// The key in any length between its short and its long form.
fn is(key: &str, short: &str, long: &str) -> bool {
    key.starts_with(short) && long.starts_with(key)
}

/// Where a value ends: at a semicolon that does not stand in quotes.
fn unquoted_end(value: &[u8]) -> usize {
    let mut quoted = false;
    let end = value.iter().position(|b| {
        quoted ^= *b == b'"';
        *b == b';' && !quoted
    });
    end.unwrap_or(value.len())
}

/// `#`, a digit, as many digits of the length, and the samples. The digit 0 is a block without a length: it
/// holds the samples that are promised.
fn block(source: &Source, text: &[u8], at: u64, preamble: &Preamble) -> Result<(u64, u64)> {
    let bad = || {
        let found: Cow<'_, str> = String::from_utf8_lossy(&text[..text.len().min(12)]);
        let message = format!("a block of samples begins with # and its length, not \"{found}\"");
        Error::malformed("tektronix-002", message).at(at)
    };
    let [b'#', digits @ b'0'..=b'9', rest @ ..] = text else { return Err(bad()) };
    let digits = usize::from(digits - b'0');
    if digits == 0 {
        let count = preamble.whole("NR_P", "NR_PT")?.ok_or_else(|| preamble.missing("NR_PT"))?;
        let size = preamble.dtype()?.size() as u64;
        let bytes = count.checked_mul(size).ok_or_else(bad)?;
        recording::within(source, at + 2, bytes, "the samples", "tektronix-006")?;
        return Ok((at + 2, bytes));
    }
    let length = rest.get(..digits).and_then(|d| std::str::from_utf8(d).ok()).ok_or_else(bad)?;
    let length: u64 = length.parse().map_err(|_| bad())?;
    let start = at + 2 + digits as u64;
    recording::within(source, start, length, "the samples", "tektronix-006")?;
    Ok((start, length))
}
