//! Preamble of `.isf`: keys and values in the syntax of the remote control.
//!
//! `:WFMPRE:BYT_NR 2;BN_FMT RI;...;:CURVE #42000` and 2000 bytes of samples, or `:CURVE 12,13,-5`.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Kind, Result, Source, recording};

/// Maximum size of a preamble in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Whether `head` is the start of a preamble, after optional white space.
pub(crate) fn is_preamble(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b":").unwrap_or(text);
    let start = text.get(..4).map(<[u8]>::to_ascii_uppercase);
    // WFMPRE, WFMP, WFMOUTPRE, WFMO.
    matches!(start.as_deref(), Some(b"WFMP" | b"WFMO"))
}

/// Preamble of one record.
pub(crate) struct Preamble {
    /// Offset in the file.
    pub(crate) at: u64,
    /// Key, value and offset of each entry.
    entries: Vec<(String, String, u64)>,
}

impl Preamble {
    /// Parses the preamble at offset `at`. Returns it with the offset of the samples and the length in bytes of
    /// a binary block; without a length, the samples are text.
    pub(crate) fn read(source: &Source, at: u64) -> Result<(Self, u64, Option<u64>)> {
        let text = fetch(source, at, MAX_BYTES)?;
        let mut preamble = Self { at, entries: Vec::new() };
        let mut rest = &text[..];
        loop {
            let skipped =
                rest.iter().take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
            rest = &rest[skipped..];
            let offset = at + (text.len() - rest.len()) as u64;
            if rest.is_empty() {
                let message = "unexpected end of the preamble: expected \":CURVE\"";
                return Err(Error::truncated("tektronix-002", message).at(offset));
            }
            let end = rest.iter().position(|b| b.is_ascii_whitespace() || *b == b';' || *b == b'#');
            let (command, value) = rest.split_at(end.unwrap_or(rest.len()));
            let command = String::from_utf8_lossy(command).to_ascii_uppercase();
            let key = command.rsplit(':').next().unwrap_or_default();
            let value = value.trim_ascii_start();
            if is_key(key, "CURV", "CURVE") {
                let offset = at + (text.len() - value.len()) as u64;
                let is_text = matches!(value.first(), Some(b'0'..=b'9' | b'+' | b'-' | b'.'));
                if is_text {
                    return Ok((preamble, offset, None));
                }
                let (start, len) = preamble.binary_block(source, value, offset)?;
                return Ok((preamble, start, Some(len)));
            }
            let end = unquoted_end(value);
            let text = String::from_utf8_lossy(&value[..end]);
            let text = text.trim().trim_matches('"').to_string();
            preamble.entries.push((key.to_string(), text, offset));
            rest = &value[end..];
        }
    }

    /// Parses `#`, the number of digits of the length, and the length. `#0` is a block without a length, with
    /// `NR_PT` samples. `text` starts at offset `at` of the file. Returns offset and length of the samples.
    fn binary_block(&self, source: &Source, text: &[u8], at: u64) -> Result<(u64, u64)> {
        let invalid = || {
            let found = String::from_utf8_lossy(&text[..text.len().min(12)]);
            let message = format!("expected \"#\" and the block length, found \"{found}\"");
            Error::malformed("tektronix-015", message).at(at)
        };
        let [b'#', digits @ b'0'..=b'9', rest @ ..] = text else { return Err(invalid()) };
        let digits = usize::from(digits - b'0');
        let length = if digits == 0 {
            let count = self.count("NR_P", "NR_PT")?.ok_or_else(|| self.missing("NR_PT"))?;
            count.checked_mul(self.dtype()?.size() as u64).ok_or_else(invalid)?
        } else {
            let length = rest.get(..digits).and_then(|d| std::str::from_utf8(d).ok());
            length.and_then(|length| length.parse().ok()).ok_or_else(invalid)?
        };
        let start = at + 2 + digits as u64;
        recording::within(source, start, length, "the samples", "tektronix-006")?;
        Ok((start, length))
    }

    /// Value of a key given by its short and long form; the last entry if there are several.
    pub(crate) fn get(&self, short: &str, long: &str) -> Option<&str> {
        self.entry(short, long).map(|(value, _)| value)
    }

    /// Value and offset of a key; the last entry if there are several.
    fn entry(&self, short: &str, long: &str) -> Option<(&str, u64)> {
        let found = self.entries.iter().rev().find(|(key, ..)| is_key(key, short, long));
        found.map(|(_, value, at)| (value.as_str(), *at))
    }

    /// Number of a key; `None` if absent. Fails if the value is not a number.
    pub(crate) fn number(&self, short: &str, long: &str) -> Result<Option<f64>> {
        let Some((text, at)) = self.entry(short, long) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            Error::malformed(
                "tektronix-003",
                format!("{long}: expected a number, found \"{text}\""),
            )
            .at(at)
        })
    }

    /// Non-negative integer of a key; `None` if absent. Fails for any other value.
    pub(crate) fn count(&self, short: &str, long: &str) -> Result<Option<u64>> {
        let Some(number) = self.number(short, long)? else { return Ok(None) };
        if number >= 0.0 && number.fract() == 0.0 && number < 9e15 {
            return Ok(Some(number as u64));
        }
        let at = self.entry(short, long).map_or(self.at, |(_, at)| at);
        let message = format!("{long}: expected a non-negative integer, found {number}");
        Err(Error::malformed("tektronix-003", message).at(at))
    }

    /// Error for a missing key.
    pub(crate) fn missing(&self, key: &str) -> Error {
        let message = format!("no {key} in the preamble");
        Error::malformed("tektronix-004", message).at(self.at).in_object("header")
    }

    /// Sample type given by `BYT_NR`, `BYT_OR` and `BN_FMT`.
    pub(crate) fn dtype(&self) -> Result<DType> {
        let size = self.count("BYT_N", "BYT_NR")?.ok_or_else(|| self.missing("BYT_NR"))?;
        let upper = |short, long, default: &str| {
            self.get(short, long).unwrap_or(default).to_ascii_uppercase()
        };
        let order = match upper("BYT_O", "BYT_OR", "MSB").as_str() {
            "LSB" => ByteOrder::Little,
            "MSB" => ByteOrder::Big,
            other => return Err(self.unsupported("BYT_OR", other)),
        };
        let kind = match upper("BN_F", "BN_FMT", "RI").as_str() {
            "RI" => Kind::Int,
            "RP" => Kind::UInt,
            "FP" => Kind::Float,
            other => return Err(self.unsupported("BN_FMT", other)),
        };
        let known =
            matches!((kind, size), (Kind::Float, 4 | 8) | (Kind::Int | Kind::UInt, 1 | 2 | 4 | 8));
        let dtype = DType::new(kind, size as u32, order).filter(|_| known);
        dtype.ok_or_else(|| self.unsupported("BYT_NR", &size.to_string()))
    }

    fn unsupported(&self, key: &str, value: &str) -> Error {
        Error::unsupported("tektronix-005", format!("unsupported {key} \"{value}\"")).at(self.at)
    }
}

/// Whether `key` is an abbreviation of `long` with at least the characters of `short`.
fn is_key(key: &str, short: &str, long: &str) -> bool {
    key.starts_with(short) && long.starts_with(key)
}

/// Length of a value, which ends at a semicolon outside quotes.
fn unquoted_end(value: &[u8]) -> usize {
    let mut quoted = false;
    let end = value.iter().position(|b| {
        quoted ^= *b == b'"';
        *b == b';' && !quoted
    });
    end.unwrap_or(value.len())
}
