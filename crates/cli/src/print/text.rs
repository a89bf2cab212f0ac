//! Words and numbers for people.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use spile::error::{Result, human_bytes};

use super::{Output, style};

/// Where a word begins that is too long for the column of its value.
const OUTDENT: usize = 4;

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

/// Text from a file on one line: control characters and line breaks are escaped.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    match clean(text) {
        clean if clean.contains('\n') => clean.replace('\n', "\\n").into(),
        clean => clean,
    }
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
/// more than `lines` of them are cut. On a terminal, lines that are too long for it are broken.
pub(crate) fn fields(fields: &[(String, String)], lines: usize, out: &mut Output) -> Result<()> {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(24);
    let column = width + 4;
    for (name, value) in fields {
        let name = clean(name);
        let pad = " ".repeat(width.saturating_sub(name.chars().count()));
        let name = out.paint(style::FAINT, &name);
        let value = clean(value.trim_end());
        let total = value.lines().count();
        // One line too many is shown rather than replaced by a line that says so.
        let shown = if total <= lines.saturating_add(1) { total } else { lines };
        let mut text = String::new();
        for line in value.lines().take(shown) {
            let pieces = match out.width {
                Some(width) => broken(line, column, width),
                None => vec![(column, line)],
            };
            for (indent, piece) in pieces {
                let _ = write!(text, "\n{:indent$}{piece}", "");
            }
        }
        if shown < total {
            let more = total - shown;
            let _ = write!(text, "\n{:column$}({more} more lines, -v shows them)", "");
        }
        // The first line stands beside the name if it is as far to the right as it should be.
        let beside = format!("\n{:column$}", "");
        match text.strip_prefix(&beside) {
            Some(text) => writeln!(out, "  {name}{pad}  {text}")?,
            None => writeln!(out, "  {name}{text}")?,
        }
    }
    Ok(())
}

/// The pieces of a line that begins at `column` of a terminal of that width, each with its indent. A
/// word that is too long for the column has a line of its own further to the left; it is never broken.
fn broken(line: &str, column: usize, width: usize) -> Vec<(usize, &str)> {
    let room = width.saturating_sub(column);
    let mut pieces = Vec::new();
    let mut rest = line.trim_end();
    while let Some((end, _)) = rest.char_indices().nth(room) {
        // Blanks at the beginning are the line's own indent.
        let first = rest.len() - rest.trim_start().len();
        let mut blanks = rest.match_indices(' ').map(|(at, _)| at).filter(|at| *at > first);
        let fits = blanks.clone().take_while(|at| *at <= end).last();
        let Some(at) = fits.or_else(|| blanks.next()) else { break };
        pieces.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    pieces.push(rest);
    let indent = |piece: &str| if piece.chars().count() <= room { column } else { OUTDENT };
    pieces.into_iter().map(|piece| (indent(piece), piece)).collect()
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
    fn long_lines_are_broken_between_words() {
        assert_eq!(broken("one two three", 4, 80), [(4, "one two three")]);
        assert_eq!(broken("one two three", 10, 17), [(10, "one two"), (10, "three")]);
        assert_eq!(broken("one two three", 10, 18), [(10, "one two"), (10, "three")]);
        assert_eq!(broken("one two three", 10, 16), [(10, "one"), (10, "two"), (10, "three")]);
        assert_eq!(broken("", 10, 12), [(10, "")]);
        // A checksum stays whole, and fits a terminal if it can.
        let sum = "0123456789abcdef";
        assert_eq!(broken(sum, 10, 20), [(OUTDENT, sum)]);
        let words = format!("is {sum} now");
        assert_eq!(broken(&words, 10, 20), [(10, "is"), (OUTDENT, sum), (10, "now")]);
        assert_eq!(broken(sum, 10, 5), [(OUTDENT, sum)]);
        assert_eq!(broken("  one two", 4, 10), [(4, "  one"), (4, "two")]);
        assert_eq!(broken("   seven  ", 4, 10), [(OUTDENT, "   seven")]);
        assert_eq!(broken("\u{e9}\u{e9} \u{e9}", 2, 5), [(2, "\u{e9}\u{e9}"), (2, "\u{e9}")]);
    }

    #[test]
    fn a_cut_shows_that_it_is_one() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde\u{2026}");
        assert_eq!(cut("ab\ncd", 6), "ab\u{2026}");
        assert_eq!(cut("ab\n", 6), "ab");
    }
}
