//! Rust source split into code, string literals and test modules. Lines keep their numbers.

use std::ops::Range;

/// The text with comments, strings and character literals replaced by spaces. Byte positions are kept.
pub(super) fn bare(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    for token in tokens(text.as_bytes()) {
        out[token].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// String literals outside of tests, with their quotes, and the lines (from 1) that they start on.
pub(super) fn strings(text: &str) -> Vec<(usize, &str)> {
    let tests = test_modules(&bare(text));
    let quoted = |token: &Range<usize>| {
        let start = text[token.clone()].trim_start_matches(['b', 'c', 'r', '#']);
        start.starts_with('"') && !tests.iter().any(|test| test.contains(&token.start))
    };
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let found = tokens(text.as_bytes()).into_iter().filter(quoted);
    found.map(|token| (line(token.start), &text[token])).collect()
}

/// Comments and literals.
fn tokens(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut at, mut in_word) = (0, false);
    while at < bytes.len() {
        if let Some(end) = token_end(bytes, at, in_word) {
            found.push(at..end);
            (at, in_word) = (end, false);
        } else {
            in_word = bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_';
            at += 1;
        }
    }
    found
}

/// The end of the comment or literal that starts at `at`, if there is one.
fn token_end(bytes: &[u8], at: usize, in_word: bool) -> Option<usize> {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => Some(at + find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(at + block_comment(rest)),
        [b'"', ..] => Some(at + quoted(rest, b'"')),
        [b'r' | b'b' | b'c', ..] if !in_word => raw_string(rest).map(|len| at + len),
        // A lifetime has no closing quote.
        [b'\'', b'\\', ..] => Some(at + quoted(rest, b'\'')),
        [b'\'', ..] => {
            let len = std::str::from_utf8(&rest[1..]).ok()?.chars().next()?.len_utf8();
            (rest.get(1 + len) == Some(&b'\'')).then_some(at + len + 2)
        }
        _ => None,
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// Length of a block comment, which may be nested.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length of a literal with escapes.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length of the raw string (`r"..."`, `br#"..."#`) that `bytes` starts with, if any.
fn raw_string(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.iter().position(|b| !matches!(b, b'b' | b'c' | b'r'))?;
    if prefix > 2 || bytes[prefix - 1] != b'r' {
        return None;
    }
    let hashes = bytes[prefix..].iter().position(|b| *b != b'#')?;
    let start = prefix + hashes;
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let len = find(&bytes[start + 1..], &close)?;
    Some(start + 1 + len + close.len())
}

/// Bare code with test modules replaced by spaces.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for test in test_modules(code) {
        out[test].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The items of bare code that are only compiled for tests.
fn test_modules(code: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    while let Some(start) = code[found.last().map_or(0, |r| r.end)..].find("#[cfg(test)]") {
        let start = start + found.last().map_or(0, |r| r.end);
        let body = code[start..].find(['{', ';']).map(|k| start + k);
        let end = match body {
            Some(at) if code.as_bytes()[at] == b'{' => closing(code, at),
            Some(at) => at + 1,
            None => code.len(),
        };
        found.push(start..end);
    }
    found
}

/// The position after the brace that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_i64;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Whether the line contains `word`, not as part of a longer identifier.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_keeps_only_code() {
        let code = bare("a /* b /* c */ d */ e // f\nlet s = \"g \\\" h\"; r#\"i \" j\"#; k");
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "e", "let", "s", "=", ";", ";", "k"]);
        assert_eq!(bare("x('{', '\\'', b'}') <'a>").replace(' ', ""), "x(,,b)<'a>");
        assert_eq!(bare("xr\"a\"").trim(), "xr");
        assert_eq!(bare("\"one\ntwo\"\nthree").lines().nth(2), Some("three"));
    }

    #[test]
    fn tests_are_removed_and_line_numbers_kept() {
        let code =
            without_tests("a\n#[cfg(test)]\nmod tests {\n  { x }\n}\nb\n#[cfg(test)]\nmod t;\nc");
        assert_eq!(code.replace(' ', ""), "a\n\n\n\n\nb\n\n\nc");
        assert!(has_word("  print!(", "print!") && !has_word("eprint!(", "print!"));
    }

    #[test]
    fn string_literals_are_found_outside_of_tests_and_comments() {
        let text =
            "// \"no\"\nlet a = \"one\";\nf(r#\"two\"#, '\"');\n#[cfg(test)]\nmod t { \"no\" }\n";
        assert_eq!(strings(text), [(2, "\"one\""), (3, "r#\"two\"#")]);
    }
}
