//! Rust source as tokens, without comments and documentation.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A word, a literal, or a character of punctuation. Brackets are tokens, too.
pub(super) struct Token {
    pub(super) text: String,
    /// The line, counted from 1.
    pub(super) line: usize,
    /// The token belongs to an item that is only compiled for tests.
    pub(super) in_test: bool,
}

impl Token {
    /// Whether this is a string literal.
    pub(super) fn is_string(&self) -> bool {
        self.text.trim_start_matches(['b', 'c', 'r', '#']).starts_with('"')
    }
}

/// The tokens of a file; none if it is not Rust.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    flatten(text.parse().unwrap_or_default(), false, &mut found);
    found
}

/// Whether the texts of the first tokens are those of `pattern`.
pub(super) fn starts_with(tokens: &[Token], pattern: &[&str]) -> bool {
    tokens.len() >= pattern.len()
        && tokens.iter().zip(pattern).all(|(token, text)| token.text == *text)
}

fn flatten(stream: TokenStream, in_test: bool, found: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let (mut at, mut test_end) = (0, 0);
    while at < trees.len() {
        match attribute(&trees[at..]) {
            Some((text, length)) if text.starts_with("doc") => {
                at += length;
                continue;
            }
            Some((text, _)) if text == "cfg(test)" => test_end = at + item_length(&trees[at..]),
            _ => {}
        }
        let in_test = in_test || at < test_end;
        let mut push = |text: String, line| found.push(Token { text, line, in_test });
        match &trees[at] {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.into(), group.span_open().start().line);
                flatten(group.stream(), in_test, found);
                let line = group.span_close().start().line;
                found.push(Token { text: close.into(), line, in_test });
            }
            tree => push(tree.to_string(), tree.span().start().line),
        }
        at += 1;
    }
}

/// The text of the attribute that `trees` begins with, without spaces, and the number of its tokens.
fn attribute(trees: &[TokenTree]) -> Option<(String, usize)> {
    let is =
        |at: usize, mark| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == mark);
    let at = 1 + usize::from(is(1, '!'));
    match trees.get(at) {
        Some(TokenTree::Group(group)) if is(0, '#') => {
            Some((group.stream().to_string().replace(' ', ""), at + 1))
        }
        _ => None,
    }
}

/// The number of tokens of an item: up to its body or its semicolon.
fn item_length(trees: &[TokenTree]) -> usize {
    let is_end = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    };
    trees.iter().position(is_end).map_or(trees.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_documentation_are_not_tokens() {
        let text = "//! a\n/// b\nfn f() { /* c */ g(\"d\", 'e') } // f\n";
        let words: Vec<String> = tokens(text).into_iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), "fn f ( ) { g ( \"d\" , 'e' ) }");
        assert!(starts_with(&tokens("a::b(1)"), &["a", ":", ":", "b"]));
    }

    #[test]
    fn tests_are_marked_and_lines_counted() {
        let text = "a\n#[cfg(test)]\nmod t {\n  x\n}\nb\n#[cfg(test)]\nmod u;\nc\n";
        let all = tokens(text);
        let code: Vec<_> =
            all.iter().filter(|t| !t.in_test).map(|t| (t.line, t.text.as_str())).collect();
        assert_eq!(code, [(1, "a"), (6, "b"), (9, "c")]);
        assert!(all.iter().any(|token| token.in_test && token.text == "x"));
    }

    #[test]
    fn all_kinds_of_string_literals_are_found() {
        let all = tokens("f(\"a\", r#\"b\"#, b\"c\", 'd', 5, r#fn)");
        assert_eq!(all.iter().filter(|token| token.is_string()).count(), 3);
    }
}
