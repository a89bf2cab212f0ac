//! Formatting of text and numbers.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use spile::error::{Result, human_bytes};

use super::{Output, style};

/// Indent of a word that is too long for the column of values.
const LONG_WORD_INDENT: usize = 4;

/// Escapes control characters, except line feeds, in text from a file.
fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_escaped) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// Escapes control characters and line feeds in text from a file.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    match escape_controls(text) {
        text if text.contains('\n') => text.replace('\n', "\\n").into(),
        text => text,
    }
}

/// The first line of `text`, truncated to `width` characters. An ellipsis marks omitted text.
pub(crate) fn truncate(text: &str, width: usize) -> Cow<'_, str> {
    let line = text.lines().next().unwrap_or("");
    let single = line.len() == text.trim_end_matches('\n').len();
    if single && line.chars().count() <= width {
        return line.into();
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short.into()
}

/// A size in two units: `1.2 GiB (1288490188 bytes)`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => human_bytes(bytes),
        _ => format!("{} ({bytes} bytes)", human_bytes(bytes)),
    }
}

/// A number with a noun: `1 array`, `2 arrays`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A number with six significant digits, similar to `%g`: `0.25`, `-3`, `1.5e-9`.
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
        let trimmed = if text.contains('.') { text.trim_end_matches('0') } else { text };
        trimmed.trim_end_matches('.').to_string()
    };
    match exponent {
        -5..6 => trim(&format!("{value:.*}", (5 - exponent) as usize)),
        _ => format!("{}e{exponent}", trim(digits)),
    }
}

/// Prints names and values in two columns. Values of several lines are indented and truncated to `lines`
/// lines. On a terminal, long lines are wrapped.
pub(crate) fn fields(fields: &[(String, String)], lines: usize, out: &mut Output) -> Result<()> {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(24);
    let column = width + 4;
    for (name, value) in fields {
        let name = one_line(name);
        let pad = " ".repeat(width.saturating_sub(name.chars().count()));
        let name = out.paint(style::FAINT, &name);
        let value = escape_controls(value.trim_end());
        let total = value.lines().count();
        // A single excess line is printed, because the note would take a line too.
        let shown = if total <= lines.saturating_add(1) { total } else { lines };
        let mut text = String::new();
        for line in value.lines().take(shown) {
            let pieces = match out.width {
                Some(width) => wrap(line, column, width),
                None => vec![(column, line)],
            };
            for (indent, piece) in pieces {
                let _ = write!(text, "\n{:indent$}{piece}", "");
            }
        }
        if shown < total {
            let more = total - shown;
            let _ = write!(text, "\n{:column$}({more} more lines; -v prints all)", "");
        }
        // The first line is printed next to the name unless it starts with a long word.
        let same_line = format!("\n{:column$}", "");
        match text.strip_prefix(&same_line) {
            Some(text) => writeln!(out, "  {name}{pad}  {text}")?,
            None => writeln!(out, "  {name}{text}")?,
        }
    }
    Ok(())
}

/// Wraps a line that starts at `column` of a terminal of `width` columns; returns indents and lines. A word
/// that is too long for the column is not broken but printed on a separate line with a smaller indent.
fn wrap(line: &str, column: usize, width: usize) -> Vec<(usize, &str)> {
    let available = width.saturating_sub(column);
    let mut pieces = Vec::new();
    let mut rest = line.trim_end();
    while let Some((end, _)) = rest.char_indices().nth(available) {
        // Leading spaces are part of the text.
        let first = rest.len() - rest.trim_start().len();
        let mut blanks = rest.match_indices(' ').map(|(at, _)| at).filter(|at| *at > first);
        let fits = blanks.clone().take_while(|at| *at <= end).last();
        let Some(at) = fits.or_else(|| blanks.next()) else { break };
        pieces.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    pieces.push(rest);
    let indent =
        |piece: &str| if piece.chars().count() <= available { column } else { LONG_WORD_INDENT };
    pieces.into_iter().map(|piece| (indent(piece), piece)).collect()
}

/// A bar with the length `part * width` columns, in eighths of a column; at least one eighth if `part` is
/// not 0.
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
    fn numbers_have_six_significant_digits() {
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
    fn control_characters_are_escaped() {
        assert_eq!(escape_controls("a\x1b[31mb\u{9b}c\td"), "a\\u{1b}[31mb\\u{9b}c\\td");
        assert_eq!(escape_controls("\u{e9}t\u{e9}\n"), "\u{e9}t\u{e9}\n");
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 4, 80), [(4, "one two three")]);
        assert_eq!(wrap("one two three", 10, 17), [(10, "one two"), (10, "three")]);
        assert_eq!(wrap("one two three", 10, 18), [(10, "one two"), (10, "three")]);
        assert_eq!(wrap("one two three", 10, 16), [(10, "one"), (10, "two"), (10, "three")]);
        assert_eq!(wrap("", 10, 12), [(10, "")]);
        // A checksum is not broken.
        let sum = "0123456789abcdef";
        assert_eq!(wrap(sum, 10, 20), [(LONG_WORD_INDENT, sum)]);
        let words = format!("is {sum} now");
        assert_eq!(wrap(&words, 10, 20), [(10, "is"), (LONG_WORD_INDENT, sum), (10, "now")]);
        assert_eq!(wrap(sum, 10, 5), [(LONG_WORD_INDENT, sum)]);
        assert_eq!(wrap("  one two", 4, 10), [(4, "  one"), (4, "two")]);
        assert_eq!(wrap("   seven  ", 4, 10), [(LONG_WORD_INDENT, "   seven")]);
        assert_eq!(wrap("\u{e9}\u{e9} \u{e9}", 2, 5), [(2, "\u{e9}\u{e9}"), (2, "\u{e9}")]);
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdefg", 6), "abcde\u{2026}");
        assert_eq!(truncate("ab\ncd", 6), "ab\u{2026}");
        assert_eq!(truncate("ab\n", 6), "ab");
    }
}
