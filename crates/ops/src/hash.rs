//! Digests of arrays and of the format's own objects.

use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use spile_core::format::Object;
use spile_core::{Array, ArrayDesc, Axes, Dataset, Error, Finding, Hint, Node, Result, Selection};

use crate::json::hex;
use crate::pick::Pick;

/// Number of arrays, frames or objects hashed at once; limits memory.
pub(crate) const BATCH: usize = 256;

/// Fails if only the intact parts of a damaged file were opened: their digest would be taken for that of the file. These
/// files have a warning that recommends to salvage them.
pub(crate) fn require_complete(dataset: &Dataset) -> Result<()> {
    let salvage = |f: &&Finding| matches!(&f.hint, Some(Hint::Operation { name: "salvage", .. }));
    let Some(finding) = dataset.warnings().iter().find(salvage) else { return Ok(()) };
    let error = Error::truncated(finding.code, &*finding.message).in_source(dataset.source());
    let error = finding.offset.into_iter().fold(error, Error::at);
    let error = finding.object.iter().fold(error, Error::in_object);
    Err(finding.hint.clone().into_iter().fold(error, Error::hint))
}

/// The digest of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayHash {
    /// Its path.
    pub path: String,
    /// The format's own name, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The frame, where the array has frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// Element type as stored.
    pub dtype: String,
    /// Lengths.
    pub shape: Vec<u64>,
    /// Number of digested bytes.
    pub nbytes: u64,
    /// Digest of the stored values, little-endian, in the element order of the file.
    pub sha256: String,
}

/// The digest of one of the format's own objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectHash {
    /// Its name.
    pub path: String,
    /// Its native identifier, where that differs from the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// Its type in the terms of the format.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of digested bytes.
    pub nbytes: u64,
    /// Digest of the stored values, little-endian, in the element order of the file.
    pub sha256: String,
}

pub(crate) type Sum = [u8; 32];

/// Calls `each` with the digests of the selected arrays, in file order.
pub fn hash(
    dataset: &Dataset,
    pick: &Pick,
    each: &mut dyn FnMut(ArrayHash) -> Result<()>,
) -> Result<()> {
    // Selected arrays are read completely, or an error.
    if pick.is_all() {
        require_complete(dataset)?;
    }
    let tree = dataset.tree();
    let mut batch: Vec<(&Node, &ArrayDesc, Option<u64>)> = Vec::new();
    let mut flush = |batch: &mut Vec<(&Node, &ArrayDesc, Option<u64>)>| {
        let work = |(node, own, frame): &(&Node, &ArrayDesc, Option<u64>)| {
            let array = dataset.open_array_in_frame(own, frame.unwrap_or(0));
            let row = array
                .and_then(|array| array.map(|array| array_hash(node, *frame, &array)).transpose());
            row.map_err(|e| locate(e, &node.path, *frame))
        };
        let rows = batch.par_iter().map(work).collect::<Result<Vec<_>>>()?;
        batch.clear();
        rows.into_iter().flatten().try_for_each(&mut *each)
    };
    for (node, own) in pick.arrays(tree)? {
        let table = tree.resolve(own)?.layout.frames();
        let frames = table.map(|table| pick.frames_of(&[&**table])).transpose()?;
        let single = frames.is_none().then_some(Ok(None));
        for frame in frames.into_iter().flatten().map(|frame| frame.map(Some)).chain(single) {
            batch.push((node, own, frame?));
            if batch.len() == BATCH {
                flush(&mut batch)?;
            }
        }
    }
    flush(&mut batch)
}

/// Calls `each` with the digests of the format's own objects, in file order.
pub fn native(dataset: &Dataset, each: &mut dyn FnMut(ObjectHash) -> Result<()>) -> Result<()> {
    require_complete(dataset)?;
    let mut batch: Vec<Object> = Vec::new();
    let mut flush = |batch: &mut Vec<Object>| {
        let work = |object: &Object| object_hash(dataset, object);
        let rows = batch.par_iter().map(work).collect::<Result<Vec<_>>>()?;
        batch.clear();
        rows.into_iter().try_for_each(&mut *each)
    };
    dataset.objects(&mut |object| {
        batch.push(object);
        if batch.len() == BATCH { flush(&mut batch) } else { Ok(()) }
    })?;
    flush(&mut batch)
}

pub(crate) fn sum(array: &Array, axes: Axes<'_>) -> Result<Sum> {
    let mut hasher = Sha256::new();
    array.select(&Selection::all(), axes)?.stream(|_, block| {
        hasher.update(block);
        Ok(())
    })?;
    Ok(hasher.finalize().into())
}

fn array_hash(node: &Node, frame: Option<u64>, array: &Array) -> Result<ArrayHash> {
    Ok(ArrayHash {
        path: node.path.clone(),
        id: node.id.clone(),
        frame,
        dtype: array.dtype().to_string(),
        shape: array.shape().lengths().to_vec(),
        nbytes: array.shape().bytes(array.dtype().size())?,
        sha256: hex(&sum(array, Axes::Stored)?),
    })
}

fn object_hash(dataset: &Dataset, object: &Object) -> Result<ObjectHash> {
    let work = || -> Result<ObjectHash> {
        let array = dataset.open_array(&object.array)?;
        Ok(ObjectHash {
            path: object.path.clone(),
            id: object.id.clone(),
            frame: object.frame,
            kind: object.kind.clone(),
            nbytes: array.shape().bytes(array.dtype().size())?,
            sha256: hex(&sum(&array, Axes::Stored)?),
        })
    };
    work().map_err(|e| locate(e, &object.path, object.frame))
}

fn locate(error: Error, path: &str, frame: Option<u64>) -> Error {
    let error = error.in_object(format!("\"{path}\""));
    match frame {
        Some(frame) => error.in_frame(frame),
        None => error,
    }
}

/// Calls `work` with a few of `items` at a time.
pub(crate) fn batches(
    items: impl Iterator<Item = Result<u64>>,
    mut work: impl FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let mut items = items.peekable();
    while items.peek().is_some() {
        let batch = items.by_ref().take(BATCH).collect::<Result<Vec<u64>>>()?;
        work(&batch)?;
    }
    Ok(())
}

pub(crate) fn quoted(node: &Node) -> String {
    format!("\"{}\"", node.path)
}
