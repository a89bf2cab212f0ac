//! `cargo xtask doors`: dependency and source rules (`docs/ARCHITECTURE.md`).
//!
//! | file | content |
//! |---|---|
//! | `graph` | which crate of the workspace may depend on which |
//! | `code` | rules for single source files |
//! | `signatures` | functions with a parameter `&Limits` |
//! | `codes` | codes of errors and findings |
//! | `text` | Rust source as tokens |

mod code;
mod codes;
mod graph;
mod signatures;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::{cargo, output, root};
use graph::Crate;
use text::Token;

/// A text file: its path relative to the workspace, separated by `/`, and its content.
struct File {
    path: String,
    text: String,
    /// The tokens of Rust source.
    tokens: Vec<Token>,
}

impl File {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let mut file = Self { path: path.into(), text: text.into(), tokens: Vec::new() };
        if file.has_extension(&["rs"]) {
            file.tokens = text::tokens(&file.text);
        }
        file
    }

    /// The tokens that are not only compiled for tests.
    fn code(&self) -> Vec<&Token> {
        self.tokens.iter().filter(|token| !token.in_test).collect()
    }

    fn has_extension(&self, extensions: &[&str]) -> bool {
        let own = Path::new(&self.path).extension();
        own.is_some_and(|own| extensions.iter().any(|extension| own == *extension))
    }
}

/// Folders without hand-written files.
const SKIPPED: [&str; 5] = ["target", ".git", "node_modules", "corpus", "artifacts"];

/// Prints every violation and returns whether there is none.
pub(crate) fn run() -> Result<bool> {
    let metadata = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let crates = Crate::from_metadata(&metadata, &root())?;
    let mut files = Vec::new();
    collect(&root(), &root(), &mut files)?;
    let mut violations = graph::check(&crates);
    violations.extend(code::forbids_unsafe(&crates, &files));
    violations.extend(files.iter().flat_map(code::check));
    for ceiling in [signatures::limits(&files), codes::unlisted(&files), codes::ambiguous(&files)] {
        violations.extend(ceiling.check());
    }
    for message in &violations {
        println!("{message}");
    }
    for message in files.iter().filter_map(code::too_long) {
        println!("warning: {message}");
    }
    println!("{} crates, {} files, {} violations", crates.len(), files.len(), violations.len());
    Ok(violations.is_empty())
}

/// Violations of a rule that old code does not satisfy yet: their number only goes down.
struct Ceiling {
    what: &'static str,
    /// The file that contains the number.
    file: &'static str,
    most: usize,
    violations: Vec<String>,
}

impl Ceiling {
    /// Prints the number; returns all violations if they are more than before.
    fn check(self) -> Vec<String> {
        let Self { what, file, most, mut violations } = self;
        let count = violations.len();
        println!("{count} {what}");
        if count > most {
            violations.push(format!("{file}: {what}: expected at most {most}, found {count}"));
            return violations;
        }
        if count < most {
            println!("warning: {file}: lower the number from {most} to {count}");
        }
        Vec::new()
    }
}

/// Reads all text files below `folder`.
fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = fs::read_dir(folder).map_err(fail)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_symlink() || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path =
                path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            files.push(File::new(path, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_violations_than_before_are_reported() {
        let ceiling = |count: usize| Ceiling {
            what: "uses",
            file: "a.rs",
            most: 2,
            violations: vec!["b.rs".into(); count],
        };
        assert_eq!(ceiling(2).check(), [""; 0]);
        assert_eq!(ceiling(1).check(), [""; 0]);
        assert_eq!(ceiling(3).check().len(), 4);
        assert!(ceiling(3).check()[3].contains("expected at most 2, found 3"));
    }
}
