//! Runs every operation on a file once.

use crate::format::{HEAD_BYTES, Head};
use crate::{
    Array, ArrayDesc, Dataset, Error, ErrorKind, Finding, Format, Layout, Limits, NodeId,
    OpenOptions, Result, Source, wire,
};

/// Number of frames of an array that are read; a damaged header may contain any number.
const FRAMES: u64 = 32;

/// Errors, findings and size of the tree.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<(&'static str, Error)>,
    pub(super) findings: Vec<Finding>,
    /// Nodes and levels of the tree.
    pub(super) nodes: u64,
    pub(super) depth: u64,
}

impl Outcome {
    fn note(&mut self, stage: &'static str, result: Result<()>) {
        if let Err(error) = result {
            self.errors.push((stage, error));
        }
    }

    /// Errors of the wrong kind, without a code, or without a location.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (stage, error) in &self.errors {
            let fault = if matches!(error.kind(), ErrorKind::Io | ErrorKind::Argument) {
                format!("wrong error kind `{}` for a damaged file", error.kind().name())
            } else if error.code().is_empty() {
                "an error without a code".to_string()
            } else if error.offset().is_none() && error.object().is_none() {
                "an error without a location".to_string()
            } else {
                continue;
            };
            out.push(format!("{stage}: {fault}: {error}"));
        }
        out.extend(self.findings.iter().filter_map(bad_finding));
        out
    }
}

/// A message if the finding has no code or no location.
pub(super) fn bad_finding(finding: &Finding) -> Option<String> {
    let missing = match finding {
        f if f.code.is_empty() => "code",
        f if f.offset.is_none() && f.object.is_none() => "location",
        _ => return None,
    };
    Some(format!("check: a finding without a {missing}: {}", finding.message))
}

/// Probes, checks and opens a file, lists its regions and objects, and reads every array.
pub(super) fn exercise(format: &dyn Format, source: &Source, limits: &Limits) -> Outcome {
    let mut outcome = Outcome::default();
    match wire::fetch(source, 0, HEAD_BYTES) {
        Ok(bytes) => drop(format.probe(Head { bytes: &bytes, len: source.len() })),
        Err(error) => outcome.errors.push(("probe", error)),
    }
    match format.abilities().checker.map(|checker| checker.check(source, limits, true)) {
        None => {}
        Some(Ok(report)) => outcome.findings = report.findings,
        Some(Err(error)) => outcome.errors.push(("check", error)),
    }
    match Dataset::open(format, source.clone(), &OpenOptions::with_limits(*limits)) {
        Ok(dataset) => walk(&dataset, &mut outcome),
        Err(error) => outcome.errors.push(("open", error)),
    }
    outcome
}

fn walk(dataset: &Dataset, outcome: &mut Outcome) {
    for (_, value) in dataset.summary() {
        let _ = value.to_string();
    }
    outcome.note("regions", dataset.regions(&mut |_| Ok(())));
    let tree = dataset.tree();
    outcome.nodes = tree.len() as u64;
    // Enough to read a valid file several times; bounds the work for headers with wrong sizes.
    let mut allowed = dataset.source().len().saturating_mul(16).saturating_add(4 << 20);
    for (_, node) in tree.iter() {
        outcome.depth = outcome.depth.max(node.path.split('/').count() as u64);
        for (_, value) in &node.attrs {
            let _ = value.to_string();
        }
    }
    for (id, node, desc) in tree.arrays() {
        let read = read_frames(dataset, id, desc, &mut allowed);
        outcome.note("read", read.map_err(|e| e.in_object(&node.path)));
    }
    let objects = dataset.objects(&mut |object| {
        let opened = dataset.open_array(&object.array);
        let read = opened.and_then(|array| drain(&array, &mut allowed));
        outcome.note("object", read.map_err(|e| e.in_object(&object.path)));
        Ok(())
    });
    outcome.note("objects", objects);
}

fn read_frames(dataset: &Dataset, id: NodeId, desc: &ArrayDesc, allowed: &mut u64) -> Result<()> {
    for frame in some_frames(dataset, desc)? {
        dataset
            .array_in_frame(id, frame)
            .and_then(|array| array.map_or(Ok(()), |array| drain(&array, allowed)))?;
    }
    Ok(())
}

/// The first and last frames of an array; 0 for an array without frames.
pub(super) fn some_frames(dataset: &Dataset, desc: &ArrayDesc) -> Result<Vec<u64>> {
    Ok(match &dataset.tree().resolve(desc)?.layout {
        Layout::PerFrame(table) => {
            let n = table.len();
            (0..n.min(FRAMES)).chain(n.saturating_sub(2).max(FRAMES.min(n))..n).collect()
        }
        _ => vec![0],
    })
}

/// Reads an array completely, or until `allowed` bytes are read.
fn drain(array: &Array, allowed: &mut u64) -> Result<()> {
    let mut stopped = *allowed == 0;
    if stopped {
        return Ok(());
    }
    let result = array.all()?.stream(|_, bytes| {
        *allowed = allowed.saturating_sub(bytes.len() as u64);
        stopped = *allowed == 0;
        if stopped { Err(Error::limit("read limit of the test reached")) } else { Ok(()) }
    });
    if stopped { Ok(()) } else { result }
}
