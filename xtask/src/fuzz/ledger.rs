//! `fuzz/ledger.toml`: the executions of every target, over all recorded runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::Result;
use crate::shell::root;

const HEAD: &str = "\
# Executions of the fuzz targets over all runs with `cargo xtask fuzz --record`, which adds to this file.
# `failures` counts runs that ended with a failure since the last run of the target without one.
";

/// The record of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    executions: u64,
    seconds: u64,
    failures: u64,
}

/// The records by target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger(BTreeMap<String, Record>);

impl Ledger {
    fn path() -> PathBuf {
        root().join("fuzz/ledger.toml")
    }

    /// Reads the file; empty if there is none.
    pub(super) fn read() -> Result<Self> {
        Self::parse(&fs::read_to_string(Self::path()).unwrap_or_default())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut records: BTreeMap<String, Record> = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || format!("fuzz/ledger.toml: unexpected line `{line}`");
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                name = section.to_string();
                records.insert(name.clone(), Record::default());
                continue;
            }
            let record = records.get_mut(&name).ok_or_else(wrong)?;
            let (key, value) = line.split_once('=').ok_or_else(wrong)?;
            let value = value.trim().parse().map_err(|_| wrong())?;
            match key.trim() {
                "executions" => record.executions = value,
                "seconds" => record.seconds = value,
                "failures" => record.failures = value,
                _ => return Err(wrong()),
            }
        }
        Ok(Self(records))
    }

    /// Adds a run; `executions` is none if it failed.
    pub(super) fn add(mut self, name: &str, executions: Option<u64>, seconds: u64) -> Self {
        let record = self.0.entry(name.to_string()).or_default();
        match executions {
            Some(executions) => {
                record.executions += executions;
                record.seconds += seconds;
                record.failures = 0;
            }
            None => record.failures += 1,
        }
        self
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_string();
        for (name, Record { executions, seconds, failures }) in &self.0 {
            let _ = write!(
                text,
                "\n[{name}]\nexecutions = {executions}\nseconds = {seconds}\nfailures = {failures}\n"
            );
        }
        text
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<()> {
        let path = Self::path();
        fs::write(&path, self.text()).map_err(|e| format!("{}: {e}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_accumulate_and_failures_are_open_until_a_run_succeeds() {
        let first = Ledger::default().add("a_open", Some(5), 1).add("b", None, 1);
        let read = Ledger::parse(&first.text()).unwrap();
        assert_eq!(read, first);
        let second = read.add("a_open", Some(7), 2).add("b", None, 2);
        assert_eq!(second.0["a_open"], Record { executions: 12, seconds: 3, failures: 0 });
        assert_eq!(second.0["b"].failures, 2);
        assert_eq!(second.add("b", Some(1), 1).0["b"].failures, 0);
        assert!(Ledger::parse("executions = 1").is_err());
    }
}
