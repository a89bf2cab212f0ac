//! One pass over the lines in bounded memory.

use spile_core::format::Score;
use spile_core::text_records::{Records, Rows, each_record, line_end, parse_float};
use spile_core::{Error, Limits, Result, Source};

use crate::oscilloscope::{Scope, tds_numbers};
use crate::semantics::{Spacing, printed_error};

/// Length of the longest line in bytes.
const LONGEST: u64 = 64 << 20;

/// Bytes of the header that are kept.
const HEADER: u64 = 4 << 10;

/// Position and width of the rows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// Text before the rows.
    pub(crate) header: String,
    pub(crate) rows: Rows,
    /// Start and step of a uniformly spaced first column of several.
    pub(crate) grid: Option<(f64, f64)>,
    /// What the header of an oscilloscope says about the columns.
    pub(crate) scope: Option<Scope>,
}

/// Content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Blank,
    Numbers,
    Text,
}

/// Parses a line into `numbers`. Numbers are separated by white space, commas, semicolons or `&`; `#` begins
/// a comment. In a line with semicolons, tabs or blanks, commas may be decimal marks.
pub(crate) fn parse_line(line: &[u8], numbers: &mut Vec<f64>) -> Line {
    numbers.clear();
    let line = line.split(|b| *b == b'#').next().unwrap_or(&[]);
    if line.contains(&b',') && has_decimal_commas(line) {
        let points: Vec<u8> = line.iter().map(|b| if *b == b',' { b'.' } else { *b }).collect();
        return parse_line(&points, numbers);
    }
    let separator = |b: &u8| matches!(b, b',' | b';' | b'&');
    let space = |b: &u8| matches!(b, b' ' | b'\t' | 0x0b | 0x0c);
    // Separators only: the end of a table, as some instruments write it.
    if line.iter().all(|b| separator(b) || space(b)) {
        return Line::Blank;
    }
    // Several separators at the end of a line.
    let bare = |b: &u8| !separator(b) && !space(b);
    let line = &line[..line.iter().rposition(bare).map_or(0, |last| last + 1)];
    let mut fields = line.split(separator).peekable();
    while let Some(field) = fields.next() {
        let before = numbers.len();
        for token in field.split(space).filter(|token| !token.is_empty()) {
            match parse_float(token) {
                Some(value) => numbers.push(value),
                None => return tds_row(line, numbers),
            }
        }
        // An empty field is a missing number, except after a separator at the end of the line.
        if numbers.len() == before && fields.peek().is_some() {
            return tds_row(line, numbers);
        }
    }
    if numbers.is_empty() { Line::Blank } else { Line::Numbers }
}

/// Parses a row of a Tektronix TDS file, or else text.
fn tds_row(line: &[u8], numbers: &mut Vec<f64>) -> Line {
    let pair = tds_numbers(line).map(|pair| pair.map(parse_float));
    let Some([Some(time), Some(value)]) = pair else { return Line::Text };
    numbers.clear();
    numbers.extend([time, value]);
    Line::Numbers
}

/// Whether every comma is inside a number, and numbers are separated by something else.
fn has_decimal_commas(line: &[u8]) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_digit);
    let inside = |at: usize| digit(at.checked_sub(1)) && digit(at.checked_add(1));
    let mut commas = line.iter().enumerate().filter(|(_, b)| **b == b',');
    let separated = line.iter().any(|b| matches!(b, b';' | b'\t')) || has_blanks_only(line);
    separated && commas.all(|(at, _)| inside(at))
}

/// Whether blanks separate numbers of at most one comma each, none of which has a decimal point.
fn has_blanks_only(line: &[u8]) -> bool {
    let mut tokens = line.trim_ascii().split(|b| *b == b' ').filter(|token| !token.is_empty());
    let at_most_one = |token: &[u8]| token.split(|b| *b == b',').count() <= 2;
    !line.contains(&b'.') && tokens.clone().count() > 1 && tokens.all(at_most_one)
}

/// Whether the line is a row that was cut inside its last number: `1.5 2.5e`.
fn ends_in_a_number(line: &[u8]) -> bool {
    let separator = |b: &u8| matches!(b, b' ' | b'\t' | b',' | b';' | b'&');
    let (before, last) = line.split_at(line.iter().rposition(separator).map_or(0, |k| k + 1));
    let mut numbers = Vec::new();
    last.iter().all(|b| b.is_ascii_digit() || b"+-.eEdD".contains(b))
        && parse_line(last, &mut numbers) == Line::Text
        && parse_line(before, &mut numbers) != Line::Text
}

/// Finds the rows. They begin with the first line of numbers, unless that is a single number (a count, for
/// example) before wider rows.
pub(crate) fn scan(source: &Source, limits: &Limits) -> Result<Table> {
    let mut table = Table::default();
    let rows = &mut table.rows;
    let mut numbers = Vec::new();
    // Byte and width of a row of another width.
    let mut odd: Option<(u64, u64)> = None;
    let mut spacing = Spacing::default();
    // A line of n bytes has up to n / 2 numbers of 8 bytes.
    let longest = LONGEST.min(limits.memory / 8);
    let too_long = || {
        let limit = limits.allow(8 * LONGEST, "the numbers of a line").err();
        let message = format!("line longer than {longest} bytes");
        limit.unwrap_or_else(|| Error::not_this_format("columns-002", message))
    };
    each_record(source, 0, longest as usize, line_end, too_long, |record| {
        let (at, line) = (record.offset, record.bytes);
        match parse_line(line, &mut numbers) {
            Line::Blank => {}
            Line::Text if rows.count == 0 => {}
            // The file ends inside a number.
            Line::Text
                if odd.is_none()
                    && at + line.len() as u64 == source.len()
                    && (numbers.len() as u64) < rows.columns
                    && ends_in_a_number(line) =>
            {
                rows.partial = Some(numbers.len() as u64);
            }
            Line::Text => {
                let message = format!("row {}: expected numbers, found text", rows.count + 1);
                return Err(Error::malformed("columns-003", message).at(at));
            }
            Line::Numbers => {
                let width = numbers.len() as u64;
                if let Some((offset, found)) = odd {
                    return Err(rows.wrong_width("columns-003", source, found, offset));
                }
                if rows.count == 0 || (rows.count == 1 && rows.columns == 1 && width > 1) {
                    *rows = Rows { start: at, columns: width, ..Rows::default() };
                    spacing = Spacing::default();
                }
                if width == rows.columns {
                    let mut tokens = line.split(|b| b" \t,;&".contains(b));
                    let first = match tds_numbers(line) {
                        Some([time, _]) => Some(time),
                        None => tokens.find(|token| !token.is_empty()),
                    };
                    spacing.add(numbers[0], first.map_or(0.0, printed_error));
                    rows.push(record.next);
                } else {
                    // Accepted as an incomplete row if it is shorter and the last one.
                    odd = Some((at, width));
                }
            }
        }
        Ok(())
    })?;
    if rows.count == 0 {
        return Err(Error::not_this_format("columns-001", "no row of numbers found").at(0));
    }
    if let Some((offset, found)) = odd {
        if found > rows.columns {
            return Err(rows.wrong_width("columns-003", source, found, offset));
        }
        rows.partial = Some(found);
    }
    table.grid = spacing.grid().filter(|_| rows.columns > 1);
    let header = source.read_vec(0, rows.start.min(HEADER))?;
    table.header = String::from_utf8_lossy(&header).trim_end().to_string();
    table.scope = Scope::of(&table.header, table.rows.columns);
    if table.rows.start == 0 && table.rows.columns == 2 {
        let head = source.read_vec(0, source.len().min(HEADER))?;
        table.scope = Scope::of_rows(&String::from_utf8_lossy(&head));
    }
    if table.grid.is_none() && table.scope.as_ref().is_some_and(|scope| scope.sequence.is_none()) {
        table.grid = spacing.clock();
    }
    if let Some(scope) = &table.scope {
        table.grid = match (scope.sequence, table.grid) {
            // No column has times.
            (Some(sequence), _) if scope.skip == 0 => Some(sequence),
            // The first column counts the samples.
            (Some((start, increment)), Some((first, step))) => {
                Some((start + first * increment, step * increment))
            }
            // Dividing by a power of ten keeps decimal numbers.
            (_, grid) => grid.map(|grid| {
                let per_second = (1.0 / scope.unit).round();
                (grid.0 / per_second, grid.1 / per_second)
            }),
        };
    }
    Ok(table)
}

/// Scores the beginning of a file as text with rows of numbers; `complete` if it is the entire file.
pub(crate) fn looks_like_rows(head: &[u8], complete: bool) -> Score {
    let binary = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    if head.is_empty() || head.iter().any(binary) {
        return 0;
    }
    let mut numbers = Vec::new();
    let mut rows = 0_u32;
    let mut lines = Records::new(head, line_end).collect::<Vec<_>>();
    // The head of a longer file usually ends inside a line, and so does a truncated file.
    let ended = matches!(head.last(), Some(b'\n' | b'\r'));
    let cut = !complete || (!ended && lines.last().is_some_and(|line| ends_in_a_number(line)));
    let rest = if cut { lines.pop() } else { None };
    let mut wide = 0_u32;
    let (mut comments, mut texts) = (0_u32, 0_u32);
    let (mut width, mut missing) = (0, false);
    for line in &lines {
        match parse_line(line, &mut numbers) {
            Line::Numbers => {
                rows += 1;
                // A narrower row with commas has missing values at its end: a table of another format.
                missing |= rows > 1 && numbers.len() < width && line.ends_with(b",");
                width = width.max(numbers.len());
                wide += u32::from(numbers.len() > 1);
            }
            // Text after numbers: another format, or a damaged table.
            Line::Text if rows > 0 => return if wide > 2 { 2 } else { 0 },
            Line::Blank if line.starts_with(b"#") => comments += 1,
            Line::Text => texts += 1,
            Line::Blank => {}
        }
    }
    // A row or the comments may be longer than the head.
    let mut open = false;
    if let Some(rest) = rest {
        let end = rest.iter().rposition(|b| !b.is_ascii_alphanumeric() && !b"+-.".contains(b));
        match parse_line(&rest[..end.unwrap_or(0)], &mut numbers) {
            Line::Numbers => open = true,
            Line::Text => texts += 1,
            Line::Blank => {}
        }
    }
    let in_rows = || width == 2 && Scope::of_rows(&String::from_utf8_lossy(head)).is_some();
    if rows > 1 && (Scope::of(&text_before_rows(&lines), width as u64).is_some() || in_rows()) {
        return 90;
    }
    match rows {
        _ if missing => 2,
        0 if open || (!complete && comments > 0 && texts == 0) => 5,
        0 => 0,
        1 => 5,
        _ => 20,
    }
}

/// The lines before the first row of numbers.
fn text_before_rows(lines: &[&[u8]]) -> String {
    let mut numbers = Vec::new();
    let text = lines.iter().take_while(|line| parse_line(line, &mut numbers) != Line::Numbers);
    text.map(|line| String::from_utf8_lossy(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than the buffer of `each_record`.
    const LONG: usize = 1 << 20;

    fn table(text: &str) -> Table {
        scan(&Source::memory(text), &Limits::default()).unwrap()
    }

    #[test]
    fn headers_end_at_the_first_row_of_numbers() {
        let t = table("# a\ntime, volts\n\n1, 2\r\n3;4\n5 &6\n");
        assert_eq!((t.rows.count, t.rows.columns, t.rows.start, t.rows.partial), (3, 2, 17, None));
        assert_eq!(t.header, "# a\ntime, volts");
        let counted = table("2\n1 2 3\n4 5 6\n");
        assert_eq!((counted.rows.count, counted.rows.columns, counted.rows.start), (2, 3, 2));
        let single = table("7\n8\n");
        assert_eq!((single.rows.count, single.rows.columns), (2, 1));
    }

    #[test]
    fn an_incomplete_last_row_is_skipped_and_any_other_is_an_error() {
        let t = table("1 2\n3 4\n5");
        assert_eq!((t.rows.count, t.rows.partial, t.rows.end), (2, Some(1), 8));
        // Cut inside a number.
        for (text, complete) in [("1 2\n3 4\n5 1e", 1), ("1 2\n3 4\n-", 0), ("1,2\n3,4\n5,.", 1)] {
            let t = table(text);
            assert_eq!(
                (t.rows.count, t.rows.partial, t.rows.end),
                (2, Some(complete), 8),
                "{text}"
            );
        }
        let odd = ["1 2\n3\n4 5\n", "1 2\n3 4 5\n", "1 2\nx\n3 4\n"];
        let texts = ["1 2\n3 4\nend", "1 2\n3 4\n5 6 7e", "1 2\n3 4\n5 1e\n", "1 2\n3 4\nx 1e"];
        for bad in odd.into_iter().chain(texts) {
            assert_eq!(
                scan(&Source::memory(bad), &Limits::default()).unwrap_err().code(),
                "columns-003",
                "{bad}"
            );
        }
        assert_eq!(
            scan(&Source::memory("words\n"), &Limits::default()).unwrap_err().code(),
            "columns-001"
        );
    }

    #[test]
    fn only_rows_of_numbers_are_recognised() {
        assert_eq!(looks_like_rows(b"a b\n1 2\n3 4\n", true), 20);
        assert_eq!(looks_like_rows(b"1 2\n3 4\n5 6", false), 20);
        assert_eq!(looks_like_rows(b"1.5 2.5 3.", false), 5);
        assert_eq!(looks_like_rows(b"1,2,3\n4,5,6\n7,,\n", true), 2);
        assert_eq!(looks_like_rows(b"1,2,,\n4,5,,\n7,8,,\n", true), 20);
        assert_eq!(looks_like_rows(b"1 2\n3 4\n5 1e", true), 20);
        assert_eq!(looks_like_rows(b"1 2\n3 4\n5 6\n7 x\n", true), 2);
        assert_eq!(looks_like_rows(b"# many\n# comm", false), 5);
        assert_eq!(looks_like_rows(b"words and no", false), 0);
        assert_eq!(looks_like_rows(b"# A heading\n\nand prose, wh", false), 0);
        assert_eq!(looks_like_rows(b"# A heading\nprose\n# anoth", false), 0);
        for other in ["{\n 1,\n 2\n}\n", "words\n", "", "1 2\n\x003 4\n"] {
            assert_eq!(looks_like_rows(other.as_bytes(), true), 0, "{other}");
        }
    }

    #[test]
    fn a_comma_is_a_decimal_mark_where_something_else_separates() {
        let mut numbers = Vec::new();
        for (line, expected) in [
            ("1,5;-2,25e3;3", &[1.5, -2250.0, 3.0][..]),
            ("1,5\t2,5", &[1.5, 2.5]),
            ("1,5, 2", &[1.0, 5.0, 2.0]),
            ("-1,5 2,25  3", &[-1.5, 2.25, 3.0]),
            ("1,5 2.5", &[1.0, 5.0, 2.5]),
            ("1,2,3 4", &[1.0, 2.0, 3.0, 4.0]),
            ("1,\t2,\t3", &[1.0, 2.0, 3.0]),
            ("1,5;2,", &[1.0, 5.0, 2.0]),
        ] {
            assert_eq!(
                (parse_line(line.as_bytes(), &mut numbers), &numbers[..]),
                (Line::Numbers, expected),
                "{line}"
            );
        }
        // Thousands separators and two marks in a number are not accepted.
        for line in ["1.234,5;2", "1,234,5;2"] {
            assert_eq!(parse_line(line.as_bytes(), &mut numbers), Line::Text, "{line}");
        }
    }

    #[test]
    fn lines_may_cross_buffers_and_be_longer_than_one() {
        let text = "1 2\n".repeat(LONG / 2);
        assert_eq!(table(&text).rows.count, LONG as u64 / 2);
        let wide = table(&format!("{}\n", "1 ".repeat(LONG)));
        assert_eq!((wide.rows.count, wide.rows.columns), (1, LONG as u64));
    }

    #[test]
    fn a_missing_number_is_not_a_narrower_row() {
        assert_eq!(
            scan(&Source::memory("1,2,3\n1,,3\n"), &Limits::default()).unwrap_err().code(),
            "columns-003"
        );
        assert_eq!(table("1, 2, 3,\n4, 5, 6,\n").rows.columns, 3);
    }

    #[test]
    fn a_long_line_is_charged_to_the_memory_budget() {
        let limits = Limits::default().with_memory(8 << 20);
        let error = scan(&Source::memory("1 ".repeat(4 << 20)), &limits).unwrap_err();
        assert_eq!(error.kind(), spile_core::error::ErrorKind::Limit);
    }
}
