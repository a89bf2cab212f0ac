//! Lines, words and strings of legacy files.

use std::str::FromStr;

use spile_core::error::{Error, Result};
use spile_core::layout::Extent;

use super::Parser;

/// Maximum length of a line.
const LONGEST: usize = 64 << 10;

impl Parser<'_> {
    /// The next line without its end; `None` at the end of the file.
    pub(super) fn line(&mut self) -> Result<Option<String>> {
        self.line_at = self.scanner.at;
        if self.scanner.bytes(self.scanner.at)?.is_empty() {
            return Ok(None);
        }
        let end = self.scanner.find(b'\n')?.unwrap_or(self.scanner.source.len());
        let len = end - self.line_at;
        if len > LONGEST as u64 {
            return Err(self.malformed("line without an end"));
        }
        let line = self.scanner.source.read_vec(self.line_at, len)?;
        self.scanner.at = (end + 1).min(self.scanner.source.len());
        Ok(Some(String::from_utf8_lossy(&line).trim_end_matches('\r').to_string()))
    }

    /// The next line that is not blank, without white space around it; empty at the end of the file.
    pub(super) fn next_line(&mut self) -> Result<String> {
        loop {
            match self.line()? {
                None => return Ok(String::new()),
                Some(line) if line.trim().is_empty() => {}
                Some(line) => return Ok(line.trim().to_string()),
            }
        }
    }

    /// The next line that is not blank. Fails at the end of the file.
    pub(super) fn required(&mut self) -> Result<String> {
        let line = self.next_line()?;
        if line.is_empty() {
            return Err(Error::truncated("vtk-002", "unexpected end of file").at(self.line_at));
        }
        Ok(line)
    }

    pub(super) fn words(&mut self) -> Result<Vec<String>> {
        Ok(self.required()?.split_whitespace().map(String::from).collect())
    }

    /// The next line that is not blank if it begins with `keyword`.
    pub(super) fn optional(&mut self, keyword: &str) -> Result<Option<Vec<String>>> {
        let before = self.scanner.at;
        let line = self.next_line()?;
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case(keyword)) {
            return Ok(Some(words));
        }
        self.scanner.at = before;
        Ok(None)
    }

    pub(super) fn number<T: FromStr>(&self, words: &[String], at: usize) -> Result<T> {
        words.get(at).and_then(|word| word.parse().ok()).ok_or_else(|| {
            self.malformed(format!(
                "expected a number after \"{}\"",
                words[..at.min(words.len())].join(" ")
            ))
        })
    }

    pub(super) fn skip(&mut self, len: u64) -> Result<Extent> {
        let offset = self.scanner.at;
        let truncated = |e: Error| Error::truncated("vtk-002", e.message()).at(offset);
        self.scanner.source.require(offset, len).map_err(truncated)?;
        self.scanner.at = offset + len;
        Ok(Extent { offset, len })
    }

    /// Range of `count` words.
    pub(super) fn tokens(&mut self, count: u64) -> Result<Extent> {
        let mut left = count;
        let (mut at, mut start, mut inside) = (self.scanner.at, None, false);
        'all: while left > 0 {
            let bytes = self.scanner.bytes(at)?;
            if bytes.is_empty() {
                if inside {
                    left -= 1;
                }
                break;
            }
            for byte in bytes {
                match (byte.is_ascii_whitespace(), inside) {
                    (false, false) => {
                        inside = true;
                        start.get_or_insert(at);
                    }
                    (true, true) => {
                        inside = false;
                        left -= 1;
                        if left == 0 {
                            break 'all;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        }
        if left > 0 {
            let message =
                format!("unexpected end of file: expected {count} numbers, found {}", count - left);
            return Err(Error::truncated("vtk-002", message).at(at));
        }
        self.scanner.at = at;
        let offset = start.unwrap_or(at);
        Ok(Extent { offset, len: at - offset })
    }

    /// Range of `count` strings: lines, or bytes after a length of 1, 2, 4 or 8 bytes, which the first two bits select.
    pub(super) fn strings(&mut self, count: u64) -> Result<Extent> {
        let offset = self.scanner.at;
        for _ in 0..count {
            if self.ascii {
                if self.line()?.is_none() {
                    return Err(Error::truncated("vtk-002", "unexpected end of file").at(offset));
                }
                continue;
            }
            let at = self.skip(1)?.offset;
            let first = self.scanner.source.read_vec(at, 1)?[0];
            let more = [7, 3, 1, 0][usize::from(first >> 6)];
            self.skip(more)?;
            let rest = self.scanner.source.read_vec(at + 1, more)?;
            let len = rest.iter().fold(u64::from(first & 0x3f), |all, b| all << 8 | u64::from(*b));
            self.skip(len)?;
        }
        Ok(Extent { offset, len: self.scanner.at - offset })
    }
}
