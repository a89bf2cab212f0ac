//! Recognition of tables from their first lines: separator, comments, names and units of the columns.

use std::collections::{HashMap, HashSet};

use spile_core::format::Score;
use spile_core::text_records::is_unit;

use crate::heading::Heading;
use crate::value::{is_missing, is_number};
use crate::wire::{BLANKS, Dialect, unquoted};

/// Records that are examined.
const RECORDS: usize = 40;

/// Largest number of records with names.
const MAX_LEVELS: usize = 5;

/// Separators in order of preference.
const SEPARATORS: [u8; 5] = [b',', b';', b'\t', b'|', BLANKS];

/// Separators of tables below a title.
const TITLED: [u8; 3] = [b',', b';', b'\t'];

/// What the first lines tell.
#[derive(Debug)]
pub(crate) struct Sniffed {
    pub(crate) dialect: Dialect,
    /// One for each column that is read.
    pub(crate) headings: Vec<Heading>,
    /// The lines above the names that are no comments.
    pub(crate) title: String,
    /// First byte of the rows.
    pub(crate) rows: u64,
    /// Fields of a row, including an empty one after a separator at its end.
    pub(crate) width: usize,
    /// How sure the recognition is; 0 for text that may be anything.
    pub(crate) score: Score,
}

/// Recognises a table by its beginning; `complete` if that is the entire file. `None` if it is not text or has
/// no first line.
pub(crate) fn sniff<'a>(text: &'a [u8], complete: bool) -> Option<Sniffed> {
    let binary = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c);
    if text.iter().any(binary) {
        return None;
    }
    let mut preamble = Preamble::new(text);
    let body = &text[preamble.len..];
    let sample = |separator| Sample::new(body, complete, preamble.dialect(separator));
    let best = if let Some(separator) = preamble.separator {
        sample(separator)
    } else {
        let better = |a: Sample<'a>, b: Sample<'a>| if b.rank() > a.rank() { b } else { a };
        SEPARATORS.map(sample).into_iter().reduce(better)?
    };
    if !best.has_numbers() {
        let titled = |separator| sample(separator).below_title().map(|found| (separator, found));
        if let Some((separator, len)) = TITLED.into_iter().find_map(titled) {
            let title = String::from_utf8_lossy(&body[..len]).trim_end().to_string();
            preamble.len += len;
            let body = &body[len..];
            let table = Sample::new(body, complete, preamble.dialect(separator));
            return Some(Sniffed { title, ..table.recognise(&preamble, false)? });
        }
    }
    best.recognise(&preamble, text.len() == preamble.len)
}

/// Lines before the table.
struct Preamble<'a> {
    len: usize,
    /// First character of comments.
    comment: Option<u8>,
    /// The last comment, without the character.
    last: &'a [u8],
    /// Separator from a line `sep=;`, as Excel reads it.
    separator: Option<u8>,
}

impl<'a> Preamble<'a> {
    fn new(text: &'a [u8]) -> Self {
        let mut found = Self { len: 0, comment: None, last: &[], separator: None };
        if text.starts_with(b"\xef\xbb\xbf") {
            found.len = 3;
        }
        loop {
            let rest = &text[found.len..];
            let Some(end) = memchr::memchr(b'\n', rest) else { return found };
            let line = rest[..end].trim_ascii_end();
            match line {
                [] => {}
                [b's', b'e', b'p', b'=', separator] => found.separator = Some(*separator),
                [first @ (b'#' | b'%'), last @ ..] => {
                    (found.comment, found.last) = (Some(*first), last);
                }
                // A header with an empty first name begins like this, too.
                [b';', last @ ..] if !last.contains(&b';') || last.starts_with(b" ") => {
                    (found.comment, found.last) = (Some(b';'), last);
                }
                _ => return found,
            }
            found.len += end + 1;
        }
    }

    fn dialect(&self, separator: u8) -> Dialect {
        Dialect { separator, comment: self.comment.filter(|c| *c != separator) }
    }
}

/// A record, its fields, and the first byte after it.
struct Row<'a> {
    fields: Vec<&'a [u8]>,
    next: usize,
}

/// The first records, split at one separator.
struct Sample<'a> {
    dialect: Dialect,
    rows: Vec<Row<'a>>,
}

impl<'a> Sample<'a> {
    fn new(text: &'a [u8], complete: bool, dialect: Dialect) -> Self {
        let (mut rows, mut at) = (Vec::new(), 0);
        while rows.len() < RECORDS && at < text.len() {
            let rest = &text[at..];
            let (end, next) = match dialect.record_end(rest) {
                Some(found) => found,
                // The first line may be longer than the beginning of the file.
                None if complete || rows.is_empty() => (rest.len(), rest.len()),
                None => break,
            };
            at += next;
            if !dialect.is_skipped(&rest[..end]) {
                rows.push(Row { fields: dialect.fields(&rest[..end]).collect(), next: at });
            }
        }
        // The last row may have been cut by an interrupted writer.
        let ended = text[..at].last() == Some(&b'\n');
        if complete
            && !ended
            && rows.len() > 2
            && rows[rows.len() - 1].fields.len() < rows[1].fields.len()
        {
            rows.pop();
        }
        Self { dialect, rows }
    }

    /// Fields of the rows below the first, if all of them have the same number.
    fn width(&self) -> Option<usize> {
        let mut counts = self.rows.iter().skip(1).map(|row| row.fields.len());
        match counts.next() {
            Some(width) => counts.all(|count| count == width).then_some(width),
            None => self.rows.first().map(|row| row.fields.len()),
        }
    }

    /// Larger for the better of two separators.
    fn rank(&self) -> (bool, bool, bool, usize) {
        let first = self.rows.first().map_or(0, |row| row.fields.len());
        let blanks = self.dialect.separator == BLANKS;
        let fits = self.width().is_some_and(|width| {
            width > 1
                && width.abs_diff(first) <= 1
                && (!blanks || width <= first || self.has_row_names())
        });
        let like_first = self.rows.iter().filter(|row| row.fields.len() == first).count();
        if fits {
            (true, self.width() == Some(first), !blanks, self.width().unwrap_or(0))
        } else {
            (false, first > 1 && 2 * like_first > self.rows.len(), !blanks, like_first)
        }
    }

    /// Whether the first field of rows that have one more than the names may be a name of the row: one of the others is
    /// a number, or the names are quoted. Otherwise the rows are words, or a date and a time.
    fn has_row_names(&self) -> bool {
        let [names, body @ ..] = &self.rows[..] else { return false };
        let quoted = |field: &&[u8]| unquoted(field).is_some();
        names.fields.iter().all(quoted) || (1..=names.fields.len()).any(|k| is_numeric(body, k))
    }

    /// Whether this is a table with a column of numbers.
    fn has_numbers(&self) -> bool {
        let [first, body @ ..] = &self.rows[..] else { return false };
        let alike = self.rank().0 || body.iter().all(|row| row.fields.len() == first.fields.len());
        alike && (0..=first.fields.len()).any(|k| is_numeric(body, k))
    }

    /// Length of the lines above a table with names and a column of numbers: a title, and facts about a measurement.
    fn below_title(&self) -> Option<usize> {
        let same = |rows: &[Row<'_>]| {
            let width = rows[0].fields.len();
            width > 1 && rows.iter().all(|row| row.fields.len() == width)
        };
        let is_table = |k: &usize| {
            let [names, body @ ..] = &self.rows[*k..] else { return false };
            let named = |field: &&[u8]| !name(field).is_empty() && !is_number(field);
            body.len() > 1
                && same(&self.rows[*k..])
                && names.fields.iter().all(named)
                && (0..names.fields.len()).any(|k| is_numeric(body, k))
        };
        let first = (1..self.rows.len()).find(is_table)?;
        // Lines of words with as many fields are names and units.
        let width = self.rows[first].fields.len();
        let is_fact =
            |row: &Row<'_>| row.fields.len() != width || row.fields.iter().any(|f| is_number(f));
        // Rows of values above belong to the table: a line of names inside it is not the first one.
        let columns: Vec<usize> =
            (0..width).filter(|k| is_numeric(&self.rows[first + 1..], *k)).collect();
        let is_value = |row: &Row<'_>| {
            row.fields.len() == width && columns.iter().all(|k| is_number(row.fields[*k]))
        };
        let above = &self.rows[..first];
        let is_title = above.iter().any(is_fact) && !above.iter().any(is_value);
        is_title.then(|| self.rows[first - 1].next)
    }

    /// Decides which record has the names.
    fn recognise(self, preamble: &Preamble<'_>, empty: bool) -> Option<Sniffed> {
        if empty {
            return None;
        }
        let first = self.rows.first()?;
        let fits = self.rank().0;
        let width = if fits { self.width()? } else { first.fields.len() };
        let body = &self.rows[1..];
        let is_last_empty = |rows: &[Row<'_>]| {
            rows.iter().all(|row| {
                row.fields.len() == width && row.fields[width - 1].trim_ascii().is_empty()
            })
        };
        let above = self.names_above(preamble, width);
        let named = Self::is_header(first, body, above.is_none())
            || (above.is_none() && self.has_numbered_columns());
        let mut names = Vec::new();
        // Words above columns of numbers.
        let has_names_above =
            !named && above.is_some() && (0..width).all(|k| is_numeric(&self.rows, k));
        let levels = if named { self.levels() } else { 1 };
        if named {
            names = self.joined_names(levels);
        } else if let Some(above) = above {
            names = above;
        } else {
            names.extend((0..width).map(|k| format!("column_{k}")));
        }
        // A separator at the end of the rows, or of the names, or of both.
        let trailing = width > 1 && !body.is_empty() && is_last_empty(body);
        if names.len() > width || (trailing && names.len() == width) {
            if !names.last()?.is_empty() && names.len() > width {
                // The row after the names is too short; the scan reports it.
                let width = names.len();
                return Some(self.finish(preamble, &names, None, (width, 1), 0));
            }
            if names.last()?.is_empty() {
                names.pop();
            }
        } else if names.len() < width && !(trailing && names.len() + 1 == width) {
            // Names of rows, as R writes them.
            names.insert(0, String::new());
        }
        let units = if named && levels == 1 { self.units(names.len()) } else { None };
        let skipped = if named { levels + usize::from(units.is_some()) } else { 0 };
        let named = named || (has_names_above && self.dialect.separator != BLANKS);
        let score = self.score(named, if has_names_above { skipped } else { skipped.max(1) });
        Some(self.finish(preamble, &names, units.as_deref(), (width, skipped), score))
    }

    fn finish(
        &self,
        preamble: &Preamble<'_>,
        names: &[String],
        units: Option<&[String]>,
        (width, skipped): (usize, usize),
        score: Score,
    ) -> Sniffed {
        let at = skipped.checked_sub(1).map_or(0, |k| self.rows[k].next);
        let headings = headings(names, units);
        let rows = (preamble.len + at) as u64;
        Sniffed { dialect: self.dialect, headings, title: String::new(), rows, width, score }
    }

    /// Whether the first record has names: none of its fields is a number, or only all after the first are
    /// `integers` (years, channels).
    fn is_header(first: &Row<'_>, body: &[Row<'_>], integers: bool) -> bool {
        let plain = |field: &&[u8]| unquoted(field).unwrap_or_else(|| field.to_vec());
        let quoted = |row: &Row<'_>| row.fields.iter().all(|field| unquoted(field).is_some());
        if quoted(first) && !body.iter().all(quoted) {
            return true;
        }
        let fields: Vec<Vec<u8>> = first.fields.iter().map(plain).collect();
        if fields.iter().all(|field| field.trim_ascii().is_empty()) {
            return false;
        }
        if !fields.iter().any(|field| is_number(field)) {
            return true;
        }
        let digits = |field: &Vec<u8>| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
        let several = fields.len() > 2 || (fields.len() == 2 && fields[0].is_empty());
        integers && several && !is_number(&fields[0]) && fields[1..].iter().all(digits)
    }

    /// Whether the first record is 0, 1, 2 ..., as pandas names the columns of an array, above numbers that are all
    /// printed as floats.
    fn has_numbered_columns(&self) -> bool {
        let [first, body @ ..] = &self.rows[..] else { return false };
        let is_float = |field: &&[u8]| {
            is_missing(field)
                || (is_number(field)
                    && !field.iter().all(|b| b.is_ascii_digit() || b"+-".contains(b)))
        };
        first.fields.len() > 2
            && first.fields.iter().enumerate().all(|(k, field)| *field == k.to_string().as_bytes())
            && !body.is_empty()
            && body.iter().all(|row| row.fields.iter().all(is_float))
            && (0..first.fields.len()).all(|k| is_numeric(body, k))
    }

    /// Number of records with names, of which pandas writes several for columns of several levels: no field is a
    /// number, and there is a name above every column of numbers. The last one may have only the name of the index.
    /// The first one repeats a name, or has empty ones above names; other rows of words are values.
    fn levels(&self) -> usize {
        let [first, second, ..] = &self.rows[..] else { return 1 };
        let width = first.fields.len();
        let text = |row: &Row<'_>, k: usize| -> Option<String> {
            let field = row.fields.get(k)?.trim_ascii();
            (!is_missing(field)).then(|| name(field)).filter(|text| !text.is_empty())
        };
        let mut seen = HashSet::new();
        let repeated = (0..width).filter_map(|k| text(first, k)).any(|text| !seen.insert(text));
        let unnamed = (1..width).any(|k| text(first, k).is_none() && text(second, k).is_some());
        let indexed = text(first, 0).is_none() && text(second, 0).is_none();
        if width < 2
            || !(repeated || unnamed || indexed)
            || (!repeated && self.units(width).is_some())
        {
            return 1;
        }
        let fits = |levels: usize| {
            let Some((names, body)) = self.rows.split_at_checked(levels) else { return false };
            let is_value =
                |field: &&[u8]| unquoted(field).map_or(is_number(field), |f| is_number(&f));
            let alike =
                |row: &Row<'_>| row.fields.len() == width && !row.fields.iter().any(is_value);
            // A column without a name is the index.
            let is_index = |k: usize| k == 0 && text(first, 0).is_none();
            let numeric = (0..width).filter(|k| !is_index(*k) && is_numeric(body, *k));
            let numeric: Vec<usize> = numeric.collect();
            let named = |row: &Row<'_>| numeric.iter().all(|k| text(row, *k).is_some());
            let mut more = names.iter().skip(1);
            !numeric.is_empty()
                && more.clone().all(alike)
                && (more.clone().all(named)
                    || (levels > 2
                        && more.next_back().is_some_and(has_only_first)
                        && more.all(named)))
        };
        (2..=MAX_LEVELS).rev().find(|levels| fits(*levels)).unwrap_or(1)
    }

    /// The names of the columns in the first records, those of several levels as a path. An empty name of a level
    /// above another one is that of the column before.
    fn joined_names(&self, levels: usize) -> Vec<String> {
        let rows = &self.rows[..levels];
        let mut names: Vec<String> = rows[0].fields.iter().map(|field| name(field)).collect();
        let index = rows.last().filter(|row| levels > 2 && has_only_first(row));
        let rows = &rows[..levels - usize::from(index.is_some())];
        for (level, row) in rows.iter().enumerate().skip(1) {
            let mut above = String::new();
            for (k, (own, field)) in names.iter_mut().zip(&row.fields).enumerate() {
                // The names of the first column may be those of the levels.
                if level == 1 && own.is_empty() && k > 0 {
                    own.clone_from(&above);
                } else if level == 1 {
                    above.clone_from(own);
                }
                let below = name(field);
                if !below.is_empty() {
                    let slash = if own.is_empty() { "" } else { "/" };
                    *own = format!("{own}{slash}{below}");
                }
            }
        }
        if let (Some(row), Some(first)) = (index, names.first_mut()) {
            *first = name(row.fields[0]);
        }
        names
    }

    /// Names in the last comment above the rows.
    fn names_above(&self, preamble: &Preamble<'_>, width: usize) -> Option<Vec<String>> {
        let line = preamble.last.trim_ascii();
        let fields: Vec<&[u8]> = self.dialect.fields(line).collect();
        let fits = fields.len() == width && !fields.iter().any(|f| is_number(f) || f.is_empty());
        fits.then(|| fields.into_iter().map(name).collect())
    }

    /// Units in the second record, above columns of numbers.
    fn units(&self, columns: usize) -> Option<Vec<String>> {
        let [_, units, body @ ..] = &self.rows[..] else { return None };
        let mut found = Vec::new();
        for k in 0..columns {
            let unit = name(units.fields.get(k)?);
            let mut values = body.iter().filter_map(|row| row.fields.get(k));
            let numbers = values.all(|field| is_number(field) || is_missing(field));
            if !(unit.is_empty() || is_unit(&unit) && numbers) {
                return None;
            }
            let bare = unit.trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
            found.push(if ["-", "1"].contains(&bare) { String::new() } else { bare.to_string() });
        }
        (!body.is_empty() && found.iter().any(|unit| !unit.is_empty())).then_some(found)
    }

    /// Columns of numbers are a sign of a table; words with commas between them may be a text.
    fn score(&self, named: bool, skipped: usize) -> Score {
        let fits = self.rank().0;
        // A file of one column has no separators.
        let single = !fits && self.rows.iter().all(|row| row.fields.len() == 1);
        let (body, more) = (&self.rows[skipped..], skipped > 1);
        let quoted = |field: &[u8]| unquoted(field).is_some();
        if named && self.dialect.separator == b',' && self.rows[0].fields.iter().all(|f| quoted(f))
        {
            return 60;
        }
        let width = body.first().map_or(0, |row| row.fields.len());
        let numeric = (0..width).filter(|k| is_numeric(body, *k)).count();
        let one_word = |field: &[u8]| field.split(u8::is_ascii_whitespace).count() <= 2;
        match (fits, self.dialect.separator == BLANKS) {
            (true, false) if named && numeric > 0 => 25,
            (true, false) if body.is_empty() => 0,
            (true, false) => 3,
            // Blanks between numbers are the format `columns`.
            (true, true) if named && numeric > 0 && (numeric < width || more) => 22,
            _ if single
                && named
                && numeric == 1
                && self.rows[0].fields.iter().all(|f| one_word(f)) =>
            {
                21
            }
            _ => 0,
        }
    }
}

/// Whether all fields but the first are empty.
fn has_only_first(row: &Row<'_>) -> bool {
    row.fields.iter().skip(1).all(|field| name(field).is_empty())
}

/// Whether a column of some rows has numbers, and besides them only missing values.
fn is_numeric(rows: &[Row<'_>], k: usize) -> bool {
    let number = |field: &[u8]| unquoted(field).map_or(is_number(field), |f| is_number(&f));
    let mut found = false;
    for field in rows.iter().filter_map(|row| row.fields.get(k)) {
        if number(field) {
            found = true;
        } else if !is_missing(field) {
            return false;
        }
    }
    found
}

/// The text of a name. Names that are not UTF-8 are Latin-1.
fn name(field: &[u8]) -> String {
    let bare = field.trim_ascii();
    let bytes = unquoted(bare).unwrap_or_else(|| bare.to_vec());
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => e.into_bytes().iter().map(|b| char::from(*b)).collect(),
    };
    text.trim().to_string()
}

/// Headings with unique names: those without a name are `index` (the first) or `Unnamed: k`; repeated names get
/// a number, as in pandas.
fn headings(names: &[String], units: Option<&[String]>) -> Vec<Heading> {
    let mut all: Vec<Heading> = names.iter().map(|name| Heading::parse(name)).collect();
    // Brackets that distinguish columns are part of the name: `T (min)` and `T (max)`.
    let key = |own: &Heading| (own.path.clone(), own.index.clone());
    let mut counts = HashMap::new();
    for own in &all {
        *counts.entry(key(own)).or_insert(0_u32) += 1;
    }
    for (own, name) in all.iter_mut().zip(names) {
        if own.units.is_some() && counts[&key(own)] > 1 {
            *own = Heading { path: name.clone(), ..Heading::default() };
        }
    }
    let mut taken = HashSet::new();
    for (k, own) in all.iter_mut().enumerate() {
        own.path = own.path.trim_end_matches('/').to_string();
        if own.path.trim_start_matches('/').is_empty() {
            let index = k == 0 && !names.iter().any(|name| name == "index");
            own.path = if index { "index".into() } else { format!("Unnamed: {k}") };
        }
        if let Some(unit) = units.and_then(|units| units.get(k)).filter(|u| !u.is_empty()) {
            own.units = Some(unit.clone());
        }
        let base = own.path.clone();
        let mut number = 0;
        while !taken.insert(key(own)) {
            number += 1;
            own.path = format!("{base}.{number}");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> (Vec<String>, u64, usize, Score) {
        let found = sniff(text.as_bytes(), true).unwrap();
        let names = found.headings.iter().map(Heading::text).collect();
        (names, found.rows, found.width, found.score)
    }

    #[test]
    fn names_units_and_separators_are_recognised() {
        for (text, names, rows, score) in [
            ("a,b\n1,2\n", &["a", "b"][..], 4, 25),
            (",a\n0,1.5\n1,2.5\n", &["index", "a"], 3, 25),
            (",0,1\n0,1.5,2\n", &["index", "0", "1"], 5, 25),
            ("name,2019,2020\nx,1.5,2.5\n", &["name", "2019", "2020"], 15, 25),
            ("a;b\n1,5;2\n", &["a", "b"], 4, 25),
            (";a;b\n0;1;2\n", &["index", "a", "b"], 5, 25),
            ("a\tb\n1\t2\n", &["a", "b"], 4, 25),
            ("\u{feff}a,b\r\n1,2\r\n", &["a", "b"], 8, 25),
            ("# made by x\n% y\na,b\n1,2\n", &["a", "b"], 20, 25),
            ("sep=;\na;b\n1;2\n", &["a", "b"], 10, 25),
            ("t,U\ns,mV\n0,1\n1,2\n", &["t (s)", "U (mV)"], 9, 25),
            ("t [s],U (V)\n0,1\n", &["t (s)", "U (V)"], 12, 25),
            (
                "x-axis,1,2\nsecond,Volt,Volt\n0,1,2\n",
                &["x-axis (second)", "1 (Volt)", "2 (Volt)"],
                28,
                25,
            ),
            (",a,a,b\n,x,y,x\n0,1,2,3\n", &["index", "a/x", "a/y", "b/x"], 14, 25),
            ("a,a,b\nx,y,x\n0,1,2\n", &["a/x", "a/y", "b/x"], 12, 25),
            ("p,a,,b\nq,x,y,x\nid,,,\n0,1,,3\n", &["id", "a/x", "a/y", "b/x"], 21, 25),
            (",v,v\n,mean,std\ng,,\nu,1.5,0.7\nv,3,\n", &["g", "v/mean", "v/std"], 19, 25),
            ("\"a\",\"b\"\n\"1\",\"2\"\n\"3\",\"4\"\n", &["a", "b"], 8, 60),
            ("a,a\nm,s\n1,2\n", &["a/m", "a/s"], 8, 25),
            ("a,b\nx,y\nz,w\n", &["a", "b"], 4, 3),
            ("a,b\nx,n/d\ny,2\n", &["a", "b"], 4, 3),
            ("a,,b,\nx,y,x,y\n0,1,2,3\n", &["a/x", "a/y", "b/x", "b/y"], 14, 25),
            ("X,CH1,\nSecond,Volt,\n0,1,\n1,2,\n", &["X (Second)", "CH1 (Volt)"], 20, 25),
            ("a,b\n1,2,\n3,4,\n", &["a", "b"], 4, 25),
            ("a,a,T (min),T (max)\n1,2,3,4\n", &["a", "a.1", "T (min) ()", "T (max) ()"], 20, 25),
            ("\"x\" \"y\"\n\"1\" 1.5 \"a\"\n", &["index", "x", "y"], 8, 22),
            ("a,b\nfoo,1\n2,3\n", &["a", "b"], 4, 25),
            ("x\n1\n2\n", &["x"], 2, 21),
            ("# a, b\nx,1\ny,2\n", &["a", "b"], 7, 3),
            ("2020-01-01,1.5\n2020-01-02,2\n", &["column_0", "column_1"], 0, 3),
            ("a b\n1 2\n", &["a", "b"], 4, 0),
            ("a,b\n", &["a", "b"], 4, 0),
        ] {
            let found = table(text);
            assert_eq!(
                (&found.0[..], found.1, found.3),
                (&names.iter().map(ToString::to_string).collect::<Vec<_>>()[..], rows, score),
                "{text}"
            );
        }
        assert!(sniff(b"", true).is_none() && sniff(b"a\0b", true).is_none());
    }

    #[test]
    fn preambles_of_instruments_are_not_tables() {
        for text in [
            "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-3.5e-03,5e-06,\n0,2e-02,8e-03,\n1,8e-03,-1e-02,\n",
            "\"Points =\",8192,\n\"Scale =\",1E-7,\n\"Data\",\"CH 1\",\"CH 2\"\n\"Gain\",1,1\n",
        ] {
            assert!(sniff(text.as_bytes(), true).is_none_or(|found| found.score < 4), "{text}");
        }
    }

    #[test]
    fn names_below_a_title_are_names() {
        let text =
            "Model,MSO64\nLabel,\nRecord Length,2500\n\nLabels,,,\nTIME,A,B,C\n0,1,1,1\n1,1,1,1\n";
        let found = sniff(text.as_bytes(), true).unwrap();
        let names: Vec<String> = found.headings.iter().map(Heading::text).collect();
        assert_eq!(names, ["TIME", "A", "B", "C"]);
        assert_eq!(found.title.lines().next(), Some("Model,MSO64"));
        assert_eq!(&text[found.rows as usize..], "0,1,1,1\n1,1,1,1\n");
        for text in [
            "Dear Max,\nit is 5,\nor 6.\n",
            "a\nx,y\n1,2\n",
            // Two files, one after the other.
            "t,v\n0,1\n1,2\n2,3\nt,v\n0,5\n1,6\n2,7\n",
            "x,y\n1,2\nfoo,bar\n3,4\n5,6\n",
        ] {
            assert_eq!(sniff(text.as_bytes(), true).unwrap().title, "", "{text}");
        }
    }

    #[test]
    fn names_of_columns_are_told_from_values() {
        for (text, names, rows) in [
            ("# a,b\n1.5,2\n2.5,3\n", &["a", "b"][..], 6),
            ("0,1,2\n0.5,1.5,\n1.0,2e3,4.0\n", &["0", "1", "2"], 6),
            ("0,1\n0.5,1.5\n1.0,2.5\n", &["column_0", "column_1"], 0),
            ("0,1,2\n3,4,5\n6.5,7,8\n", &["column_0", "column_1", "column_2"], 0),
            ("x y\nfirst 1 1.5\nsecond 2 2.5\n", &["index", "x", "y"], 4),
        ] {
            let found = table(text);
            assert_eq!(
                (found.0, found.1),
                (names.iter().map(ToString::to_string).collect(), rows),
                "{text}"
            );
        }
        assert_eq!(table("t\n2020-01-01 00:00:00\n2020-01-02 00:00:00\n").0, ["t"]);
    }
}
