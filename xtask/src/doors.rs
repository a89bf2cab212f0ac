//! `cargo xtask doors`: dependency and source rules (`docs/ARCHITECTURE.md`).
//!
//! | file | content |
//! |---|---|
//! | `graph` | which crate of the workspace may depend on which |
//! | `code` | rules for single source files |
//! | `signatures` | functions with a parameter `&Limits` |
//! | `text` | Rust source split into code, string literals and test modules |

mod code;
mod graph;
mod signatures;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::{cargo, output, root};
use graph::Crate;

/// A text file: its path relative to the workspace, separated by `/`, and its content.
struct File {
    path: String,
    text: String,
}

impl File {
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
    let limits = signatures::limits(&files);
    let violations: Vec<String> = graph::check(&crates)
        .into_iter()
        .chain(code::forbids_unsafe(&crates, &files))
        .chain(files.iter().flat_map(|file| code::RULES.iter().flat_map(move |rule| rule(file))))
        .chain(limits.violations)
        .collect();
    for message in &violations {
        println!("{message}");
    }
    let long = files.iter().filter_map(code::too_long);
    for message in limits.warning.into_iter().chain(long) {
        println!("warning: {message}");
    }
    println!("{} functions have a parameter `&Limits` and do not open a file", limits.count);
    println!("{} crates, {} files, {} violations", crates.len(), files.len(), violations.len());
    Ok(violations.is_empty())
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
            files.push(File { path, text });
        }
    }
    Ok(())
}
