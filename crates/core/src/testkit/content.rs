//! Checks of detection, findings, regions, golden hashes and round trips.

use std::collections::BTreeMap;

use super::exercise::bad_finding;
use super::same::{differences, object_hashes};
use super::{Random, Suite, name};
use crate::format::{Grade, HEAD_BYTES, Head, WriteOptions, write_file, writer_of};
use crate::report::Severity;
use crate::{ErrorKind, Format, Overwrite, Result, Source, wire};

pub(super) fn probe(suite: &Suite) -> Vec<String> {
    let mut failures = Vec::new();
    for path in &suite.good {
        let head = Source::open(path)
            .and_then(|source| Ok((wire::fetch(&source, 0, HEAD_BYTES)?, source.len())));
        match head {
            Ok((bytes, len)) if suite.format.probe(Head { bytes: &bytes, len }) > 0 => {
                // A file that is being written may be shorter than the header.
                for cut in 0..bytes.len() {
                    suite.format.probe(Head { bytes: &bytes[..cut], len: cut as u64 });
                }
            }
            Ok(_) => failures.push(format!("{}: not recognised", name(path))),
            Err(error) => failures.push(format!("{error:?}")),
        }
    }
    let mut random = Random(9);
    for round in 0..200 {
        let len = if round == 0 { 0 } else { random.below(HEAD_BYTES as u64) + 1 };
        let noise: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        let score = suite.format.probe(Head { bytes: &noise, len });
        if score > 0 {
            failures.push(format!("recognises {len} random bytes with a score of {score}"));
        }
    }
    failures
}

pub(super) fn check(suite: &Suite) -> Vec<String> {
    suite.each_good(|dataset| {
        let mut failures = Vec::new();
        for strict in [false, true] {
            let findings = suite.findings(dataset.source(), strict)?;
            failures.extend(findings.iter().filter_map(bad_finding));
            // Good files may have findings of `strict` checks.
            let bad = findings.iter().filter(|f| !strict && f.severity == Severity::Error);
            failures.extend(bad.map(|f| format!("finding in a good file: {}", f.message)));
        }
        Ok(failures)
    })
}

pub(super) fn regions(suite: &Suite) -> Vec<String> {
    suite.each_good(|dataset| {
        let len = dataset.source().len();
        let mut failures = Vec::new();
        let mut end = 0;
        dataset.regions(&mut |region| {
            let next = region.offset.saturating_add(region.len);
            if region.offset < end || next > len {
                failures.push(format!(
                    "region \"{}\" ({} to {next}) overlaps the one before, which ends at {end}, \
                     or the end of the file, {len}",
                    region.name, region.offset
                ));
            }
            end = next;
            Ok(())
        })?;
        Ok(failures)
    })
}

pub(super) fn golden(suite: &Suite) -> Vec<String> {
    let mut failures = Vec::new();
    for (path, expected) in &suite.golden {
        let found = Source::open(path)
            .and_then(|source| suite.open(source))
            .and_then(|dataset| object_hashes(&dataset));
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                failures.push(format!("{error:?}"));
                continue;
            }
        };
        let mut balance: BTreeMap<&str, i64> = BTreeMap::new();
        for hash in &found {
            *balance.entry(hash).or_default() += 1;
        }
        for hash in expected {
            *balance.entry(hash).or_default() -= 1;
        }
        let list = |select: fn(i64) -> bool| {
            let some = balance.iter().filter(|(_, n)| select(**n)).map(|(hash, _)| *hash);
            some.collect::<Vec<_>>().join(" ")
        };
        let (extra, missing) = (list(|n| n > 0), list(|n| n < 0));
        if !(extra.is_empty() && missing.is_empty()) {
            failures.push(format!(
                "{}: expected {} objects, found {}; missing: [{missing}]; unexpected: [{extra}]",
                name(path),
                expected.len(),
                found.len()
            ));
        }
    }
    failures
}

pub(super) fn round_trip(suite: &Suite) -> Vec<String> {
    let grade = suite.format.info().write;
    if grade == Grade::None {
        return Vec::new();
    }
    suite.each_good(|dataset| {
        let folder = tempfile::tempdir()?;
        // The same name: some formats have several variants, distinguished by their extension.
        let file = dataset.source().path().and_then(|p| p.file_name()).unwrap_or_default();
        let target = folder.path().join(file);
        match write_file(suite.format, dataset, &target, Overwrite::Never) {
            Err(e) if e.kind() == ErrorKind::Unsupported && grade == Grade::Partial => {
                return Ok(Vec::new());
            }
            written => drop(written?),
        }
        let again = suite.open(Source::open(&target)?)?;
        let prepared = writer_of(suite.format)?.prepare(dataset, &WriteOptions::default());
        let mut failures = differences(&prepared, &again)?;
        failures.extend(recognised(suite.format, again.source())?);
        Ok(failures.into_iter().map(|f| format!("written and read back: {f}")).collect())
    })
}

fn recognised(format: &dyn Format, source: &Source) -> Result<Option<String>> {
    let bytes = wire::fetch(source, 0, HEAD_BYTES)?;
    let score = format.probe(Head { bytes: &bytes, len: source.len() });
    Ok((score == 0).then(|| "not recognised".to_string()))
}
