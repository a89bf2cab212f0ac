//! The rules of the house (`docs/ARCHITECTURE.md`), as far as a program can see them.
//!
//! | file | what is in it |
//! |---|---|
//! | `graph` | which crate of the workspace may depend on which |
//! | `code` | what may stand in which source file |
//! | `text` | source text without comments, strings and tests |

mod code;
mod graph;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::{cargo, output, root};
use graph::Crate;

/// A file, its path from the root with `/`, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    /// The file is written in one of these languages.
    fn ends_in(&self, extensions: &[&str]) -> bool {
        let own = Path::new(&self.path).extension();
        own.is_some_and(|own| extensions.iter().any(|extension| own == *extension))
    }
}

/// Folders that hold nothing written by hand.
const SKIPPED: [&str; 5] = ["target", ".git", "node_modules", "corpus", "artifacts"];

pub(crate) fn run() -> Result<bool> {
    let metadata = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let crates = Crate::from_metadata(&metadata, &root())?;
    let mut files = Vec::new();
    collect(&root(), &root(), &mut files)?;
    let broken: Vec<String> = graph::RULES
        .iter()
        .flat_map(|rule| rule(&crates))
        .chain(code::forbids_unsafe(&crates, &files))
        .chain(files.iter().flat_map(|file| code::RULES.iter().flat_map(move |rule| rule(file))))
        .collect();
    for message in &broken {
        println!("{message}");
    }
    for message in files.iter().filter_map(code::too_long) {
        println!("warning: {message}");
    }
    println!("{} crates, {} files, {} broken rules", crates.len(), files.len(), broken.len());
    Ok(broken.is_empty())
}

/// All files that are text.
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
