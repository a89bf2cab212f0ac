//! Truncated files and files with one changed byte.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::exercise::exercise;
use super::{Suite, guard, name};
use crate::format::{Region, RegionKind};
use crate::{Result, Source};

/// In files up to this length in bytes, every byte is changed.
const SMALL: u64 = 4 << 10;

/// Number of truncations besides the boundaries of regions.
const CUTS: u64 = 200;

/// Number of data bytes that are changed in larger files.
const DATA_BYTES: u64 = 300;

fn load(suite: &Suite, path: &Path) -> Result<(Arc<[u8]>, Vec<Region>)> {
    let source = Source::open(path)?;
    let bytes = source.read_vec(0, source.len())?;
    let mut regions = Vec::new();
    suite.open(source)?.regions(&mut |region| {
        regions.push(region);
        Ok(())
    })?;
    Ok((bytes.into(), regions))
}

fn each_file(
    suite: &Suite,
    look: impl Fn(&str, Arc<[u8]>, &[Region]) -> Vec<String>,
) -> Vec<String> {
    let mut failures = Vec::new();
    for path in &suite.good {
        match load(suite, path) {
            Ok((bytes, regions)) => failures.extend(look(&name(path), bytes, &regions)),
            Err(error) => failures.push(format!("{}: {error:?}", name(path))),
        }
    }
    failures
}

/// At most `most` of the offsets, evenly spaced.
fn thin(offsets: Vec<u64>, most: u64) -> Vec<u64> {
    let step = (offsets.len() as u64).div_ceil(most.max(1)).max(1) as usize;
    offsets.into_iter().step_by(step).collect()
}

/// `n` evenly spaced offsets below `len`.
fn spread(n: u64, len: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |k| (u128::from(k) * u128::from(len) / u128::from(n)) as u64)
}

pub(super) fn truncation(suite: &Suite) -> Vec<String> {
    each_file(suite, |file, bytes, regions| {
        let len = bytes.len() as u64;
        let ends = regions.iter().flat_map(|r| [r.offset, r.offset.saturating_add(r.len)]);
        let mut offsets: BTreeSet<u64> =
            ends.flat_map(|at| [at.saturating_sub(1), at, at.saturating_add(1)]).collect();
        offsets.extend(spread(CUTS, len));
        let offsets: Vec<u64> = offsets.into_iter().filter(|at| *at < len).collect();
        let most = (suite.work / len.max(1)).max(CUTS);
        let (format, limits) = (suite.format, suite.limits);
        let cases = thin(offsets, most).into_iter().map(move |at| {
            let source = Source::memory(&bytes[..at as usize]);
            (format!("cut to {at} of {len} bytes"), limits, source)
        });
        guard::run(suite, file, cases, move |source, limits| {
            exercise(format, &source, limits).complaints()
        })
    })
}

pub(super) fn corruption(suite: &Suite) -> Vec<String> {
    each_file(suite, |file, bytes, regions| {
        let len = bytes.len() as u64;
        let offsets = if len <= SMALL {
            (0..len).collect()
        } else {
            let mut offsets: BTreeSet<u64> = regions
                .iter()
                .filter(|region| region.kind != RegionKind::Data)
                .flat_map(|r| r.offset..r.offset.saturating_add(r.len).min(len))
                .collect();
            offsets.extend(spread(DATA_BYTES, len));
            let most = (suite.work / len / 5).max(DATA_BYTES);
            thin(offsets.into_iter().collect(), most)
        };
        let (format, limits) = (suite.format, suite.limits);
        let cases = offsets.into_iter().flat_map(move |at| {
            let old = bytes[at as usize];
            let mut values = vec![0, 0xff, old ^ 0x01, old ^ 0x80, old.wrapping_add(1)];
            values.sort_unstable();
            values.dedup();
            values.retain(|value| *value != old);
            let bytes = Arc::clone(&bytes);
            values.into_iter().map(move |value| {
                let mut damaged = bytes.to_vec();
                damaged[at as usize] = value;
                let label = format!("byte {at} set to {value:#04x}");
                (label, limits, Source::memory(damaged))
            })
        });
        guard::run(suite, file, cases, move |source, limits| {
            exercise(format, &source, limits).complaints()
        })
    })
}
