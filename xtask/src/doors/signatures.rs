//! Limits belong to the open file: a function that works on a `Dataset`, an `Array` or a native file gets them
//! from there. Only functions that open, parse or examine bytes have a parameter `&Limits`; those have a path or a
//! source, too, or the name of such a task.

use super::text::Token;
use super::{Ceiling, File};

/// Other functions with such a parameter. The number only goes down.
const MOST: usize = 12;

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
    if !own || parts.any(|part| FILES.contains(&part) || part.ends_with("tests")) {
        return Vec::new();
    }
    let tokens = file.code();
    let mut found = Vec::new();
    for (k, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let Some(name) = tokens.get(k + 1) else { continue };
        let first = name.text.split('_').next().unwrap_or_default();
        let signature = signature(&tokens[k..]);
        let opens = signature.iter().any(|token| ["Path", "Source"].contains(&token.text.as_str()));
        if !OPENING.contains(&first) && !opens && has_limits(signature) {
            let (path, line, name) = (&file.path, tokens[k].line, &name.text);
            let hint = "take the limits from the open file";
            found.push(format!("{path}:{line}: `&Limits` in `{name}`; {hint}"));
        }
    }
    found
}

/// The tokens of the function that `tokens` begins with, up to its body.
fn signature<'a, 't>(tokens: &'a [&'t Token]) -> &'a [&'t Token] {
    let mut depth = 0_i64;
    let end = tokens.iter().position(|token| {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "{" | ";" => return depth == 0,
            _ => {}
        }
        false
    });
    &tokens[..end.unwrap_or(tokens.len())]
}

/// Whether a parameter of the function with these tokens has the type `&Limits`, possibly with a lifetime
/// and the path of the type.
fn has_limits(tokens: &[&Token]) -> bool {
    let mut depth = 0_i64;
    let is_path = |text: &str| text == ":" || text.starts_with(char::is_alphabetic);
    for (k, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "Limits" if depth > 0 => {
                let mut before = tokens[..k].iter().rev().map(|token| token.text.as_str());
                let mark = before.find(|text| !is_path(text));
                if mark == Some("&") || mark == Some("'") && before.next() == Some("&") {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File::new(path, text)
    }

    #[test]
    fn functions_that_open_files_may_have_limits() {
        let text = "fn open_level(limits: &Limits) {}\nfn new(x: [u8; 2], limits: &Limits) -> Self {\n}\n\
                    fn limits(&self) -> &Limits {}\nfn own(limits: Limits);\n";
        assert_eq!(misplaced(&file("formats/taf/src/read.rs", text)), [""; 0]);
        let by_path = "fn crop(path: &Path, limits: &Limits);\nfn rows(source: &Source, limits: &Limits) {}\n";
        assert_eq!(misplaced(&file("formats/taf/src/ops.rs", by_path)), [""; 0]);
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
