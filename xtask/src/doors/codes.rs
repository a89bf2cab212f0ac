//! Codes of errors and findings, such as `sdf-010`: `FORMAT.md` of a format lists exactly the codes of its source, and
//! a code stands for one problem.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ceiling, File};

/// Codes that are not in the source and in `FORMAT.md`. The number only goes down.
const MOST_UNLISTED: usize = 0;

/// Codes of one problem that several functions notice, each of which says what it expected.
const SEVERAL_MESSAGES: [(&str, &str); 9] = [
    ("arrow-005", "buffers of a column that do not fit its rows"),
    ("gsd-005", "location or size of the index"),
    ("gsd-015", "an entry of the index that is empty"),
    ("gsd-036", "names that do not identify a chunk"),
    ("iotk-046", "a section of UPF v1 that cannot be read, with the reason"),
    ("parquet-005", "a damaged page, noticed by the decoder of its encoding"),
    ("scda-006", "a number, a product or a sum beyond the largest file"),
    ("vtk-002", "the end of the file, inside of any structure"),
    ("vtk-007", "values that cannot be decoded, in any encoding"),
];

/// Codes in the source that `FORMAT.md` does not list, and the other way round.
pub(super) fn unlisted(files: &[File]) -> Ceiling {
    let mut violations = Vec::new();
    for page in files {
        let Some(folder) = page.path.strip_suffix("/FORMAT.md") else { continue };
        let listed: BTreeSet<String> = page.text.lines().flat_map(listed).collect();
        let sources = files.iter().filter(|file| is_source(file, folder));
        let found = sources.flat_map(File::code);
        let used: BTreeSet<String> = found.filter_map(|token| code(&token.text)).collect();
        for code in used.difference(&listed) {
            violations.push(format!("{}: {code} is not listed", page.path));
        }
        for code in listed.difference(&used) {
            violations.push(format!("{}: {code} is not a code of {folder}/src", page.path));
        }
    }
    let what = "codes that are not both in the source and in FORMAT.md";
    Ceiling { what, file: file!(), most: MOST_UNLISTED, violations }
}

/// Messages that share their code with another message of the crate, and exceptions that are not needed. The message
/// is the literal after the code.
pub(super) fn ambiguous(files: &[File]) -> Ceiling {
    let mut messages: BTreeMap<(&str, String), BTreeMap<&str, String>> = BTreeMap::new();
    for file in files {
        let Some((folder, _)) = file.path.split_once("/src/") else { continue };
        if folder == "xtask" {
            continue;
        }
        if !is_source(file, folder) {
            continue;
        }
        let tokens = file.code();
        for (k, token) in tokens.iter().enumerate() {
            let Some(code) = code(&token.text) else { continue };
            // The literal itself, or the first argument of `format!`.
            let next: Vec<&str> = tokens[k + 1..].iter().map(|t| t.text.as_str()).take(5).collect();
            let message = match next[..] {
                [",", "format", "!", "(", _] => tokens[k + 5],
                [",", ..] => tokens[k + 2],
                _ => continue,
            };
            if message.is_string() && self::code(&message.text).is_none() {
                let place = format!("{}:{}: {code}: {}", file.path, message.line, message.text);
                let all = messages.entry((folder, code)).or_default();
                all.entry(&message.text).or_insert(place);
            }
        }
    }
    let mut violations = Vec::new();
    for ((_, code), all) in messages {
        let excepted = SEVERAL_MESSAGES.iter().any(|(exception, _)| *exception == code);
        match (all.len() > 1, excepted) {
            (true, false) => violations.extend(all.into_values().skip(1)),
            (false, true) => violations.push(format!("{}: {code} has one message", file!())),
            _ => {}
        }
    }
    let what = "messages that share their code with another, or exceptions that are not needed";
    Ceiling { what, file: file!(), most: 0, violations }
}

fn is_source(file: &File, folder: &str) -> bool {
    let inside = file.path.strip_prefix(folder).is_some_and(|path| path.starts_with("/src/"));
    inside && file.has_extension(&["rs"]) && !file.path.ends_with("tests.rs")
}

/// The code that a string literal consists of.
fn code(literal: &str) -> Option<String> {
    let text = literal.strip_prefix('"')?.strip_suffix('"')?;
    let (name, number) = text.split_once('-')?;
    let digits = number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit());
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (digits && is_name).then(|| text.into())
}

/// The codes in the first cell of a row: `gsd-007, 008` or `gsd-043 to 047`.
fn listed(line: &str) -> Vec<String> {
    let cell = line.strip_prefix("| ").and_then(|row| row.split(" |").next()).unwrap_or_default();
    let mut codes = Vec::new();
    let (mut name, mut last, mut range) = ("", 0, false);
    for word in cell.split([' ', ',', '`']).filter(|word| !word.is_empty()) {
        let number = word.split_once('-').map_or(word, |(prefix, number)| {
            name = prefix;
            number
        });
        match number.parse::<u32>() {
            Ok(number) if number.to_string().len() <= 3 && !name.is_empty() => {
                let first = if range { last + 1 } else { number };
                codes.extend((first..=number).map(|number| format!("{name}-{number:03}")));
                last = number;
            }
            _ if word == "to" => {}
            _ => return Vec::new(),
        }
        range = word == "to";
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(source: &str, page: &str) -> [File; 2] {
        [("formats/a/src/lib.rs", source), ("formats/a/FORMAT.md", page)]
            .map(|(path, text)| File::new(path, text))
    }

    #[test]
    fn codes_are_listed_and_used() {
        let source = "f(\"a-001\", \"x\"); g(\"5e-324\"); \"a-7\"; // \"a-009\"\nh(\"a-004\");";
        let page = "| a-001 | x |\n| a-003 to 005, 007 | y |\n| other | a-008 |\n";
        let violations = unlisted(&files(source, page)).violations;
        let expected = ["a-003 is not a", "a-005 is not a", "a-007 is not a"];
        assert_eq!(violations.len(), expected.len(), "{violations:?}");
        for (violation, text) in violations.iter().zip(expected) {
            assert!(violation.contains(text), "{violations:?}");
        }
        assert!(unlisted(&files("f(\"a-002\")", "")).violations[0].contains("a-002 is not listed"));
    }

    #[test]
    fn a_code_with_two_messages_is_reported() {
        let source = "e(\"a-001\", \"one\");\ne(\"a-001\", format!(\"two {}\", 1));\ne(\"a-001\",\n  \"one\");\n\
                      e(\"a-002\", message); f(\"three\"); e(\"a-002\", \"four\");";
        let found = ambiguous(&files(source, "")).violations;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("formats/a/src/lib.rs:2: a-001"), "{found:?}");
    }
}
