//! What may stand in which file.

use super::File;
use super::graph::Crate;
use super::text::{bare, has_word, without_tests};

/// A file with more lines wants a second room.
const LONG: usize = 600;

type Rule = fn(&File) -> Vec<String>;

/// Every rule that looks at one file.
pub(super) const RULES: [Rule; 3] = [unsafe_only_in_source, only_the_cli_prints, no_machine_paths];

/// Door 7, first half.
pub(super) fn forbids_unsafe(crates: &[Crate], files: &[File]) -> Vec<String> {
    let free = |c: &&Crate| {
        !matches!(c.folder.as_str(), "crates/core" | "crates/mpi")
            && !c.folder.starts_with("bindings/")
    };
    let says_so = |root: &&String| {
        files.iter().any(|f| f.path == **root && bare(&f.text).contains("#![forbid(unsafe_code)]"))
    };
    let roots = crates.iter().filter(free).flat_map(|c| &c.roots);
    let message =
        |root| format!("{root}: add `#![forbid(unsafe_code)]` below the crate's description");
    roots.filter(|root| !says_so(root)).map(message).collect()
}

/// Door 7, second half: the rest of the workspace is kept by the compiler.
fn unsafe_only_in_source(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/core/src/") || file.path == "crates/core/src/source.rs" {
        return Vec::new();
    }
    let way_out = "in core only source.rs may be unsafe; give it a safe function there";
    lines_with(file, &bare(&file.text), "unsafe", way_out)
}

/// Door 6.
fn only_the_cli_prints(file: &File) -> Vec<String> {
    let library = ["crates/", "formats/", "bridges/", "bindings/"]
        .iter()
        .any(|folder| file.path.starts_with(folder))
        && !file.path.starts_with("crates/cli/");
    let aside = ["/tests/", "/examples/", "/benches/", "/build.rs"];
    if !library || aside.iter().any(|part| file.path.contains(part)) {
        return Vec::new();
    }
    let code = without_tests(&bare(&file.text));
    let way_out = "only the command line prints and exits; return a value or an error";
    ["println!", "eprintln!", "print!", "eprint!", "dbg!", "process::exit"]
        .iter()
        .flat_map(|call| lines_with(file, &code, call, way_out))
        .collect()
}

/// What is true of one machine is true of no other.
fn no_machine_paths(file: &File) -> Vec<String> {
    let mut broken = Vec::new();
    for (k, line) in file.text.lines().enumerate() {
        for home in ["work", "root", "home"] {
            let path = format!("/{home}/");
            let starts = |at: usize| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-})>".contains(c))
            };
            if line.match_indices(&path).any(|(at, _)| starts(at)) {
                broken.push(format!(
                    "{}:{}: names a folder of one machine ({path}); make it relative",
                    file.path,
                    k + 1
                ));
            }
        }
    }
    broken
}

/// Not an error: a list of six hundred lines can be the right thing.
pub(super) fn too_long(file: &File) -> Option<String> {
    let code = ["rs", "py", "c", "h", "f90", "js", "ts"];
    let lines = file.text.lines().count();
    let long = lines > LONG && file.ends_in(&code);
    long.then(|| format!("{}: {lines} lines; it may want a second room", file.path))
}

fn lines_with(file: &File, code: &str, word: &str, way_out: &str) -> Vec<String> {
    if !file.ends_in(&["rs"]) {
        return Vec::new();
    }
    let lines = code.lines().enumerate().filter(|(_, line)| has_word(line, word));
    lines.map(|(k, _)| format!("{}:{}: {word}; {way_out}", file.path, k + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_code_is_named() {
        let crates = |folder: &str| {
            let roots = vec![format!("{folder}/src/lib.rs")];
            [Crate { folder: folder.into(), roots, sees: Vec::new() }]
        };
        let silent = [file("crates/ops/src/lib.rs", "//! #![forbid(unsafe_code)]\n")];
        assert_eq!(forbids_unsafe(&crates("crates/ops"), &silent).len(), 1);
        let says = [file("crates/ops/src/lib.rs", "//! Ops.\n#![forbid(unsafe_code)]\n")];
        assert_eq!(forbids_unsafe(&crates("crates/ops"), &says), [""; 0]);
        assert_eq!(forbids_unsafe(&crates("bindings/c"), &[]), [""; 0]);
    }

    #[test]
    fn unsafe_code_in_core_is_found_outside_source() {
        let text = "// unsafe\nfn f() {\n    unsafe { g() }\n}\n#[allow(unsafe_code)]\n";
        let broken = unsafe_only_in_source(&file("crates/core/src/read.rs", text));
        assert_eq!(broken.len(), 1);
        assert!(broken[0].starts_with("crates/core/src/read.rs:3:"), "{broken:?}");
        assert_eq!(unsafe_only_in_source(&file("crates/core/src/source.rs", text)), [""; 0]);
    }

    #[test]
    fn printing_is_found_in_the_library_and_nowhere_else() {
        let text = "/// println!(1)\nfn f() {\n    std::process::exit(1);\n    print!(\"dbg!\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn g() { println!(\"}\"); }\n}\n";
        let broken = only_the_cli_prints(&file("formats/taf/src/read.rs", text));
        assert_eq!(broken.len(), 2, "{broken:?}");
        assert!(broken.iter().any(|m| m.contains(":4: print!;")), "{broken:?}");
        for path in ["crates/cli/src/main.rs", "xtask/src/main.rs", "crates/plot/examples/a.rs"] {
            assert_eq!(only_the_cli_prints(&file(path, text)), [""; 0]);
        }
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        let line = |dir: &str| format!("see /{dir}/x/y");
        assert_eq!(no_machine_paths(&file("docs/a.md", &line("root"))).len(), 1);
        assert_eq!(no_machine_paths(&file("docs/a.md", &line("usr"))), [""; 0]);
        let address = line("home").replace("see ", "https://example.org");
        assert_eq!(no_machine_paths(&file("docs/a.md", &address)), [""; 0]);
    }

    #[test]
    fn long_files_are_only_mentioned() {
        assert!(too_long(&file("a.rs", &"x\n".repeat(LONG + 1))).is_some());
        assert!(too_long(&file("a.rs", &"x\n".repeat(LONG))).is_none());
        assert!(too_long(&file("a.json", &"x\n".repeat(LONG + 1))).is_none());
    }
}
