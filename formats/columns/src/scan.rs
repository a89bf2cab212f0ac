//! One pass over the lines, in bounded memory.

use spile_core::error::{Error, Result};
use spile_core::format::Score;
use spile_core::records::each_record;
use spile_core::source::Source;

use crate::grid::Spacing;

/// The longest line that is looked at.
const LONGEST_LINE: usize = 64 << 20;

/// Header text that is kept.
const HEADER: usize = 4 << 10;

/// Where the rows are.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) header: String,
    pub(crate) start: u64,
    /// Behind the last whole row.
    pub(crate) end: u64,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// Whole numbers in a last row that is not whole.
    pub(crate) partial: Option<u64>,
    /// Start and step of a first column that is evenly spaced, where there are others.
    pub(crate) grid: Option<(f64, f64)>,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Blank,
    Numbers,
    Words,
}

/// Lines without their ends; `\n`, `\r\n` and `\r` end one.
pub(crate) struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.iter().position(|b| matches!(b, b'\n' | b'\r'));
        let (line, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or(&[]);
        Some(line)
    }
}

/// Parses a line into `numbers`. Between numbers stand white space, commas, semicolons or `&`;
/// `#` begins a comment. Where semicolons or tabs stand between them, a comma is the decimal mark.
pub(crate) fn parse_row(line: &[u8], numbers: &mut Vec<f64>) -> Row {
    numbers.clear();
    let line = line.split(|b| *b == b'#').next().unwrap_or(&[]);
    if line.contains(&b',') && has_decimal_commas(line) {
        let points: Vec<u8> = line.iter().map(|b| if *b == b',' { b'.' } else { *b }).collect();
        return parse_row(&points, numbers);
    }
    let mark = |b: &u8| matches!(b, b',' | b';' | b'&');
    let space = |b: &u8| matches!(b, b' ' | b'\t' | 0x0b | 0x0c);
    let mut fields = line.split(mark).peekable();
    while let Some(field) = fields.next() {
        let before = numbers.len();
        for token in field.split(space).filter(|token| !token.is_empty()) {
            match number(token) {
                Some(value) => numbers.push(value),
                None => return Row::Words,
            }
        }
        // Nothing between two marks is a missing number, not a narrower row. A mark may end a row.
        if numbers.len() == before && fields.peek().is_some() {
            return Row::Words;
        }
    }
    if numbers.is_empty() { Row::Blank } else { Row::Numbers }
}

/// Every comma stands in a number, and something else between the numbers.
fn has_decimal_commas(line: &[u8]) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_digit);
    let inside = |at: usize| digit(at.checked_sub(1)) && digit(at.checked_add(1));
    let mut commas = line.iter().enumerate().filter(|(_, b)| **b == b',');
    line.iter().any(|b| matches!(b, b';' | b'\t')) && commas.all(|(at, _)| inside(at))
}

/// A number as C, Python or Fortran print it: `1.0D+00` too, and `1.0+100`.
fn number(token: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(token).ok()?;
    text.parse().ok().or_else(|| {
        let digits =
            text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
        let (mantissa, exponent) = match text[digits..].strip_prefix(['D', 'd']) {
            Some(exponent) => (&text[..digits], exponent),
            // Three digits of exponent leave no room for its letter.
            None if digits == text.len() => {
                text.split_at(text.rfind(['+', '-']).filter(|k| *k > 0)?)
            }
            None => return None,
        };
        format!("{mantissa}e{exponent}").parse().ok()
    })
}

/// The line is a row but for its end, which could go on as a number: `1.5 2.5e`.
fn ends_in_a_number(line: &[u8]) -> bool {
    let between = |b: &u8| matches!(b, b' ' | b'\t' | b',' | b';' | b'&');
    let (before, last) = line.split_at(line.iter().rposition(between).map_or(0, |k| k + 1));
    let mut numbers = Vec::new();
    last.iter().all(|b| b.is_ascii_digit() || b"+-.eEdD".contains(b))
        && parse_row(last, &mut numbers) == Row::Words
        && parse_row(before, &mut numbers) != Row::Words
}

/// Finds the rows: the first line of nothing but numbers begins them, unless it is a single
/// number (a count, say) before wider rows.
pub(crate) fn scan(source: &Source) -> Result<Table> {
    let mut table = Table::default();
    let mut numbers = Vec::new();
    let mut odd: Option<(u64, u64)> = None;
    let mut spacing = Spacing::default();
    for_each_line(source, |at, line, next| {
        match parse_row(line, &mut numbers) {
            Row::Blank => {}
            Row::Words if table.rows == 0 => {}
            // The file ends in the middle of a number.
            Row::Words
                if odd.is_none()
                    && at + line.len() as u64 == source.len()
                    && (numbers.len() as u64) < table.columns
                    && ends_in_a_number(line) =>
            {
                table.partial = Some(numbers.len() as u64);
            }
            Row::Words => {
                let message = format!("row {} is not all numbers", table.rows + 1);
                return Err(Error::malformed("columns-003", message).at(at));
            }
            Row::Numbers => {
                let width = numbers.len() as u64;
                if let Some((offset, found)) = odd {
                    let of = table.columns;
                    let message = format!("row {} has {found} numbers, not {of}", table.rows + 1);
                    return Err(Error::malformed("columns-003", message).at(offset));
                }
                if table.rows == 0 || (table.rows == 1 && table.columns == 1 && width > 1) {
                    table.rows = 0;
                    (table.start, table.columns) = (at, width);
                    spacing = Spacing::default();
                }
                if width == table.columns {
                    spacing.add(numbers[0]);
                    table.rows += 1;
                    table.end = next;
                } else {
                    // Forgiven if nothing follows and it is short: the last row of a cut file.
                    odd = Some((at, width));
                }
            }
        }
        Ok(())
    })?;
    if table.rows == 0 {
        return Err(Error::not_this_format("columns-001", "there is no row of numbers").at(0));
    }
    if let Some((offset, found)) = odd {
        if found > table.columns {
            let message = format!("the last row has {found} numbers, not {}", table.columns);
            return Err(Error::malformed("columns-003", message).at(offset));
        }
        table.partial = Some(found);
    }
    table.grid = spacing.grid().filter(|_| table.columns > 1);
    let kept = source.read_vec(0, table.start.min(HEADER as u64))?;
    table.header = String::from_utf8_lossy(&kept).trim_end().to_string();
    Ok(table)
}

/// Calls `each` with every line, its byte and the byte after its end.
fn for_each_line(
    source: &Source,
    mut each: impl FnMut(u64, &[u8], u64) -> Result<()>,
) -> Result<()> {
    let end = |text: &[u8]| {
        text.iter().position(|b| matches!(b, b'\n' | b'\r')).map(|end| (end, end + 1))
    };
    let too_long = || {
        let message = format!("a line is longer than {LONGEST_LINE} bytes");
        Error::not_this_format("columns-002", message)
    };
    each_record(source, LONGEST_LINE, end, too_long, |line| {
        each(line.offset, line.bytes, line.next)
    })
}

/// How much a file's beginning looks like text with rows of numbers.
pub(crate) fn looks_like_rows(head: &[u8], whole: bool) -> Score {
    let binary = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    if head.is_empty() || head.iter().any(binary) {
        return 0;
    }
    let mut numbers = Vec::new();
    let mut rows = 0_u32;
    let mut lines = Lines::new(head).collect::<Vec<_>>();
    // The head of a longer file ends somewhere in a line, and so does a file that was cut.
    let ended = matches!(head.last(), Some(b'\n' | b'\r'));
    let cut = !whole || (!ended && lines.last().is_some_and(|line| ends_in_a_number(line)));
    let rest = if cut { lines.pop() } else { None };
    let mut wide = 0_u32;
    let (mut comments, mut words) = (0_u32, 0_u32);
    for line in lines {
        match parse_row(line, &mut numbers) {
            Row::Numbers => {
                rows += 1;
                wide += u32::from(numbers.len() > 1);
            }
            // Words after numbers: some other kind of text, or a damaged table.
            Row::Words if rows > 0 => return if wide > 2 { 2 } else { 0 },
            Row::Blank if line.starts_with(b"#") => comments += 1,
            Row::Words => words += 1,
            Row::Blank => {}
        }
    }
    // One row, or the comments, may fill the head and more.
    let mut open = false;
    if let Some(rest) = rest {
        let end = rest.iter().rposition(|b| !b.is_ascii_alphanumeric() && !b"+-.".contains(b));
        match parse_row(&rest[..end.unwrap_or(0)], &mut numbers) {
            Row::Numbers => open = true,
            Row::Words => words += 1,
            Row::Blank => {}
        }
    }
    match rows {
        0 if open || (!whole && comments > 0 && words == 0) => 5,
        0 => 0,
        1 => 5,
        _ => 20,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than is read at once.
    const LONG: usize = 1 << 20;

    fn table(text: &str) -> Table {
        scan(&Source::memory(text)).unwrap()
    }

    #[test]
    fn headers_end_at_the_first_row_of_numbers() {
        let t = table("# a\ntime, volts\n\n1, 2\r\n3;4\n5 &6\n");
        assert_eq!((t.rows, t.columns, t.start, t.partial), (3, 2, 17, None));
        assert_eq!(t.header, "# a\ntime, volts");
        let counted = table("2\n1 2 3\n4 5 6\n");
        assert_eq!((counted.rows, counted.columns, counted.start), (2, 3, 2));
        let single = table("7\n8\n");
        assert_eq!((single.rows, single.columns), (2, 1));
    }

    #[test]
    fn a_partial_last_row_is_left_out_and_an_odd_one_inside_is_an_error() {
        let t = table("1 2\n3 4\n5");
        assert_eq!((t.rows, t.partial, t.end), (2, Some(1), 8));
        // Cut in the middle of a number.
        for (text, whole) in [("1 2\n3 4\n5 1e", 1), ("1 2\n3 4\n-", 0), ("1,2\n3,4\n5,.", 1)] {
            let t = table(text);
            assert_eq!((t.rows, t.partial, t.end), (2, Some(whole), 8), "{text}");
        }
        let odd = ["1 2\n3\n4 5\n", "1 2\n3 4 5\n", "1 2\nx\n3 4\n"];
        let words = ["1 2\n3 4\nend", "1 2\n3 4\n5 6 7e", "1 2\n3 4\n5 1e\n", "1 2\n3 4\nx 1e"];
        for bad in odd.into_iter().chain(words) {
            assert_eq!(scan(&Source::memory(bad)).unwrap_err().code(), "columns-003", "{bad}");
        }
        assert_eq!(scan(&Source::memory("words\n")).unwrap_err().code(), "columns-001");
    }

    #[test]
    fn only_rows_of_numbers_look_like_it() {
        assert_eq!(looks_like_rows(b"a b\n1 2\n3 4\n", true), 20);
        assert_eq!(looks_like_rows(b"1 2\n3 4\n5 6", false), 20);
        assert_eq!(looks_like_rows(b"1.5 2.5 3.", false), 5);
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
    fn numbers_of_many_languages() {
        let good = [("1.5D+02", 150.0), ("-2d-1", -0.2), ("1e3", 1000.0), (".5", 0.5)];
        for (text, value) in good.into_iter().chain([("1.5+100", 1.5e100), ("-1.5-100", -1.5e-100)])
        {
            assert_eq!(number(text.as_bytes()), Some(value), "{text}");
        }
        assert!(number(b"NaN").unwrap().is_nan());
        assert_eq!(number(b"-Inf"), Some(f64::NEG_INFINITY));
        for bad in ["1,5", "abc", "d5", "0x10", "1.5DD2", "", "-", "1-", "+-1", "1+2+3"] {
            assert_eq!(number(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_comma_is_a_decimal_mark_where_something_else_separates() {
        let mut numbers = Vec::new();
        for (line, expected) in [
            ("1,5;-2,25e3;3", &[1.5, -2250.0, 3.0][..]),
            ("1,5\t2,5", &[1.5, 2.5]),
            ("1,5, 2", &[1.0, 5.0, 2.0]),
            ("1,\t2,\t3", &[1.0, 2.0, 3.0]),
            ("1,5;2,", &[1.0, 5.0, 2.0]),
        ] {
            assert_eq!(
                (parse_row(line.as_bytes(), &mut numbers), &numbers[..]),
                (Row::Numbers, expected),
                "{line}"
            );
        }
        // Neither thousands nor two marks in a number are guessed at.
        for line in ["1.234,5;2", "1,234,5;2"] {
            assert_eq!(parse_row(line.as_bytes(), &mut numbers), Row::Words, "{line}");
        }
    }

    #[test]
    fn chunks_join_and_a_line_may_be_longer_than_one() {
        let text = "1 2\n".repeat(LONG / 2);
        assert_eq!(table(&text).rows, LONG as u64 / 2);
        let wide = table(&format!("{}\n", "1 ".repeat(LONG)));
        assert_eq!((wide.rows, wide.columns), (1, LONG as u64));
    }

    #[test]
    fn a_missing_number_is_not_a_narrower_row() {
        assert_eq!(scan(&Source::memory("1,2,3\n1,,3\n")).unwrap_err().code(), "columns-003");
        assert_eq!(table("1, 2, 3,\n4, 5, 6,\n").columns, 3);
    }
}
