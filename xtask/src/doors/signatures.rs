//! Limits belong to the open file: a function that works on a `Dataset`, an `Array` or a native file gets them
//! from there. Only functions that open, parse or examine bytes have a parameter `&Limits`.

use super::text::{bare, without_tests};
use super::{Ceiling, File};

/// Other functions with such a parameter. The number only goes down.
const MOST: usize = 38;

/// First words of the names of functions that may have the parameter.
const OPENING: [&str; 15] = [
    "open", "reopen", "from", "read", "parse", "new", "check", "verify", "salvage", "probe",
    "scan", "survey", "build", "refresh", "allow",
];

/// Files whose functions may have the parameter: on-disk structures, the examination of damaged files, the
/// limits themselves, and tests.
const FILES: [&str; 5] = ["wire", "check", "salvage", "limits", "testkit"];

/// The functions of libraries and front ends with a parameter `&Limits` that should get them from an open file.
pub(super) fn limits(files: &[File]) -> Ceiling {
    let violations = files.iter().flat_map(misplaced).collect();
    let what = "functions that have a parameter `&Limits` and do not open a file";
    Ceiling { what, file: file!(), most: MOST, violations }
}

fn misplaced(file: &File) -> Vec<String> {
    let inside = ["crates/", "formats/", "bridges/", "bindings/"];
    let own =
        inside.iter().any(|folder| file.path.starts_with(folder)) && file.path.contains("/src/");
    let mut parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
    if !own
        || !file.has_extension(&["rs"])
        || parts.any(|part| FILES.contains(&part) || part.ends_with("tests"))
    {
        return Vec::new();
    }
    let code = without_tests(&bare(&file.text));
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let signature = signature(&code[at..]);
        let name = signature[3..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
        let name = name.unwrap_or_default();
        let first = name.split('_').next().unwrap_or_default();
        if !OPENING.contains(&first) && has_limits(signature) {
            let line = code[..at].matches('\n').count() + 1;
            let hint = "take the limits from the open file";
            found.push(format!("{}:{line}: `&Limits` in `{name}`; {hint}", file.path));
        }
    }
    found
}

/// The function header that `code` begins with.
fn signature(code: &str) -> &str {
    let mut depth = 0_i64;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' | b';' if depth <= 0 => return &code[..at],
            _ => {}
        }
    }
    code
}

/// Whether a parameter has the type `&Limits`, possibly with a lifetime.
fn has_limits(signature: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    signature.match_indices("Limits").any(|(at, found)| {
        let before = signature[..at].trim_end_matches(|c: char| word(c) || c == ':').trim_end();
        let before = before.trim_end_matches(word).trim_end_matches('\'');
        let is_parameter = before.strip_suffix('&').is_some_and(|b| !b.trim_end().ends_with("->"));
        let is_type =
            !signature[..at].ends_with(word) && !signature[at + found.len()..].starts_with(word);
        is_parameter && is_type
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn functions_that_open_files_may_have_limits() {
        let text = "fn open_level(limits: &Limits) {}\nfn new(x: [u8; 2], limits: &Limits) -> Self {\n}\n\
                    fn limits(&self) -> &Limits {}\nfn own(limits: Limits);\n";
        assert_eq!(misplaced(&file("formats/taf/src/read.rs", text)), [""; 0]);
        let test = "#[cfg(test)]\nmod tests { fn rows(limits: &Limits) {} }\n";
        assert_eq!(misplaced(&file("formats/taf/src/read.rs", test)), [""; 0]);
    }

    #[test]
    fn other_functions_are_counted() {
        let text = "\nfn crop<F: Fn(u8) -> u8>(\n    n: [u8; 4],\n    limits: &'a Limits,\n) {}\n\
                    fn rows(l: &core::Limits);\n";
        let lines = misplaced(&file("formats/taf/src/ops.rs", text));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("formats/taf/src/ops.rs:2: `&Limits` in `crop`"), "{lines:?}");
        for path in ["formats/taf/src/wire/header.rs", "formats/taf/src/wire.rs", "xtask/src/a.rs"]
        {
            assert_eq!(misplaced(&file(path, text)), [""; 0]);
        }
    }
}
