//! Words and numbers for people.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use spile::error::{Result, human_bytes};

use super::{Output, style};

/// Text from a file, without the control characters that would drive the terminal.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n';
    if !text.contains(harmful) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if harmful(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// The beginning of `text` in at most `room` characters, on one line.
pub(crate) fn cut(text: &str, room: usize) -> Cow<'_, str> {
    let line = text.lines().next().unwrap_or("");
    let whole = line.len() == text.trim_end_matches('\n').len();
    if whole && line.chars().count() <= room {
        return line.into();
    }
    let mut short: String = line.chars().take(room.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short.into()
}

/// `1.2 GiB (1288490188 bytes)`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => human_bytes(bytes),
        _ => format!("{} ({bytes} bytes)", human_bytes(bytes)),
    }
}

/// `1 array`, `2 arrays`.
pub(crate) fn count(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// A number in six digits, `%g` without its surprises: `0.25`, `-3`, `1.5e-9`.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() {
        return match value {
            f64::INFINITY => "inf".into(),
            f64::NEG_INFINITY => "-inf".into(),
            _ => "nan".into(),
        };
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        let whole = if text.contains('.') { text.trim_end_matches('0') } else { text };
        whole.trim_end_matches('.').to_string()
    };
    match exponent {
        -5..6 => trim(&format!("{value:.*}", (5 - exponent) as usize)),
        _ => format!("{}e{exponent}", trim(digits)),
    }
}

/// Names and values below each other, values aligned. Text of several lines keeps its column;
/// more than `lines` of them are cut.
pub(crate) fn fields(fields: &[(String, String)], lines: usize, out: &mut Output) -> Result<()> {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(24);
    for (name, value) in fields {
        let name = clean(name);
        let pad = " ".repeat(width.saturating_sub(name.chars().count()));
        let name = out.paint(style::FAINT, &name);
        let value = clean(value.trim_end());
        let mut text = String::new();
        let total = value.lines().count();
        // One line too many is shown rather than replaced by a line that says so.
        let shown = if total <= lines.saturating_add(1) { total } else { lines };
        for (k, line) in value.lines().take(shown).enumerate() {
            let indent = if k == 0 { 0 } else { width + 4 };
            let _ = writeln!(text, "{:indent$}{line}", "");
        }
        if shown < total {
            let _ = writeln!(
                text,
                "{:w$}({} more lines, -v shows them)",
                "",
                total - shown,
                w = width + 4
            );
        }
        if text.is_empty() {
            writeln!(out, "  {name}")?;
        } else {
            write!(out, "  {name}{pad}  {text}")?;
        }
    }
    Ok(())
}

/// A bar of `part` of `width` columns, in eighths of one; what is there at all is seen.
pub(crate) fn bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let all = width * 8;
    let eighths = ((part * all as f64).round() as usize).min(all);
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        let cases = [
            (0.0, "0"),
            (-0.25, "-0.25"),
            (1.0, "1"),
            (100.0, "100"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e6"),
            (999_999.9, "1e6"),
            (0.000_012_345, "0.000012345"),
            (1.5e-9, "1.5e-9"),
            (-2e300, "-2e300"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_file_cannot_drive_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\u{9b}c\td"), "a\\u{1b}[31mb\\u{9b}c\\td");
        assert_eq!(clean("\u{e9}t\u{e9}\n"), "\u{e9}t\u{e9}\n");
    }

    #[test]
    fn a_cut_shows_that_it_is_one() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde\u{2026}");
        assert_eq!(cut("ab\ncd", 6), "ab\u{2026}");
        assert_eq!(cut("ab\n", 6), "ab");
    }
}
