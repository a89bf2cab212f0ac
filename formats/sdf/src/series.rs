//! The files of a run: `0000.sdf`, `0001.sdf`, ... with an optional prefix.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spile_core::format::{Folder, Series};

use crate::Sdf;

impl Series for Sdf {
    /// The `.sdf` files of one run, sorted by number. EPOCH gives every kind of output a prefix of its
    /// own (`normal0000.sdf`, `r0000.sdf`); these are different series, and the largest one is returned.
    fn members(&self, folder: &Folder) -> Vec<PathBuf> {
        let mut series: BTreeMap<String, Vec<(usize, String, PathBuf)>> = BTreeMap::new();
        for file in folder.with_extension("sdf") {
            let (prefix, digits) = split_name(&file);
            // Numbers of any length: the shorter one is smaller.
            series.entry(prefix).or_default().push((digits.len(), digits, file));
        }
        // Of series with equally many files, the first by name.
        let largest = series.into_values().rev().max_by_key(Vec::len);
        let mut files = largest.unwrap_or_default();
        files.sort();
        files.into_iter().map(|(.., file)| file).collect()
    }
}

/// Prefix of a file name and the digits of its number without leading zeros.
fn split_name(file: &Path) -> (String, String) {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let prefix = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    (prefix.into(), stem[prefix.len()..].trim_start_matches('0').into())
}
