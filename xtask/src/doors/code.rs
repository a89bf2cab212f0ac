//! Rules for single source files.

use super::File;
use super::graph::Crate;
use super::text::{bare, has_word, strings, without_tests};

/// Files with more lines are reported.
const LONG: usize = 600;

/// Libraries: their messages must be valid for every front end.
const LIBRARIES: [&str; 5] =
    ["crates/core/src/", "crates/ops/src/", "crates/interchange/src/", "formats/", "bridges/"];

type Rule = fn(&File) -> Vec<String>;

pub(super) const RULES: [Rule; 5] = [
    unsafe_only_in_source,
    only_the_cli_prints,
    no_machine_paths,
    no_command_line_text,
    no_temporary_files,
];

/// Every crate forbids unsafe code, except core, mpi and the bindings.
pub(super) fn forbids_unsafe(crates: &[Crate], files: &[File]) -> Vec<String> {
    let free = |c: &&Crate| {
        !matches!(c.folder.as_str(), "crates/core" | "crates/mpi")
            && !c.folder.starts_with("bindings/")
    };
    let forbidden = |root: &&String| {
        files.iter().any(|f| f.path == **root && bare(&f.text).contains("#![forbid(unsafe_code)]"))
    };
    let roots = crates.iter().filter(free).flat_map(|c| &c.roots);
    let message =
        |root| format!("{root}: add `#![forbid(unsafe_code)]` below the crate's documentation");
    roots.filter(|root| !forbidden(root)).map(message).collect()
}

/// In core, unsafe code is only allowed in `source.rs`. The compiler checks the other crates.
fn unsafe_only_in_source(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/core/src/") || file.path == "crates/core/src/source.rs" {
        return Vec::new();
    }
    let hint = "in core only source.rs may contain unsafe code; add a safe function there";
    lines_with(file, &bare(&file.text), "unsafe", hint)
}

/// Only the command line prints and exits.
fn only_the_cli_prints(file: &File) -> Vec<String> {
    let library = ["crates/", "formats/", "bridges/", "bindings/"]
        .iter()
        .any(|folder| file.path.starts_with(folder))
        && !file.path.starts_with("crates/cli/");
    let other = ["/tests/", "/examples/", "/benches/", "/build.rs"];
    if !library || other.iter().any(|part| file.path.contains(part)) {
        return Vec::new();
    }
    let code = without_tests(&bare(&file.text));
    let hint = "only the command line prints and exits; return a value or an error";
    ["println!", "eprintln!", "print!", "eprint!", "dbg!", "process::exit"]
        .iter()
        .flat_map(|call| lines_with(file, &code, call, hint))
        .collect()
}

/// No command-line options or `spile` commands in the messages of libraries: Python, C and the server show
/// them too.
fn no_command_line_text(file: &File) -> Vec<String> {
    let library = LIBRARIES.iter().any(|folder| file.path.starts_with(folder));
    if !library || !file.path.contains("/src/") || !file.has_extension(&["rs"]) {
        return Vec::new();
    }
    let is_option = |text: &str| {
        let after = |at: usize| text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase());
        let before = |at: usize| text[..at].ends_with([' ', '\n', '`', '"']);
        text.match_indices("--").any(|(at, _)| after(at) && before(at))
    };
    let found = strings(&file.text).into_iter();
    let found = found.filter(|(_, text)| text.contains("`spile ") || is_option(text));
    let hint = "command-line text in a library; return a hint that each front end renders";
    found.map(|(line, _)| format!("{}:{line}: {hint}", file.path)).collect()
}

/// Operations plan without temporary files.
fn no_temporary_files(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/ops/src/") {
        return Vec::new();
    }
    let hint = "operations plan in memory; create files only through `Sink`";
    let code = without_tests(&bare(&file.text));
    let mut found: Vec<String> = ["tempfile", "tempdir", "temp_dir", "tempdir_in"]
        .iter()
        .flat_map(|word| lines_with(file, &code, word, hint))
        .collect();
    let memory = strings(&file.text).into_iter().filter(|(_, text)| text.contains("/dev/shm"));
    found.extend(memory.map(|(line, _)| format!("{}:{line}: /dev/shm; {hint}", file.path)));
    found
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

fn lines_with(file: &File, code: &str, word: &str, hint: &str) -> Vec<String> {
    if !file.has_extension(&["rs"]) {
        return Vec::new();
    }
    let lines = code.lines().enumerate().filter(|(_, line)| has_word(line, word));
    lines.map(|(k, _)| format!("{}:{}: {word}; {hint}", file.path, k + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
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
        let violations = unsafe_only_in_source(&file("crates/core/src/read.rs", text));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].starts_with("crates/core/src/read.rs:3:"), "{violations:?}");
        assert_eq!(unsafe_only_in_source(&file("crates/core/src/source.rs", text)), [""; 0]);
    }

    #[test]
    fn printing_is_reported_in_libraries_only() {
        let text = "/// println!(1)\nfn f() {\n    std::process::exit(1);\n    print!(\"dbg!\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn g() { println!(\"}\"); }\n}\n";
        let violations = only_the_cli_prints(&file("formats/taf/src/read.rs", text));
        assert_eq!(violations.len(), 2, "{violations:?}");
        assert!(violations.iter().any(|m| m.contains(":4: print!;")), "{violations:?}");
        for path in ["crates/cli/src/main.rs", "xtask/src/main.rs", "crates/plot/examples/a.rs"] {
            assert_eq!(only_the_cli_prints(&file(path, text)), [""; 0]);
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
            let lines: Vec<String> = no_command_line_text(&file(path, text));
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[0].starts_with(&format!("{path}:2:")), "{lines:?}");
        }
        for path in ["crates/cli/src/a.rs", "formats/taf/tests/a.rs", "formats/taf/FORMAT.md"] {
            assert_eq!(no_command_line_text(&file(path, text)), [""; 0]);
        }
    }

    #[test]
    fn temporary_files_are_reported_in_operations() {
        let text = "fn f() {\n    tempfile::tempdir_in(\"/dev/shm\");\n}\n";
        assert_eq!(no_temporary_files(&file("crates/ops/src/a.rs", text)).len(), 3);
        assert_eq!(no_temporary_files(&file("crates/core/src/a.rs", text)), [""; 0]);
    }
}
