//! The files of a run: `0000.sdf`, `0001.sdf`, ... with an optional prefix.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spile_core::format::{Folder, Run, Series};

use crate::Sdf;

impl Series for Sdf {
    /// The `.sdf` files of each run, sorted by number. EPOCH gives every kind of output a prefix of its own
    /// (`normal0000.sdf`, `r0000.sdf`); these are different runs. Of runs with equally many files, the first is
    /// the first by name.
    fn runs(&self, folder: &Folder) -> Vec<Run> {
        let mut series: BTreeMap<String, Vec<(usize, String, PathBuf)>> = BTreeMap::new();
        for file in folder.with_extension("sdf") {
            let (prefix, digits) = split_name(&file);
            // Numbers of any length: the shorter one is smaller.
            series.entry(prefix).or_default().push((digits.len(), digits, file));
        }
        let mut runs: Vec<Run> = series
            .into_iter()
            .map(|(prefix, mut files)| {
                files.sort();
                let files: Vec<PathBuf> = files.into_iter().map(|(.., file)| file).collect();
                Run { pattern: pattern(&prefix, &files), files }
            })
            .collect();
        runs.sort_by_key(|run| Reverse(run.files.len()));
        runs
    }
}

/// The pattern of the names of files with `prefix`; the name of a single file.
fn pattern(prefix: &str, files: &[PathBuf]) -> String {
    match files {
        [file] => file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        _ if prefix.is_empty() => "[0-9]*.sdf".into(),
        _ => format!("{prefix}*.sdf"),
    }
}

/// Prefix of a file name and the digits of its number without leading zeros.
fn split_name(file: &Path) -> (String, String) {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let prefix = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    (prefix.into(), stem[prefix.len()..].trim_start_matches('0').into())
}
