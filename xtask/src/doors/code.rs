//! Rules for single source files.

use super::File;
use super::graph::Crate;
use super::text::starts_with;

/// Files with more lines are reported.
const LONG: usize = 600;

/// Libraries: their messages must be valid for every front end.
const LIBRARIES: [&str; 6] = [
    "crates/core/src/",
    "crates/codecs/src/",
    "crates/ops/src/",
    "crates/interchange/src/",
    "formats/",
    "bridges/",
];

/// Words that must not occur in the code of some files.
struct WordRule {
    /// Beginnings of the paths of these files.
    inside: &'static [&'static str],
    /// Parts of the paths of exceptions.
    except: &'static [&'static str],
    in_tests: bool,
    /// Sequences of tokens.
    words: &'static [&'static [&'static str]],
    hint: &'static str,
}

const WORD_RULES: [WordRule; 3] = [
    // The compiler checks the other crates.
    WordRule {
        inside: &["crates/core/src/"],
        except: &["crates/core/src/source.rs"],
        in_tests: true,
        words: &[&["unsafe"]],
        hint: "in core only source.rs may contain unsafe code; add a safe function there",
    },
    WordRule {
        inside: &["crates/", "formats/", "bridges/", "bindings/"],
        except: &["crates/cli/", "/tests/", "/examples/", "/benches/", "/build.rs"],
        in_tests: false,
        words: &[
            &["println", "!"],
            &["eprintln", "!"],
            &["print", "!"],
            &["eprint", "!"],
            &["dbg", "!"],
            &["process", ":", ":", "exit"],
        ],
        hint: "only the command line prints and exits; return a value or an error",
    },
    WordRule {
        inside: &["crates/ops/src/"],
        except: &[],
        in_tests: false,
        words: &[&["tempfile"], &["tempdir"], &["temp_dir"], &["tempdir_in"]],
        hint: "operations plan in memory; create files only through `Sink`",
    },
];

/// Violations in a file.
pub(super) fn check(file: &File) -> Vec<String> {
    let mut violations = no_machine_paths(file);
    violations.extend(forbidden_words(file));
    violations.extend(forbidden_strings(file));
    violations
}

fn forbidden_words(file: &File) -> Vec<String> {
    let mut violations = Vec::new();
    let applies = |rule: &&WordRule| {
        rule.inside.iter().any(|folder| file.path.starts_with(folder))
            && !rule.except.iter().any(|part| file.path.contains(part))
    };
    for WordRule { in_tests, words, hint, .. } in WORD_RULES.iter().filter(applies) {
        for (k, token) in file.tokens.iter().enumerate().filter(|(_, t)| *in_tests || !t.in_test) {
            let found = words.iter().filter(|word| starts_with(&file.tokens[k..], word));
            violations.extend(found.map(|word| {
                let (path, line, word) = (&file.path, token.line, word.concat());
                format!("{path}:{line}: {word}; {hint}")
            }));
        }
    }
    violations
}

/// Every crate forbids unsafe code, except core, mpi and the bindings.
pub(super) fn forbids_unsafe(crates: &[Crate], files: &[File]) -> Vec<String> {
    let free = |c: &&Crate| {
        !matches!(c.folder.as_str(), "crates/core" | "crates/mpi")
            && !c.folder.starts_with("bindings/")
    };
    let attribute = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    let forbidden = |root: &&String| {
        let file = files.iter().find(|file| file.path == **root);
        file.is_some_and(|f| (0..f.tokens.len()).any(|k| starts_with(&f.tokens[k..], &attribute)))
    };
    let roots = crates.iter().filter(free).flat_map(|c| &c.roots);
    let message =
        |root| format!("{root}: add `#![forbid(unsafe_code)]` below the crate's documentation");
    roots.filter(|root| !forbidden(root)).map(message).collect()
}

/// No command-line options or `spile` commands in the messages of libraries: Python, C and the server show
/// them too. No temporary files of operations in memory.
fn forbidden_strings(file: &File) -> Vec<String> {
    let is_option = |text: &str| {
        let after = |at: usize| text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase());
        let before = |at: usize| text[..at].ends_with([' ', '\n', '`', '"']);
        text.match_indices("--").any(|(at, _)| after(at) && before(at))
    };
    let library =
        LIBRARIES.iter().any(|folder| file.path.starts_with(folder)) && file.path.contains("/src/");
    let hint = |text: &str| {
        if library && (text.contains("`spile ") || is_option(text)) {
            Some("command-line text in a library; return a hint that each front end renders")
        } else if file.path.starts_with("crates/ops/src/") && text.contains("/dev/shm") {
            Some("/dev/shm; operations plan in memory")
        } else {
            None
        }
    };
    let strings = file.code().into_iter().filter(|token| token.is_string());
    strings
        .filter_map(|token| Some(format!("{}:{}: {}", file.path, token.line, hint(&token.text)?)))
        .collect()
}

/// No absolute paths of one machine.
fn no_machine_paths(file: &File) -> Vec<String> {
    let mut violations = Vec::new();
    for (k, line) in file.text.lines().enumerate() {
        for home in ["work", "root", "home"] {
            let path = format!("/{home}/");
            let starts = |at: usize| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-})>".contains(c))
            };
            if line.match_indices(&path).any(|(at, _)| starts(at)) {
                violations.push(format!(
                    "{}:{}: absolute path of one machine ({path}); make it relative",
                    file.path,
                    k + 1
                ));
            }
        }
    }
    violations
}

/// A warning, because a long table can be right.
pub(super) fn too_long(file: &File) -> Option<String> {
    let code = ["rs", "py", "c", "h", "f90", "js", "ts"];
    let lines = file.text.lines().count();
    let long = lines > LONG && file.has_extension(&code);
    long.then(|| format!("{}: {lines} lines; consider splitting it", file.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File::new(path, text)
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_code_is_reported() {
        let crates = |folder: &str| {
            let roots = vec![format!("{folder}/src/lib.rs")];
            [Crate { folder: folder.into(), roots, dependencies: Vec::new() }]
        };
        let allows = [file("crates/ops/src/lib.rs", "//! #![forbid(unsafe_code)]\n")];
        assert_eq!(forbids_unsafe(&crates("crates/ops"), &allows).len(), 1);
        let forbids = [file("crates/ops/src/lib.rs", "//! Ops.\n#![forbid(unsafe_code)]\n")];
        assert_eq!(forbids_unsafe(&crates("crates/ops"), &forbids), [""; 0]);
        assert_eq!(forbids_unsafe(&crates("bindings/c"), &[]), [""; 0]);
    }

    #[test]
    fn unsafe_code_in_core_is_reported_outside_source() {
        let text = "// unsafe\nfn f() {\n    unsafe { g() }\n}\n#[allow(unsafe_code)]\n";
        let violations = forbidden_words(&file("crates/core/src/read.rs", text));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].starts_with("crates/core/src/read.rs:3:"), "{violations:?}");
        assert_eq!(forbidden_words(&file("crates/core/src/source.rs", text)), [""; 0]);
    }

    #[test]
    fn printing_is_reported_in_libraries_only() {
        let text = "/// println!(1)\nfn f() {\n    std::process::exit(1);\n    print!(\"dbg!\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn g() { println!(\"}\"); }\n}\n";
        let violations = check(&file("formats/taf/src/read.rs", text));
        assert_eq!(violations.len(), 2, "{violations:?}");
        assert!(violations.iter().any(|m| m.contains(":4: print!;")), "{violations:?}");
        for path in ["crates/cli/src/main.rs", "xtask/src/main.rs", "crates/plot/examples/a.rs"] {
            assert_eq!(check(&file(path, text)), [""; 0]);
        }
    }

    #[test]
    fn machine_paths_are_reported() {
        let line = |dir: &str| format!("see /{dir}/x/y");
        assert_eq!(no_machine_paths(&file("docs/a.md", &line("root"))).len(), 1);
        assert_eq!(no_machine_paths(&file("docs/a.md", &line("usr"))), [""; 0]);
        let address = line("home").replace("see ", "https://example.org");
        assert_eq!(no_machine_paths(&file("docs/a.md", &address)), [""; 0]);
    }

    #[test]
    fn long_files_are_reported() {
        assert!(too_long(&file("a.rs", &"x\n".repeat(LONG + 1))).is_some());
        assert!(too_long(&file("a.rs", &"x\n".repeat(LONG))).is_none());
        assert!(too_long(&file("a.json", &"x\n".repeat(LONG + 1))).is_none());
    }

    #[test]
    fn command_line_text_is_reported_in_libraries_only() {
        let text = "// `spile info --json`\nf(\"use --force\");\ng(\"run `spile check`\");\nh(\"a--b <!--c\");\n\
                    #[cfg(test)]\nmod tests { fn f() { \" --json\"; } }\n";
        for path in ["crates/core/src/a.rs", "bridges/npy/src/lib.rs"] {
            let lines: Vec<String> = forbidden_strings(&file(path, text));
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[0].starts_with(&format!("{path}:2:")), "{lines:?}");
        }
        for path in ["crates/cli/src/a.rs", "formats/taf/tests/a.rs", "formats/taf/FORMAT.md"] {
            assert_eq!(check(&file(path, text)), [""; 0]);
        }
    }

    #[test]
    fn temporary_files_are_reported_in_operations() {
        let text = "fn f() {\n    tempfile::tempdir_in(\"/dev/shm\");\n}\n";
        assert_eq!(check(&file("crates/ops/src/a.rs", text)).len(), 3);
        assert_eq!(check(&file("crates/core/src/a.rs", text)), [""; 0]);
    }
}
