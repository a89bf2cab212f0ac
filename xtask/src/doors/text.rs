//! Rust source with everything blanked that is not code. Lines keep their numbers.

/// The text without comments and without what stands in strings and character literals.
pub(super) fn bare(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let word_before = out.last().is_some_and(|b: &u8| b.is_ascii_alphanumeric() || *b == b'_');
        if let Some(end) = token_end(bytes, at, word_before) {
            out.extend(bytes[at..end].iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' }));
            at = end;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that starts at `at` ends, if one does.
fn token_end(bytes: &[u8], at: usize, word_before: bool) -> Option<usize> {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => Some(at + find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(at + block_comment(rest)),
        [b'"', ..] => Some(at + quoted(rest, b'"')),
        [b'r' | b'b' | b'c', ..] if !word_before => raw_string(rest).map(|len| at + len),
        // A lifetime has no second quote near by.
        [b'\'', b'\\', ..] => Some(at + quoted(rest, b'\'')),
        [b'\'', ..] => {
            let len = std::str::from_utf8(&rest[1..]).ok()?.chars().next()?.len_utf8();
            (rest.get(1 + len) == Some(&b'\'')).then_some(at + len + 2)
        }
        _ => None,
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Length of a comment that may hold others.
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

/// Length of `r"..."`, `br#"..."#` and so on, if that is what stands here.
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

/// Bare code without what is only compiled for tests.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = code.to_string();
    while let Some(start) = out.find("#[cfg(test)]") {
        let body = out[start..].find(['{', ';']).map(|k| start + k);
        let end = match body {
            Some(at) if out.as_bytes()[at] == b'{' => closing(&out, at),
            Some(at) => at + 1,
            None => out.len(),
        };
        let blank: String = out[start..end].chars().filter(|c| *c == '\n').collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// The place behind the brace that closes the one at `open`.
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

/// The line has `word`, and not as a part of a longer one.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let code = bare("a /* b /* c */ d */ e // f\nlet s = \"g \\\" h\"; r#\"i \" j\"#; k");
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "e", "let", "s", "=", ";", ";", "k"]);
        assert_eq!(bare("x('{', '\\'', b'}') <'a>").replace(' ', ""), "x(,,b)<'a>");
        assert_eq!(bare("xr\"a\"").trim(), "xr");
        assert_eq!(bare("\"one\ntwo\"\nthree").lines().nth(2), Some("three"));
    }

    #[test]
    fn tests_are_cut_and_lines_stay() {
        let code =
            without_tests("a\n#[cfg(test)]\nmod tests {\n  { x }\n}\nb\n#[cfg(test)]\nmod t;\nc");
        assert_eq!(code, "a\n\n\n\n\nb\n\n\nc");
        assert!(has_word("  print!(", "print!") && !has_word("eprint!(", "print!"));
    }
}
