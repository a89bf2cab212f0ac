//! Content must not depend on the kind of source, the selections or the memory limit.

use super::exercise::{Outcome, exercise, some_frames};
use super::same::{differences, object_hashes};
use super::{Random, Suite, guard, name};
use crate::format::Region;
use crate::{Array, Axes, Dataset, ErrorKind, Limits, Result, Selection, Slice, Source};

/// Larger arrays, in bytes, are not tested with small reads.
const LARGEST: u64 = 16 << 20;

/// Number of single elements and of windows read per array; number of elements of a window.
const SINGLES: u64 = 300;
const WINDOWS: usize = 40;
const WINDOW: f64 = 20_000.0;

pub(super) fn sources(suite: &Suite) -> Vec<String> {
    let regions = |dataset: &Dataset| -> Result<Vec<Region>> {
        let mut all = Vec::new();
        dataset.regions(&mut |region| {
            all.push(region);
            Ok(())
        })?;
        Ok(all)
    };
    suite.each_good(|file| {
        let bytes = file.source().read_vec(0, file.source().len())?;
        let mut failures = Vec::new();
        for (kind, source) in
            [("mapped", Source::map_copy(&bytes)?), ("in memory", Source::memory(&bytes[..]))]
        {
            let other = suite.open(source.clone())?;
            failures.extend(differences(file, &other)?);
            let report = |source: &Source| suite.findings(source, true);
            let same = [
                ("objects", object_hashes(file)? == object_hashes(&other)?),
                ("regions", regions(file)? == regions(&other)?),
                // Debug text, because a NaN is not equal to itself.
                ("summary", format!("{:?}", file.summary()) == format!("{:?}", other.summary())),
                ("findings", report(file.source())? == report(&source)?),
            ];
            let different = same.iter().filter(|(_, same)| !same);
            failures.extend(different.map(|(what, _)| format!("different {what} when {kind}")));
        }
        Ok(failures)
    })
}

pub(super) fn limits(suite: &Suite) -> Vec<String> {
    let default = suite.limits;
    let mut tight: Vec<Limits> = Vec::new();
    tight.extend([0, 100, 4 << 10, 64 << 10].map(|memory| Limits { memory, ..default }));
    tight.extend([0, 1, 2].map(|nodes| Limits { nodes, ..default }));
    tight.extend([0, 1].map(|depth| Limits { depth, ..default }));
    tight.push(Limits { memory: 0, nodes: 0, depth: 0 });
    let mut failures = Vec::new();
    for path in &suite.good {
        let source = match Source::open(path) {
            Ok(source) => source,
            Err(error) => {
                failures.push(format!("{error:?}"));
                continue;
            }
        };
        let cases = tight.clone().into_iter().map(move |limits| {
            let Limits { memory, nodes, depth } = limits;
            (format!("memory {memory}, nodes {nodes}, depth {depth}"), limits, source.clone())
        });
        let format = suite.format;
        failures.extend(guard::run(suite, &name(path), cases, move |source, limits| {
            let outcome = exercise(format, &source, limits);
            let others = outcome.errors.iter().filter(|(_, e)| e.kind() != ErrorKind::Limit);
            let mut out: Vec<String> = others
                .map(|(stage, e)| format!("{stage}: expected a `Limit` error: {e}"))
                .collect();
            // The root always exists.
            if outcome.nodes >= limits.nodes.max(1) || outcome.depth > u64::from(limits.depth) {
                let Outcome { nodes, depth, .. } = outcome;
                out.push(format!("the tree has {nodes} nodes and {depth} levels"));
            }
            out
        }));
    }
    failures
}

pub(super) fn split_reads(suite: &Suite) -> Vec<String> {
    suite.each_good(|dataset| {
        let mut failures = Vec::new();
        for (id, node, desc) in dataset.arrays() {
            for frame in some_frames(dataset, desc)? {
                let Some(array) = dataset.array_in_frame(id, frame)? else { continue };
                if array.shape().bytes(array.dtype().size())? > LARGEST {
                    continue;
                }
                let found = split(&array)?;
                failures.extend(found.into_iter().map(|f| format!("{}: {f}", node.path)));
            }
        }
        Ok(failures)
    })
}

fn split(array: &Array) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let lengths = array.shape().lengths();
    let size = array.dtype().size();
    let all = array.bytes()?;
    let count = array.shape().count().unwrap_or(0);

    let mut joined = Vec::with_capacity(all.len());
    // Blocks of one element, of a few for long arrays.
    array.all()?.with_block_bytes(size.max(all.len() / 50_000)).stream(|_, bytes| {
        joined.extend_from_slice(bytes);
        Ok(())
    })?;
    if joined != all {
        failures.push("small blocks give different elements".to_string());
    }

    let axes: Vec<usize> = (0..lengths.len()).collect();
    let mut random = Random(count);
    for _ in 0..SINGLES.min(count) {
        let one: Vec<Slice> =
            lengths.iter().map(|n| Slice::Index(random.below(*n) as i64)).collect();
        compare(array, &all, one, &axes, &mut failures)?;
    }
    let longest = WINDOW.powf(1.0 / lengths.len().max(1) as f64) as u64 + 1;
    for _ in 0..WINDOWS {
        let window = lengths.iter().map(|n| window(&mut random, *n, longest)).collect();
        let mut order = axes.clone();
        for k in (1..order.len()).rev() {
            order.swap(k, random.below(k as u64 + 1) as usize);
        }
        compare(array, &all, window, &order, &mut failures)?;
    }
    Ok(failures)
}

/// A random slice over at most `longest` indices of a dimension, forwards or backwards.
fn window(random: &mut Random, length: u64, longest: u64) -> Slice {
    let step = 1 + random.below(4) as i64;
    let start = random.below(length) as i64;
    let reach = random.below(longest.min(length) + 1) as i64;
    if random.below(3) == 0 {
        let stop = start - reach;
        let stop = (stop >= 0).then_some(stop);
        return Slice::Range { start: Some(start), stop, step: -step };
    }
    Slice::Range { start: Some(start), stop: Some(start + reach), step }
}

/// Compares a read of `slices` with the same elements of `all`.
fn compare(
    array: &Array,
    all: &[u8],
    slices: Vec<Slice>,
    slowest: &[usize],
    failures: &mut Vec<String>,
) -> Result<()> {
    let selection = Selection(slices);
    let read = array.read_bytes(&selection, Axes::Slowest(slowest))?;
    let spans = selection.resolve(array.shape())?;
    let strides = array.shape().strides(array.order());
    let size = array.dtype().size();
    let mut offsets = vec![0_i64];
    for k in slowest {
        let (span, stride) = (spans[*k], strides[*k] as i64);
        let along = |at: i64| {
            (0..span.count as i64).map(move |i| at + (span.start as i64 + i * span.step) * stride)
        };
        offsets = offsets.into_iter().flat_map(along).collect();
    }
    let picked: Vec<u8> = offsets
        .iter()
        .flat_map(|at| &all[*at as usize * size..(*at as usize + 1) * size])
        .copied()
        .collect();
    if read != picked {
        failures.push(format!("{:?} in the order {slowest:?} gives wrong elements", selection.0));
    }
    Ok(())
}
